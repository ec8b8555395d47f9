// Shared pieces of the VMM calls: handle values, allocations, look-ups by address.
#pragma once

#include "state.hpp"

namespace granule::model {

/// The slot of a handle value: a live or a dead one; nothing if the value was never given out.
std::optional<std::uint32_t> slot_of(const State& state, AllocationHandle handle);
AllocationHandle value_of(const State& state, std::uint32_t slot);
/// A slot for a new handle value of `allocation`, with one reference.
std::uint32_t new_handle(State& state, std::uint32_t allocation);
/// Drops a reference or a mapping from a value; memory goes when nothing is left.
void drop_reference(State& state, std::uint32_t slot);
void drop_mapping(State& state, std::uint32_t slot);
void release_allocation_if_unused(State& state, std::uint32_t allocation);

/// The mapping or reservation that holds the byte at `address`; end() if none.
std::map<std::uint64_t, Mapping>::iterator mapping_at(State& state, std::uint64_t address);
std::map<std::uint64_t, Mapping>::const_iterator mapping_at(const State& state,
                                                            std::uint64_t address);
std::map<std::uint64_t, Reservation>::iterator reservation_at(State& state, std::uint64_t address);
std::map<std::uint64_t, Reservation>::const_iterator reservation_at(const State& state,
                                                                    std::uint64_t address);
/// The access slot of a location; nothing if it is no place of this machine.
std::optional<std::size_t> access_slot(const State& state, const Location& location);
inline Allocation& allocation_of(State& state, const Mapping& mapping) {
  return state.allocations[state.handles[mapping.handle].allocation];
}
inline const Allocation& allocation_of(const State& state, const Mapping& mapping) {
  return state.allocations[state.handles[mapping.handle].allocation];
}
bool is_host(const Location& location);
/// The granule of the machine: that of device 0.
inline std::uint64_t granule_of(const State& state) { return state.devices[0].config.granularity; }
inline bool is_exact(const State& state) { return state.config.verdict == Verdict::kExact; }
/// Under kExact records the finding and says true; under the other verdicts says false.
bool lenient(State& state, const char* fact, std::uint64_t address);

// transfer.cpp
/// Work of a device (-1: of any) that may be running on the range just now loses it: it will
/// fault. Work behind a closed gate is left alone: it is judged when it runs.
void cut_pending_work(State& state, std::uint64_t base, std::uint64_t size, std::int32_t device);
/// Whether work that has not run uses the range and is not ordered before what comes next on
/// `stream` (kNone: before anything).
bool has_unordered_work(const State& state, std::uint64_t stream, std::uint64_t base,
                        std::uint64_t size);

}  // namespace granule::model
