// Entry points: virtual memory management.
#include "convert.hpp"
#include "descriptors.hpp"
#include "entry.hpp"

namespace granule::libcuda {

GRANULE_ENTRY(cuMemAddressReserve)
(abi::DevicePtr* ptr, std::size_t size, std::size_t alignment, abi::DevicePtr hint,
 unsigned long long flags) {
  if (const abi::Result not_ready = ready_for(ptr)) return not_ready;
  MemAddressReserve call;
  call.size = size;
  call.alignment = alignment;
  call.hint = {hint};
  call.flags = flags;
  return submit_for(call, ptr, [](const auto& c) { return c.ptr.value; });
}

GRANULE_ENTRY(cuMemAddressFree)(abi::DevicePtr ptr, std::size_t size) {
  MemAddressFree call;
  call.ptr = {ptr};
  call.size = size;
  return submit(call);
}

GRANULE_ENTRY(cuMemCreate)
(abi::AllocationHandle* handle, std::size_t size, const abi::MemAllocationProp* properties,
 unsigned long long flags) {
  if (const abi::Result not_ready = ready_for(handle)) return not_ready;
  if (properties == nullptr) return kBadValue;
  look_for_closed_descriptors();
  MemCreate call;
  call.size = size;
  call.properties = from_abi(*properties);
  call.flags = flags;
  return submit_for(call, handle, [](const auto& c) { return c.handle.value; });
}

GRANULE_ENTRY(cuMemRelease)(abi::AllocationHandle handle) {
  MemRelease call;
  call.handle = {handle};
  return submit(call);
}

GRANULE_ENTRY(cuMemRetainAllocationHandle)(abi::AllocationHandle* handle, void* ptr) {
  if (const abi::Result not_ready = ready_for(handle)) return not_ready;
  MemRetainAllocationHandle call;
  call.ptr = {value_of(ptr)};
  return submit_for(call, handle, [](const auto& c) { return c.handle.value; });
}

GRANULE_ENTRY(cuMemMap)
(abi::DevicePtr ptr, std::size_t size, std::size_t offset, abi::AllocationHandle handle,
 unsigned long long flags) {
  MemMap call;
  call.ptr = {ptr};
  call.size = size;
  call.offset = offset;
  call.handle = {handle};
  call.flags = flags;
  return submit(call);
}

GRANULE_ENTRY(cuMemUnmap)(abi::DevicePtr ptr, std::size_t size) {
  MemUnmap call;
  call.ptr = {ptr};
  call.size = size;
  return submit(call);
}

GRANULE_ENTRY(cuMemSetAccess)
(abi::DevicePtr ptr, std::size_t size, const abi::MemAccessDesc* list, std::size_t count) {
  if (const abi::Result not_ready = ready()) return not_ready;
  MemSetAccess call;
  if (!read_access(list, count, call.access)) return kBadValue;
  call.ptr = {ptr};
  call.size = size;
  return submit(call);
}

GRANULE_ENTRY(cuMemGetAccess)
(unsigned long long* flags, const abi::MemLocation* location, abi::DevicePtr ptr) {
  if (const abi::Result not_ready = ready_for(flags)) return not_ready;
  if (location == nullptr) return kBadValue;
  MemGetAccess call;
  call.location = from_abi(*location);
  call.ptr = {ptr};
  return submit_for(call, flags,
                    [](const auto& c) { return static_cast<unsigned long long>(c.access); });
}

GRANULE_ENTRY(cuMemGetAllocationGranularity)
(std::size_t* granularity, const abi::MemAllocationProp* properties, int option) {
  if (const abi::Result not_ready = ready_for(granularity)) return not_ready;
  if (properties == nullptr) return kBadValue;
  MemGetAllocationGranularity call;
  call.properties = from_abi(*properties);
  call.option = static_cast<GranularityKind>(option);
  return submit_for(call, granularity, [](const auto& c) { return std::size_t{c.granularity}; });
}

GRANULE_ENTRY(cuMemGetAllocationPropertiesFromHandle)
(abi::MemAllocationProp* properties, abi::AllocationHandle handle) {
  if (const abi::Result not_ready = ready_for(properties)) return not_ready;
  MemGetAllocationPropertiesFromHandle call;
  call.handle = {handle};
  return submit_for(call, properties, [](const auto& c) { return to_abi(c.properties); });
}

GRANULE_ENTRY(cuMemExportToShareableHandle)
(void* out, abi::AllocationHandle handle, int type, unsigned long long flags) {
  if (const abi::Result not_ready = ready_for(out)) return not_ready;
  look_for_closed_descriptors();
  MemExportToShareableHandle call;
  call.handle = {handle};
  call.type = static_cast<HandleType>(type);
  call.flags = flags;
  const abi::Result result = submit(call);
  if (result != kOk) return result;
  const int descriptor = open_descriptor(call.descriptor);
  if (descriptor < 0) {
    CloseDescriptor undo;
    undo.descriptor = call.descriptor;
    submit(undo);
    return static_cast<int>(DriverStatus::kOperatingSystem);
  }
  *static_cast<int*>(out) = descriptor;
  return kOk;
}

GRANULE_ENTRY(cuMemImportFromShareableHandle)
(abi::AllocationHandle* handle, void* os_handle, int type) {
  if (const abi::Result not_ready = ready_for(handle)) return not_ready;
  look_for_closed_descriptors();
  MemImportFromShareableHandle call;
  call.descriptor = model_descriptor(static_cast<int>(value_of(os_handle)));
  call.type = static_cast<HandleType>(type);
  return submit_for(call, handle, [](const auto& c) { return c.handle.value; });
}

}  // namespace granule::libcuda
