// Entry points: plain and pinned memory, memory information, pointer queries.
#include <algorithm>
#include <cstring>

#include "entry.hpp"

namespace granule::libcuda {
namespace {

abi::Result allocate(abi::DevicePtr* ptr, std::size_t size) {
  if (const abi::Result not_ready = ready_for(ptr)) return not_ready;
  MemAlloc call;
  call.size = size;
  const abi::Result result = submit(call);
  *ptr = result == kOk ? call.ptr.value : 0;  // failing calls write 0 (driver contract, S66)
  return result;
}

abi::Result allocate_host(void** host, std::size_t size) {
  if (const abi::Result not_ready = ready_for(host)) return not_ready;
  MemAllocHost call;
  call.size = size;
  return submit_for(call, host, [](const auto& c) { return pointer_of<void*>(c.host); });
}

/// Bytes that an attribute fills.
std::size_t width_of(PointerAttribute attribute) {
  switch (attribute) {
    case PointerAttribute::kMemoryType:
    case PointerAttribute::kSyncMemops:
    case PointerAttribute::kIsManaged:
    case PointerAttribute::kDeviceOrdinal:
    case PointerAttribute::kIsLegacyCudaIpcCapable:
    case PointerAttribute::kMapped:
    case PointerAttribute::kIsGpuDirectRdmaCapable:
    case PointerAttribute::kAccessFlags:
    case PointerAttribute::kIsHwDecompressCapable:
      return 4;
    default:
      return 8;
  }
}

abi::Result address_range(abi::DevicePtr* base, std::size_t* size, abi::DevicePtr ptr) {
  if (const abi::Result not_ready = ready()) return not_ready;
  MemGetAddressRange call;
  call.ptr = {ptr};
  const abi::Result result = submit(call);
  if (result != kOk) return result;
  if (base != nullptr) *base = call.base.value;
  if (size != nullptr) *size = call.size;
  return kOk;
}

abi::Result free_and_total(std::uint64_t& free, std::uint64_t& total) {
  MemGetInfo call;
  const abi::Result result = submit(call);
  free = call.free;
  total = call.total;
  return result;
}

}  // namespace

GRANULE_ENTRY(cuMemGetInfo_v2)(std::size_t* free, std::size_t* total) {
  if (const abi::Result not_ready = ready_for(free)) return not_ready;
  if (total == nullptr) return kBadValue;
  std::uint64_t bytes = 0;
  std::uint64_t all = 0;
  const abi::Result result = free_and_total(bytes, all);
  if (result != kOk) return result;
  *free = bytes;
  *total = all;
  return kOk;
}

GRANULE_ENTRY(cuMemAlloc_v2)(abi::DevicePtr* ptr, std::size_t size) { return allocate(ptr, size); }
GRANULE_ENTRY(cuMemAllocPitch_v2)
(abi::DevicePtr* ptr, std::size_t* pitch, std::size_t width, std::size_t height, unsigned element) {
  if (const abi::Result not_ready = ready_for(ptr)) return not_ready;
  if (pitch == nullptr || (element != 4 && element != 8 && element != 16)) return kBadValue;
  constexpr std::size_t kPitch = 512;
  const std::size_t row = (width + kPitch - 1) / kPitch * kPitch;
  if (width == 0 || height == 0 || row < width) return kBadValue;
  if (row > SIZE_MAX / height) return static_cast<int>(DriverStatus::kOutOfMemory);
  const abi::Result result = allocate(ptr, row * height);
  if (result == kOk) *pitch = row;
  return result;
}
GRANULE_ENTRY(cuMemFree_v2)(abi::DevicePtr ptr) {
  MemFree call;
  call.ptr = {ptr};
  return submit(call);
}
GRANULE_ENTRY(cuMemGetAddressRange_v2)
(abi::DevicePtr* base, std::size_t* size, abi::DevicePtr ptr) {
  return address_range(base, size, ptr);
}

// The forms of 2007 with 32-bit sizes: programs that look the bare names up mean today's.
GRANULE_ENTRY(cuMemAlloc)(abi::DevicePtr* ptr, std::size_t size) { return allocate(ptr, size); }
GRANULE_ENTRY(cuMemFree)(abi::DevicePtr ptr) { return GRANULE_CALL(cuMemFree_v2)(ptr); }
GRANULE_ENTRY(cuMemGetInfo)(std::size_t* free, std::size_t* total) {
  return GRANULE_CALL(cuMemGetInfo_v2)(free, total);
}
GRANULE_ENTRY(cuMemGetAddressRange)
(abi::DevicePtr* base, std::size_t* size, abi::DevicePtr ptr) {
  return address_range(base, size, ptr);
}

GRANULE_ENTRY(cuMemAllocHost_v2)(void** host, std::size_t size) {
  return allocate_host(host, size);
}
GRANULE_ENTRY(cuMemAllocHost)(void** host, std::size_t size) { return allocate_host(host, size); }
GRANULE_ENTRY(cuMemHostAlloc)(void** host, std::size_t size, unsigned flags) {
  if (const abi::Result not_ready = ready_for(host)) return not_ready;
  return (flags & ~7u) != 0 ? kBadValue : allocate_host(host, size);
}
GRANULE_ENTRY(cuMemFreeHost)(void* host) {
  MemFreeHost call;
  call.host = value_of(host);
  return submit(call);
}
GRANULE_ENTRY(cuMemHostGetDevicePointer_v2)(abi::DevicePtr* ptr, void* host, unsigned flags) {
  if (const abi::Result not_ready = ready_for(ptr)) return not_ready;
  PointerGetAttribute query;
  query.ptr = {value_of(host)};
  query.attribute = PointerAttribute::kHostPointer;
  if (flags != 0 || ask(query) != kOk) return kBadValue;
  *ptr = value_of(host);
  return kOk;
}
GRANULE_ENTRY(cuMemHostGetFlags)(unsigned* flags, void* host) {
  if (const abi::Result not_ready = ready_for(flags)) return not_ready;
  PointerGetAttribute query;
  query.ptr = {value_of(host)};
  query.attribute = PointerAttribute::kHostPointer;
  if (ask(query) != kOk) return kBadValue;
  *flags = abi::kHostAllocDeviceMap;
  return kOk;
}

// ---- pointer queries

GRANULE_ENTRY(cuPointerGetAttribute)(void* data, int attribute, abi::DevicePtr ptr) {
  if (const abi::Result not_ready = ready_for(data)) return not_ready;
  PointerGetAttribute call;
  call.attribute = static_cast<PointerAttribute>(attribute);
  call.ptr = {ptr};
  const abi::Result result = submit(call);
  if (result == kOk) std::memcpy(data, &call.value, width_of(call.attribute));
  return result;
}

GRANULE_ENTRY(cuPointerGetAttributes)
(unsigned count, const int* attributes, void** data, abi::DevicePtr ptr) {
  if (const abi::Result not_ready = ready()) return not_ready;
  // There are 21 attributes: whoever asks for many more did not mean what the number says.
  constexpr unsigned kMost = 256;
  if (count == 0 || count > kMost || attributes == nullptr || data == nullptr) return kBadValue;
  for (unsigned i = 0; i < count; ++i) {
    if (data[i] == nullptr) return kBadValue;
    PointerGetAttributes call;
    call.attribute = static_cast<PointerAttribute>(attributes[i]);
    call.ptr = {ptr};
    if (const abi::Result result = submit(call)) return result;
    if (call.written != 0) std::memcpy(data[i], &call.value, width_of(call.attribute));
  }
  return kOk;
}

GRANULE_ENTRY(cuPointerSetAttribute)(const void* value, int attribute, abi::DevicePtr ptr) {
  if (const abi::Result not_ready = ready_for(value)) return not_ready;
  PointerGetAttribute query;
  query.ptr = {ptr};
  query.attribute = PointerAttribute::kSyncMemops;
  const bool settable = attribute == static_cast<int>(PointerAttribute::kSyncMemops);
  return settable && ask(query) == kOk ? kOk : kBadValue;
}

}  // namespace granule::libcuda
