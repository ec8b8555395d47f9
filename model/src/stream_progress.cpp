// The progress of stream work: what runs when, what the host waits for and gets to know. Time is
// virtual: it moves by pauses and waits.
#include <algorithm>

#include "calls.hpp"
#include "streams.hpp"

namespace granule::model {
namespace {

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

void erase_sorted(std::vector<std::uint64_t>& numbers, std::uint64_t number) {
  const auto it = std::lower_bound(numbers.begin(), numbers.end(), number);
  if (it != numbers.end() && *it == number) numbers.erase(it);
}

void retire_if_finished(State& state, std::uint64_t number) {
  Stream& stream = state.streams[number];
  if (!stream.queue.empty()) return;
  erase_sorted(state.busy_streams, number);
  // A destroyed stream whose work the host has not seen is still waited for with its context.
  if (stream.destroyed && stream.seen >= stream.ran) {
    const auto it = state.contexts.find(stream.context);
    if (it != state.contexts.end()) erase_sorted(it->second.streams, number);
  }
}

/// Runs the head of a stream. The caller knows that it can.
void run_head(State& state, std::uint64_t number, std::uint64_t finish) {
  const StreamPoint self{number, state.streams[number].ran + 1};
  const std::int32_t on = state.streams[number].device;
  const bool lost = state.devices[static_cast<std::size_t>(on)].lost;
  if (!lost && state.streams[number].queue.front().kind == WorkKind::kHostFunction) {
    Work& work = state.streams[number].queue.front();
    work.running = true;
    const auto function = work.function;
    void* const argument = work.argument;
    if (state.runner != nullptr && function != nullptr)
      state.runner->run_host_function(function, argument);
  }
  Stream& stream = state.streams[number];
  if (stream.queue.empty()) return;  // thrown away by what the host function did
  const Work& work = stream.queue.front();
  if (work.kind == WorkKind::kWait) stream.run_order.join(work.order);
  const bool in_vain = lost && work.kind != WorkKind::kFreePlain;
  const DriverStatus done = in_vain ? DriverStatus::kSuccess : perform(state, number, work, self);
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
  const auto& known_order = stream.run_order.points();
  if (!known_order.empty() && (known_order.size() > 1 || known_order[0].stream != point.stream)) {
    const Clock before = stream.run_order;
    for (const StreamPoint& earlier : before.points()) {
      learn(earlier.stream, earlier.position);
      if (synced && earlier.stream != point.stream) pools_observe(state, earlier);
    }
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
    if (work.kind == WorkKind::kFreePlain) finish_plain_free(state, work.dst);
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
  if (!synced || done != DriverStatus::kSuccess) return done;
  pools_observe_destroyed(state, device);
  for (const StreamPoint& point : points) retire_if_finished(state, point.stream);
  return done;
}

bool blocking_streams_idle(const State& state, std::uint64_t legacy) {
  for (const StreamPoint& point : blocking_tails(state, legacy)) {
    if (!has_run(state, point)) return false;
  }
  return true;
}

bool next_can_run(const State& state, std::uint64_t stream) {
  const Stream& next = state.streams[stream];
  std::vector<StreamPoint> before;
  if (next.kind == StreamKind::kLegacy) {
    before = blocking_tails(state, stream);
  } else {
    before.push_back(tail(state, stream));
    const std::uint64_t legacy = state.contexts.at(next.context).legacy;
    if (joins_legacy(next.kind) && legacy != kNone) before.push_back(tail(state, legacy));
  }
  return std::all_of(before.begin(), before.end(),
                     [&](const StreamPoint& point) { return can_run(state, point); });
}

namespace {
/// True if only markers, and waits for what has run or is no more than markers itself, stand
/// before the point: an idle stream takes no time over those.
bool takes_no_time(const State& state, const StreamPoint& point, int depth) {
  const Stream& stream = state.streams[point.stream];
  if (stream.ran >= point.position) return true;
  if (depth == 0 || stream.fault != DriverStatus::kSuccess) return false;
  const std::uint64_t count = point.position - stream.ran;
  for (std::uint64_t i = 0; i < count; ++i) {
    const Work& work = stream.queue[static_cast<std::size_t>(i)];
    if (work.kind == WorkKind::kMarker && work.duration == 0) continue;
    if (work.kind != WorkKind::kWait) return false;
    for (const StreamPoint& before : work.points) {
      if (!takes_no_time(state, before, depth - 1)) return false;
    }
  }
  return true;
}
}  // namespace

DriverStatus query_point(State& state, const StreamPoint& point) {
  Stream& stream = state.streams[point.stream];
  constexpr int kDeepest = 4;
  if (state.config.verdict != Verdict::kAdversarial && takes_no_time(state, point, kDeepest)) {
    run_to(state, point);
  }
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
