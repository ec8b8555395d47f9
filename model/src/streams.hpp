// Stream order and progress: resolving stream handles, enqueueing, running, waiting, observing.
#pragma once

#include "state.hpp"

namespace granule::model {

struct ResolvedStream {
  DriverStatus status = DriverStatus::kSuccess;
  std::uint64_t number = kNone;
};

/// The stream that a handle means to a thread: null and 1 are the legacy stream of the current
/// context, 2 its per-thread stream. Statuses: INVALID_CONTEXT, CONTEXT_IS_DESTROYED, a sticky
/// error, kUndefined for a handle that is dead or made up.
ResolvedStream resolve_stream(State& state, ThreadId thread, StreamHandle handle);

/// Puts an operation at the end of a stream's order (with the null stream's rules) and returns its
/// place. The stream must not be capturing.
StreamPoint enqueue(State& state, std::uint64_t stream, Work work);
/// The place of the last operation enqueued.
StreamPoint tail(const State& state, std::uint64_t stream);
/// Makes what comes next on `stream` wait for a point of another one.
void enqueue_wait(State& state, std::uint64_t stream, std::vector<StreamPoint> points,
                  const Clock& order);

bool has_run(const State& state, const StreamPoint& point);
/// Whether the host has waited for the point (stream, event or context synchronize).
bool host_has_synced(const State& state, const StreamPoint& point);
/// Whether the next operation of `stream` is ordered behind `point` by what was enqueued.
bool is_ordered_behind(const State& state, std::uint64_t stream, const StreamPoint& point);

/// Whether everything up to `point` can run (no closed gate before it).
bool can_run(const State& state, const StreamPoint& point);
/// Runs everything up to `point`; can_run must hold. A fault stops it.
void run_to(State& state, const StreamPoint& point);
/// Runs what is done by the present virtual time.
void run_until_now(State& state);
/// Runs everything that is not held.
void run_all(State& state);
/// What the schedule lets run after a call.
void run_by_schedule(State& state);

/// The host has learned that everything up to `point` has run; `synced`: by waiting.
void observe(State& state, const StreamPoint& point, bool synced);

/// Waits of the host. kWouldBlock without effect, a fault, or kSuccess with all of it observed.
DriverStatus wait_for_stream(State& state, std::uint64_t stream);
DriverStatus wait_for_point(State& state, std::int32_t device, const StreamPoint& point);
/// All streams of a context (`context` 0: of every context of the device).
DriverStatus wait_for_context(State& state, std::int32_t device, std::uint64_t context,
                              bool synced);
/// Whether the null stream and the blocking streams of its context have run.
bool blocking_streams_idle(const State& state, std::uint64_t legacy);
/// Whether what the next operation of a stream comes behind can run, by the null stream's rules
/// too.
bool next_can_run(const State& state, std::uint64_t stream);

/// Answers of a query: kSuccess if the point has run, else kNotReady; a lazy schedule lets go
/// after enough questions.
DriverStatus query_point(State& state, const StreamPoint& point);

/// Whether operation `a` is before the operation that `stream` runs now.
bool is_before(const State& state, const StreamPoint& a, std::uint64_t stream, const Work& work);
bool touches_memory(const Work& work);
/// Whether a wait can end up stuck at the operation.
bool may_block(const Work& work);
/// Streams that order themselves with the null stream.
inline bool joins_legacy(StreamKind kind) {
  return kind == StreamKind::kBlocking || kind == StreamKind::kPerThread;
}

/// A fault that happened becomes the answer of all calls of the device; its work is gone.
void make_sticky(State& state, std::int32_t device);
/// Work of a stream that will never run is thrown away.
void discard_work(State& state, std::uint64_t stream);
/// Opens all closed gates of a stream.
void open_gates(State& state, std::uint64_t stream);
std::uint64_t new_stream(State& state, StreamKind kind, std::uint64_t context);

// transfer.cpp
/// Does what an operation does; a status other than kSuccess is its fault.
DriverStatus perform(State& state, std::uint64_t stream, const Work& work, StreamPoint self);
/// Whether the value that a kWaitValue waits for is there.
bool value_is_there(const State& state, const Work& work);

// context.cpp
/// The context on top of the thread's stack; 0 if there is none.
std::uint64_t current_context(const State& state, ThreadId thread);
/// The current context of a thread: INVALID_CONTEXT, CONTEXT_IS_DESTROYED, a sticky error, or
/// kSuccess with its handle value.
DriverStatus need_context(State& state, ThreadId thread, std::uint64_t& context);

}  // namespace granule::model
