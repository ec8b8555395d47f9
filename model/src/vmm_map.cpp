// Mapping physical memory into reservations, and taking it out again.
#include "calls.hpp"
#include "vmm.hpp"

namespace granule::model {
namespace {

/// Where the run of adjacent reservations that holds `address` ends, at most at `limit`.
std::uint64_t end_of_reserved(const State& state, std::uint64_t address, std::uint64_t limit) {
  std::uint64_t at = address;
  auto it = reservation_at(state, address);
  while (it != state.reservations.end() && it->first <= at && at < limit) {
    at = it->first + it->second.size;
    ++it;
  }
  return at;
}

/// Ranges of several reservations and beyond them work here; other drivers refuse them.
bool range_is_allowed(State& state, std::uint64_t base, std::uint64_t size, const char* beyond,
                      const char* several) {
  const auto first = reservation_at(state, base);
  if (size <= first->first + first->second.size - base) return true;
  const bool reserved = end_of_reserved(state, base, base + size) >= base + size;
  return lenient(state, reserved ? several : beyond, base);
}

/// True if [base, base + size) begins or ends inside a mapping.
bool cuts_a_mapping(State& state, std::uint64_t base, std::uint64_t size) {
  const auto first = mapping_at(state, base);
  if (first != state.mappings.end() && first->first != base) return true;
  const auto last = mapping_at(state, base + size - 1);
  return last != state.mappings.end() && last->first + last->second.size != base + size;
}

/// True if the mappings in the range leave no gap.
bool is_gapless(State& state, std::uint64_t base, std::uint64_t size) {
  std::uint64_t at = base;
  for (auto it = state.mappings.find(base); it != state.mappings.end() && it->first == at; ++it) {
    at += it->second.size;
    if (at >= base + size) return true;
  }
  return false;
}

}  // namespace

DriverStatus run_call(State& state, ThreadId, MemMap& call) {
  const std::uint64_t base = call.ptr.value;
  if (call.size == 0 || call.handle.value == 0 || call.flags != 0 || base == 0) {
    return DriverStatus::kInvalidValue;
  }
  if (call.offset != 0) return DriverStatus::kNotSupported;
  const auto slot = slot_of(state, call.handle);
  if (!slot || !state.handles[*slot].live()) {
    violate(state, ViolationKind::kForeignFree,
            "cuMemMap of handle " + hex(call.handle.value) + ", which is not alive");
    return DriverStatus::kUndefined;
  }
  HandleSlot& value = state.handles[*slot];
  Allocation& memory = state.allocations[value.allocation];
  if (call.size != memory.size) return DriverStatus::kNotSupported;
  const auto place = reservation_at(state, base);
  if (base % granule_of(state) != 0 || place == state.reservations.end()) {
    return DriverStatus::kInvalidValue;
  }
  if (mapping_at(state, base) != state.mappings.end()) return DriverStatus::kInvalidValue;
  const auto next = state.mappings.lower_bound(base);
  if (next != state.mappings.end() && next->first - base < call.size) {
    return DriverStatus::kInvalidValue;
  }
  if (!range_is_allowed(state, base, call.size, "a map over the end of a reservation",
                        "a map over two reservations")) {
    return DriverStatus::kInvalidValue;
  }
  const auto made = state.mappings.emplace_hint(next, base, Mapping{});
  made->second.size = call.size;
  made->second.handle = *slot;
  made->second.buffer_id = state.next_id++;
  value.mappings += 1;
  memory.mapped_in = place->first;
  state.ledger.mappings += 1;
  state.ledger.mapped_bytes += call.size;
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId, MemUnmap& call) {
  const std::uint64_t base = call.ptr.value;
  const std::uint64_t granule = granule_of(state);
  if (base == 0 || call.size == 0 || base % granule != 0 || call.size % granule != 0 ||
      base + call.size < base) {
    return DriverStatus::kInvalidValue;
  }
  const auto place = reservation_at(state, base);
  if (place == state.reservations.end() || cuts_a_mapping(state, base, call.size)) {
    return DriverStatus::kInvalidValue;
  }
  if (!range_is_allowed(state, base, call.size, "an unmap over the end of a reservation",
                        "one unmap over two reservations")) {
    return DriverStatus::kInvalidValue;
  }
  if (!is_gapless(state, base, call.size) && !lenient(state, "an unmap over a hole", base)) {
    return DriverStatus::kInvalidValue;
  }
  if (state.pending_memory_work != 0) cut_pending_work(state, base, call.size, -1);
  std::size_t count = 0;
  auto it = state.mappings.lower_bound(base);
  while (it != state.mappings.end() && it->first - base < call.size) {
    const Mapping gone = it->second;
    it = state.mappings.erase(it);
    state.ledger.mappings -= 1;
    state.ledger.mapped_bytes -= gone.size;
    drop_mapping(state, gone.handle);
    ++count;
  }
  if (count > 1 && state.config.quirks.busy_after_bulk_unmap) place->second.busy = true;
  return DriverStatus::kSuccess;
}

}  // namespace granule::model
