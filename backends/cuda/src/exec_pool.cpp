// The calls on stream-ordered pools.
#include "impl.hpp"

namespace granule::cuda {
namespace {

// The three reuse switches are ints to the driver, everything else is 64 bits wide.
bool is_switch(PoolAttribute attribute) {
  return attribute == PoolAttribute::kReuseFollowEventDependencies ||
         attribute == PoolAttribute::kReuseAllowOpportunistic ||
         attribute == PoolAttribute::kReuseAllowInternalDependencies;
}

}  // namespace

DriverStatus CudaBackend::Impl::call(MemPoolCreate& c) {
  abi::MemoryPool pool = to_abi(c.pool);
  abi::MemPoolProps properties;
  properties.type = static_cast<int>(c.properties.type);
  properties.handle_types = static_cast<int>(c.properties.handle_types);
  properties.location = to_abi(c.properties.location);
  properties.max_size = c.max_size;
  properties.usage = c.properties.usage;
  const abi::MemPoolProps* given = &properties;
  const DriverStatus status = invoke(driver->cuMemPoolCreate, &pool, given);
  c.pool.value = to_value(pool);
  return status;
}

DriverStatus CudaBackend::Impl::call(MemPoolDestroy& c) {
  return invoke(driver->cuMemPoolDestroy, to_abi(c.pool));
}

DriverStatus CudaBackend::Impl::call(MemPoolTrimTo& c) {
  return invoke(driver->cuMemPoolTrimTo, to_abi(c.pool), std::size_t{c.keep});
}

DriverStatus CudaBackend::Impl::call(MemPoolSetAttribute& c) {
  std::uint64_t value = c.value;
  int flag = static_cast<int>(c.value);
  void* data = is_switch(c.attribute) ? static_cast<void*>(&flag) : static_cast<void*>(&value);
  return invoke(driver->cuMemPoolSetAttribute, to_abi(c.pool), static_cast<int>(c.attribute), data);
}

DriverStatus CudaBackend::Impl::call(MemPoolGetAttribute& c) {
  std::uint64_t value = 0;  // a switch fills its low half
  const DriverStatus status = invoke(driver->cuMemPoolGetAttribute, to_abi(c.pool),
                                     static_cast<int>(c.attribute), static_cast<void*>(&value));
  if (status == DriverStatus::kSuccess) c.value = value;
  return status;
}

DriverStatus CudaBackend::Impl::call(MemPoolSetAccess& c) {
  const AccessDescs list(c.access);
  const abi::MemAccessDesc* descs = list.descs.data();
  return invoke(driver->cuMemPoolSetAccess, to_abi(c.pool), descs, list.count);
}

DriverStatus CudaBackend::Impl::call(MemPoolGetAccess& c) {
  int flags = static_cast<int>(c.access);
  abi::MemLocation location = to_abi(c.location);
  const DriverStatus status = invoke(driver->cuMemPoolGetAccess, &flags, to_abi(c.pool), &location);
  c.access = static_cast<Access>(flags);
  return status;
}

DriverStatus CudaBackend::Impl::call(MemAllocAsync& c) {
  abi::DevicePtr ptr = c.ptr.value;
  const DriverStatus status =
      invoke(driver->cuMemAllocAsync, &ptr, std::size_t{c.size}, to_abi(c.stream));
  c.ptr.value = ptr;
  return status;
}

DriverStatus CudaBackend::Impl::call(MemAllocFromPoolAsync& c) {
  abi::DevicePtr ptr = c.ptr.value;
  const DriverStatus status = invoke(driver->cuMemAllocFromPoolAsync, &ptr, std::size_t{c.size},
                                     to_abi(c.pool), to_abi(c.stream));
  c.ptr.value = ptr;
  return status;
}

DriverStatus CudaBackend::Impl::call(MemFreeAsync& c) {
  return invoke(driver->cuMemFreeAsync, to_abi(c.ptr), to_abi(c.stream));
}

DriverStatus CudaBackend::Impl::call(DeviceGetDefaultMemPool& c) {
  abi::MemoryPool pool = to_abi(c.pool);
  const DriverStatus status = invoke(driver->cuDeviceGetDefaultMemPool, &pool, to_abi(c.device));
  c.pool.value = to_value(pool);
  return status;
}

DriverStatus CudaBackend::Impl::call(DeviceGetMemPool& c) {
  abi::MemoryPool pool = to_abi(c.pool);
  const DriverStatus status = invoke(driver->cuDeviceGetMemPool, &pool, to_abi(c.device));
  c.pool.value = to_value(pool);
  return status;
}

DriverStatus CudaBackend::Impl::call(DeviceSetMemPool& c) {
  return invoke(driver->cuDeviceSetMemPool, to_abi(c.device), to_abi(c.pool));
}

}  // namespace granule::cuda
