// Access of devices and the host to mappings: set and get.
#include "calls.hpp"
#include "vmm.hpp"

namespace granule::model {
namespace {

bool names_a_place(const State& state, const Location& location) {
  return access_slot(state, location).has_value();
}

/// Whether device memory can be opened to the place at all.
bool can_reach(const State& state, const Allocation& memory, const Location& who) {
  const Location& home = memory.properties.location;
  if (is_host(who)) return is_host(home);
  if (is_host(home) || home.id == who.id) return true;
  return state.devices[static_cast<std::size_t>(home.id)].config.peers &&
         state.devices[static_cast<std::size_t>(who.id)].config.peers;
}

/// Applies the entries to one mapping; stops at the first that is not supported.
DriverStatus apply(State& state, std::uint64_t base, Mapping& mapping,
                   const AccessEntries& entries) {
  for (const AccessEntry& entry : entries) {
    if (entry.access != Access::kNone &&
        !can_reach(state, allocation_of(state, mapping), entry.location)) {
      return DriverStatus::kNotSupported;
    }
    std::uint8_t& now = mapping.access[*access_slot(state, entry.location)];
    const auto wanted = static_cast<std::uint8_t>(entry.access);
    // Taking access away hits work that uses the range. Widening did so in 1 of 18 runs on an H200.
    const bool hits =
        (now & ~wanted) != 0 || (now != wanted && state.config.verdict == Verdict::kAdversarial);
    if (hits && state.pending_memory_work != 0) {
      cut_pending_work(state, base, mapping.size, is_host(entry.location) ? -1 : entry.location.id);
    }
    if (is_host(allocation_of(state, mapping).properties.location) || !is_host(entry.location)) {
      now = wanted;
    }
  }
  return DriverStatus::kSuccess;
}

}  // namespace

std::optional<std::size_t> access_slot(const State& state, const Location& location) {
  switch (location.type) {
    case LocationType::kDevice:
      if (location.id < 0 || location.id >= static_cast<std::int32_t>(state.devices.size())) {
        return std::nullopt;
      }
      return static_cast<std::size_t>(location.id);
    case LocationType::kHost:
    case LocationType::kHostNuma:
      return kHostSlot;
    default:
      return std::nullopt;
  }
}

DriverStatus run_call(State& state, ThreadId, MemSetAccess& call) {
  const std::uint64_t base = call.ptr.value;
  const std::uint64_t granule = granule_of(state);
  if (call.access.count == 0) return DriverStatus::kInvalidValue;
  for (const AccessEntry& entry : call.access) {
    const auto flags = static_cast<std::uint32_t>(entry.access);
    if (flags > 3 || flags == 2 || !names_a_place(state, entry.location)) {
      return DriverStatus::kInvalidValue;
    }
  }
  if (call.size == 0 || call.size % granule != 0 || base % granule != 0 ||
      base + call.size < base) {
    return DriverStatus::kInvalidValue;
  }
  const auto first = state.mappings.find(base);
  if (first == state.mappings.end()) return DriverStatus::kInvalidValue;
  if (first->second.size != call.size) {
    const auto last = mapping_at(state, base + call.size - 1);
    if (last == state.mappings.end() || last->first + last->second.size != base + call.size) {
      return DriverStatus::kInvalidValue;
    }
  }
  if (state.config.quirks.tail_access_refused && state.reservations.count(base) == 0) {
    return DriverStatus::kInvalidValue;
  }
  // Looks for a hole before anything changes, for the verdicts that refuse it.
  std::uint64_t end = base;
  for (auto it = first; it != state.mappings.end() && it->first == end && end < base + call.size;
       ++it) {
    end += it->second.size;
  }
  if (end < base + call.size && !lenient(state, "a grant of access over a hole", base)) {
    return DriverStatus::kInvalidValue;
  }
  const auto home = reservation_at(state, base);
  const bool one_reservation =
      home != state.reservations.end() && call.size <= home->first + home->second.size - base;
  if (!one_reservation && !lenient(state, "a grant of access over two reservations", base)) {
    return DriverStatus::kInvalidValue;
  }
  for (auto it = first; it != state.mappings.end() && it->first < end; ++it) {
    const DriverStatus applied = apply(state, it->first, it->second, call.access);
    if (applied != DriverStatus::kSuccess) return applied;
  }
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId, MemGetAccess& call) {
  if (call.ptr.value == 0) return DriverStatus::kInvalidValue;
  const auto slot = access_slot(state, call.location);
  if (!slot) return DriverStatus::kInvalidDevice;
  const auto it = mapping_at(state, call.ptr.value);
  if (it != state.mappings.end()) {
    std::uint8_t access = it->second.access[*slot];
    // Measured: without an entry of its own the host is answered with what device 0 has.
    if (access == 0 && call.location.type == LocationType::kHost) access = it->second.access[0];
    call.access = static_cast<Access>(access);
    return DriverStatus::kSuccess;
  }
  const auto after = state.plain.upper_bound(call.ptr.value);
  if (after != state.plain.begin()) {
    const auto& [base, memory] = *std::prev(after);
    if (call.ptr.value - base < memory.size) {
      call.access = Access::kNone;
      return DriverStatus::kSuccess;
    }
  }
  return DriverStatus::kInvalidValue;
}

}  // namespace granule::model
