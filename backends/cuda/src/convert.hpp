// Between the values of the interface and those of the driver.
#pragma once

#include <array>
#include <cstdint>

#include <granule/backend_api/calls_vmm.hpp>
#include <granule/backend_api/types.hpp>
#include <granule/backends/driver_abi.hpp>

namespace granule::cuda {

template <class Pointer>
Pointer to_pointer(std::uint64_t value) {
  return reinterpret_cast<Pointer>(static_cast<std::uintptr_t>(value));
}
template <class T>
std::uint64_t to_value(T* pointer) {
  return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(pointer));
}

inline abi::Stream to_abi(StreamHandle h) { return to_pointer<abi::Stream>(h.value); }
inline abi::Event to_abi(EventHandle h) { return to_pointer<abi::Event>(h.value); }
inline abi::Context to_abi(ContextHandle h) { return to_pointer<abi::Context>(h.value); }
inline abi::Graph to_abi(GraphHandle h) { return to_pointer<abi::Graph>(h.value); }
inline abi::MemoryPool to_abi(PoolHandle h) { return to_pointer<abi::MemoryPool>(h.value); }
inline abi::AllocationHandle to_abi(AllocationHandle h) { return h.value; }
inline abi::DevicePtr to_abi(DevicePtr p) { return p.value; }
inline abi::Device to_abi(DeviceId d) { return d.value; }

inline abi::MemLocation to_abi(const Location& l) { return {static_cast<int>(l.type), l.id}; }

inline abi::MemAllocationProp to_abi(const AllocationProperties& p) {
  abi::MemAllocationProp out;
  out.type = static_cast<int>(p.type);
  out.requested_handle_types = static_cast<int>(p.handle_types);
  out.location = to_abi(p.location);
  out.flags.compression = p.compression;
  out.flags.rdma = p.rdma;
  out.flags.usage = p.usage;
  return out;
}

inline AllocationProperties from_abi(const abi::MemAllocationProp& p) {
  AllocationProperties out;
  out.type = static_cast<std::uint32_t>(p.type);
  out.handle_types = static_cast<HandleType>(p.requested_handle_types);
  out.location = {static_cast<LocationType>(p.location.type), p.location.id};
  out.compression = p.flags.compression;
  out.rdma = p.flags.rdma;
  out.usage = p.flags.usage;
  return out;
}

/// The entries of an access list as the driver takes them.
struct AccessDescs {
  explicit AccessDescs(const AccessEntries& list) : count(list.count) {
    for (std::uint32_t i = 0; i < list.count; ++i) {
      descs[i].location = to_abi(list.entries[i].location);
      descs[i].flags = static_cast<int>(list.entries[i].access);
    }
  }
  std::array<abi::MemAccessDesc, AccessEntries::kCapacity> descs{};
  std::size_t count;
};

}  // namespace granule::cuda
