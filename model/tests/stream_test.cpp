// Order and progress of stream work, symbolic bytes, and work on memory that went away.
#include "machine.hpp"

namespace granule::model {
namespace {

using enum DriverStatus;

TEST(Streams, work_behind_a_gate_waits_and_nothing_else_does) {
  Machine m;
  const StreamHandle s = m.stream();
  const StreamHandle t = m.stream();
  m.call(CloseGate{s});
  const EventHandle e = m.event_on(s);
  EXPECT_EQ(m.sync(s), kWouldBlock);
  EXPECT_EQ(m.sync(), kWouldBlock);
  EXPECT_EQ(m.sync(t), kSuccess);
  EXPECT_TRUE(would_block(m.state, m.thread, StreamSynchronize{s}));
  for (int i = 0; i < 50; ++i) EXPECT_EQ(m.call(EventQuery{e}), kNotReady);
  m.call(OpenGate{s});
  EXPECT_EQ(m.sync(s), kSuccess);
  EXPECT_EQ(m.call(EventQuery{e}), kSuccess);
}

TEST(Streams, a_pause_runs_what_takes_less) {
  Machine m;
  const StreamHandle s = m.stream();
  m.kernel(KernelKind::kSpin, {}, 0, s, 10'000'000);
  const EventHandle early = m.event_on(s);
  m.kernel(KernelKind::kSpin, {}, 0, s, 90'000'000);
  const EventHandle late = m.event_on(s);
  m.call(Pause{20'000'000});
  EXPECT_TRUE(m.state.event_done(early));
  EXPECT_FALSE(m.state.event_done(late));
  m.call(Pause{80'000'000});
  EXPECT_TRUE(m.state.event_done(late));
}

TEST(Streams, a_wait_carries_order_and_keeps_the_recording_it_found) {
  Machine m;
  const StreamHandle a = m.stream();
  const StreamHandle b = m.stream();
  m.call(CloseGate{a});
  const EventHandle e = m.event_on(a);
  m.call(StreamWaitEvent{b, e, 0});
  m.call(EventRecord{e, b});
  EXPECT_EQ(m.sync(b), kWouldBlock);
  m.call(OpenGate{a});
  EXPECT_EQ(m.sync(b), kSuccess);
}

TEST(Streams, the_null_stream_orders_itself_with_blocking_streams_only) {
  Machine m;
  const StreamHandle blocking = m.stream(kStreamDefault);
  const StreamHandle apart = m.stream();
  m.call(CloseGate{apart});
  EXPECT_EQ(m.sync(kLegacyStream), kSuccess);
  m.call(CloseGate{blocking});
  const EventHandle e = m.event_on(kLegacyStream);
  EXPECT_EQ(m.call(EventQuery{e}), kNotReady);
  EXPECT_EQ(m.sync(kLegacyStream), kWouldBlock);
  m.call(OpenGate{blocking});
  EXPECT_EQ(m.sync(kLegacyStream), kSuccess);
}

TEST(Streams, queries_of_free_work_end_after_some_patience) {
  Machine m;
  const StreamHandle s = m.stream();
  LaunchKernel work;
  work.duration_ns = 1000;
  work.stream = s;
  m.call(work);
  const EventHandle e = m.event_on(s);
  int asked = 0;
  while (m.call(EventQuery{e}) == kNotReady) ++asked;
  EXPECT_EQ(asked, 8);
}

TEST(Streams, a_plain_free_waits_for_everything_and_blocks_without_effect) {
  Machine m;
  const StreamHandle s = m.stream();
  const DevicePtr x = m.made(MemAlloc{2 * kG, {}}).ptr;
  m.call(CloseGate{s});
  EXPECT_EQ(m.call(MemFree{x}), kWouldBlock);
  EXPECT_EQ(m.state.ledger().plain_blocks, 1u);
  m.call(OpenGate{s});
  EXPECT_EQ(m.call(MemFree{x}), kSuccess);
  EXPECT_EQ(m.free_change(), 0);
}

TEST(Streams, blocks_are_plain_memory_and_pool_blocks_with_what_was_asked_for) {
  Machine m;
  const StreamHandle s = m.stream();
  const DevicePtr x = m.made(MemAlloc{100, {}}).ptr;
  const DevicePtr y = m.made(MemAlloc{2 * kG, {}}).ptr;
  MemAllocAsync ask;
  ask.size = 512;
  ask.stream = s;
  const DevicePtr z = m.made(ask).ptr;
  m.call(CloseGate{s});
  m.fill(y, 0x11, kG, s);
  MemFreeAsync give;
  give.ptr = y;
  give.stream = s;
  EXPECT_EQ(m.call(give), kSuccess);
  std::size_t seen = 0;
  for (const BlockView& block : m.state.blocks()) {
    const bool pool = block.base == z.value;
    EXPECT_EQ(block.kind == BlockView::Kind::kPool, pool);
    EXPECT_EQ(block.size, block.base == x.value ? 100u : pool ? 512u : 2 * kG);
    EXPECT_EQ(block.freed, block.base == y.value);
    ++seen;
  }
  EXPECT_EQ(seen, 3u);
  m.call(OpenGate{s});
}

TEST(Streams, work_on_an_unmapped_address_faults_when_it_runs) {
  Machine m;
  const StreamHandle s = m.stream();
  const DevicePtr v = m.buffer(1);
  m.call(CloseGate{s});
  m.kernel(KernelKind::kTouch, v, kG, s);
  EXPECT_EQ(m.unmap(v, kG), kSuccess);
  EXPECT_EQ(m.count(ViolationKind::kUnmappedUse), 0);
  m.call(OpenGate{s});
  EXPECT_EQ(m.sync(s), kIllegalAddress);
  EXPECT_EQ(m.count(ViolationKind::kUnmappedUse), 1);
  EXPECT_EQ(m.call(MemAlloc{64, {}}), kIllegalAddress);
  EXPECT_EQ(m.call(MemAddressFree{v, kG}), kSuccess);
}

TEST(Streams, mapping_again_at_once_does_not_save_running_work) {
  Machine m;
  const StreamHandle s = m.stream();
  const DevicePtr v = m.buffer(1);
  m.kernel(KernelKind::kRead, v, kG, s, 1000);
  m.unmap(v, kG);
  m.map(v, kG, m.create(kG));
  m.access(v, kG, Access::kReadWrite);
  EXPECT_EQ(m.sync(s), kIllegalAddress);
}

TEST(Streams, setting_the_same_access_again_is_harmless_and_narrowing_is_not) {
  Machine m;
  const StreamHandle s = m.stream();
  const DevicePtr v = m.buffer(1);
  m.kernel(KernelKind::kRead, v, kG, s, 1000);
  m.access(v, kG, Access::kReadWrite);
  EXPECT_EQ(m.sync(s), kSuccess);
  m.kernel(KernelKind::kRead, v, kG, s, 1000);
  m.access(v, kG, Access::kRead);
  EXPECT_EQ(m.sync(s), kIllegalAddress);
}

TEST(Streams, fresh_memory_is_unknown_and_aliases_see_each_other) {
  Machine m;
  const DevicePtr v = m.reserve(2 * kG);
  const AllocationHandle h = m.create(kG);
  m.map(v, kG, h);
  m.map(plus(v, kG), kG, h);
  m.access(v, kG, Access::kReadWrite);
  m.access(plus(v, kG), kG, Access::kReadWrite);
  EXPECT_EQ(m.read(v, kG), -2);
  m.call(MemsetD8{v, 0x11, kG});
  EXPECT_EQ(m.read(plus(v, kG), kG), 0x11);
  m.call(MemsetD8{plus(v, kG + 100), 0x22, 100});
  EXPECT_EQ(m.read(v, kG), -1);
  EXPECT_EQ(m.read(plus(v, 100), 100), 0x22);
  m.call(MemsetD32{v, 0x01020304, 8});
  EXPECT_EQ(m.read(plus(v, 1), 1), 0x03);
}

TEST(Streams, bytes_written_without_order_are_unknown) {
  Machine m;
  const StreamHandle s = m.stream();
  const StreamHandle t = m.stream();
  const DevicePtr v = m.buffer(1);
  m.fill(v, 0x11, kG, s);
  m.fill(v, 0x22, kG / 2, t);
  m.sync();
  EXPECT_EQ(m.read(v, kG / 2), -2);
  EXPECT_EQ(m.read(plus(v, kG / 2), kG / 2), 0x11);
  m.fill(v, 0x33, kG, s);
  m.call(StreamWaitEvent{t, m.event_on(s), 0});
  m.fill(v, 0x44, kG, t);
  m.sync();
  EXPECT_EQ(m.read(v, kG), 0x44);
}

TEST(Streams, literal_bytes_go_in_and_come_out) {
  Machine m;
  const DevicePtr v = m.buffer(1);
  const unsigned char text[] = "growable";
  m.call(MemcpyHtoD{plus(v, 10), {text, 0, false}, sizeof text});
  unsigned char back[sizeof text] = {};
  m.call(MemcpyDtoH{back, plus(v, 10), sizeof text, {}});
  EXPECT_STREQ(reinterpret_cast<const char*>(back), "growable");
}

TEST(Streams, a_marker_is_written_in_stream_order_and_a_wait_for_a_value_holds) {
  Machine m;
  const StreamHandle s = m.stream();
  const StreamHandle t = m.stream();
  const DevicePtr word{m.made(MemAllocHost{4096, 0}).host};
  m.call(StreamWaitValue32{t, word, 7, 0});
  EXPECT_EQ(m.sync(t), kWouldBlock);
  m.call(StreamWriteValue64{s, word, 9, 0});
  EXPECT_EQ(m.state.host_word(word.value), 0u);
  m.sync(s);
  EXPECT_EQ(m.state.host_word(word.value), 9u);
  EXPECT_EQ(m.sync(t), kSuccess);
  EXPECT_EQ(m.call(StreamWriteValue64{s, plus(word, 4), 9, 0}), kInvalidValue);
}

TEST(Streams, eager_and_seeded_schedules_end_like_the_lazy_one) {
  for (const Schedule schedule : {Schedule::kLazy, Schedule::kEager, Schedule::kSeeded}) {
    Config config;
    config.schedule = schedule;
    Machine m(config);
    const StreamHandle s = m.stream();
    const DevicePtr v = m.buffer(2);
    m.fill(v, 0x10, 2 * kG, s);
    m.call(MemcpyDtoDAsync{plus(v, kG), v, kG, s});
    m.fill(v, 0x20, kG, s);
    EXPECT_EQ(m.sync(), kSuccess);
    EXPECT_EQ(m.read(v, kG), 0x20);
    EXPECT_EQ(m.read(plus(v, kG), kG), 0x10);
    EXPECT_TRUE(m.state.violations().empty());
  }
}

}  // namespace
}  // namespace granule::model
