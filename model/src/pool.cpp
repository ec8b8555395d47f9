// Pools: making and ending them, attributes, frees, and giving memory back.
#include "pool.hpp"

#include <algorithm>
#include <iterator>

namespace granule::model {
namespace {

constexpr std::uint64_t kNoLimit = UINT64_MAX;
constexpr std::uint64_t kWindowUnit = std::uint64_t{64} << 20;
constexpr std::uint64_t kWindowSpace = std::uint64_t{0x1f0000000000};

}  // namespace

Pool::Pool(PoolHandle pool_handle, const AllocationProperties& pool_properties, std::uint64_t bound,
           AddressRange addresses)
    : handle(pool_handle),
      properties(pool_properties),
      max_size(bound),
      window(addresses),
      free(addresses.size) {}

std::uint64_t Pool::limit() const {
  if (max_size == 0) return kNoLimit;
  return checked_round_up(max_size, kPoolPiece).value_or(kNoLimit);
}

Access Pool::access_of(const Location& who) const {
  const bool same_place =
      who.type == place().type && (who.type == LocationType::kHost || who.id == place().id);
  if (same_place) return Access::kReadWrite;
  if (who.type != LocationType::kDevice) return Access::kNone;
  const auto it = peers.find(who.id);
  return it == peers.end() ? Access::kNone : it->second;
}

std::optional<AddressRange> PoolState::claim_window(PoolWorld& world) const {
  const std::uint64_t size = world.window_size();
  const std::uint64_t first = world.first_window();
  for (std::uint64_t at = first; at + size <= first + kWindowSpace; at += size)
    if (world.claim({at, size})) return AddressRange{at, size};
  return std::nullopt;
}

// A followed driver has its windows elsewhere: an empty pool goes where its first block lies.
void PoolState::move_window(Pool& pool, std::uint64_t address, PoolWorld& world) {
  if (pool.reserved() != 0 || !pool.live.empty() || pool.window.contains(address)) return;
  const AddressRange wanted{address / kWindowUnit * kWindowUnit, pool.window.size};
  if (!world.claim(wanted)) return;
  world.unclaim(pool.window);
  windows_.erase(pool.window.base);
  pool.window = wanted;
  windows_[wanted.base] = pool.handle.value;
}

PoolHandle PoolState::create(const AllocationProperties& properties, std::uint64_t max_size,
                             PoolWorld& world) {
  const auto window = claim_window(world);
  if (!window) return {};
  const PoolHandle handle{next_handle_};
  next_handle_ += 0x10;
  pools_.emplace(handle.value, Pool(handle, properties, max_size, *window));
  windows_[window->base] = handle.value;
  return handle;
}

PoolHandle PoolState::default_pool(DeviceId device, PoolWorld& world) {
  const auto it = defaults_.find(device.value);
  if (it != defaults_.end()) return it->second;
  AllocationProperties properties;
  properties.location = device_location(device);
  const PoolHandle handle = create(properties, 0, world);
  if (!handle) return handle;
  pools_.at(handle.value).is_default = true;
  defaults_[device.value] = handle;
  return handle;
}

PoolHandle PoolState::current_pool(DeviceId device, PoolWorld& world) {
  const auto it = current_.find(device.value);
  return it == current_.end() ? default_pool(device, world) : it->second;
}

void PoolState::set_current(DeviceId device, PoolHandle pool) { current_[device.value] = pool; }

const Pool* PoolState::find(PoolHandle pool) const {
  const auto it = pools_.find(pool.value);
  return it == pools_.end() || it->second.destroyed ? nullptr : &it->second;
}

Pool* PoolState::find(PoolHandle pool) {
  const auto it = pools_.find(pool.value);
  return it == pools_.end() || it->second.destroyed ? nullptr : &it->second;
}

DriverStatus PoolState::destroy(PoolHandle handle, PoolWorld& world) {
  Pool* const pool = find(handle);
  if (pool == nullptr || pool->is_default) return DriverStatus::kInvalidValue;
  for (auto it = current_.begin(); it != current_.end();)
    it = it->second == handle ? current_.erase(it) : std::next(it);
  pool->destroyed = true;
  pool->free.settle([&](const StreamPoint& at) { return world.has_run(at); });
  shrink_to_threshold(*pool, world);
  erase_if_spent(handle.value, world);
  return DriverStatus::kSuccess;
}

void PoolState::erase_if_spent(std::uint64_t handle, PoolWorld& world) {
  const auto it = pools_.find(handle);
  if (it == pools_.end() || !it->second.destroyed || it->second.reserved() != 0) return;
  world.unclaim(it->second.window);
  windows_.erase(it->second.window.base);
  pools_.erase(it);
}

DriverStatus PoolState::set_attribute(PoolHandle handle, PoolAttribute attribute,
                                      std::uint64_t value) {
  Pool* const pool = find(handle);
  if (pool == nullptr) return DriverStatus::kInvalidValue;
  const bool on = value != 0;
  switch (attribute) {
    case PoolAttribute::kReuseFollowEventDependencies:
      pool->follow_events = on;
      return DriverStatus::kSuccess;
    case PoolAttribute::kReuseAllowOpportunistic:
      pool->opportunistic = on;
      return DriverStatus::kSuccess;
    case PoolAttribute::kReuseAllowInternalDependencies:
      pool->internal_dependencies = on;
      return DriverStatus::kSuccess;
    case PoolAttribute::kReleaseThreshold:
      pool->threshold = value;
      return DriverStatus::kSuccess;
    case PoolAttribute::kReservedMemHigh:
      if (on) return DriverStatus::kInvalidValue;
      pool->reserved_high = pool->reserved();
      return DriverStatus::kSuccess;
    case PoolAttribute::kUsedMemHigh:
      if (on) return DriverStatus::kInvalidValue;
      pool->used_high = pool->used;
      return DriverStatus::kSuccess;
    case PoolAttribute::kReservedMemCurrent:
    case PoolAttribute::kUsedMemCurrent:
      break;
  }
  return DriverStatus::kInvalidValue;
}

DriverStatus PoolState::get_attribute(PoolHandle handle, PoolAttribute attribute,
                                      std::uint64_t& value) const {
  const Pool* const pool = find(handle);
  if (pool == nullptr) return DriverStatus::kInvalidValue;
  switch (attribute) {
    case PoolAttribute::kReuseFollowEventDependencies:
      value = pool->follow_events;
      return DriverStatus::kSuccess;
    case PoolAttribute::kReuseAllowOpportunistic:
      value = pool->opportunistic;
      return DriverStatus::kSuccess;
    case PoolAttribute::kReuseAllowInternalDependencies:
      value = pool->internal_dependencies;
      return DriverStatus::kSuccess;
    case PoolAttribute::kReleaseThreshold:
      value = pool->threshold;
      return DriverStatus::kSuccess;
    case PoolAttribute::kReservedMemCurrent:
      value = pool->reserved();
      return DriverStatus::kSuccess;
    case PoolAttribute::kReservedMemHigh:
      value = pool->reserved_high;
      return DriverStatus::kSuccess;
    case PoolAttribute::kUsedMemCurrent:
      value = pool->used;
      return DriverStatus::kSuccess;
    case PoolAttribute::kUsedMemHigh:
      value = pool->used_high;
      return DriverStatus::kSuccess;
  }
  return DriverStatus::kInvalidValue;
}

Pool* PoolState::owner_of(DevicePtr ptr) {
  auto it = windows_.upper_bound(ptr.value);
  if (it == windows_.begin()) return nullptr;
  --it;
  Pool& pool = pools_.at(it->second);
  return pool.window.contains(ptr.value) ? &pool : nullptr;
}

const Pool* PoolState::window_at(DevicePtr address) const {
  return const_cast<PoolState*>(this)->owner_of(address);
}

DriverStatus PoolState::free_ordered(DevicePtr ptr, const StreamPoint& at) {
  Pool* const pool = owner_of(ptr);
  if (pool == nullptr) return DriverStatus::kInvalidValue;
  const std::uint64_t offset = ptr.value - pool->window.base;
  const auto it = pool->live.find(offset);
  if (it == pool->live.end()) return DriverStatus::kInvalidValue;
  const PoolBlock block = it->second;
  pool->live.erase(it);
  pool->used -= block.size;
  pool->streams.insert(at.stream);
  pool->free.give({offset, offset + block.span}, at);
  return DriverStatus::kSuccess;
}

DriverStatus PoolState::free_now(DevicePtr ptr, PoolWorld& world) {
  Pool* const pool = owner_of(ptr);
  if (pool == nullptr) return DriverStatus::kInvalidValue;
  const std::uint64_t offset = ptr.value - pool->window.base;
  const auto it = pool->live.find(offset);
  if (it == pool->live.end()) return DriverStatus::kInvalidValue;
  const std::uint64_t span = it->second.span;
  pool->live.erase(it);  // `used` stays: this call never lowers it
  pool->free.give({offset, offset + span}, std::nullopt);
  shrink_to_threshold(*pool, world);
  erase_if_spent(pool->handle.value, world);
  return DriverStatus::kSuccess;
}

DevicePtr PoolState::allocate_captured(std::uint64_t size, std::uint64_t capture) {
  const DevicePtr ptr{next_captured_};
  next_captured_ += checked_round_up(size, kPoolPiece).value_or(kPoolPiece) + kPoolPiece;
  captured_[ptr.value] = {size, capture};
  return ptr;
}

DriverStatus PoolState::free_captured(DevicePtr ptr, std::uint64_t capture) {
  const auto it = captured_.find(ptr.value);
  if (it == captured_.end() || it->second.capture != capture) return DriverStatus::kInvalidValue;
  captured_.erase(it);
  return DriverStatus::kSuccess;
}

bool PoolState::is_captured(const AddressRange& range, std::uint64_t capture) const {
  auto it = captured_.upper_bound(range.base);
  if (it == captured_.begin()) return false;
  --it;
  return it->second.capture == capture && AddressRange{it->first, it->second.size}.contains(range);
}

void PoolState::end_capture(std::uint64_t capture) {
  for (auto it = captured_.begin(); it != captured_.end();)
    it = it->second.capture == capture ? captured_.erase(it) : std::next(it);
}

// The pieces whose bytes are all free and untagged, outside `except`, the highest first.
std::vector<Span> PoolState::idle_pieces(const Pool& pool, Span except) {
  std::vector<Span> found;
  if (pool.backed.spans().empty()) return found;
  const auto runs = pool.free.clean_runs();
  const std::uint64_t top = pool.backed.spans().rbegin()->second;
  for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
    const std::uint64_t first = checked_round_up(run->begin, kPoolPiece).value_or(UINT64_MAX);
    const std::uint64_t end = std::min(run->end / kPoolPiece * kPoolPiece, top);
    for (std::uint64_t at = end; at > first; at -= kPoolPiece) {
      const Span piece{at - kPoolPiece, at};
      if (piece.begin < except.end && except.begin < piece.end) continue;
      if (pool.backed.contains(piece)) found.push_back(piece);
    }
  }
  return found;
}

