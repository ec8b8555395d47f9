// Choosing and keeping account of device addresses.
#include "address_space.hpp"

#include <algorithm>
#include <bit>

namespace granule::model {
namespace {

constexpr std::uint64_t kBottom = 0x302000000;        // lowest address seen
constexpr std::uint64_t kHugeBottom = 0x10004000000;  // where 1 TiB and more begin
constexpr std::uint64_t kHuge = std::uint64_t{1} << 40;

std::size_t bin_of(std::uint64_t length) {
  return static_cast<std::size_t>(std::bit_width(length) - 1);
}

unsigned longest_free_run(std::uint16_t used) {
  unsigned best = 0;
  unsigned run = 0;
  for (unsigned bit = 0; bit < 16; ++bit) {
    run = (used >> bit) & 1u ? 0 : run + 1;
    best = std::max(best, run);
  }
  return best;
}

}  // namespace

AddressSpace::AddressSpace(std::uint64_t granularity, std::uint64_t bottom)
    : granule_(granularity),
      block_(granularity * 16),
      bottom_(round_up(bottom == 0 ? kBottom : bottom, block_)),
      huge_bottom_(bottom == 0 ? kHugeBottom : bottom_),
      never_used_(bottom_) {
  const std::uint64_t end = bottom == 0 ? kTop - granule_ : bottom_ + kTop;
  add_gap(bottom_, end - bottom_);
}

void AddressSpace::add_gap(std::uint64_t start, std::uint64_t length) {
  gaps_[start] = length;
  gaps_by_size_[bin_of(length)].insert(start);
}

void AddressSpace::drop_gap(std::uint64_t start, std::uint64_t length) {
  gaps_.erase(start);
  gaps_by_size_[bin_of(length)].erase(start);
}

bool AddressSpace::is_free(std::uint64_t base, std::uint64_t size) const {
  auto it = gaps_.upper_bound(base);
  if (it == gaps_.begin()) return false;
  --it;
  const std::uint64_t inside = base - it->first;
  return inside < it->second && it->second - inside >= size;
}

std::optional<std::uint64_t> AddressSpace::first_fit(std::uint64_t size, std::uint64_t alignment,
                                                     std::uint64_t from) const {
  const auto place = [&](std::uint64_t start, std::uint64_t length) -> std::uint64_t {
    const std::uint64_t at = round_up(std::max(start, from), alignment);
    if (at < start || at - start >= length || length - (at - start) < size) return UINT64_MAX;
    return at;
  };
  std::uint64_t best = UINT64_MAX;
  if (from > bottom_) {  // the gap that holds `from`
    auto it = gaps_.upper_bound(from);
    if (it != gaps_.begin()) {
      --it;
      best = place(it->first, it->second);
      if (best != UINT64_MAX) return best;
    }
  }
  for (std::size_t bin = bin_of(size); bin < gaps_by_size_.size(); ++bin) {
    const auto& starts = gaps_by_size_[bin];
    for (auto it = starts.lower_bound(from); it != starts.end() && *it < best; ++it) {
      const std::uint64_t at = place(*it, gaps_.find(*it)->second);
      if (at == UINT64_MAX) continue;
      best = std::min(best, at);
      break;
    }
  }
  if (best == UINT64_MAX) return std::nullopt;
  return best;
}

std::optional<std::uint64_t> AddressSpace::place_in(std::uint64_t base, const Block& block,
                                                    std::uint64_t size, std::uint64_t alignment,
                                                    std::uint64_t from) const {
  const std::uint64_t count = size / granule_;
  const auto wanted = static_cast<std::uint32_t>((1u << count) - 1);
  for (std::uint64_t bit = 0; bit + count <= 16; ++bit) {
    const std::uint64_t at = base + bit * granule_;
    if (at < from || at % alignment != 0) continue;
    if ((block.used & (wanted << bit)) == 0) return at;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> AddressSpace::in_part_used(std::uint64_t size,
                                                        std::uint64_t alignment) const {
  const auto first_room = static_cast<std::size_t>(size / granule_);
  // Several lists, each newest last; merge them from their ends.
  std::array<Recent::const_reverse_iterator, 17> next;
  for (std::size_t room = first_room; room < 17; ++room) next[room] = by_room_[room].rbegin();
  for (;;) {
    std::size_t newest = 17;
    for (std::size_t room = first_room; room < 17; ++room) {
      if (next[room] == by_room_[room].rend()) continue;
      if (newest == 17 || next[newest]->first < next[room]->first) newest = room;
    }
    if (newest == 17) return std::nullopt;
    const std::uint64_t base = next[newest]->second;
    if (const auto at = place_in(base, part_used_.find(base)->second, size, alignment, 0)) {
      return at;
    }
    ++next[newest];
  }
}

std::optional<std::uint64_t> AddressSpace::in_part_used_above(std::uint64_t size,
                                                              std::uint64_t alignment,
                                                              std::uint64_t hint) const {
  for (auto it = part_used_.lower_bound(hint / block_ * block_); it != part_used_.end(); ++it) {
    if (const auto at = place_in(it->first, it->second, size, alignment, hint)) return at;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> AddressSpace::choose(std::uint64_t size, std::uint64_t alignment,
                                                  std::uint64_t hint, Placement placement,
                                                  bool use_hint) const {
  const bool large = size >= block_;
  const std::uint64_t grid = std::max(alignment, granule_);
  const std::uint64_t wide = std::max(alignment, block_);
  std::optional<std::uint64_t> found;
  if (placement == Placement::kFresh) {
    found = first_fit(size, large ? wide : grid, never_used_);
    if (found && *found == hint) found = first_fit(size, large ? wide : grid, hint + granule_);
    if (found) return found;
  }
  if (placement != Placement::kObserved) {
    found = first_fit(size, grid, bottom_);
  } else if (hint != 0 && use_hint) {
    if (large) {
      found = first_fit(size, wide, round_up(hint, block_));
    } else {
      const bool known = part_used_.count(hint / block_ * block_) != 0;
      if (known && is_free(hint, size)) return hint;
      found = in_part_used_above(size, grid, hint);
      if (!found && is_free(hint / block_ * block_, block_) && is_free(hint, size)) return hint;
      if (!found) found = first_fit(block_, wide, hint);
    }
    if (found) return found;
  }
  if (!found) {
    if (large) {
      found = first_fit(size, wide, size >= kHuge ? huge_bottom_ : bottom_);
    } else {
      found = in_part_used(size, grid);
      if (!found) found = first_fit(block_, wide, bottom_);
    }
    if (!found) found = first_fit(size, grid, bottom_);
  }
  const bool avoid = hint != 0 && (!use_hint || placement != Placement::kObserved);
  if (found && avoid && *found == hint) {
    const auto other = first_fit(size, large ? wide : grid, hint + granule_);
    if (other) return other;
    return first_fit(size, grid, bottom_);
  }
  return found;
}

void AddressSpace::mark_block(std::uint64_t block_base, std::uint64_t from, std::uint64_t to,
                              bool used) {
  const std::uint64_t first = (from - block_base) / granule_;
  const std::uint64_t count = (to - from) / granule_;
  const auto bits = static_cast<std::uint16_t>(((1u << count) - 1) << first);
  auto it = part_used_.find(block_base);
  if (it == part_used_.end()) {
    if (!used && count == 16) return;
    Block block;
    block.opened = next_opened_++;
    if (!used) block.used = 0xffff;  // part of a range that covered the block
    it = part_used_.emplace(block_base, block).first;
  } else {
    by_room_[longest_free_run(it->second.used)].erase({it->second.opened, block_base});
  }
  Block& block = it->second;
  block.used = static_cast<std::uint16_t>(used ? block.used | bits : block.used & ~bits);
  if (block.used == 0) {
    part_used_.erase(it);
  } else {
    by_room_[longest_free_run(block.used)].insert({block.opened, block_base});
  }
}

void AddressSpace::mark(std::uint64_t base, std::uint64_t size, bool used) {
  const std::uint64_t end = base + size;
  const std::uint64_t first = base / block_ * block_;
  const std::uint64_t last = (end - 1) / block_ * block_;
  if (first == last) {
    if (size != block_) mark_block(first, base, end, used);
    return;
  }
  if (base != first) mark_block(first, base, first + block_, used);
  if (end != last + block_) mark_block(last, last, end, used);
}

void AddressSpace::take(std::uint64_t base, std::uint64_t size) {
  auto it = std::prev(gaps_.upper_bound(base));
  const std::uint64_t start = it->first;
  const std::uint64_t length = it->second;
  drop_gap(start, length);
  if (base > start) add_gap(start, base - start);
  const std::uint64_t rest = start + length - (base + size);
  if (rest != 0) add_gap(base + size, rest);
  mark(base, size, true);
  never_used_ = std::max(never_used_, base + size);
}

void AddressSpace::give(std::uint64_t base, std::uint64_t size) {
  std::uint64_t start = base;
  std::uint64_t length = size;
  auto after = gaps_.upper_bound(base);
  if (after != gaps_.end() && after->first == base + size) {
    const std::uint64_t more = after->second;
    drop_gap(base + size, more);
    length += more;
    after = gaps_.upper_bound(base);
  }
  if (after != gaps_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == base) {
      start = before->first;
      length += before->second;
      drop_gap(before->first, before->second);
    }
  }
  add_gap(start, length);
  mark(base, size, false);
}

}  // namespace granule::model
