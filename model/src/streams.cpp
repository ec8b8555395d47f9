// The order of stream work: which stream a handle means, and what comes behind what.
#include "streams.hpp"

#include <algorithm>

namespace granule::model {
namespace {

void insert_sorted(std::vector<std::uint64_t>& numbers, std::uint64_t number) {
  const auto it = std::lower_bound(numbers.begin(), numbers.end(), number);
  if (it == numbers.end() || *it != number) numbers.insert(it, number);
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
  bool carries_order = false;
  const auto add = [&](std::uint64_t other) {
    Stream& next = state.streams[number];
    const Clock& before = state.streams[other].order;
    const std::uint64_t last = state.streams[other].submitted();
    if (last != 0 && next.order.at(other) < last) {
      points.push_back({other, last});
      order.join(before);
      return;
    }
    // Nothing to wait for, but the other may have waited for what had run already: an order all the
    // same, which what is queued here must not get.
    if (next.queue.empty()) {
      next.order.join(before);
      next.run_order.join(before);
    } else if (!next.order.includes(before)) {
      order.join(before);
      carries_order = true;
    }
  };
  if (kind == StreamKind::kLegacy) {
    for (const std::uint64_t other : context.streams) {
      if (joins_legacy(state.streams[other].kind)) add(other);
    }
  } else if (context.legacy != kNone) {
    add(context.legacy);
  }
  if (!points.empty() || carries_order) enqueue_wait(state, number, std::move(points), order);
}

}  // namespace

void WorkQueue::pop_front() {
  items_[head_] = Work{};
  ++head_;
  if (head_ == items_.size()) clear();
}

void WorkQueue::clear() {
  items_ = {};
  head_ = 0;
}

bool may_block(const Work& work) {
  return (work.kind == WorkKind::kGate && !work.open) || work.kind == WorkKind::kWaitValue ||
         work.kind == WorkKind::kHostFunction;
}

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

bool Clock::includes(const Clock& other) const {
  return std::all_of(other.points_.begin(), other.points_.end(),
                     [&](const StreamPoint& point) { return at(point.stream) >= point.position; });
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

}  // namespace granule::model
