// Address reservations: reserve and free; look-ups by address.
#include <bit>

#include "calls.hpp"
#include "vmm.hpp"

namespace granule::model {
namespace {

template <class Map>
auto holder_of(Map& map, std::uint64_t address) {
  auto it = map.upper_bound(address);
  if (it == map.begin()) return map.end();
  --it;
  return address - it->first < it->second.size ? it : map.end();
}

/// Whether any mapping touches [base, base + size).
bool anything_mapped(State& state, std::uint64_t base, std::uint64_t size) {
  if (mapping_at(state, base) != state.mappings.end()) return true;
  const auto next = state.mappings.lower_bound(base);
  return next != state.mappings.end() && next->first < base + size;
}

}  // namespace

std::map<std::uint64_t, Mapping>::iterator mapping_at(State& state, std::uint64_t address) {
  return holder_of(state.mappings, address);
}
std::map<std::uint64_t, Mapping>::const_iterator mapping_at(const State& state,
                                                            std::uint64_t address) {
  return holder_of(state.mappings, address);
}
std::map<std::uint64_t, Reservation>::iterator reservation_at(State& state, std::uint64_t address) {
  return holder_of(state.reservations, address);
}
std::map<std::uint64_t, Reservation>::const_iterator reservation_at(const State& state,
                                                                    std::uint64_t address) {
  return holder_of(state.reservations, address);
}

bool lenient(State& state, const char* fact, std::uint64_t address) {
  if (!is_exact(state)) return false;
  violate(state, ViolationKind::kUnportable, std::string(fact) + " at " + hex(address));
  return true;
}

DriverStatus run_call(State& state, ThreadId, MemAddressReserve& call) {
  const std::uint64_t granule = granule_of(state);
  const std::uint64_t alignment = call.alignment;
  const std::uint64_t hint = call.hint.value;
  if (call.flags != 0 || call.size == 0 || call.size % granule != 0) {
    return DriverStatus::kInvalidValue;
  }
  if (alignment != 0 && (!std::has_single_bit(alignment) || alignment >> 63 != 0)) {
    return DriverStatus::kInvalidValue;
  }
  if (hint % granule != 0 || (alignment != 0 && hint % alignment != 0)) {
    return DriverStatus::kInvalidValue;
  }
  constexpr std::uint64_t kTop = AddressSpace::kTop;
  if (call.size >= kTop || alignment >= kTop / 2 || (hint != 0 && hint >= kTop - granule)) {
    return DriverStatus::kOutOfMemory;
  }
  if (!state.devices[0].config.vmm) return DriverStatus::kNotSupported;
  Placement placement = state.config.placement;
  bool use_hint = !state.config.ignore_hints && placement == Placement::kObserved;
  if (state.config.verdict == Verdict::kAdversarial) {
    if (placement == Placement::kObserved) placement = Placement::kAdversarial;
    use_hint = false;
  }
  std::optional<std::uint64_t> place;
  if (!state.forced_reserves.empty()) {
    const std::uint64_t forced = state.forced_reserves.front();
    state.forced_reserves.pop_front();
    const bool fits = forced != 0 && forced % granule == 0 &&
                      (alignment == 0 || forced % alignment == 0) &&
                      state.addresses.is_free(forced, call.size);
    if (fits) place = forced;
  }
  if (!place) {
    place = state.addresses.choose(call.size, alignment == 0 ? 1 : alignment, hint, placement,
                                   use_hint);
  }
  if (!place) return DriverStatus::kOutOfMemory;
  state.addresses.take(*place, call.size);
  state.reservations[*place].size = call.size;
  state.ledger.reservations += 1;
  state.ledger.reserved_bytes += call.size;
  call.ptr = DevicePtr{*place};
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId, MemAddressFree& call) {
  const auto it = state.reservations.find(call.ptr.value);
  if (it == state.reservations.end() || it->second.size != call.size || it->second.busy ||
      anything_mapped(state, call.ptr.value, call.size)) {
    return DriverStatus::kInvalidValue;
  }
  for (const auto& [location, bytes] : it->second.owed) give_memory(state, location, bytes);
  state.reservations.erase(it);
  state.addresses.give(call.ptr.value, call.size);
  state.ledger.reservations -= 1;
  state.ledger.reserved_bytes -= call.size;
  return DriverStatus::kSuccess;
}

}  // namespace granule::model
