// Captures, contexts and host functions: who may call what, and what survives.
#include "machine.hpp"

namespace granule::model {
namespace {

using enum DriverStatus;

CaptureStatus status_of(Machine& m, StreamHandle s) {
  return m.made(StreamIsCapturing{s, {}}).status;
}

TEST(Captures, mapping_calls_leave_every_capture_alone) {
  Machine m;
  const StreamHandle s = m.stream();
  m.call(StreamBeginCapture{s, CaptureMode::kGlobal});
  const DevicePtr v = m.buffer(1);
  m.unmap(v, kG);
  EXPECT_EQ(m.call(MemAddressFree{v, kG}), kSuccess);
  EXPECT_EQ(status_of(m, s), CaptureStatus::kActive);
  EXPECT_EQ(m.call(StreamEndCapture{s, {}}), kSuccess);
}

TEST(Captures, a_global_capture_forbids_other_threads_until_they_exchange_their_mode) {
  Machine m;
  const StreamHandle s = m.stream();
  const StreamHandle t = m.stream();
  m.call(StreamBeginCapture{s, CaptureMode::kGlobal});
  m.thread = ThreadId{1};
  EXPECT_EQ(m.made(ThreadExchangeStreamCaptureMode{CaptureMode::kRelaxed, {}}).previous,
            CaptureMode::kGlobal);
  EXPECT_EQ(m.call(StreamQuery{t}), kSuccess);
  m.call(ThreadExchangeStreamCaptureMode{CaptureMode::kGlobal, {}});
  EXPECT_EQ(m.call(StreamQuery{t}), kStreamCaptureUnsupported);
  m.thread = ThreadId{0};
  EXPECT_EQ(status_of(m, s), CaptureStatus::kInvalidated);
  EXPECT_EQ(m.call(StreamEndCapture{s, {}}), kStreamCaptureInvalidated);
}

TEST(Captures, waiting_for_the_context_kills_even_relaxed_ones) {
  Machine m;
  const StreamHandle s = m.stream();
  m.call(StreamBeginCapture{s, CaptureMode::kRelaxed});
  EXPECT_EQ(m.sync(), kStreamCaptureUnsupported);
  EXPECT_EQ(status_of(m, s), CaptureStatus::kInvalidated);
}

TEST(Captures, the_null_stream_is_out_beside_a_blocking_capture) {
  Machine m;
  const StreamHandle s = m.stream(kStreamDefault);
  m.call(StreamBeginCapture{s, CaptureMode::kRelaxed});
  EXPECT_EQ(m.call(StreamIsCapturing{{}, {}}), kStreamCaptureImplicit);
  EXPECT_EQ(status_of(m, s), CaptureStatus::kActive);
  EXPECT_EQ(m.call(StreamQuery{{}}), kStreamCaptureImplicit);
  EXPECT_EQ(status_of(m, s), CaptureStatus::kInvalidated);
}

TEST(Captures, a_captured_event_forks_and_joins) {
  Machine m;
  const StreamHandle s = m.stream();
  const StreamHandle t = m.stream();
  m.call(StreamBeginCapture{s, CaptureMode::kRelaxed});
  m.call(StreamWaitEvent{t, m.event_on(s), 0});
  EXPECT_EQ(status_of(m, t), CaptureStatus::kActive);
  m.kernel(KernelKind::kSpin, {}, 0, t);
  m.call(StreamWaitEvent{s, m.event_on(t), 0});
  EXPECT_EQ(m.call(StreamEndCapture{s, {}}), kSuccess);
  EXPECT_EQ(status_of(m, t), CaptureStatus::kNone);
  m.call(StreamBeginCapture{s, CaptureMode::kRelaxed});
  m.call(StreamWaitEvent{t, m.event_on(s), 0});
  m.kernel(KernelKind::kSpin, {}, 0, t);
  EXPECT_EQ(m.call(StreamEndCapture{s, {}}), kStreamCaptureUnjoined);
  // Forked, and without work of its own: joined.
  m.call(StreamBeginCapture{s, CaptureMode::kRelaxed});
  m.call(StreamWaitEvent{t, m.event_on(s), 0});
  EXPECT_EQ(m.call(StreamEndCapture{s, {}}), kSuccess);
}

TEST(Captures, an_event_of_a_capture_that_has_ended_ends_the_next) {
  Machine m;
  const StreamHandle s = m.stream();
  m.call(StreamBeginCapture{s, CaptureMode::kGlobal});
  const EventHandle e = m.event_on(s);
  EXPECT_EQ(m.call(StreamEndCapture{s, {}}), kSuccess);
  m.call(StreamBeginCapture{s, CaptureMode::kGlobal});
  EXPECT_EQ(m.call(StreamWaitEvent{s, e, 0}), kInvalidValue);
  EXPECT_EQ(status_of(m, s), CaptureStatus::kInvalidated);
}

TEST(Captures, a_captured_event_is_not_queried) {
  Machine m;
  const StreamHandle s = m.stream();
  m.call(StreamBeginCapture{s, CaptureMode::kRelaxed});
  const EventHandle e = m.event_on(s);
  EXPECT_EQ(m.call(EventQuery{e}), kCapturedEvent);
  EXPECT_EQ(m.call(StreamEndCapture{s, {}}), kStreamCaptureInvalidated);
  EXPECT_EQ(m.call(EventQuery{e}), kInvalidValue);
}

TEST(Contexts, a_reset_keeps_mapped_memory_and_drops_plain_memory) {
  Machine m;
  const DevicePtr v = m.buffer(1);
  m.made(MemAlloc{2 * kG, {}});
  EXPECT_EQ(m.call(DevicePrimaryCtxReset{}), kSuccess);
  EXPECT_EQ(m.sync(), kContextIsDestroyed);
  EXPECT_EQ(m.free_change(), -static_cast<std::int64_t>(kG));
  EXPECT_EQ(m.call(DevicePrimaryCtxRetain{}), kSuccess);
  EXPECT_EQ(m.sync(), kSuccess);
  EXPECT_EQ(m.access_of(v), Access::kReadWrite);
}

TEST(Contexts, a_reset_does_not_cure_a_fault) {
  Machine m;
  const StreamHandle s = m.stream();
  m.kernel(KernelKind::kWrite, m.reserve(kG), 64, s);
  EXPECT_EQ(m.sync(s), kIllegalAddress);
  EXPECT_EQ(m.call(DevicePrimaryCtxReset{}), kSuccess);
  EXPECT_EQ(m.call(DevicePrimaryCtxRetain{}), kIllegalAddress);
  m.create(kG);
  EXPECT_EQ(m.status, kSuccess);
}

TEST(Contexts, a_thread_without_one_maps_but_does_not_ask_for_free_memory) {
  Machine m;
  const StreamHandle s = m.stream();
  m.thread = ThreadId{7};
  EXPECT_EQ(m.call(MemGetInfo{}), kInvalidContext);
  EXPECT_EQ(m.call(StreamQuery{{}}), kInvalidContext);
  EXPECT_EQ(m.call(StreamQuery{s}), kSuccess);
  m.buffer(1);
  EXPECT_EQ(m.status, kSuccess);
}

TEST(Contexts, nothing_works_before_init) {
  DriverState state;
  Call create = MemCreate{};
  EXPECT_EQ(step(state, ThreadId{0}, create), kNotInitialized);
  Call query = EventQuery{};
  EXPECT_EQ(step(state, ThreadId{0}, query), kInvalidHandle);
}

struct Seen {
  ModelBackend* backend = nullptr;
  StreamHandle other;
  DriverStatus create = kSuccess;
  DriverStatus query = kUnknown;
};

void look(void* argument) {
  auto* seen = static_cast<Seen*>(argument);
  MemCreate create;
  create.size = kG;
  seen->create = seen->backend->run(create);
  StreamQuery query{seen->other};
  seen->query = seen->backend->run(query);
}

TEST(HostFunctions, run_in_stream_order_and_may_not_map) {
  ModelBackend backend;
  Init init;
  backend.run(init);
  DevicePrimaryCtxRetain retain;
  backend.run(retain);
  CtxSetCurrent current{retain.context};
  backend.run(current);
  StreamCreate s{kStreamNonBlocking, {}};
  StreamCreate t{kStreamNonBlocking, {}};
  backend.run(s);
  backend.run(t);
  Seen seen{&backend, t.stream, kSuccess, kUnknown};
  LaunchHostFunc launch{s.stream, &look, &seen};
  EXPECT_EQ(backend.run(launch), kSuccess);
  EXPECT_EQ(seen.query, kUnknown);
  StreamSynchronize wait{s.stream};
  EXPECT_EQ(backend.run(wait), kSuccess);
  EXPECT_EQ(seen.create, kNotPermitted);
  EXPECT_EQ(seen.query, kSuccess);
}

}  // namespace
}  // namespace granule::model
