// What it takes to add one chunk to a range, and what comes of it. Private to the core.
#pragma once

#include "resource_core.hpp"

namespace granule::detail {

struct ResourceCore::ExtendRequest {
  Mapping* last = nullptr;     // the range, pinned by the caller; null: a fresh range
  std::uint64_t base = 0;      // its first address
  std::uint64_t size = 0;      // its committed size
  std::uint64_t add = 0;       // bytes to commit, memory ahead of need included
  std::uint64_t least = 0;     // bytes that are needed
  std::uint64_t shown = 0;     // what the buffer is to show afterwards
  std::uint64_t capacity = 0;  // addresses to reserve for a fresh or moved range
  std::uint64_t hint = 0;      // where a fresh range should lie
  AccessList* access = nullptr;
  Wish rdma = Wish::kNo;
  bool may_move = true;
  /// Asked before a move, once the addresses behind the range are known not to be had.
  Status (*before_move)(void*) = nullptr;
  void* before_move_argument = nullptr;
};

struct ResourceCore::Extension {
  ChainRef chain;
  std::uint64_t base = 0;
  Placement placement = Placement::kKept;
};

/// Out of memory: reap what is done, then give idle ranges back, then wait for the oldest pending
/// free, and try again each time something came back; then say what ran out. Ends because each
/// round ends a pending free.
/// Not for addresses, where room for them is no help (`addresses_too`).
template <class Attempt>
auto ResourceCore::with_room(Attempt&& attempt, bool addresses_too) -> decltype(attempt()) {
  for (;;) {
    const std::uint64_t before = given_back();
    auto result = attempt();
    if (result.ok() || result.error().code != ErrorCode::kOutOfMemory ||
        result.error().exhausted == Exhausted::kHost ||
        (result.error().exhausted == Exhausted::kAddresses && !addresses_too))
      return result;
    if (collect(UINT64_MAX, UINT64_MAX).ranges != 0) continue;
    // What a capture holds back is no room to be had; the error stays the one that came first.
    const auto is_held = [](const Result<bool>& step) {
      return !step.ok() && step.error().code == ErrorCode::kCapturing;
    };
    Result<bool> freed = evict_oldest();
    if (is_held(freed) || (freed.ok() && !*freed)) freed = wait_oldest();
    if (!freed && freed.error().driver == DriverStatus::kWouldBlock) return freed.error();
    if (!freed) report(FailureKind::kParked, freed.error(), 0, 0);
    // What another thread gave back since it was looked for is there now.
    if ((!freed || !*freed) && given_back() == before) return explain(result.error());
  }
}

}  // namespace granule::detail
