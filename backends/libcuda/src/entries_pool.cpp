// Entry points: stream-ordered pools.
#include <cstring>

#include "convert.hpp"
#include "entry.hpp"

namespace granule::libcuda {
namespace {

abi::MemoryPool pool_of(PoolHandle handle) { return pointer_of<abi::MemoryPool>(handle.value); }
PoolHandle handle_of(abi::MemoryPool pool) { return PoolHandle{value_of(pool)}; }

/// The reuse policies are ints, the other attributes 64-bit numbers.
bool is_int(int attribute) { return attribute >= 1 && attribute <= 3; }

template <class C>
abi::Result allocate(abi::DevicePtr* ptr, C call) {
  const abi::Result result = submit(call);
  *ptr = result == kOk ? call.ptr.value : 0;  // failing calls write 0 (driver contract, S66)
  return result;
}

}  // namespace

GRANULE_ENTRY(cuMemPoolCreate)(abi::MemoryPool* pool, const abi::MemPoolProps* properties) {
  if (const abi::Result not_ready = ready_for(pool)) return not_ready;
  if (properties == nullptr) return kBadValue;
  MemPoolCreate call;
  call.properties.type = static_cast<std::uint32_t>(properties->type);
  call.properties.handle_types = static_cast<HandleType>(properties->handle_types);
  call.properties.location = from_abi(properties->location);
  call.properties.usage = properties->usage;
  call.max_size = properties->max_size;
  return submit_for(call, pool, [](const auto& c) { return pool_of(c.pool); });
}
GRANULE_ENTRY(cuMemPoolDestroy)(abi::MemoryPool pool) {
  MemPoolDestroy call;
  call.pool = handle_of(pool);
  return submit(call);
}
GRANULE_ENTRY(cuMemPoolTrimTo)(abi::MemoryPool pool, std::size_t keep) {
  MemPoolTrimTo call;
  call.pool = handle_of(pool);
  call.keep = keep;
  return submit(call);
}
GRANULE_ENTRY(cuMemPoolSetAttribute)(abi::MemoryPool pool, int attribute, void* value) {
  if (const abi::Result not_ready = ready_for(value)) return not_ready;
  if (attribute < 1 || attribute > 8) return kBadValue;
  MemPoolSetAttribute call;
  call.pool = handle_of(pool);
  call.attribute = static_cast<PoolAttribute>(attribute);
  std::memcpy(&call.value, value, is_int(attribute) ? sizeof(int) : sizeof(call.value));
  return submit(call);
}
GRANULE_ENTRY(cuMemPoolGetAttribute)(abi::MemoryPool pool, int attribute, void* value) {
  if (const abi::Result not_ready = ready_for(value)) return not_ready;
  if (attribute < 1 || attribute > 8) return kBadValue;
  MemPoolGetAttribute call;
  call.pool = handle_of(pool);
  call.attribute = static_cast<PoolAttribute>(attribute);
  const abi::Result result = submit(call);
  if (result == kOk)
    std::memcpy(value, &call.value, is_int(attribute) ? sizeof(int) : sizeof(call.value));
  return result;
}
GRANULE_ENTRY(cuMemPoolSetAccess)
(abi::MemoryPool pool, const abi::MemAccessDesc* list, std::size_t count) {
  if (const abi::Result not_ready = ready()) return not_ready;
  MemPoolSetAccess call;
  if (!read_access(list, count, call.access)) return kBadValue;
  call.pool = handle_of(pool);
  return submit(call);
}
GRANULE_ENTRY(cuMemPoolGetAccess)(int* flags, abi::MemoryPool pool, abi::MemLocation* location) {
  if (const abi::Result not_ready = ready_for(flags)) return not_ready;
  if (location == nullptr) return kBadValue;
  MemPoolGetAccess call;
  call.pool = handle_of(pool);
  call.location = from_abi(*location);
  return submit_for(call, flags, [](const auto& c) { return static_cast<int>(c.access); });
}

GRANULE_ENTRY(cuMemAllocAsync)(abi::DevicePtr* ptr, std::size_t size, abi::Stream stream) {
  if (const abi::Result not_ready = ready_for(ptr)) return not_ready;
  MemAllocAsync call;
  call.size = size;
  call.stream = stream_of(stream);
  return allocate(ptr, call);
}
GRANULE_ENTRY(cuMemAllocFromPoolAsync)
(abi::DevicePtr* ptr, std::size_t size, abi::MemoryPool pool, abi::Stream stream) {
  if (const abi::Result not_ready = ready_for(ptr)) return not_ready;
  if (pool == nullptr) return kBadValue;
  MemAllocFromPoolAsync call;
  call.size = size;
  call.pool = handle_of(pool);
  call.stream = stream_of(stream);
  return allocate(ptr, call);
}
GRANULE_ENTRY(cuMemFreeAsync)(abi::DevicePtr ptr, abi::Stream stream) {
  MemFreeAsync call;
  call.ptr = {ptr};
  call.stream = stream_of(stream);
  return submit(call);
}

GRANULE_ENTRY(cuDeviceGetDefaultMemPool)(abi::MemoryPool* pool, abi::Device device) {
  if (const abi::Result not_ready = ready_for(pool)) return not_ready;
  DeviceGetDefaultMemPool call;
  call.device = {device};
  return submit_for(call, pool, [](const auto& c) { return pool_of(c.pool); });
}
GRANULE_ENTRY(cuDeviceGetMemPool)(abi::MemoryPool* pool, abi::Device device) {
  if (const abi::Result not_ready = ready_for(pool)) return not_ready;
  DeviceGetMemPool call;
  call.device = {device};
  return submit_for(call, pool, [](const auto& c) { return pool_of(c.pool); });
}
GRANULE_ENTRY(cuDeviceSetMemPool)(abi::Device device, abi::MemoryPool pool) {
  DeviceSetMemPool call;
  call.device = {device};
  call.pool = handle_of(pool);
  return submit(call);
}

// By place (CUDA 13): only those of devices are simulated.
GRANULE_ENTRY(cuMemGetDefaultMemPool)
(abi::MemoryPool* pool, const abi::MemLocation* location, int type) {
  if (const abi::Result not_ready = ready_for(pool)) return not_ready;
  if (location == nullptr || type != 1) return kBadValue;
  if (location->type != static_cast<int>(LocationType::kDevice))
    return unsupported("cuMemGetDefaultMemPool of the host");
  return GRANULE_CALL(cuDeviceGetDefaultMemPool)(pool, location->id);
}
GRANULE_ENTRY(cuMemGetMemPool)
(abi::MemoryPool* pool, const abi::MemLocation* location, int type) {
  if (const abi::Result not_ready = ready_for(pool)) return not_ready;
  if (location == nullptr || type != 1) return kBadValue;
  if (location->type != static_cast<int>(LocationType::kDevice))
    return unsupported("cuMemGetMemPool of the host");
  return GRANULE_CALL(cuDeviceGetMemPool)(pool, location->id);
}
GRANULE_ENTRY(cuMemSetMemPool)
(const abi::MemLocation* location, int type, abi::MemoryPool pool) {
  if (const abi::Result not_ready = ready_for(location)) return not_ready;
  if (type != 1) return kBadValue;
  if (location->type != static_cast<int>(LocationType::kDevice))
    return unsupported("cuMemSetMemPool of the host");
  return GRANULE_CALL(cuDeviceSetMemPool)(location->id, pool);
}

}  // namespace granule::libcuda
