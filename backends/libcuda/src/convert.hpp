// Between the driver's structs and the values of the interface.
#pragma once

#include "entry.hpp"

namespace granule::libcuda {

inline Location from_abi(const abi::MemLocation& location) {
  return {static_cast<LocationType>(location.type), location.id};
}

inline AllocationProperties from_abi(const abi::MemAllocationProp& properties) {
  AllocationProperties made;
  made.type = static_cast<std::uint32_t>(properties.type);
  made.handle_types = static_cast<HandleType>(properties.requested_handle_types);
  made.location = from_abi(properties.location);
  made.compression = properties.flags.compression;
  made.rdma = properties.flags.rdma;
  made.usage = properties.flags.usage;
  return made;
}

inline abi::MemAllocationProp to_abi(const AllocationProperties& properties) {
  abi::MemAllocationProp made;
  made.type = static_cast<int>(properties.type);
  made.requested_handle_types = static_cast<int>(properties.handle_types);
  made.location = {static_cast<int>(properties.location.type), properties.location.id};
  made.flags.compression = properties.compression;
  made.flags.rdma = properties.rdma;
  made.flags.usage = properties.usage;
  return made;
}

/// The entries of an access list; false if there are none, or more than any machine has places.
inline bool read_access(const abi::MemAccessDesc* list, std::size_t count, AccessEntries& out) {
  if (list == nullptr || count == 0 || count > AccessEntries::kCapacity) return false;
  for (std::size_t i = 0; i < count; ++i)
    out.push({from_abi(list[i].location), static_cast<Access>(list[i].flags)});
  return true;
}

}  // namespace granule::libcuda
