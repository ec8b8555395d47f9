// How a pool serves a request: reuse what the rules allow, grow, or hand out a pending block.
#include <algorithm>

#include "pool.hpp"

namespace granule::model {
namespace {

Span outer_pieces(Span span) {
  return {span.begin / kPoolPiece * kPoolPiece,
          checked_round_up(span.end, kPoolPiece).value_or(UINT64_MAX)};
}

/// Starts at which `span` bytes fit into a run, one a run.
std::vector<std::uint64_t> fits(const std::vector<Span>& runs, std::uint64_t span) {
  std::vector<std::uint64_t> starts;
  for (const Span& run : runs)
    if (run.size() >= span) starts.push_back(run.begin);
  return starts;
}

/// The parts of ascending `runs` that have physical memory.
std::vector<Span> backed_parts(const std::vector<Span>& runs, const SpanSet& backed) {
  std::vector<Span> parts;
  auto it = backed.spans().begin();
  for (const Span& run : runs) {
    while (it != backed.spans().end() && it->second <= run.begin) ++it;
    for (auto at = it; at != backed.spans().end() && at->first < run.end; ++at)
      parts.push_back({std::max(run.begin, at->first), std::min(run.end, at->second)});
  }
  return parts;
}

std::optional<std::uint64_t> choose(const std::vector<std::uint64_t>& starts,
                                    const PoolPlacement& placement) {
  if (starts.empty()) return std::nullopt;
  if (placement.kind == PoolPlacement::Kind::kPick)
    return starts[static_cast<std::size_t>(placement.value % starts.size())];
  return starts.front();
}

// Measured: a run of one stream's frees is taken as it is, and so is a part of a hole that is
// nobody's. Else (no such run has room, a whole hole, the memory above all blocks) opportunistic
// reuse asks how far all frees have come, and what has run is nobody's from then on.
bool is_taken_as_it_is(const Pool& pool, Span span) {
  if (!pool.backed.contains(span)) return false;
  if (pool.free.is_of_one_stream(span)) return true;
  const std::uint64_t top = pool.backed.spans().rbegin()->second;
  const std::vector<Span> holes = pool.free.clean_runs();
  return std::any_of(holes.begin(), holes.end(), [&](const Span& hole) {
    return hole.begin <= span.begin && span.end <= hole.end && span.size() < hole.size() &&
           hole.end < top;
  });
}

}  // namespace

// Gives physical memory to the whole pieces of `range`; false if the bound or the device refuses.
bool PoolState::back(Pool& pool, Span range, PoolWorld& world) {
  if (pool.reserved() + range.size() > pool.limit()) return false;
  if (!world.take(pool.place(), range.size())) return false;
  pool.backed.insert(range);
  pool.reserved_high = std::max(pool.reserved_high, pool.reserved());
  return true;
}

// Backs all of `target`: by the pool's own idle pieces, which move there, then by what is free,
// then by the idle memory of the other pools, which a request over the pool's own bound costs them
// as well. If even that is too little the pool keeps what it got; its threshold decides for how
// long. Measured: a request of more than twice the bound is refused at once, and costs nobody
// anything.
bool PoolState::grow(Pool& pool, Span target, PoolWorld& world) {
  const Span pieces = outer_pieces(target);
  if (forget_thresholds_ && pool.reserved() == 0) pool.threshold = 0;
  if (pieces.size() / 2 > pool.limit()) return false;
  std::uint64_t need = 0;
  for (const Span& gap : pool.backed.missing(pieces)) need += gap.size();
  std::vector<Span> moving = idle_pieces(pool, pieces);
  moving.resize(std::min<std::size_t>(moving.size(), need / kPoolPiece));
  const std::uint64_t more = need - moving.size() * kPoolPiece;
  if (pool.reserved() + more <= pool.limit() && world.take(pool.place(), more)) {
    for (const Span& piece : moving) pool.backed.erase(piece);
    pool.backed.insert(pieces);
    pool.reserved_high = std::max(pool.reserved_high, pool.reserved());
    return true;
  }
  release_down_to(pool, 0, false, pieces, world);
  for (auto& [handle, other] : pools_)
    if (&other != &pool && other.place() == pool.place())
      release_down_to(other, 0, false, {}, world);
  for (const Span& gap : pool.backed.missing(pieces))
    for (std::uint64_t at = gap.begin; at < gap.end; at += kPoolPiece)
      if (!back(pool, {at, at + kPoolPiece}, world)) return false;
  return true;
}

PoolGrant PoolState::allocate(PoolHandle handle, const PoolRequest& request, PoolWorld& world) {
  Pool* const pool = find(handle);
  if (pool == nullptr) return {DriverStatus::kInvalidValue, {}, {}};
  if (request.size == 0) return {};
  const auto span = checked_round_up(request.size, kPoolUnit);
  if (!span || *span > pool->window.size) return {DriverStatus::kOutOfMemory, {}, {}};
  pool->streams.insert(request.at.stream);
  if (request.placement.kind == PoolPlacement::Kind::kFollow)
    move_window(*pool, request.placement.value, world);

  const FreeMap::Usable has_run = [&](const StreamPoint& freed) { return world.has_run(freed); };
  const FreeMap::Usable usable = [&](const StreamPoint& freed) {
    if (freed.stream == request.at.stream) return true;
    if (pool->follow_events && world.follows(request.at.stream, freed)) return true;
    return pool->opportunistic && has_run(freed);
  };
  const auto backed_fits = [&](const FreeMap::Usable& which) {
    return fits(backed_parts(pool->free.runs(which), pool->backed), *span);
  };

  std::optional<std::uint64_t> start;
  if (request.placement.kind == PoolPlacement::Kind::kFollow &&
      request.placement.value >= pool->window.base) {
    const std::uint64_t offset = request.placement.value - pool->window.base;
    const bool fits_there = offset % kPoolUnit == 0 && offset <= pool->window.size - *span &&
                            pool->free.all_free({offset, offset + *span}, usable);
    if (fits_there) start = offset;
  }
  if (!start) start = choose(backed_fits(usable), request.placement);
  const bool as_it_is = start && is_taken_as_it_is(*pool, {*start, *start + *span});
  if (pool->opportunistic && !as_it_is) pool->free.settle(has_run);
  if (!start) {
    const auto starts = fits(pool->free.runs(usable), *span);
    if (!starts.empty()) start = starts.front();
  }
  if (start && !grow(*pool, {*start, *start + *span}, world)) start.reset();
  PoolGrant grant;
  if (!start && pool->internal_dependencies)  // pending runs are not joined
    start = choose(fits(backed_parts(pool->free.runs_of_one_stream(), pool->backed), *span),
                   request.placement);
  if (!start) {
    shrink_to_threshold(*pool, world);
    return {DriverStatus::kOutOfMemory, {}, {}};
  }
  for (const StreamPoint& freed : pool->free.take({*start, *start + *span}))
    if (!usable(freed)) grant.waits.push_back(freed);
  pool->live[*start] = {request.size, *span, request.at, next_block_++};
  pool->used += request.size;
  pool->used_high = std::max(pool->used_high, pool->used);
  grant.ptr = DevicePtr{pool->window.base + *start};
  return grant;
}

}  // namespace granule::model
