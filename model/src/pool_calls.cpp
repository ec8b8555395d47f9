// The driver's pool calls, and what other subjects ask of pools. Driver contract, section 17.
#include <set>

#include "calls.hpp"
#include "pool_world.hpp"
#include "streams.hpp"
#include "vmm.hpp"

namespace granule::model {
namespace {

bool is_device(const State& state, std::int32_t ordinal) {
  return ordinal >= 0 && static_cast<std::size_t>(ordinal) < state.devices.size();
}

bool has_pools(const State& state, std::int32_t ordinal) {
  return state.devices[static_cast<std::size_t>(ordinal)].config.pools;
}

bool is_place_for_pools(const State& state, const Location& place) {
  switch (place.type) {
    case LocationType::kDevice:
      return is_device(state, place.id);
    case LocationType::kHost:
      return true;
    case LocationType::kHostNuma:
      return place.id >= 0 && static_cast<std::uint32_t>(place.id) < state.config.numa_nodes;
    case LocationType::kInvalid:
    case LocationType::kHostNumaCurrent:
      break;
  }
  return false;
}

bool are_handle_types_for_pools(HandleType types) {
  const auto known = static_cast<std::uint32_t>(HandleType::kPosixFd) |
                     static_cast<std::uint32_t>(HandleType::kFabric);
  return (static_cast<std::uint32_t>(types) & ~known) == 0;
}

/// The placement of the next block: a followed driver's, the worst allowed, or as observed.
PoolPlacement next_placement(State& state) {
  if (!state.forced_pool_blocks.empty()) {
    const std::uint64_t address = state.forced_pool_blocks.front();
    state.forced_pool_blocks.pop_front();
    return {PoolPlacement::Kind::kFollow, address};
  }
  if (state.config.verdict == Verdict::kAdversarial)
    return {PoolPlacement::Kind::kPick, next_random(state)};
  return {};
}

/// A new block holds nothing that anybody may rely on.
void forget_contents(State& state, DevicePtr ptr, std::uint64_t size) {
  const Pool* const pool = state.pools.window_at(ptr);
  const auto it = state.pool_contents.find(pool->window.base);
  if (it == state.pool_contents.end()) return;
  const std::uint64_t begin = ptr.value - pool->window.base;
  it->second.write(begin, begin + size, Bytes::unknown(), StreamPoint{UINT64_MAX, 0});
}

DriverStatus allocate_in_capture(State& state, std::uint64_t stream, std::uint64_t size,
                                 DevicePtr& ptr) {
  const std::uint64_t capture = state.streams[stream].capture;
  add_capture_node(state, stream);
  state.captures.at(capture).pool_nodes += 1;
  if (size != 0) ptr = state.pools.allocate_captured(size, capture);
  return DriverStatus::kSuccess;
}

/// What a free on a stream was ordered behind. Of one long ago: what its stream is behind by now.
const Clock& order_of_free(const State& state, const StreamPoint& point) {
  for (const auto& [freed, order] : state.free_orders)
    if (freed == point) return order;
  return state.streams.at(point.stream).order;
}

/// Keeps what a free is ordered behind: its stream may learn more before the block is reused.
void remember_free(State& state, const StreamPoint& point) {
  constexpr std::size_t kMost = 256;
  if (state.free_orders.size() >= kMost) state.free_orders.pop_front();
  state.free_orders.emplace_back(point, state.streams.at(point.stream).order);
}

DriverStatus allocate_now(State& state, std::uint64_t stream, PoolHandle pool, std::uint64_t size,
                          DevicePtr& ptr) {
  StateWorld world(state);
  state.pools.forget_thresholds(state.config.quirks.threshold_forgotten);
  PoolRequest request;
  request.size = size;
  request.at = {stream, tail(state, stream).position + 1};
  if (size != 0) request.placement = next_placement(state);
  const PoolGrant grant = state.pools.allocate(pool, request, world);
  if (grant.status != DriverStatus::kSuccess || !grant.ptr) return grant.status;
  if (!grant.waits.empty()) {
    Clock order;
    for (const StreamPoint& point : grant.waits) {
      order.join(order_of_free(state, point));
      order.raise(point.stream, point.position);
    }
    enqueue_wait(state, stream, grant.waits, order);
  }
  enqueue(state, stream, Work{});
  forget_contents(state, grant.ptr, size);
  ptr = grant.ptr;
  return DriverStatus::kSuccess;
}

/// What both allocating calls do once they know the stream; `pool` null: the device's current one.
DriverStatus allocate(State& state, ThreadId thread, StreamHandle handle, PoolHandle pool,
                      bool from_pool, std::uint64_t size, DevicePtr& ptr) {
  ptr = {};  // failing pool allocations write 0
  const ResolvedStream stream = resolve_stream(state, thread, handle);
  if (stream.status != DriverStatus::kSuccess) return stream.status;
  const DriverStatus null_stream = check_null_stream(state, stream.number);
  if (null_stream != DriverStatus::kSuccess) return null_stream;
  const bool captured = is_capturing(state, stream.number);
  if (!captured) {
    const DriverStatus allowed = check_capture_allows(state, thread);
    if (allowed != DriverStatus::kSuccess) return allowed;
  }
  if (!from_pool) {
    const DeviceId device{state.streams[stream.number].device};
    if (!has_pools(state, device.value)) return DriverStatus::kNotSupported;
    StateWorld world(state);
    pool = state.pools.current_pool(device, world);
  }
  if (state.pools.find(pool) == nullptr) return DriverStatus::kInvalidValue;
  return captured ? allocate_in_capture(state, stream.number, size, ptr)
                  : allocate_now(state, stream.number, pool, size, ptr);
}

/// Reports a free while queued work that is not ordered before it uses the block; `stream` kNone:
/// a free that is ordered behind nothing.
void report_work_behind_free(State& state, const AddressRange& range, std::uint64_t stream) {
  if (state.pending_memory_work == 0) return;
  if (!has_unordered_work(state, stream, range.base, range.size)) return;
  violate(state, ViolationKind::kUnorderedFree,
          "pool block at " + hex(range.base) + " freed while unordered work still uses it");
}

DriverStatus free_ordered(State& state, std::uint64_t stream, DevicePtr ptr) {
  if (!ptr) return DriverStatus::kSuccess;
  const auto place = state.pools.block_at(ptr);
  if (!place || place->range.base != ptr.value) return free_plain_on(state, stream, ptr);
  report_work_behind_free(state, place->range, stream);
  const StreamPoint point = enqueue(state, stream, Work{});
  remember_free(state, point);
  return state.pools.free_ordered(ptr, point);
}

bool owns(const Pool& pool, const Location& who) {
  return who.type == LocationType::kDevice && who == pool.place();
}

/// Whether a list of access entries can be applied to a pool; nothing is done before all are.
DriverStatus judge_access(const State& state, const Pool& pool, const AccessEntries& entries) {
  if (entries.count == 0) return DriverStatus::kInvalidValue;
  for (const AccessEntry& entry : entries) {
    const bool device = entry.location.type == LocationType::kDevice;
    if (device && !is_device(state, entry.location.id)) return DriverStatus::kInvalidDevice;
    const bool known = entry.access == Access::kNone || entry.access == Access::kRead ||
                       entry.access == Access::kReadWrite;
    if (!known) return DriverStatus::kInvalidValue;
    switch (entry.location.type) {
      case LocationType::kDevice:
      case LocationType::kHost:
      case LocationType::kHostNuma:
      case LocationType::kHostNumaCurrent:  // refused below, as any place of the host
        break;
      default:
        return DriverStatus::kInvalidValue;
    }
  }
  for (const AccessEntry& entry : entries) {
    if (entry.location.type != LocationType::kDevice) continue;
    if (owns(pool, entry.location)) {
      if (entry.access == Access::kNone) return DriverStatus::kInvalidDevice;
      continue;
    }
    const bool reachable =
        pool.place().type != LocationType::kDevice ||
        (state.devices[static_cast<std::size_t>(pool.place().id)].config.peers &&
         state.devices[static_cast<std::size_t>(entry.location.id)].config.peers);
    if (!reachable) return DriverStatus::kInvalidDevice;
  }
  for (const AccessEntry& entry : entries)
    if (entry.location.type != LocationType::kDevice || entry.access == Access::kRead)
      return DriverStatus::kNotSupported;
  return DriverStatus::kSuccess;
}

DriverStatus device_pool(State& state, DeviceId device, bool current, PoolHandle& pool) {
  if (!is_device(state, device.value)) return DriverStatus::kInvalidDevice;
  if (!has_pools(state, device.value)) return DriverStatus::kNotSupported;
  StateWorld world(state);
  pool =
      current ? state.pools.current_pool(device, world) : state.pools.default_pool(device, world);
  return pool ? DriverStatus::kSuccess : DriverStatus::kOutOfMemory;
}

}  // namespace

DriverStatus run_call(State& state, ThreadId thread, MemPoolCreate& call) {
  const AllocationProperties& wanted = call.properties;
  if (wanted.type != 1 || !are_handle_types_for_pools(wanted.handle_types) ||
      !is_place_for_pools(state, wanted.location))
    return DriverStatus::kInvalidValue;
  if (wanted.location.type == LocationType::kDevice && !has_pools(state, wanted.location.id))
    return DriverStatus::kNotSupported;
  const DriverStatus allowed = check_capture_allows(state, thread);
  if (allowed != DriverStatus::kSuccess) return allowed;
  StateWorld world(state);
  call.pool = state.pools.create(wanted, call.max_size, world);
  return call.pool ? DriverStatus::kSuccess : DriverStatus::kOutOfMemory;
}

// Measured: what is not an allocation or a free on a stream is forbidden while a capture is, reads
// included.
DriverStatus run_call(State& state, ThreadId thread, MemPoolDestroy& call) {
  if (state.pools.find(call.pool) == nullptr) return DriverStatus::kInvalidValue;
  const DriverStatus allowed = check_capture_allows(state, thread);
  if (allowed != DriverStatus::kSuccess) return allowed;
  StateWorld world(state);
  return state.pools.destroy(call.pool, world);
}

DriverStatus run_call(State& state, ThreadId thread, MemPoolTrimTo& call) {
  if (state.pools.find(call.pool) == nullptr) return DriverStatus::kInvalidValue;
  const DriverStatus allowed = check_capture_allows(state, thread);
  if (allowed != DriverStatus::kSuccess) return allowed;
  StateWorld world(state);
  return state.pools.trim(call.pool, call.keep, world);
}

DriverStatus run_call(State& state, ThreadId thread, MemPoolSetAttribute& call) {
  if (state.pools.find(call.pool) == nullptr) return DriverStatus::kInvalidValue;
  const DriverStatus allowed = check_capture_allows(state, thread);
  if (allowed != DriverStatus::kSuccess) return allowed;
  return state.pools.set_attribute(call.pool, call.attribute, call.value);
}

DriverStatus run_call(State& state, ThreadId thread, MemPoolGetAttribute& call) {
  if (state.pools.find(call.pool) == nullptr) return DriverStatus::kInvalidValue;
  const DriverStatus allowed = check_capture_allows(state, thread);
  if (allowed != DriverStatus::kSuccess) return allowed;
  return state.pools.get_attribute(call.pool, call.attribute, call.value);
}

DriverStatus run_call(State& state, ThreadId thread, MemPoolSetAccess& call) {
  Pool* const pool = state.pools.find(call.pool);
  if (pool == nullptr) return DriverStatus::kInvalidValue;
  const DriverStatus allowed = check_capture_allows(state, thread);
  if (allowed != DriverStatus::kSuccess) return allowed;
  const DriverStatus judged = judge_access(state, *pool, call.access);
  if (judged != DriverStatus::kSuccess) return judged;
  for (const AccessEntry& entry : call.access)
    if (!owns(*pool, entry.location)) pool->peers[entry.location.id] = entry.access;
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId thread, MemPoolGetAccess& call) {
  const Pool* const pool = state.pools.find(call.pool);
  if (pool == nullptr) return DriverStatus::kInvalidValue;
  const DriverStatus allowed = check_capture_allows(state, thread);
  if (allowed != DriverStatus::kSuccess) return allowed;
  switch (call.location.type) {
    case LocationType::kDevice:
      if (!is_device(state, call.location.id)) return DriverStatus::kInvalidValue;
      break;
    case LocationType::kHost:
    case LocationType::kHostNuma:
      break;
    default:
      return DriverStatus::kInvalidDevice;
  }
  call.access = pool->access_of(call.location);
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId thread, MemAllocAsync& call) {
  return allocate(state, thread, call.stream, {}, false, call.size, call.ptr);
}

DriverStatus run_call(State& state, ThreadId thread, MemAllocFromPoolAsync& call) {
  return allocate(state, thread, call.stream, call.pool, true, call.size, call.ptr);
}

DriverStatus run_call(State& state, ThreadId thread, MemFreeAsync& call) {
  const ResolvedStream stream = resolve_stream(state, thread, call.stream);
  if (stream.status != DriverStatus::kSuccess) return stream.status;
  const DriverStatus null_stream = check_null_stream(state, stream.number);
  if (null_stream != DriverStatus::kSuccess) return null_stream;
  if (is_capturing(state, stream.number)) {
    if (!call.ptr) return DriverStatus::kSuccess;
    const std::uint64_t capture = state.streams[stream.number].capture;
    const DriverStatus freed = state.pools.free_captured(call.ptr, capture);
    if (freed == DriverStatus::kSuccess) add_capture_node(state, stream.number);
    return freed;
  }
  const DriverStatus allowed = check_capture_allows(state, thread);
  if (allowed != DriverStatus::kSuccess) return allowed;
  return free_ordered(state, stream.number, call.ptr);
}

DriverStatus run_call(State& state, ThreadId, DeviceGetDefaultMemPool& call) {
  return device_pool(state, call.device, false, call.pool);
}

DriverStatus run_call(State& state, ThreadId, DeviceGetMemPool& call) {
  return device_pool(state, call.device, true, call.pool);
}

DriverStatus run_call(State& state, ThreadId thread, DeviceSetMemPool& call) {
  if (!is_device(state, call.device.value)) return DriverStatus::kInvalidDevice;
  const Pool* const pool = state.pools.find(call.pool);
  if (pool == nullptr || pool->place() != device_location(call.device))
    return DriverStatus::kInvalidValue;
  const DriverStatus allowed = check_capture_allows(state, thread);
  if (allowed != DriverStatus::kSuccess) return allowed;
  state.pools.set_current(call.device, call.pool);
  return DriverStatus::kSuccess;
}

// ---- what other subjects ask ----------------------------------------------------------------

std::optional<DriverStatus> free_pool_block(State& state, DevicePtr ptr) {
  const auto place = state.pools.block_at(ptr);
  if (!place || place->range.base != ptr.value) return std::nullopt;
  const AddressRange range = place->range;
  violate(state, ViolationKind::kUnportable,
          "cuMemFree of pool block " + hex(ptr.value) + ": ordered behind nothing, stays counted");
  report_work_behind_free(state, range, kNone);
  StateWorld world(state);
  return state.pools.free_now(ptr, world);
}

std::uint64_t empty_pools(State& state, const Location& place) {
  StateWorld world(state);
  return state.pools.release_idle(place, world);
}

void pools_observe(State& state, const StreamPoint& point) {
  if (!state.dying_plain.empty()) observe_plain_frees(state, point);
  StateWorld world(state);
  state.pools.observed(point.stream, point.position, world);
}

void pools_observe_destroyed(State& state, std::int32_t device) {
  std::set<std::uint64_t> gone;
  for (const auto& [handle, pool] : state.pools.pools()) {
    for (const std::uint64_t number : pool.streams) {
      const Stream& stream = state.streams[number];
      if (stream.destroyed && stream.device == device) gone.insert(number);
    }
  }
  for (const std::uint64_t number : gone) {
    pools_observe(state, {number, state.streams[number].ran});
    if (state.streams[number].queue.empty()) state.pools.forget_stream(number);
  }
}

}  // namespace granule::model