// Gives back pieces without live or unsettled bytes, the highest first, outside `except`.
// With keep_at_least the rest does not fall below `floor`; without, it goes on until it is not
// above `floor`.
void PoolState::release_down_to(Pool& pool, std::uint64_t floor, bool keep_at_least, Span except,
                                PoolWorld& world) {
  if (pool.reserved() <= floor) return;
  for (const Span& piece : idle_pieces(pool, except)) {
    const std::uint64_t left = pool.reserved();
    if (left <= floor || (keep_at_least && left - kPoolPiece < floor)) return;
    pool.backed.erase(piece);
    world.give(pool.place(), kPoolPiece);
  }
}

void PoolState::shrink_to_threshold(Pool& pool, PoolWorld& world) {
  release_down_to(pool, pool.destroyed ? 0 : pool.threshold, false, {}, world);
}

DriverStatus PoolState::trim(PoolHandle handle, std::uint64_t keep, PoolWorld& world) {
  Pool* const pool = find(handle);
  if (pool == nullptr) return DriverStatus::kInvalidValue;
  release_down_to(*pool, keep, true, {}, world);
  return DriverStatus::kSuccess;
}

void PoolState::observed(std::uint64_t stream, std::uint64_t position, PoolWorld& world) {
  for (auto it = pools_.begin(); it != pools_.end();) {
    Pool& pool = (it++)->second;
    if (pool.streams.count(stream) == 0) continue;
    pool.free.settle(
        [&](const StreamPoint& at) { return at.stream == stream && at.position <= position; });
    shrink_to_threshold(pool, world);
    erase_if_spent(pool.handle.value, world);
  }
}

