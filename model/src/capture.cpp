// Stream captures: what they forbid, what kills them, forks and joins.
#include <algorithm>

#include "calls.hpp"
#include "capture.hpp"
#include "streams.hpp"

namespace granule::model {
namespace {

CaptureMode mode_of(const State& state, ThreadId thread) {
  const auto it = state.threads.find(thread.value);
  return it == state.threads.end() ? CaptureMode::kGlobal : it->second.capture_mode;
}

bool has_blocking_member(const State& state, const Capture& capture, std::uint64_t context) {
  const auto blocks = [&](std::uint64_t stream) {
    const Stream& member = state.streams[stream];
    return member.context == context && member.kind != StreamKind::kNonBlocking;
  };
  if (blocks(capture.origin)) return true;
  return std::any_of(capture.forked.begin(), capture.forked.end(),
                     [&](const auto& fork) { return blocks(fork.first); });
}

}  // namespace

void kill_capture(State& state, std::uint64_t number) {
  const auto it = state.captures.find(number);
  if (it != state.captures.end()) it->second.status = CaptureStatus::kInvalidated;
}

void end_capture(State& state, std::uint64_t number) {
  const auto it = state.captures.find(number);
  if (it == state.captures.end()) return;
  state.streams[it->second.origin].capture = 0;
  for (const auto& [stream, joined] : it->second.forked) state.streams[stream].capture = 0;
  state.pools.end_capture(number);
  state.captures.erase(it);
  state.active_captures -= 1;
}

DriverStatus check_capture_allows(State& state, ThreadId thread) {
  if (state.active_captures == 0) return DriverStatus::kSuccess;
  const CaptureMode mode = mode_of(state, thread);
  if (mode == CaptureMode::kRelaxed) return DriverStatus::kSuccess;
  bool refused = false;
  for (auto& [number, capture] : state.captures) {
    // One that was invalidated goes on forbidding until it is ended.
    const bool own = capture.thread == thread.value;
    const bool forbids = own ? capture.mode != CaptureMode::kRelaxed
                             : mode == CaptureMode::kGlobal && capture.mode == CaptureMode::kGlobal;
    if (!forbids) continue;
    capture.status = CaptureStatus::kInvalidated;
    refused = true;
  }
  return refused ? DriverStatus::kStreamCaptureUnsupported : DriverStatus::kSuccess;
}

/// Whether the null stream of a context is out because a blocking stream captures.
bool null_stream_is_out(const State& state, std::uint64_t stream) {
  if (state.active_captures == 0 || state.streams[stream].kind != StreamKind::kLegacy) return false;
  return std::any_of(state.captures.begin(), state.captures.end(), [&](const auto& entry) {
    return has_blocking_member(state, entry.second, state.streams[stream].context);
  });
}

DriverStatus check_null_stream(State& state, std::uint64_t stream) {
  if (state.active_captures == 0) return DriverStatus::kSuccess;
  if (null_stream_is_out(state, stream)) {
    for (auto& [number, capture] : state.captures) {
      if (has_blocking_member(state, capture, state.streams[stream].context)) {
        capture.status = CaptureStatus::kInvalidated;
      }
    }
    return DriverStatus::kStreamCaptureImplicit;
  }
  const std::uint64_t own = state.streams[stream].capture;
  if (own != 0 && state.captures.at(own).status == CaptureStatus::kInvalidated) {
    return DriverStatus::kStreamCaptureInvalidated;
  }
  return DriverStatus::kSuccess;
}

DriverStatus check_context_wait(State& state, std::int32_t device) {
  bool refused = false;
  for (auto& [number, capture] : state.captures) {
    if (capture.device != device) continue;  // an invalidated one forbids until it is ended
    capture.status = CaptureStatus::kInvalidated;
    refused = true;
  }
  return refused ? DriverStatus::kStreamCaptureUnsupported : DriverStatus::kSuccess;
}

bool is_capturing(const State& state, std::uint64_t stream) {
  return state.streams[stream].capture != 0;
}

void add_capture_node(State& state, std::uint64_t stream) {
  state.streams[stream].capture_nodes += 1;
}

DriverStatus wait_for_captured_event(State& state, std::uint64_t stream, const Event& event) {
  Stream& waiting = state.streams[stream];
  const auto it = state.captures.find(event.capture);
  if (it == state.captures.end()) {  // measured: that ends the capture of the one that waits
    if (waiting.capture != 0) kill_capture(state, waiting.capture);
    return DriverStatus::kInvalidValue;
  }
  Capture& capture = it->second;
  // Measured: nobody joins a capture that was invalidated.
  if (capture.status == CaptureStatus::kInvalidated && waiting.capture == 0)
    return DriverStatus::kInvalidValue;
  if (capture.status == CaptureStatus::kInvalidated && waiting.capture == event.capture)
    return DriverStatus::kStreamCaptureInvalidated;
  if (waiting.capture == 0) {
    if (waiting.kind == StreamKind::kLegacy) return DriverStatus::kInvalidValue;
    waiting.capture = event.capture;
    waiting.capture_nodes = 0;
    capture.forked[stream] = 0;
    return DriverStatus::kSuccess;
  }
  if (waiting.capture != event.capture) {
    kill_capture(state, waiting.capture);
    kill_capture(state, event.capture);
    return DriverStatus::kStreamCaptureMerge;
  }
  const auto fork = capture.forked.find(event.point.stream);
  if (fork != capture.forked.end() && stream != event.point.stream) {
    fork->second = std::max(fork->second, event.capture_node);
  }
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId thread, StreamIsCapturing& call) {
  const ResolvedStream stream = resolve_stream(state, thread, call.stream);
  if (stream.status != DriverStatus::kSuccess) return stream.status;
  if (null_stream_is_out(state, stream.number)) return DriverStatus::kStreamCaptureImplicit;
  const std::uint64_t capture = state.streams[stream.number].capture;
  call.status = capture == 0 ? CaptureStatus::kNone : state.captures.at(capture).status;
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId thread, StreamBeginCapture& call) {
  const ResolvedStream stream = resolve_stream(state, thread, call.stream);
  if (stream.status != DriverStatus::kSuccess) return stream.status;
  if (static_cast<std::uint32_t>(call.mode) > 2) return DriverStatus::kInvalidValue;
  Stream& origin = state.streams[stream.number];
  if (origin.kind == StreamKind::kLegacy) return DriverStatus::kStreamCaptureUnsupported;
  if (origin.capture != 0) return DriverStatus::kIllegalState;
  Capture capture;
  capture.mode = call.mode;
  capture.thread = thread.value;
  capture.origin = stream.number;
  capture.device = origin.device;
  capture.context = origin.context;
  origin.capture = state.next_capture++;
  origin.capture_nodes = 0;
  state.captures.emplace(origin.capture, capture);
  state.active_captures += 1;
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId thread, StreamEndCapture& call) {
  const ResolvedStream stream = resolve_stream(state, thread, call.stream);
  if (stream.status != DriverStatus::kSuccess) return stream.status;
  call.graph = {};
  const std::uint64_t number = state.streams[stream.number].capture;
  if (number == 0) return DriverStatus::kIllegalState;
  const Capture& capture = state.captures.at(number);
  if (capture.origin != stream.number) {
    // Measured where the joined stream has work of its own: the origin's end then says INVALIDATED.
    kill_capture(state, number);
    return DriverStatus::kStreamCaptureUnmatched;
  }
  if (capture.mode != CaptureMode::kRelaxed && capture.thread != thread.value) {
    return DriverStatus::kStreamCaptureWrongThread;
  }
  const bool killed = capture.status != CaptureStatus::kActive;
  // Measured: a stream that was forked and did no work of its own is joined.
  const bool unjoined = std::any_of(
      capture.forked.begin(), capture.forked.end(),
      [&](const auto& fork) { return state.streams[fork.first].capture_nodes > fork.second; });
  end_capture(state, number);
  if (killed) return DriverStatus::kStreamCaptureInvalidated;
  if (unjoined) return DriverStatus::kStreamCaptureUnjoined;
  state.graphs[state.next_graph] = number;
  call.graph = GraphHandle{state.next_graph};
  state.next_graph += 0x40;
  state.ledger.graphs += 1;
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId, GraphDestroy& call) {
  if (state.graphs.erase(call.graph.value) == 0) return DriverStatus::kInvalidValue;
  state.ledger.graphs -= 1;
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId thread, ThreadExchangeStreamCaptureMode& call) {
  if (static_cast<std::uint32_t>(call.mode) > 2) return DriverStatus::kInvalidValue;
  call.previous = mode_of(state, thread);
  state.threads[thread.value].capture_mode = call.mode;
  return DriverStatus::kSuccess;
}

}  // namespace granule::model
