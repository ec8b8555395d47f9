// What lies at an address, and who may use it.
#include "memory_range.hpp"

namespace granule::model {
namespace {

constexpr std::uint8_t kReadWrite = 3;

template <class Map>
auto find_holder(Map& map, std::uint64_t address) {
  auto it = map.upper_bound(address);
  if (it == map.begin()) return map.end();
  --it;
  return address - it->first < it->second.size ? it : map.end();
}

Segment pool_segment(State& state, std::uint64_t address, std::int32_t device, bool live_only) {
  Segment found;
  const Pool* const pool = state.pools.window_at(DevicePtr{address});
  if (pool == nullptr) return found;
  const auto block = state.pools.block_at(DevicePtr{address});
  AddressRange range;
  if (block) {
    range = block->range;
  } else {
    if (live_only) return found;
    const std::uint64_t piece =
        pool->window.base + (address - pool->window.base) / kPoolPiece * kPoolPiece;
    if (!state.pools.is_backed({piece, kPoolPiece})) return found;
    range = {address, 1};
    // Freed bytes up to the end of the piece, or to the next live block.
    const auto next = pool->live.upper_bound(address - pool->window.base);
    std::uint64_t stop = piece + kPoolPiece;
    if (next != pool->live.end()) stop = std::min(stop, pool->window.base + next->first);
    range.size = stop - address;
  }
  found.kind = MemoryKind::kPool;
  found.base = range.base;
  found.size = range.size;
  found.access = static_cast<std::uint8_t>(pool->access_of(device_location({device})));
  found.contents = &state.pool_contents[pool->window.base];
  found.offset = range.base - pool->window.base;
  return found;
}

}  // namespace

Segment segment_at(State& state, std::uint64_t address, std::int32_t device, bool live_only) {
  Segment found;
  const auto mapping = mapping_at(state, address);
  if (mapping != state.mappings.end()) {
    found.kind = MemoryKind::kMapping;
    found.base = mapping->first;
    found.size = mapping->second.size;
    Allocation& allocation = allocation_of(state, mapping->second);
    found.access = mapping->second.access[static_cast<std::size_t>(device)];
    if (found.access == 0 && is_host(allocation.properties.location))
      found.copies = mapping->second.access[kHostSlot];
    found.contents = &allocation.contents;
    return found;
  }
  auto plain = find_holder(state.plain, address);
  bool is_plain = plain != state.plain.end();
  if (!is_plain && !live_only) {
    plain = find_holder(state.dying_plain, address);
    is_plain = plain != state.dying_plain.end();
  }
  if (is_plain) {
    found.kind = MemoryKind::kPlain;
    found.base = plain->first;
    found.size = plain->second.size;
    found.access = plain->second.device == device ? kReadWrite : 0;  // no peer is enabled
    found.copies = kReadWrite;
    found.contents = &plain->second.contents;
    return found;
  }
  const auto pinned = find_holder(state.pinned, address);
  if (pinned != state.pinned.end()) {
    found.kind = MemoryKind::kPinned;
    found.base = pinned->first;
    found.size = pinned->second.size;
    found.access = kReadWrite;
    found.contents = &pinned->second.contents;
    found.real = pinned->second.real.get();
    return found;
  }
  return pool_segment(state, address, device, live_only);
}

RangeCheck check_range(State& state, std::uint64_t address, std::uint64_t size, std::int32_t device,
                       bool write, bool live_only, bool copy) {
  RangeCheck result;
  const std::uint8_t needed = write ? 2 : 1;
  std::uint64_t at = address;
  const std::uint64_t end = address + size;
  if (end < address) {
    result.mapped = false;
    result.bad = address;
    return result;
  }
  MemoryKind before = MemoryKind::kNothing;
  while (at < end) {
    const Segment segment = segment_at(state, at, device, live_only);
    if (segment.kind == MemoryKind::kNothing) {
      if (at == address) result.first_known = false;
      result.mapped = false;
      result.plain_overshoot = before == MemoryKind::kPlain;
      result.bad = at;
      return result;
    }
    // A plain allocation or a pool block is one object: a range does not run on into the next.
    const bool apart =
        segment.kind == MemoryKind::kPlain || (live_only && segment.kind == MemoryKind::kPool);
    if (apart && before == segment.kind) {
      result.mapped = false;
      result.plain_overshoot = before == MemoryKind::kPlain;
      result.bad = at;
      return result;
    }
    const std::uint8_t has = copy ? segment.copies | segment.access : segment.access;
    if ((has & needed) == 0 && result.allowed) {
      result.allowed = false;
      result.bad = at;
    }
    before = segment.kind;
    at = segment.base + segment.size;
  }
  return result;
}

}  // namespace granule::model
