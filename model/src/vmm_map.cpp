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
bool range_is_allowed(State& state, const AddressRange& home, std::uint64_t base,
                      std::uint64_t size, const char* beyond, const char* several) {
  if (size <= home.base + home.size - base) return true;
  const bool reserved = end_of_reserved(state, base, base + size) >= base + size;
  return lenient(state, reserved ? several : beyond, base);
}

using Mappings = std::map<std::uint64_t, Mapping>;

/// The mappings inside a range, and how they fit it.
struct Inside {
  Mappings::iterator first;  // the first that starts in the range
  bool cut = false;          // the range begins or ends inside a mapping
  bool gapless = false;      // the mappings fill the range
};

Inside mappings_inside(State& state, std::uint64_t base, std::uint64_t size) {
  Inside inside;
  const std::uint64_t end = base + size;
  inside.first = state.mappings.lower_bound(base);
  if (inside.first == state.mappings.end() || inside.first->first != base) {
    if (inside.first != state.mappings.begin()) {
      const auto before = std::prev(inside.first);
      inside.cut = before->first + before->second.size > base;
    }
  }
  std::uint64_t at = base;
  bool gap = false;
  for (auto it = inside.first; it != state.mappings.end() && it->first < end; ++it) {
    gap = gap || it->first != at;
    at = it->first + it->second.size;
  }
  inside.cut = inside.cut || at > end;
  inside.gapless = !gap && at == end;
  return inside;
}

}  // namespace

DriverStatus run_call(State& state, ThreadId, MemMap& call) {
  const std::uint64_t base = call.ptr.value;
  if (call.size == 0 || call.handle.value == 0 || call.flags != 0 || base == 0) {
    return DriverStatus::kInvalidValue;
  }
  const auto slot = slot_of(state, call.handle);
  const bool known = slot && state.handles[*slot].live();
  if (known && state.allocations[state.handles[*slot].allocation].unmappable) {
    return DriverStatus::kInvalidValue;  // measured: before all that follows
  }
  if (call.offset != 0) return DriverStatus::kNotSupported;
  if (!known) {
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
  const auto next = state.mappings.lower_bound(base);
  if (next != state.mappings.end() && next->first - base < call.size) {
    return DriverStatus::kInvalidValue;
  }
  if (next != state.mappings.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second.size > base) return DriverStatus::kInvalidValue;
  }
  if (!range_is_allowed(state, {place->first, place->second.size}, base, call.size,
                        "a map over the end of a reservation", "a map over two reservations")) {
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
  if (base == 0 || call.size == 0 || base + call.size < base) return DriverStatus::kInvalidValue;
  const auto place = reservation_at(state, base);
  if (place == state.reservations.end()) return DriverStatus::kInvalidValue;
  const Inside inside = mappings_inside(state, base, call.size);
  if (inside.cut) return DriverStatus::kInvalidValue;
  // Measured: the ends need not be whole granules, as long as they cut no mapping.
  const bool whole = base % granule == 0 && call.size % granule == 0;
  if (!whole && !lenient(state, "an unmap of parts of granules", base)) {
    return DriverStatus::kInvalidValue;
  }
  if (!range_is_allowed(state, {place->first, place->second.size}, base, call.size,
                        "an unmap over the end of a reservation",
                        "one unmap over two reservations")) {
    return DriverStatus::kInvalidValue;
  }
  if (!inside.gapless && !lenient(state, "an unmap over a hole", base)) {
    return DriverStatus::kInvalidValue;
  }
  if (state.pending_memory_work != 0) cut_pending_work(state, base, call.size, -1);
  std::size_t count = 0;
  auto it = inside.first;
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
