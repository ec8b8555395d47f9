// The order of stream work and its progress. Time is virtual: it moves by pauses and waits.
#include "streams.hpp"

#include <algorithm>

#include "calls.hpp"

namespace granule::model {
namespace {

bool joins_legacy(StreamKind kind) {
  return kind == StreamKind::kBlocking || kind == StreamKind::kPerThread;
}

bool may_block(const Work& work) {
  return (work.kind == WorkKind::kGate && !work.open) || work.kind == WorkKind::kWaitValue ||
         work.kind == WorkKind::kHostFunction;
}

void insert_sorted(std::vector<std::uint64_t>& numbers, std::uint64_t number) {
  const auto it = std::lower_bound(numbers.begin(), numbers.end(), number);
  if (it == numbers.end() || *it != number) numbers.insert(it, number);
}

void erase_sorted(std::vector<std::uint64_t>& numbers, std::uint64_t number) {
  const auto it = std::lower_bound(numbers.begin(), numbers.end(), number);
  if (it != numbers.end() && *it == number) numbers.erase(it);
}

StreamPoint push(State& state, std::uint64_t number, Work work) {
  Stream& stream = state.streams[number];
  work.enqueued_at = state.now;
  work.host_epoch = state.host_epoch;
  if (touches_memory(work)) state.pending_memory_work += 1;
  if (may_block(work)) state.possible_blocks += 1;
  if (stream.queue.empty()) insert_sorted(state.busy_streams, number);
  stream.queue.push_back(std::move(work));
  const StreamPoint point{number, stream.submitted()};
  stream.order.raise(number, point.position);
  return point;
}

/// The waits that the null stream's rules put before the next operation of `number`.
void add_implicit_waits(State& state, std::uint64_t number) {
  const StreamKind kind = state.streams[number].kind;
  if (kind == StreamKind::kNonBlocking) return;
  const Context& context = state.contexts.at(state.streams[number].context);
  std::vector<StreamPoint> points;
  Clock order;
  const auto add = [&](std::uint64_t other) {
    const std::uint64_t last = state.streams[other].submitted();
    if (last == 0 || state.streams[number].order.at(other) >= last) return;
    points.push_back({other, last});
    order.join(state.streams[other].order);
  };
  if (kind == StreamKind::kLegacy) {
    for (const std::uint64_t other : context.streams) {
      if (joins_legacy(state.streams[other].kind)) add(other);
    }
  } else if (context.legacy != kNone) {
    add(context.legacy);
  }
  if (!points.empty()) enqueue_wait(state, number, std::move(points), order);
}

/// The head of a stream, if it can run: when it would be done.
std::optional<std::uint64_t> finish_of_head(const State& state, const Stream& stream) {
  if (stream.queue.empty() || stream.fault != DriverStatus::kSuccess) return std::nullopt;
  const Work& work = stream.queue.front();
  const std::uint64_t start = std::max(stream.last_finish, work.enqueued_at);
  switch (work.kind) {
    case WorkKind::kGate:
      if (!work.open) return std::nullopt;
      return std::max(start, work.opened_at);
    case WorkKind::kWait: {
      std::uint64_t at = start;
      for (const StreamPoint& point : work.points) {
        if (!has_run(state, point)) return std::nullopt;
        at = std::max(at, state.streams[point.stream].last_finish);
      }
      return at;
    }
    case WorkKind::kWaitValue:
      if (!value_is_there(state, work)) return std::nullopt;
      return start;
    case WorkKind::kHostFunction:
      if (work.running) return std::nullopt;
      return start;
    default:
      return start + work.duration;
  }
}

void retire_if_finished(State& state, std::uint64_t number) {
  Stream& stream = state.streams[number];
  if (!stream.queue.empty()) return;
  erase_sorted(state.busy_streams, number);
  if (stream.destroyed) {
    const auto it = state.contexts.find(stream.context);
    if (it != state.contexts.end()) erase_sorted(it->second.streams, number);
  }
}

/// Runs the head of a stream. The caller knows that it can.
void run_head(State& state, std::uint64_t number, std::uint64_t finish) {
  const StreamPoint self{number, state.streams[number].ran + 1};
  if (state.streams[number].queue.front().kind == WorkKind::kHostFunction) {
    Work& work = state.streams[number].queue.front();
    work.running = true;
    const auto function = work.function;
    void* const argument = work.argument;
    if (state.runner != nullptr && function != nullptr) state.runner->run_host_function(function, argument);
  }
  Stream& stream = state.streams[number];
  if (stream.queue.empty()) return;  // thrown away by what the host function did
  const Work& work = stream.queue.front();
  if (work.kind == WorkKind::kWait) stream.run_order.join(work.order);
  const DriverStatus done = perform(state, number, work, self);
  if (done != DriverStatus::kSuccess) {
    stream.fault = done;
    Device& device = state.devices[static_cast<std::size_t>(stream.device)];
    if (device.pending_fault == DriverStatus::kSuccess) device.pending_fault = done;
    return;
  }
  if (touches_memory(work)) state.pending_memory_work -= 1;
  if (may_block(work)) state.possible_blocks -= 1;
  stream.queue.pop_front();
  stream.ran += 1;
  stream.queries = 0;
  stream.last_finish = finish;
  stream.run_order.raise(number, stream.ran);
  retire_if_finished(state, number);
}

struct Reach {
  std::vector<StreamPoint> checked;
  bool known(const StreamPoint& point) const {
    return std::any_of(checked.begin(), checked.end(), [&](const StreamPoint& c) {
      return c.stream == point.stream && c.position >= point.position;
    });
  }
};

bool can_reach(const State& state, const StreamPoint& point, Reach& reach) {
  const Stream& stream = state.streams[point.stream];
  if (stream.ran >= point.position || reach.known(point)) return true;
  if (stream.fault != DriverStatus::kSuccess) return true;  // a wait ends with the fault
  reach.checked.push_back(point);
  const std::uint64_t count = point.position - stream.ran;
  for (std::uint64_t i = 0; i < count; ++i) {
    const Work& work = stream.queue[static_cast<std::size_t>(i)];
    if (work.kind == WorkKind::kGate && !work.open) return false;
    if (work.kind == WorkKind::kWaitValue && !value_is_there(state, work)) return false;
    if (work.kind == WorkKind::kHostFunction && work.running) return false;
    if (work.kind != WorkKind::kWait) continue;
    for (const StreamPoint& before : work.points) {
      if (!can_reach(state, before, reach)) return false;
    }
  }
  return true;
}

}  // namespace

std::uint64_t Clock::at(std::uint64_t stream) const {
  const auto it = std::lower_bound(
      points_.begin(), points_.end(), stream,
      [](const StreamPoint& point, std::uint64_t number) { return point.stream < number; });
  return it != points_.end() && it->stream == stream ? it->position : 0;
}

void Clock::raise(std::uint64_t stream, std::uint64_t position) {
  const auto it = std::lower_bound(
      points_.begin(), points_.end(), stream,
      [](const StreamPoint& point, std::uint64_t number) { return point.stream < number; });
  if (it != points_.end() && it->stream == stream) {
    it->position = std::max(it->position, position);
  } else {
    points_.insert(it, {stream, position});
  }
}

void Clock::join(const Clock& other) {
  for (const StreamPoint& point : other.points_) raise(point.stream, point.position);
}

bool touches_memory(const Work& work) {
  switch (work.kind) {
    case WorkKind::kFill:
    case WorkKind::kRead:
    case WorkKind::kTouch:
    case WorkKind::kCopy:
    case WorkKind::kWriteValue:
      return true;
    default:
      return false;
  }
}

std::uint64_t new_stream(State& state, StreamKind kind, std::uint64_t context) {
  const std::uint64_t number = state.streams.size();
  Stream made;
  made.kind = kind;
  made.context = context;
  made.device = state.contexts.at(context).device;
  state.streams.push_back(std::move(made));
  state.contexts.at(context).streams.push_back(number);
  return number;
}

ResolvedStream resolve_stream(State& state, ThreadId thread, StreamHandle handle) {
  ResolvedStream found;
  if (handle.value <= kPerThreadStream.value) {
    std::uint64_t context = 0;
    found.status = need_context(state, thread, context);
    if (found.status != DriverStatus::kSuccess) return found;
    Context& current = state.contexts.at(context);
    if (handle == kPerThreadStream) {
      auto it = current.per_thread.find(thread.value);
      if (it == current.per_thread.end()) {
        const std::uint64_t made = new_stream(state, StreamKind::kPerThread, context);
        state.streams[made].thread = thread.value;
        it = current.per_thread.emplace(thread.value, made).first;
      }
      found.number = it->second;
    } else {
      if (current.legacy == kNone) {
        current.legacy = new_stream(state, StreamKind::kLegacy, context);
      }
      found.number = current.legacy;
    }
    return found;
  }
  const auto it = state.stream_handles.find(handle.value);
  if (it == state.stream_handles.end()) {
    violate(state, ViolationKind::kForeignFree,
            "a call on stream " + hex(handle.value) + ", which does not exist");
    found.status = DriverStatus::kUndefined;
    return found;
  }
  found.number = it->second;
  const Stream& stream = state.streams[found.number];
  found.status = state.devices[static_cast<std::size_t>(stream.device)].sticky;
  return found;
}

StreamPoint enqueue(State& state, std::uint64_t stream, Work work) {
  add_implicit_waits(state, stream);
  return push(state, stream, std::move(work));
}

StreamPoint tail(const State& state, std::uint64_t stream) {
  return {stream, state.streams[stream].submitted()};
}

void enqueue_wait(State& state, std::uint64_t stream, std::vector<StreamPoint> points,
                  const Clock& order) {
  Work wait;
  wait.kind = WorkKind::kWait;
  wait.points = std::move(points);
  wait.order = order;
  for (const StreamPoint& point : wait.points) wait.order.raise(point.stream, point.position);
  state.streams[stream].order.join(wait.order);
  push(state, stream, std::move(wait));
}

bool has_run(const State& state, const StreamPoint& point) {
  return state.streams[point.stream].ran >= point.position;
}

bool host_has_synced(const State& state, const StreamPoint& point) {
  return state.streams[point.stream].synced >= point.position;
}

bool is_ordered_behind(const State& state, std::uint64_t stream, const StreamPoint& point) {
  if (state.streams[stream].order.at(point.stream) >= point.position) return true;
  // What the null stream's rules will put before the next operation.
  const Stream& next = state.streams[stream];
  if (next.kind == StreamKind::kNonBlocking) return false;
  const Stream& other = state.streams[point.stream];
  if (next.kind == StreamKind::kLegacy) {
    return other.context == next.context && joins_legacy(other.kind);
  }
  const Context& context = state.contexts.at(next.context);
  return context.legacy != kNone &&
         (context.legacy == point.stream ||
          state.streams[context.legacy].order.at(point.stream) >= point.position);
}

bool is_before(const State& state, const StreamPoint& a, std::uint64_t stream, const Work& work) {
  if (a.stream == UINT64_MAX || a.stream == stream) return true;
  if (state.streams[stream].run_order.at(a.stream) >= a.position) return true;
  const auto& seen = state.streams[a.stream].seen_at;
  const auto it =
      std::upper_bound(seen.begin(), seen.end(), work.host_epoch,
                       [](std::uint64_t epoch, const auto& entry) { return epoch < entry.first; });
  return it != seen.begin() && std::prev(it)->second >= a.position;
}

bool can_run(const State& state, const StreamPoint& point) {
  if (state.possible_blocks == 0 || has_run(state, point)) return true;
  Reach reach;
  return can_reach(state, point, reach);
}

void run_to(State& state, const StreamPoint& point) {
  while (state.streams[point.stream].ran < point.position) {
    Stream& stream = state.streams[point.stream];
    if (stream.fault != DriverStatus::kSuccess) return;
    if (stream.queue.front().kind == WorkKind::kWait) {
      const std::vector<StreamPoint> before = stream.queue.front().points;
      for (const StreamPoint& earlier : before) run_to(state, earlier);
    }
    const auto finish = finish_of_head(state, state.streams[point.stream]);
    if (!finish) return;
    run_head(state, point.stream, *finish);
  }
}

void run_until_now(State& state) {
  for (;;) {
    std::uint64_t best = kNone;
    std::uint64_t soonest = kNone;
    for (const std::uint64_t number : state.busy_streams) {
      const auto finish = finish_of_head(state, state.streams[number]);
      if (!finish || *finish > state.now || *finish >= soonest) continue;
      soonest = *finish;
      best = number;
    }
    if (best == kNone) return;
    run_head(state, best, soonest);
  }
}

void run_all(State& state) {
  bool moved = true;
  while (moved) {
    moved = false;
    const std::vector<std::uint64_t> busy = state.busy_streams;
    for (const std::uint64_t number : busy) {
      while (const auto finish = finish_of_head(state, state.streams[number])) {
        state.now = std::max(state.now, *finish);
        run_head(state, number, *finish);
        moved = true;
      }
    }
  }
}

void run_by_schedule(State& state) {
  if (state.busy_streams.empty()) return;
  if (state.config.schedule == Schedule::kEager) {
    run_until_now(state);
  } else if (state.config.schedule == Schedule::kSeeded) {
    const std::uint64_t roll = next_random(state);
    if (roll % 4 == 0) state.now += 1000 * (roll / 4 % 16);
    for (std::uint64_t steps = roll / 64 % 4; steps != 0; --steps) {
      if (state.busy_streams.empty()) return;
      const std::uint64_t number =
          state.busy_streams[next_random(state) % state.busy_streams.size()];
      const auto finish = finish_of_head(state, state.streams[number]);
      if (finish && *finish <= state.now) run_head(state, number, *finish);
    }
  }
}

void observe(State& state, const StreamPoint& point, bool synced) {
  const auto learn = [&](std::uint64_t number, std::uint64_t position) {
    Stream& stream = state.streams[number];
    const std::uint64_t known = std::min(position, stream.ran);
    if (known <= stream.seen) return;
    stream.seen = known;
    state.host_epoch += 1;
    if (state.busy_streams.empty()) stream.seen_at.clear();
    stream.seen_at.emplace_back(state.host_epoch, known);
  };
  const Stream& stream = state.streams[point.stream];
  learn(point.stream, point.position);
  if (stream.run_order.points().size() > 1) {
    const Clock before = stream.run_order;
    for (const StreamPoint& earlier : before.points()) learn(earlier.stream, earlier.position);
  }
  if (!synced) return;
  Stream& waited = state.streams[point.stream];
  const std::uint64_t known = std::min(point.position, waited.ran);
  waited.synced = std::max(waited.synced, known);
  pools_observe(state, {point.stream, known});
}

void discard_work(State& state, std::uint64_t number) {
  Stream& stream = state.streams[number];
  for (const Work& work : stream.queue) {
    if (touches_memory(work)) state.pending_memory_work -= 1;
    if (may_block(work)) state.possible_blocks -= 1;
  }
  stream.ran += stream.queue.size();
  stream.queue.clear();
  stream.closed_gates = 0;
  stream.fault = DriverStatus::kSuccess;
  retire_if_finished(state, number);
}

void make_sticky(State& state, std::int32_t device) {
  Device& hit = state.devices[static_cast<std::size_t>(device)];
  if (hit.sticky == DriverStatus::kSuccess) hit.sticky = hit.pending_fault;
  hit.pending_fault = DriverStatus::kSuccess;
  const std::vector<std::uint64_t> busy = state.busy_streams;
  for (const std::uint64_t number : busy) {
    if (state.streams[number].device == device) discard_work(state, number);
  }
}

namespace {
/// A fault of the device, if there is one, becomes sticky and is the answer.
DriverStatus take_fault(State& state, std::int32_t device) {
  Device& at = state.devices[static_cast<std::size_t>(device)];
  if (at.pending_fault != DriverStatus::kSuccess) make_sticky(state, device);
  return at.sticky;
}

DriverStatus wait_for_points(State& state, std::int32_t device,
                             const std::vector<StreamPoint>& points, bool synced) {
  const DriverStatus before = take_fault(state, device);
  if (before != DriverStatus::kSuccess) return before;
  for (const StreamPoint& point : points) {
    if (!can_run(state, point)) return DriverStatus::kWouldBlock;
  }
  for (const StreamPoint& point : points) {
    run_to(state, point);
    state.now = std::max(state.now, state.streams[point.stream].last_finish);
  }
  const DriverStatus after = take_fault(state, device);
  if (after != DriverStatus::kSuccess) return after;
  for (const StreamPoint& point : points) observe(state, point, synced);
  return DriverStatus::kSuccess;
}

/// The last operations of the null stream and of all that it waits for.
std::vector<StreamPoint> blocking_tails(const State& state, std::uint64_t legacy) {
  std::vector<StreamPoint> points{tail(state, legacy)};
  for (const std::uint64_t other : state.contexts.at(state.streams[legacy].context).streams) {
    if (joins_legacy(state.streams[other].kind)) points.push_back(tail(state, other));
  }
  return points;
}
}  // namespace

DriverStatus wait_for_stream(State& state, std::uint64_t stream) {
  const std::int32_t device = state.streams[stream].device;
  if (state.streams[stream].kind == StreamKind::kLegacy) {
    return wait_for_points(state, device, blocking_tails(state, stream), true);
  }
  return wait_for_points(state, device, {tail(state, stream)}, true);
}

DriverStatus wait_for_point(State& state, std::int32_t device, const StreamPoint& point) {
  return wait_for_points(state, device, {point}, true);
}

DriverStatus wait_for_context(State& state, std::int32_t device, std::uint64_t context,
                              bool synced) {
  std::vector<StreamPoint> points;
  for (const auto& [handle, one] : state.contexts) {
    if (one.device != device || (context != 0 && handle != context)) continue;
    for (const std::uint64_t stream : one.streams) points.push_back(tail(state, stream));
  }
  const DriverStatus done = wait_for_points(state, device, points, synced);
  if (synced && done == DriverStatus::kSuccess) pools_observe_destroyed(state, device);
  return done;
}

bool blocking_streams_idle(const State& state, std::uint64_t legacy) {
  for (const StreamPoint& point : blocking_tails(state, legacy)) {
    if (!has_run(state, point)) return false;
  }
  return true;
}

bool blocking_streams_can_run(const State& state, std::uint64_t legacy) {
  for (const StreamPoint& point : blocking_tails(state, legacy)) {
    if (!can_run(state, point)) return false;
  }
  return true;
}

DriverStatus query_point(State& state, const StreamPoint& point) {
  Stream& stream = state.streams[point.stream];
  if (stream.ran >= point.position) {
    observe(state, point, false);
    return DriverStatus::kSuccess;
  }
  stream.queries += 1;
  if (stream.queries <= state.config.query_patience || !can_run(state, point)) {
    return DriverStatus::kNotReady;
  }
  run_to(state, point);
  state.now = std::max(state.now, state.streams[point.stream].last_finish);
  const std::int32_t device = state.streams[point.stream].device;
  if (state.streams[point.stream].fault != DriverStatus::kSuccess) {
    return take_fault(state, device);
  }
  if (!has_run(state, point)) return DriverStatus::kNotReady;
  observe(state, point, false);
  return DriverStatus::kSuccess;
}

}  // namespace granule::model