void PoolState::forget_stream(std::uint64_t stream) {
  for (auto& [handle, pool] : pools_) {
    const bool pending = std::any_of(
        pool.free.extents().begin(), pool.free.extents().end(),
        [&](const auto& e) { return e.second.freed && e.second.freed->stream == stream; });
    if (!pending) pool.streams.erase(stream);
  }
}

std::uint64_t PoolState::release_idle(const Location& place, PoolWorld& world) {
  std::uint64_t freed = 0;
  for (auto& [handle, pool] : pools_) {
    if (pool.place() != place) continue;
    const std::uint64_t before = pool.reserved();
    release_down_to(pool, 0, false, {}, world);
    freed += before - pool.reserved();
  }
  return freed;
}

std::optional<PoolPlace> PoolState::block_at(DevicePtr address) const {
  const Pool* const pool = window_at(address);
  if (pool == nullptr) return std::nullopt;
  const std::uint64_t offset = address.value - pool->window.base;
  auto it = pool->live.upper_bound(offset);
  if (it == pool->live.begin()) return std::nullopt;
  --it;
  if (offset - it->first >= it->second.size) return std::nullopt;
  const std::uint64_t base = pool->window.base;
  return PoolPlace{pool,
                   &it->second,
                   {base + it->first, it->second.size},
                   {base + it->first / kPoolPiece * kPoolPiece, kPoolPiece}};
}

bool PoolState::is_backed(const AddressRange& range) const {
  const Pool* const pool = window_at(DevicePtr{range.base});
  if (pool == nullptr || range.end() > pool->window.end()) return false;
  const std::uint64_t begin = range.base - pool->window.base;
  return pool->backed.contains({begin, begin + range.size});
}

std::uint64_t PoolState::live_blocks() const {
  std::uint64_t count = 0;
  for (const auto& [handle, pool] : pools_) count += pool.live.size();
  return count;
}

std::uint64_t PoolState::made_pools() const {
  std::uint64_t count = 0;
  for (const auto& [handle, pool] : pools_) count += !pool.is_default && !pool.destroyed;
  return count;
}

}  // namespace granule::model
