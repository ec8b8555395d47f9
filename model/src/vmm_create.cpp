// Physical memory and its handles: create, release, retain, properties, granularity.
#include <algorithm>

#include "calls.hpp"
#include "vmm.hpp"

namespace granule::model {
namespace {

constexpr std::uint64_t kHandleBase = 0x550000001000;
constexpr std::uint64_t kHandleStep = 0x40;
constexpr std::size_t kMostDeadHandles = 4096;
constexpr std::uint32_t kKnownTypes = 1u | 2u | 4u | 8u;

bool has_type(HandleType types, HandleType one) {
  return (static_cast<std::uint32_t>(types) & static_cast<std::uint32_t>(one)) != 0;
}

DriverStatus check_properties(const State& state, const AllocationProperties& wanted) {
  const Location& place = wanted.location;
  const auto devices = static_cast<std::int32_t>(state.devices.size());
  if (place.type == LocationType::kDevice && (place.id < 0 || place.id >= devices)) {
    return DriverStatus::kInvalidDevice;
  }
  const bool on_node = place.type == LocationType::kHostNuma;
  const bool on_host = place.type == LocationType::kHost;
  const auto nodes = static_cast<std::int32_t>(state.config.numa_nodes);
  const bool known_types = (static_cast<std::uint32_t>(wanted.handle_types) & kKnownTypes) != 0;
  const bool wrong =
      wanted.type != 1 || (place.type != LocationType::kDevice && !on_host && !on_node) ||
      (on_node && (place.id < 0 || place.id >= nodes)) ||
      has_type(wanted.handle_types, HandleType::kWin32) ||
      has_type(wanted.handle_types, HandleType::kWin32Kmt) || wanted.compression > 1 ||
      (on_host && wanted.compression != 0) || (on_host && known_types);
  return wrong ? DriverStatus::kInvalidValue : DriverStatus::kSuccess;
}

AllocationProperties granted(AllocationProperties wanted) {
  wanted.handle_types =
      static_cast<HandleType>(static_cast<std::uint32_t>(wanted.handle_types) & kKnownTypes);
  wanted.usage = 0;
  if (wanted.location.type == LocationType::kHost) {
    wanted.location = {LocationType::kHostNuma, 0};
  }
  return wanted;
}

/// What the device refuses although the request is well formed; judged after its capacity.
DriverStatus check_features(const State& state, const AllocationProperties& wanted) {
  const bool on_device = wanted.location.type == LocationType::kDevice;
  const auto index = static_cast<std::size_t>(on_device ? wanted.location.id : 0);
  const DeviceConfig& device = state.devices[index].config;
  if (!device.vmm) return DriverStatus::kNotSupported;
  if (has_type(wanted.handle_types, HandleType::kPosixFd) && !device.posix_fd) {
    return DriverStatus::kNotSupported;
  }
  if (wanted.rdma != 0 && (!device.rdma || state.config.quirks.rdma_flag_lies)) {
    return DriverStatus::kNotSupported;
  }
  if (has_type(wanted.handle_types, HandleType::kFabric) && !device.fabric) {
    return DriverStatus::kNotPermitted;
  }
  return DriverStatus::kSuccess;
}

std::uint32_t new_allocation(State& state, std::uint64_t size,
                             const AllocationProperties& properties) {
  std::uint32_t index;
  if (state.free_allocations.empty()) {
    index = static_cast<std::uint32_t>(state.allocations.size());
    state.allocations.emplace_back();
  } else {
    index = state.free_allocations.back();
    state.free_allocations.pop_back();
  }
  Allocation& made = state.allocations[index];
  made.number = state.next_allocation++;
  made.size = size;
  made.properties = properties;
  made.mapped_in = 0;
  made.unmappable = false;
  state.ledger.allocations += 1;
  state.ledger.allocated_bytes += size;
  return index;
}

std::uint32_t fresh_slot(State& state, std::uint64_t odd_value) {
  const auto slot = static_cast<std::uint32_t>(state.handles.size());
  state.handles.emplace_back();
  state.odd_values.push_back(odd_value);
  if (odd_value != 0) state.odd_handles[odd_value] = slot;
  return slot;
}

/// A slot for the value that a followed driver gave, if no live handle has it.
std::optional<std::uint32_t> forced_slot(State& state) {
  if (state.forced_handles.empty()) return std::nullopt;
  const std::uint64_t value = state.forced_handles.front();
  state.forced_handles.pop_front();
  if (value == 0) return std::nullopt;
  const auto known = slot_of(state, AllocationHandle{value});
  if (!known) return fresh_slot(state, value);
  if (state.handles[*known].live()) return std::nullopt;
  auto& dead = state.dead_handles;
  dead.erase(std::find(dead.begin(), dead.end(), *known));
  return known;
}

std::uint32_t chosen_slot(State& state) {
  if (const auto slot = forced_slot(state)) return *slot;
  auto& dead = state.dead_handles;
  if (dead.empty()) return fresh_slot(state, 0);
  HandleReuse reuse = state.config.handle_reuse;
  if (state.config.verdict == Verdict::kAdversarial) reuse = HandleReuse::kAtOnce;
  std::uint32_t slot = 0;
  if (reuse == HandleReuse::kAtOnce) {
    slot = dead.back();
    dead.pop_back();
    return slot;
  }
  const bool again = reuse == HandleReuse::kSeeded && (next_random(state) & 1) != 0;
  if (!again && dead.size() < kMostDeadHandles) return fresh_slot(state, 0);
  slot = dead.front();
  dead.pop_front();
  return slot;
}

}  // namespace

bool is_host(const Location& location) { return location.type != LocationType::kDevice; }

std::optional<std::uint32_t> slot_of(const State& state, AllocationHandle handle) {
  const std::uint64_t value = handle.value;
  if (value >= kHandleBase && (value - kHandleBase) % kHandleStep == 0) {
    const std::uint64_t slot = (value - kHandleBase) / kHandleStep;
    if (slot < state.handles.size() && state.odd_values[slot] == 0) {
      return static_cast<std::uint32_t>(slot);
    }
  }
  if (state.odd_handles.empty()) return std::nullopt;
  const auto it = state.odd_handles.find(value);
  if (it == state.odd_handles.end()) return std::nullopt;
  return it->second;
}

AllocationHandle value_of(const State& state, std::uint32_t slot) {
  if (state.odd_values[slot] != 0) return AllocationHandle{state.odd_values[slot]};
  return AllocationHandle{kHandleBase + slot * kHandleStep};
}

std::uint32_t new_handle(State& state, std::uint32_t allocation) {
  const std::uint32_t slot = chosen_slot(state);
  HandleSlot& made = state.handles[slot];
  made.allocation = allocation;
  made.references = 1;
  made.mappings = 0;
  made.imported = false;
  made.block_id = state.next_id++;
  made.properties = state.allocations[allocation].properties;
  state.allocations[allocation].live_values += 1;
  state.ledger.handle_references += 1;
  return slot;
}

void release_allocation_if_unused(State& state, std::uint32_t index) {
  Allocation& memory = state.allocations[index];
  if (memory.live_values != 0 || memory.descriptors != 0) return;
  const auto place = state.reservations.find(memory.mapped_in);
  if (state.config.quirks.memory_back_at_address_free && memory.mapped_in != 0 &&
      place != state.reservations.end()) {
    place->second.owed.emplace_back(memory.properties.location, memory.size);
  } else {
    give_memory(state, memory.properties.location, memory.size);
  }
  state.ledger.allocations -= 1;
  state.ledger.allocated_bytes -= memory.size;
  memory.number = 0;
  memory.contents.clear();
  state.free_allocations.push_back(index);
}

namespace {
void end_value_if_dead(State& state, std::uint32_t slot) {
  HandleSlot& value = state.handles[slot];
  if (value.live()) return;
  state.dead_handles.push_back(slot);
  state.allocations[value.allocation].live_values -= 1;
  release_allocation_if_unused(state, value.allocation);
}
}  // namespace

void drop_reference(State& state, std::uint32_t slot) {
  state.handles[slot].references -= 1;
  state.ledger.handle_references -= 1;
  end_value_if_dead(state, slot);
}

void drop_mapping(State& state, std::uint32_t slot) {
  state.handles[slot].mappings -= 1;
  end_value_if_dead(state, slot);
}

DriverStatus run_call(State& state, ThreadId, MemCreate& call) {
  const AllocationProperties& wanted = call.properties;
  const bool on_device = wanted.location.type == LocationType::kDevice;
  const bool known = on_device && wanted.location.id >= 0 &&
                     wanted.location.id < static_cast<std::int32_t>(state.devices.size());
  const std::uint64_t granule =
      known ? state.devices[static_cast<std::size_t>(wanted.location.id)].config.granularity
            : granule_of(state);
  if (call.flags != 0 || call.size == 0 || call.size % granule != 0) {
    return DriverStatus::kInvalidValue;
  }
  const DriverStatus checked = check_properties(state, wanted);
  if (checked != DriverStatus::kSuccess) return checked;
  const AllocationProperties given = granted(wanted);
  if (!take_memory(state, given.location, call.size, true)) return DriverStatus::kOutOfMemory;
  const DriverStatus offered = check_features(state, wanted);
  if (offered != DriverStatus::kSuccess) {
    give_memory(state, given.location, call.size);
    return offered;
  }
  const std::uint32_t allocation = new_allocation(state, call.size, given);
  state.allocations[allocation].unmappable = (call.properties.usage & 1) != 0;
  call.handle = value_of(state, new_handle(state, allocation));
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId, MemRelease& call) {
  if (call.handle.value == 0) return DriverStatus::kInvalidValue;
  const auto slot = slot_of(state, call.handle);
  if (!slot) {
    violate(state, ViolationKind::kForeignFree,
            "cuMemRelease of " + hex(call.handle.value) + ", which no call returned");
    return DriverStatus::kUndefined;
  }
  if (state.handles[*slot].references == 0) {
    violate(state, ViolationKind::kDoubleRelease,
            "cuMemRelease of " + hex(call.handle.value) + ", which has no reference left");
    return DriverStatus::kInvalidValue;
  }
  drop_reference(state, *slot);
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId, MemRetainAllocationHandle& call) {
  const auto it = mapping_at(state, call.ptr.value);
  if (it == state.mappings.end()) return DriverStatus::kInvalidValue;
  state.handles[it->second.handle].references += 1;
  state.ledger.handle_references += 1;
  call.handle = value_of(state, it->second.handle);
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId, MemGetAllocationGranularity& call) {
  if (call.option != GranularityKind::kMinimum && call.option != GranularityKind::kRecommended) {
    return DriverStatus::kInvalidValue;
  }
  const Location& place = call.properties.location;
  const bool known = place.type == LocationType::kDevice && place.id >= 0 &&
                     place.id < static_cast<std::int32_t>(state.devices.size());
  call.granularity = known ? state.devices[static_cast<std::size_t>(place.id)].config.granularity
                           : granule_of(state);
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId, MemGetAllocationPropertiesFromHandle& call) {
  if (call.handle.value == 0) return DriverStatus::kInvalidValue;
  const auto slot = slot_of(state, call.handle);
  if (!slot) {
    violate(state, ViolationKind::kForeignFree,
            "properties of handle " + hex(call.handle.value) + ", which no call returned");
    return DriverStatus::kUndefined;
  }
  call.properties = state.handles[*slot].properties;  // stale ones too
  return DriverStatus::kSuccess;
}

}  // namespace granule::model
