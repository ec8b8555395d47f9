// Plain and pinned allocations, fills and pointer queries.
#include <array>
#include <cstring>

#include "impl.hpp"

namespace granule::cuda {
namespace {

using AttributeBytes = std::array<unsigned char, 64>;

// What the driver wrote into a zeroed buffer, widened as the interface has it.
std::uint64_t attribute_value(PointerAttribute attribute, const AttributeBytes& bytes) {
  std::uint64_t wide = 0;
  std::memcpy(&wide, bytes.data(), sizeof(wide));
  switch (attribute) {
    case PointerAttribute::kDeviceOrdinal: {
      std::int32_t narrow = 0;
      std::memcpy(&narrow, bytes.data(), sizeof(narrow));
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(narrow));
    }
    default:
      return wide;
  }
}

}  // namespace

DriverStatus CudaBackend::Impl::call(MemGetInfo& c) {
  std::size_t free = c.free;
  std::size_t total = c.total;
  const DriverStatus status = invoke(driver->cuMemGetInfo, &free, &total);
  c.free = free;
  c.total = total;
  return status;
}

DriverStatus CudaBackend::Impl::call(MemAlloc& c) {
  abi::DevicePtr ptr = c.ptr.value;
  const DriverStatus status = invoke(driver->cuMemAlloc, &ptr, std::size_t{c.size});
  c.ptr.value = ptr;
  return status;
}

DriverStatus CudaBackend::Impl::call(MemFree& c) {
  return invoke(driver->cuMemFree, to_abi(c.ptr));
}

DriverStatus CudaBackend::Impl::call(MemAllocHost& c) {
  void* host = to_pointer<void*>(c.host);
  const DriverStatus status = invoke(driver->cuMemAllocHost, &host, std::size_t{c.size});
  c.host = to_value(static_cast<char*>(host));
  return status;
}

DriverStatus CudaBackend::Impl::call(MemFreeHost& c) {
  return invoke(driver->cuMemFreeHost, to_pointer<void*>(c.host));
}

DriverStatus CudaBackend::Impl::call(MemGetAddressRange& c) {
  abi::DevicePtr base = c.base.value;
  std::size_t size = c.size;
  const DriverStatus status = invoke(driver->cuMemGetAddressRange, &base, &size, to_abi(c.ptr));
  c.base.value = base;
  c.size = size;
  return status;
}

DriverStatus CudaBackend::Impl::call(PointerGetAttribute& c) {
  alignas(8) AttributeBytes bytes{};
  const DriverStatus status =
      invoke(driver->cuPointerGetAttribute, static_cast<void*>(bytes.data()),
             static_cast<int>(c.attribute), to_abi(c.ptr));
  if (status == DriverStatus::kSuccess) c.value = attribute_value(c.attribute, bytes);
  return status;
}

DriverStatus CudaBackend::Impl::call(PointerGetAttributes& c) {
  // Asked twice over different fillings: what differs from both was written by the driver.
  alignas(8) AttributeBytes zeros{};
  alignas(8) AttributeBytes ones;
  ones.fill(0xFF);
  const AttributeBytes untouched = ones;
  int attribute = static_cast<int>(c.attribute);
  void* data = zeros.data();
  const DriverStatus status =
      invoke(driver->cuPointerGetAttributes, 1u, &attribute, &data, to_abi(c.ptr));
  if (status != DriverStatus::kSuccess) return status;
  data = ones.data();
  invoke(driver->cuPointerGetAttributes, 1u, &attribute, &data, to_abi(c.ptr));
  c.written = zeros != AttributeBytes{} || ones != untouched ? 1 : 0;
  c.value = attribute_value(c.attribute, zeros);
  return status;
}

DriverStatus CudaBackend::Impl::call(MemsetD8& c) {
  return invoke(driver->cuMemsetD8, to_abi(c.ptr), static_cast<unsigned char>(c.value),
                std::size_t{c.size});
}

DriverStatus CudaBackend::Impl::call(MemsetD8Async& c) {
  return invoke(driver->cuMemsetD8Async, to_abi(c.ptr), static_cast<unsigned char>(c.value),
                std::size_t{c.size}, to_abi(c.stream));
}

DriverStatus CudaBackend::Impl::call(MemsetD32& c) {
  return invoke(driver->cuMemsetD32, to_abi(c.ptr), c.value, std::size_t{c.size / 4});
}

DriverStatus CudaBackend::Impl::call(MemsetD32Async& c) {
  return invoke(driver->cuMemsetD32Async, to_abi(c.ptr), c.value, std::size_t{c.size / 4},
                to_abi(c.stream));
}

}  // namespace granule::cuda
