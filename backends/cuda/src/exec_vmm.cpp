// The virtual memory management calls.
#include <unistd.h>

#include <cerrno>

#include "impl.hpp"

namespace granule::cuda {

DriverStatus CudaBackend::Impl::call(MemAddressReserve& c) {
  abi::DevicePtr ptr = c.ptr.value;
  const DriverStatus status = invoke(driver->cuMemAddressReserve, &ptr, std::size_t{c.size},
                                     std::size_t{c.alignment}, to_abi(c.hint), c.flags);
  c.ptr.value = ptr;
  return status;
}

DriverStatus CudaBackend::Impl::call(MemAddressFree& c) {
  return invoke(driver->cuMemAddressFree, to_abi(c.ptr), std::size_t{c.size});
}

DriverStatus CudaBackend::Impl::call(MemCreate& c) {
  abi::AllocationHandle handle = c.handle.value;
  const abi::MemAllocationProp properties = to_abi(c.properties);
  const DriverStatus status =
      invoke(driver->cuMemCreate, &handle, std::size_t{c.size}, &properties, c.flags);
  c.handle.value = handle;
  return status;
}

DriverStatus CudaBackend::Impl::call(MemRelease& c) {
  return invoke(driver->cuMemRelease, to_abi(c.handle));
}

DriverStatus CudaBackend::Impl::call(MemRetainAllocationHandle& c) {
  abi::AllocationHandle handle = c.handle.value;
  const DriverStatus status =
      invoke(driver->cuMemRetainAllocationHandle, &handle, to_pointer<void*>(c.ptr.value));
  c.handle.value = handle;
  return status;
}

DriverStatus CudaBackend::Impl::call(MemMap& c) {
  return invoke(driver->cuMemMap, to_abi(c.ptr), std::size_t{c.size}, std::size_t{c.offset},
                to_abi(c.handle), c.flags);
}

DriverStatus CudaBackend::Impl::call(MemUnmap& c) {
  return invoke(driver->cuMemUnmap, to_abi(c.ptr), std::size_t{c.size});
}

DriverStatus CudaBackend::Impl::call(MemSetAccess& c) {
  const AccessDescs list(c.access);
  const abi::MemAccessDesc* descs = list.descs.data();
  return invoke(driver->cuMemSetAccess, to_abi(c.ptr), std::size_t{c.size}, descs, list.count);
}

DriverStatus CudaBackend::Impl::call(MemGetAccess& c) {
  unsigned long long flags = static_cast<std::uint32_t>(c.access);
  const abi::MemLocation location = to_abi(c.location);
  const DriverStatus status = invoke(driver->cuMemGetAccess, &flags, &location, to_abi(c.ptr));
  c.access = static_cast<Access>(flags);
  return status;
}

DriverStatus CudaBackend::Impl::call(MemGetAllocationGranularity& c) {
  std::size_t granularity = c.granularity;
  const abi::MemAllocationProp properties = to_abi(c.properties);
  const DriverStatus status = invoke(driver->cuMemGetAllocationGranularity, &granularity,
                                     &properties, static_cast<int>(c.option));
  c.granularity = granularity;
  return status;
}

DriverStatus CudaBackend::Impl::call(MemGetAllocationPropertiesFromHandle& c) {
  abi::MemAllocationProp properties = to_abi(c.properties);
  const DriverStatus status =
      invoke(driver->cuMemGetAllocationPropertiesFromHandle, &properties, to_abi(c.handle));
  c.properties = from_abi(properties);
  return status;
}

DriverStatus CudaBackend::Impl::call(MemExportToShareableHandle& c) {
  // A fabric handle takes 64 bytes; only a file descriptor is passed on.
  alignas(8) int exported[32] = {c.descriptor.value};
  const DriverStatus status =
      invoke(driver->cuMemExportToShareableHandle, static_cast<void*>(exported), to_abi(c.handle),
             static_cast<int>(c.type), c.flags);
  c.descriptor.value = exported[0];
  return status;
}

DriverStatus CudaBackend::Impl::call(MemImportFromShareableHandle& c) {
  abi::AllocationHandle handle = c.handle.value;
  // The descriptor goes by value in the pointer argument.
  void* by_value = reinterpret_cast<void*>(static_cast<std::intptr_t>(c.descriptor.value));
  const DriverStatus status =
      invoke(driver->cuMemImportFromShareableHandle, &handle, by_value, static_cast<int>(c.type));
  c.handle.value = handle;
  return status;
}

DriverStatus CudaBackend::Impl::call(CloseDescriptor& c) {
  if (close(c.descriptor.value) == 0) return DriverStatus::kSuccess;
  return errno == EBADF ? DriverStatus::kInvalidValue : DriverStatus::kOperatingSystem;
}

}  // namespace granule::cuda
