// Pointer queries: the tables of the driver contract, section 14.
#include <algorithm>

#include "calls.hpp"
#include "vmm.hpp"

namespace granule::model {
namespace {

/// What is known of the memory at an address.
struct Facts {
  bool found = false;
  std::uint64_t address = 0;
  std::uint64_t type = 2;
  std::int64_t ordinal = 0;
  std::uint64_t context = 0;
  std::uint64_t pool = 0;
  std::uint64_t range_start = 0;
  std::uint64_t range_size = 0;
  std::uint64_t mapping_base = 0;
  std::uint64_t mapping_size = 0;
  std::uint64_t handle_types = 0;
  std::uint64_t access = 3;
  bool device_pointer = true;
  bool host_pointer = false;
  std::uint64_t legacy_ipc = 0;
  std::uint64_t rdma = 0;
  std::uint64_t decompress = 0;
  std::uint64_t buffer_id = 0;
  std::uint64_t block_id = 0;
};

std::uint8_t any_device_access(const State& state, const Mapping& mapping) {
  return *std::max_element(
      mapping.access.begin(),
      mapping.access.begin() + static_cast<std::ptrdiff_t>(state.devices.size()));
}

Facts facts_of_mapping(const State& state, std::uint64_t address,
                       std::map<std::uint64_t, Mapping>::const_iterator it) {
  Facts facts;
  const Mapping& mapping = it->second;
  const HandleSlot& value = state.handles[mapping.handle];
  const bool host = is_host(value.properties.location);
  facts.found = true;
  facts.type = host ? 1 : 2;
  facts.ordinal = host ? 0 : value.properties.location.id;
  const auto reservation = reservation_at(state, address);
  if (reservation != state.reservations.end()) {
    facts.range_start = reservation->first;
    facts.range_size = reservation->second.size;
  }
  facts.mapping_base = it->first;
  facts.mapping_size = mapping.size;
  facts.handle_types = static_cast<std::uint64_t>(value.properties.handle_types);
  facts.access = any_device_access(state, mapping);
  facts.device_pointer = facts.access != 0;
  facts.host_pointer = host && mapping.access[kHostSlot] != 0;
  facts.rdma = value.imported ? 0 : value.properties.rdma;
  facts.buffer_id = mapping.buffer_id;
  facts.block_id = value.block_id;
  return facts;
}

std::optional<Facts> facts_of_plain(const State& state, std::uint64_t address) {
  auto it = state.plain.upper_bound(address);
  if (it == state.plain.begin()) return std::nullopt;
  --it;
  const PlainMemory& memory = it->second;
  if (address - it->first >= memory.size) return std::nullopt;
  Facts facts;
  facts.found = true;
  facts.ordinal = memory.device;
  facts.context = memory.context.value;
  facts.range_start = it->first;
  facts.range_size = memory.size;
  facts.mapping_base = memory.block;
  facts.mapping_size = state.plain_blocks.at(memory.block).size;
  facts.legacy_ipc = facts.rdma = facts.decompress = 1;
  facts.buffer_id = facts.block_id = memory.buffer_id;
  return facts;
}

std::optional<Facts> facts_of_pinned(const State& state, std::uint64_t address) {
  auto it = state.pinned.upper_bound(address);
  if (it == state.pinned.begin()) return std::nullopt;
  --it;
  const PinnedMemory& memory = it->second;
  if (address - it->first >= memory.size) return std::nullopt;
  Facts facts;
  facts.found = true;
  facts.type = 1;
  facts.context = memory.context.value;
  facts.range_start = it->first;
  facts.range_size = memory.size;
  facts.mapping_base = it->first;
  facts.mapping_size = (memory.size + 2 * kMiB - 1) / (2 * kMiB) * (2 * kMiB);
  facts.host_pointer = true;
  facts.buffer_id = facts.block_id = memory.buffer_id;
  return facts;
}

std::optional<Facts> facts_of_pool(const State& state, std::uint64_t address) {
  const auto place = state.pools.block_at(DevicePtr{address});
  if (!place) return std::nullopt;
  Facts facts;
  facts.found = true;
  const Location& home = place->pool->place();
  facts.type = is_host(home) ? 1 : 2;
  facts.ordinal = is_host(home) ? 0 : home.id;
  facts.pool = place->pool->handle.value;
  facts.handle_types = static_cast<std::uint32_t>(place->pool->properties.handle_types);
  facts.range_start = place->range.base;
  facts.range_size = place->range.size;
  facts.mapping_base = place->piece.base;
  facts.mapping_size = place->piece.size;
  facts.buffer_id = facts.block_id = place->block->id;
  return facts;
}

Facts facts_at(const State& state, std::uint64_t address) {
  Facts facts;
  const auto mapping = mapping_at(state, address);
  if (mapping != state.mappings.end()) {
    facts = facts_of_mapping(state, address, mapping);
  } else if (const auto plain = facts_of_plain(state, address)) {
    facts = *plain;
  } else if (const auto pinned = facts_of_pinned(state, address)) {
    facts = *pinned;
  } else if (const auto pool = facts_of_pool(state, address)) {
    facts = *pool;
  }
  facts.address = address;
  return facts;
}

/// The value of one attribute of memory that was found; nothing where the driver refuses.
std::optional<std::uint64_t> attribute_of(const Facts& facts, PointerAttribute attribute) {
  switch (attribute) {
    case PointerAttribute::kContext:
      return facts.context;
    case PointerAttribute::kMemoryType:
      return facts.type;
    case PointerAttribute::kDevicePointer:
      if (!facts.device_pointer) return std::nullopt;
      return facts.address;
    case PointerAttribute::kHostPointer:
      if (!facts.host_pointer) return std::nullopt;
      return facts.address;
    case PointerAttribute::kSyncMemops:
    case PointerAttribute::kIsManaged:
      return 0;
    case PointerAttribute::kBufferId:
      return facts.buffer_id;
    case PointerAttribute::kDeviceOrdinal:
      return static_cast<std::uint64_t>(facts.ordinal);
    case PointerAttribute::kIsLegacyCudaIpcCapable:
      return facts.legacy_ipc;
    case PointerAttribute::kRangeStartAddr:
      return facts.range_start;
    case PointerAttribute::kRangeSize:
      return facts.range_size;
    case PointerAttribute::kMapped:
      return 1;
    case PointerAttribute::kAllowedHandleTypes:
      return facts.handle_types;
    case PointerAttribute::kIsGpuDirectRdmaCapable:
      return facts.rdma;
    case PointerAttribute::kAccessFlags:
      return facts.access;
    case PointerAttribute::kMempoolHandle:
      return facts.pool;
    case PointerAttribute::kMappingSize:
      return facts.mapping_size;
    case PointerAttribute::kMappingBaseAddr:
      return facts.mapping_base;
    case PointerAttribute::kMemoryBlockId:
      return facts.block_id;
    case PointerAttribute::kIsHwDecompressCapable:
      return facts.decompress;
  }
  return std::nullopt;
}

bool is_attribute(PointerAttribute attribute) {
  const auto number = static_cast<std::int32_t>(attribute);
  return number >= 1 && number <= 21 && number != 5;
}

}  // namespace

DriverStatus run_call(State& state, ThreadId, MemGetAddressRange& call) {
  const Facts facts = facts_at(state, call.ptr.value);
  if (!facts.found || !facts.device_pointer) return DriverStatus::kNotFound;
  if (mapping_at(state, call.ptr.value) == state.mappings.end()) {
    call.base = DevicePtr{facts.range_start};
    call.size = facts.range_size;
    return DriverStatus::kSuccess;
  }
  call.base = DevicePtr{facts.type == 1 ? 0 : facts.mapping_base};
  call.size = facts.mapping_size;
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId, PointerGetAttribute& call) {
  const Facts facts = facts_at(state, call.ptr.value);
  if (!facts.found || !is_attribute(call.attribute)) return DriverStatus::kInvalidValue;
  const auto value = attribute_of(facts, call.attribute);
  if (!value) return DriverStatus::kInvalidValue;
  call.value = *value;
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId, PointerGetAttributes& call) {
  if (!is_attribute(call.attribute)) return DriverStatus::kInvalidValue;
  const Facts facts = facts_at(state, call.ptr.value);
  call.written = 1;
  if (facts.found) {
    call.value = attribute_of(facts, call.attribute).value_or(0);
    return DriverStatus::kSuccess;
  }
  const bool start = call.attribute == PointerAttribute::kRangeStartAddr;
  const bool size = call.attribute == PointerAttribute::kRangeSize;
  if (start || size) {
    const auto reservation = reservation_at(state, call.ptr.value);
    if (reservation == state.reservations.end()) {
      call.written = 0;
    } else {
      call.value = start ? reservation->first : reservation->second.size;
    }
    return DriverStatus::kSuccess;
  }
  call.value = 0;
  if (call.attribute == PointerAttribute::kDeviceOrdinal) {
    call.value = static_cast<std::uint64_t>(std::int64_t{-2});
  }
  if (call.attribute == PointerAttribute::kHostPointer) call.value = call.ptr.value;
  return DriverStatus::kSuccess;
}

}  // namespace granule::model
