// Walking a range of device addresses over whatever memory lies there: mappings, plain, pinned and
// pool memory; and whether a device may use it.
#pragma once

#include "pool.hpp"
#include "state.hpp"
#include "vmm.hpp"

namespace granule::model {

enum class MemoryKind : std::uint8_t { kNothing, kMapping, kPlain, kPinned, kPool };

/// The memory at one address.
struct Segment {
  MemoryKind kind = MemoryKind::kNothing;
  std::uint64_t base = 0;   // where the object starts
  std::uint64_t size = 0;   // its bytes, as asked
  std::uint8_t access = 0;  // of the device that asked
  std::uint8_t copies = 0;  // what copies have beyond that: by the CPU, or from device to device
  Contents* contents = nullptr;
  std::uint64_t offset = 0;  // of `base` in the contents
  std::uint8_t* real = nullptr;
};

/// What lies at `address`, seen from `device`. `live_only`: pool memory counts only inside blocks
/// that are allocated; else all of a pool's physical memory does.
Segment segment_at(State& state, std::uint64_t address, std::int32_t device, bool live_only);

/// How a range fares: all usable, or why not.
struct RangeCheck {
  bool mapped = true;            // every byte is some memory
  bool first_known = true;       // the first byte is
  bool allowed = true;           // every byte has the access
  bool plain_overshoot = false;  // it leaves a plain allocation at its end
  std::uint64_t bad = 0;         // the first address that is not usable
  bool ok() const { return mapped && allowed; }
};
/// `copy`: for a copy by the driver, which may be the CPU's.
RangeCheck check_range(State& state, std::uint64_t address, std::uint64_t size, std::int32_t device,
                       bool write, bool live_only, bool copy = false);

/// Calls visit(segment, begin, end) for each object in the range, addresses ascending.
template <class Visit>
void visit_range(State& state, std::uint64_t address, std::uint64_t size, std::int32_t device,
                 Visit&& visit) {
  std::uint64_t at = address;
  const std::uint64_t end = address + size;
  while (at < end) {
    const Segment segment = segment_at(state, at, device, false);
    if (segment.kind == MemoryKind::kNothing) return;
    const std::uint64_t stop = segment.base + segment.size;
    visit(segment, at, stop < end ? stop : end);
    at = stop;
  }
}

}  // namespace granule::model
