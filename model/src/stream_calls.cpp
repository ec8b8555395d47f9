// Streams, events, host functions, and the harness's gates and pauses.
#include <algorithm>

#include "calls.hpp"
#include "capture.hpp"
#include "streams.hpp"

namespace granule::model {
namespace {

/// A handle value for a new object: a dead one again, or the next.
std::uint64_t next_value(State& state, std::vector<std::uint64_t>& dead, std::uint64_t& next) {
  const bool at_once = state.config.verdict == Verdict::kAdversarial ||
                       state.config.handle_reuse == HandleReuse::kAtOnce;
  const bool seeded = state.config.handle_reuse == HandleReuse::kSeeded;
  if (!dead.empty() && (at_once || (seeded && (next_random(state) & 1) != 0))) {
    const std::uint64_t again = dead.back();
    dead.pop_back();
    return again;
  }
  const std::uint64_t fresh = next;
  next += 0x40;
  return fresh;
}

struct FoundEvent {
  DriverStatus status = DriverStatus::kSuccess;
  Event* event = nullptr;
};

FoundEvent find_event(State& state, EventHandle handle) {
  const auto it = state.events.find(handle.value);
  if (it == state.events.end()) return {DriverStatus::kInvalidHandle, nullptr};
  const auto device = static_cast<std::size_t>(it->second.device);
  return {state.devices[device].sticky, &it->second};
}

/// Queries and waits on what was recorded into a capture are refused and kill it.
DriverStatus check_captured(State& state, const Event& event) {
  if (event.capture == 0) return DriverStatus::kSuccess;
  if (state.captures.count(event.capture) == 0) return DriverStatus::kInvalidValue;
  kill_capture(state, event.capture);
  return DriverStatus::kCapturedEvent;
}

/// What a query or wait of a stream must pass first.
DriverStatus check_stream_use(State& state, ThreadId thread, std::uint64_t stream) {
  const std::uint64_t own = state.streams[stream].capture;
  if (own != 0) {
    kill_capture(state, own);
    return DriverStatus::kStreamCaptureUnsupported;
  }
  const DriverStatus null_stream = check_null_stream(state, stream);
  if (null_stream != DriverStatus::kSuccess) return null_stream;
  return check_capture_allows(state, thread);
}

}  // namespace

DriverStatus run_call(State& state, ThreadId thread, StreamCreate& call) {
  std::uint64_t context = 0;
  const DriverStatus current = need_context(state, thread, context);
  if (current != DriverStatus::kSuccess) return current;
  if (call.flags > 1) return DriverStatus::kInvalidValue;
  const StreamKind kind =
      call.flags == kStreamNonBlocking ? StreamKind::kNonBlocking : StreamKind::kBlocking;
  const std::uint64_t number = new_stream(state, kind, context);
  const std::uint64_t handle =
      next_value(state, state.dead_stream_handles, state.next_stream_handle);
  state.streams[number].handle = handle;
  state.stream_handles[handle] = number;
  state.ledger.streams += 1;
  call.stream = StreamHandle{handle};
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId thread, StreamDestroy& call) {
  const ResolvedStream found = resolve_stream(state, thread, call.stream);
  if (found.status != DriverStatus::kSuccess) return found.status;
  Stream& stream = state.streams[found.number];
  if (stream.handle == 0) return DriverStatus::kInvalidHandle;
  if (stream.capture != 0) end_capture(state, stream.capture);
  stream.destroyed = true;
  state.stream_handles.erase(stream.handle);
  state.dead_stream_handles.push_back(stream.handle);
  state.ledger.streams -= 1;
  if (stream.queue.empty()) {
    observe(state, tail(state, found.number), true);
    auto& all = state.contexts.at(state.streams[found.number].context).streams;
    all.erase(std::find(all.begin(), all.end(), found.number));
  }
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId thread, StreamQuery& call) {
  const ResolvedStream found = resolve_stream(state, thread, call.stream);
  if (found.status != DriverStatus::kSuccess) return found.status;
  const DriverStatus allowed = check_stream_use(state, thread, found.number);
  if (allowed != DriverStatus::kSuccess) return allowed;
  if (state.streams[found.number].kind == StreamKind::kLegacy) {
    const Context& context = state.contexts.at(state.streams[found.number].context);
    for (const std::uint64_t other : context.streams) {
      if (state.streams[other].kind == StreamKind::kNonBlocking || other == found.number) continue;
      const DriverStatus done = query_point(state, tail(state, other));
      if (done != DriverStatus::kSuccess) return done;
    }
  }
  return query_point(state, tail(state, found.number));
}

DriverStatus run_call(State& state, ThreadId thread, StreamSynchronize& call) {
  const ResolvedStream found = resolve_stream(state, thread, call.stream);
  if (found.status != DriverStatus::kSuccess) return found.status;
  const DriverStatus allowed = check_stream_use(state, thread, found.number);
  if (allowed != DriverStatus::kSuccess) return allowed;
  return wait_for_stream(state, found.number);
}

DriverStatus run_call(State& state, ThreadId thread, StreamWaitEvent& call) {
  const ResolvedStream found = resolve_stream(state, thread, call.stream);
  if (found.status != DriverStatus::kSuccess) return found.status;
  const FoundEvent event = find_event(state, call.event);
  if (event.status != DriverStatus::kSuccess) return event.status;
  if (call.flags > 1) return DriverStatus::kInvalidValue;
  const DriverStatus null_stream = check_null_stream(state, found.number);
  if (null_stream != DriverStatus::kSuccess) return null_stream;
  if (!event.event->recorded) return DriverStatus::kSuccess;
  if (event.event->capture != 0) {
    return wait_for_captured_event(state, found.number, *event.event);
  }
  Stream& stream = state.streams[found.number];
  if (stream.capture != 0) {
    kill_capture(state, stream.capture);
    return DriverStatus::kStreamCaptureIsolation;
  }
  if (has_run(state, event.event->point) && stream.queue.empty()) {
    stream.order.join(event.event->order);
    stream.run_order.join(event.event->order);
  } else {
    enqueue_wait(state, found.number, {event.event->point}, event.event->order);
  }
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId thread, StreamGetCtx& call) {
  const ResolvedStream found = resolve_stream(state, thread, call.stream);
  if (found.status != DriverStatus::kSuccess) return found.status;
  call.context = ContextHandle{state.streams[found.number].context};
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId thread, StreamGetId& call) {
  const ResolvedStream found = resolve_stream(state, thread, call.stream);
  if (found.status != DriverStatus::kSuccess) return found.status;
  // Measured: refused for a stream that captures.
  if (is_capturing(state, found.number)) return DriverStatus::kStreamCaptureUnsupported;
  call.id = StreamId{found.number + 1};
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId thread, EventCreate& call) {
  std::uint64_t context = 0;
  const DriverStatus current = need_context(state, thread, context);
  if (current != DriverStatus::kSuccess) return current;
  if (call.flags > 7) return DriverStatus::kInvalidValue;
  Event event;
  event.context = context;
  event.device = state.contexts.at(context).device;
  const std::uint64_t handle = next_value(state, state.dead_events, state.next_event);
  state.events[handle] = event;
  state.ledger.events += 1;
  call.event = EventHandle{handle};
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId, EventDestroy& call) {
  const FoundEvent found = find_event(state, call.event);
  if (found.status != DriverStatus::kSuccess) return found.status;
  state.events.erase(call.event.value);
  state.dead_events.push_back(call.event.value);
  state.ledger.events -= 1;
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId thread, EventRecord& call) {
  const ResolvedStream found = resolve_stream(state, thread, call.stream);
  if (found.status != DriverStatus::kSuccess) return found.status;
  const FoundEvent event = find_event(state, call.event);
  if (event.status != DriverStatus::kSuccess) return event.status;
  if (event.event->context != state.streams[found.number].context) {
    return DriverStatus::kInvalidHandle;
  }
  const DriverStatus null_stream = check_null_stream(state, found.number);
  if (null_stream != DriverStatus::kSuccess) return null_stream;
  Event& made = *event.event;
  made.recorded = true;
  if (is_capturing(state, found.number)) {
    const Stream& stream = state.streams[found.number];
    made.capture = stream.capture;
    made.capture_node = stream.capture_nodes;
    made.point = {found.number, 0};
    return DriverStatus::kSuccess;
  }
  made.capture = 0;
  made.point = enqueue(state, found.number, Work{});
  made.order = state.streams[found.number].order;
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId thread, EventQuery& call) {
  const FoundEvent found = find_event(state, call.event);
  if (found.status != DriverStatus::kSuccess) return found.status;
  const DriverStatus captured = check_captured(state, *found.event);
  if (captured != DriverStatus::kSuccess) return captured;
  const DriverStatus allowed = check_capture_allows(state, thread);
  if (allowed != DriverStatus::kSuccess) return allowed;
  if (!found.event->recorded) return DriverStatus::kSuccess;
  return query_point(state, found.event->point);
}

DriverStatus run_call(State& state, ThreadId thread, EventSynchronize& call) {
  const FoundEvent found = find_event(state, call.event);
  if (found.status != DriverStatus::kSuccess) return found.status;
  const DriverStatus captured = check_captured(state, *found.event);
  if (captured != DriverStatus::kSuccess) return captured;
  const DriverStatus allowed = check_capture_allows(state, thread);
  if (allowed != DriverStatus::kSuccess) return allowed;
  if (!found.event->recorded) return DriverStatus::kSuccess;
  return wait_for_point(state, found.event->device, found.event->point);
}

DriverStatus run_call(State& state, ThreadId thread, LaunchHostFunc& call) {
  const ResolvedStream found = resolve_stream(state, thread, call.stream);
  if (found.status != DriverStatus::kSuccess) return found.status;
  if (call.function == nullptr) return DriverStatus::kInvalidValue;
  const DriverStatus null_stream = check_null_stream(state, found.number);
  if (null_stream != DriverStatus::kSuccess) return null_stream;
  if (is_capturing(state, found.number)) {
    add_capture_node(state, found.number);
    return DriverStatus::kSuccess;
  }
  Work work;
  work.kind = WorkKind::kHostFunction;
  work.function = call.function;
  work.argument = call.argument;
  enqueue(state, found.number, std::move(work));
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId thread, CloseGate& call) {
  const ResolvedStream found = resolve_stream(state, thread, call.stream);
  if (found.status != DriverStatus::kSuccess) return found.status;
  if (is_capturing(state, found.number)) return DriverStatus::kStreamCaptureUnsupported;
  // A further gate of a stream that is held is no call of the driver's.
  if (state.streams[found.number].closed_gates == 0) {
    const DriverStatus out = check_null_stream(state, found.number);
    if (out != DriverStatus::kSuccess) return out;
  }
  Work gate;
  gate.kind = WorkKind::kGate;
  enqueue(state, found.number, std::move(gate));
  state.streams[found.number].closed_gates += 1;
  return DriverStatus::kSuccess;
}

void open_gates(State& state, std::uint64_t number) {
  Stream& stream = state.streams[number];
  for (Work& work : stream.queue) {
    if (work.kind != WorkKind::kGate || work.open) continue;
    work.open = true;
    work.opened_at = state.now;
    state.possible_blocks -= 1;
  }
  stream.closed_gates = 0;
}

DriverStatus run_call(State& state, ThreadId thread, OpenGate& call) {
  const bool named = call.stream.value > kPerThreadStream.value;
  if (named && state.stream_handles.count(call.stream.value) == 0) {
    bool opened = false;  // a stream that was destroyed while held
    for (const std::uint64_t number : state.busy_streams) {
      const Stream& stream = state.streams[number];
      if (!stream.destroyed || stream.handle != call.stream.value) continue;
      open_gates(state, number);
      opened = true;
    }
    return opened ? DriverStatus::kSuccess : DriverStatus::kInvalidHandle;
  }
  const ResolvedStream found = resolve_stream(state, thread, call.stream);
  if (found.number == kNone) return found.status;
  open_gates(state, found.number);
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId, Pause& call) {
  state.now += call.duration_ns;
  run_until_now(state);
  return DriverStatus::kSuccess;
}

}  // namespace granule::model
