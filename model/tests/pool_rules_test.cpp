// Pools and the rest of the driver: access of peers, contexts, captures, pointer queries, errors.
#include "pool_fixture.hpp"

namespace granule::model {
namespace {

class PoolPeers : public PoolTest {
 protected:
  PoolPeers() : PoolTest(machine(2)) {}
  DriverStatus allow(PoolHandle q, std::initializer_list<AccessEntry> entries) {
    MemPoolSetAccess call;
    call.pool = q;
    for (const AccessEntry& entry : entries) call.access.push(entry);
    return run(call);
  }
  Access access(PoolHandle q, Location who) {
    MemPoolGetAccess call;
    call.pool = q;
    call.location = who;
    EXPECT_EQ(run(call), kSuccess);
    return call.access;
  }
  static constexpr Location kOwn{LocationType::kDevice, 0};
  static constexpr Location kPeer{LocationType::kDevice, 1};
  static constexpr Location kHost{LocationType::kHost, 0};
};

TEST_F(PoolPeers, the_owner_keeps_its_access_and_the_host_gets_none) {
  const PoolHandle q = pool();
  EXPECT_EQ(allow(q, {{kOwn, Access::kNone}}), kInvalidDevice);
  EXPECT_EQ(allow(q, {{kOwn, Access::kRead}}), kNotSupported);
  EXPECT_EQ(allow(q, {{kOwn, Access::kReadWrite}}), kSuccess);
  for (const Access wanted : {Access::kNone, Access::kRead, Access::kReadWrite})
    EXPECT_EQ(allow(q, {{kHost, wanted}}), kNotSupported);
  EXPECT_EQ(access(q, kOwn), Access::kReadWrite);
  EXPECT_EQ(access(q, kHost), Access::kNone);
}

TEST_F(PoolPeers, a_peer_is_let_in_and_out_but_never_to_read_alone) {
  const StreamHandle s = stream();
  const PoolHandle q = pool();
  EXPECT_EQ(access(q, kPeer), Access::kNone);
  EXPECT_EQ(allow(q, {{kPeer, Access::kRead}}), kNotSupported);
  EXPECT_EQ(allow(q, {{kPeer, Access::kReadWrite}, {kOwn, Access::kNone}}), kInvalidDevice);
  EXPECT_EQ(allow(q, {{kOwn, Access::kNone}, {kPeer, Access::kReadWrite}}), kInvalidDevice);
  EXPECT_EQ(access(q, kPeer), Access::kNone);
  EXPECT_EQ(allow(q, {{kPeer, Access::kReadWrite}}), kSuccess);
  const DevicePtr x = ask(4096, q, s);
  EXPECT_EQ(allow(q, {{kPeer, Access::kNone}}), kSuccess);
  EXPECT_EQ(access(q, kPeer), Access::kNone);
  EXPECT_EQ(allow(q, {{kPeer, Access::kReadWrite}}), kSuccess);
  EXPECT_EQ(access(q, kPeer), Access::kReadWrite);
  EXPECT_EQ(give(x, s), kSuccess);
  EXPECT_EQ(sync(s), kSuccess);
  EXPECT_EQ(drop(q), kSuccess);
  const PoolHandle next = pool();
  EXPECT_NE(next, q);
  EXPECT_EQ(access(next, kPeer), Access::kNone);
}

TEST_F(PoolPeers, memory_comes_from_the_streams_device) {
  DevicePrimaryCtxRetain retain;
  retain.device = DeviceId{1};
  ASSERT_EQ(run(retain), kSuccess);
  CtxSetCurrent other;
  other.context = retain.context;
  ASSERT_EQ(run(other), kSuccess);
  const StreamHandle on_one = stream();
  CtxSetCurrent back;
  back.context = context;
  ASSERT_EQ(run(back), kSuccess);
  const std::uint64_t before = state.free_bytes(1);
  DevicePtr x;
  EXPECT_EQ(ask_default(4096, on_one, x), kSuccess);
  EXPECT_EQ(before - state.free_bytes(1), 32 * kMib);
  EXPECT_EQ(taken(0), 0u);
  DevicePtr y;
  EXPECT_EQ(ask_default(4096, StreamHandle{}, y), kSuccess);
  EXPECT_EQ(taken(0), 32 * kMib);
  EXPECT_EQ(give(x, StreamHandle{}), kSuccess);
  EXPECT_EQ(sync(StreamHandle{}), kSuccess);
  EXPECT_EQ(state.free_bytes(1), before);
}

TEST_F(PoolTest, without_a_context_a_real_stream_will_do) {
  const StreamHandle s = stream();
  const ThreadId bare{7};
  DevicePtr x;
  EXPECT_EQ(ask_default(4096, s, x, bare), kSuccess);
  EXPECT_EQ(give(x, s, bare), kSuccess);
  EXPECT_EQ(ask_default(4096, StreamHandle{}, x, bare), kInvalidContext);
  EXPECT_FALSE(x);
  EXPECT_EQ(trim(default_pool(), 0, bare), kSuccess);
}

TEST_F(PoolTest, a_destroyed_stream_is_undefined) {
  const StreamHandle s = stream();
  EXPECT_EQ(destroy(s), kSuccess);
  DevicePtr x;
  EXPECT_EQ(ask_default(1024, s, x), kUndefined);
}

TEST_F(PoolTest, a_context_reset_leaves_pool_memory_alone) {
  const PoolHandle q = pool();
  const DevicePtr x = ask(64 * kMib, q, StreamHandle{});
  DevicePrimaryCtxReset reset;
  EXPECT_EQ(run(reset), kSuccess);
  DevicePrimaryCtxRetain retain;
  EXPECT_EQ(run(retain), kSuccess);
  CtxSetCurrent current;
  current.context = retain.context;
  EXPECT_EQ(run(current), kSuccess);
  EXPECT_EQ(counters(q), (Counters{64 * kMib, 64 * kMib, 64 * kMib, 64 * kMib}));
  EXPECT_EQ(give(x, StreamHandle{}), kSuccess);
  EXPECT_EQ(sync(StreamHandle{}), kSuccess);
  EXPECT_EQ(reserved(q), 0u);
}

TEST_F(PoolTest, a_context_reset_ends_pending_frees) {
  const StreamHandle s = stream();
  const PoolHandle q = pool();
  const DevicePtr x = ask(64 * kMib, q, s);
  hold(s);
  EXPECT_EQ(give(x, s), kSuccess);
  DevicePrimaryCtxReset reset;
  EXPECT_EQ(run(reset), kSuccess);
  EXPECT_EQ(state.ledger().pool_blocks, 0u);
  EXPECT_EQ(reserved(q), 0u);
}

TEST_F(PoolTest, what_a_destroyed_stream_leaves_comes_back_at_a_wait_for_the_context) {
  const StreamHandle s = stream();
  const StreamHandle k = stream();
  const PoolHandle q = pool();
  const DevicePtr x = ask(64 * kMib, q, s);
  hold(k);
  wait(record(k), s);
  EXPECT_EQ(give(x, s), kSuccess);
  EXPECT_EQ(destroy(s), kSuccess);
  release(k);
  EXPECT_EQ(sync(k), kSuccess);
  EXPECT_EQ(reserved(q), 64 * kMib);
  EXPECT_EQ(sync(), kSuccess);
  EXPECT_EQ(reserved(q), 0u);
}

TEST_F(PoolTest, pointer_queries_see_the_size_asked_until_the_free_call) {
  const StreamHandle s = stream();
  const PoolHandle q = pool(kMax);
  const DevicePtr a = ask(3 * kMib, q, s);
  const DevicePtr b = ask(kMib - 100, q, s);
  const auto attribute = [&](std::uint64_t at, PointerAttribute which, std::uint64_t& value) {
    PointerGetAttribute call;
    call.ptr = DevicePtr{at};
    call.attribute = which;
    const DriverStatus status = run(call);
    value = call.value;
    return status;
  };
  const auto range = [&](std::uint64_t at) {
    MemGetAddressRange call;
    call.ptr = DevicePtr{at};
    const DriverStatus status = run(call);
    return std::tuple(status, status == kSuccess ? call.base.value : 0,
                      status == kSuccess ? call.size : 0);
  };
  EXPECT_EQ(range(a.value + 1000001), std::tuple(kSuccess, a.value, 3 * kMib));
  EXPECT_EQ(range(b.value), std::tuple(kSuccess, b.value, kMib - 100));
  EXPECT_EQ(std::get<0>(range(b.value + kMib - 100)), kNotFound);
  std::uint64_t value = 0;
  EXPECT_EQ(attribute(b.value + 7, PointerAttribute::kRangeSize, value), kSuccess);
  EXPECT_EQ(value, kMib - 100);
  EXPECT_EQ(attribute(b.value, PointerAttribute::kMappingSize, value), kSuccess);
  EXPECT_EQ(value, 32 * kMib);
  EXPECT_EQ(attribute(b.value, PointerAttribute::kMempoolHandle, value), kSuccess);
  EXPECT_EQ(value, q.value);
  EXPECT_EQ(attribute(b.value, PointerAttribute::kMemoryType, value), kSuccess);
  EXPECT_EQ(value, 2u);
  EXPECT_EQ(attribute(b.value, PointerAttribute::kContext, value), kSuccess);
  EXPECT_EQ(value, 0u);
  EXPECT_EQ(attribute(b.value, PointerAttribute::kAccessFlags, value), kSuccess);
  EXPECT_EQ(value, 3u);
  EXPECT_EQ(attribute(b.value, PointerAttribute::kHostPointer, value), kInvalidValue);
  EXPECT_EQ(drop(q), kSuccess);
  EXPECT_EQ(std::get<0>(range(b.value)), kSuccess);
  EXPECT_EQ(give(b, s), kSuccess);
  EXPECT_EQ(std::get<0>(range(b.value)), kNotFound);
  EXPECT_EQ(attribute(b.value, PointerAttribute::kMemoryType, value), kInvalidValue);
}

TEST_F(PoolTest, bytes_are_kept_while_live_and_unknown_when_handed_out_again) {
  const StreamHandle s = stream();
  const PoolHandle q = pool(kMax);
  const DevicePtr a = ask(kMib, q, s);
  EXPECT_EQ(fill(a, kMib, s, 0x5A), kSuccess);
  EXPECT_EQ(sync(s), kSuccess);
  EXPECT_EQ(state.bytes_now(a.value, kMib), (ByteSummary{ByteSummary::Kind::kUniform, 0x5A}));
  EXPECT_EQ(give(a, s), kSuccess);
  EXPECT_EQ(fill(a, kMib, s), kInvalidValue);
  EXPECT_EQ(ask(kMib, q, s), a);
  EXPECT_EQ(state.bytes_now(a.value, kMib).kind, ByteSummary::Kind::kUnknown);
  EXPECT_EQ(fill(a, kMib + 1, s), kInvalidValue);
  EXPECT_EQ(fill(a, kMib, s), kSuccess);
  EXPECT_EQ(sync(s), kSuccess);
  EXPECT_TRUE(state.take_violations().empty());
}

class PoolCapture : public PoolTest {
 protected:
  void begin(StreamHandle on, CaptureMode mode) {
    StreamBeginCapture call;
    call.stream = on;
    call.mode = mode;
    EXPECT_EQ(run(call), kSuccess);
  }
  DriverStatus end(StreamHandle on) {
    StreamEndCapture call;
    call.stream = on;
    return run(call);
  }
};

TEST_F(PoolCapture, calls_on_other_streams_kill_a_capture_unless_it_is_relaxed) {
  const StreamHandle c = stream();
  const StreamHandle t = stream();
  const PoolHandle q = pool(kMax);
  const DevicePtr x = ask(40 * kMib, q, t);
  for (const CaptureMode mode : {CaptureMode::kGlobal, CaptureMode::kThreadLocal}) {
    DevicePtr y;
    begin(c, mode);
    EXPECT_EQ(ask(4096, q, t, y), kStreamCaptureUnsupported);
    EXPECT_EQ(end(c), kStreamCaptureInvalidated);
    begin(c, mode);
    EXPECT_EQ(give(x, t), kStreamCaptureUnsupported);
    EXPECT_EQ(end(c), kStreamCaptureInvalidated);
    begin(c, mode);
    EXPECT_EQ(trim(q, 0), kStreamCaptureUnsupported);
    EXPECT_EQ(end(c), kStreamCaptureInvalidated);
  }
  EXPECT_EQ(counters(q), (Counters{64 * kMib, 64 * kMib, 40 * kMib, 40 * kMib}));
  begin(c, CaptureMode::kRelaxed);
  const DevicePtr y = ask(4096, q, t);
  EXPECT_EQ(give(y, t), kSuccess);
  EXPECT_EQ(trim(q, 0), kSuccess);
  EXPECT_EQ(end(c), kSuccess);
}

TEST_F(PoolCapture, other_threads_are_bound_by_a_global_capture_only) {
  const StreamHandle c = stream();
  const StreamHandle t = stream();
  DevicePtr x;
  EXPECT_EQ(ask_default(4096, t, x), kSuccess);
  EXPECT_EQ(sync(t), kSuccess);
  begin(c, CaptureMode::kGlobal);
  EXPECT_EQ(give(x, t, ThreadId{1}), kStreamCaptureUnsupported);
  EXPECT_EQ(end(c), kStreamCaptureInvalidated);
  begin(c, CaptureMode::kThreadLocal);
  EXPECT_EQ(give(x, t, ThreadId{1}), kSuccess);
  EXPECT_EQ(end(c), kSuccess);
}

TEST_F(PoolCapture, the_null_stream_is_out_beside_a_blocking_capture) {
  const StreamHandle c = stream(kStreamDefault);
  DevicePtr x;
  EXPECT_EQ(ask_default(4096, StreamHandle{}, x), kSuccess);
  EXPECT_EQ(sync(), kSuccess);
  begin(c, CaptureMode::kRelaxed);
  EXPECT_EQ(give(x, StreamHandle{}), kStreamCaptureImplicit);
  EXPECT_EQ(end(c), kStreamCaptureInvalidated);
  begin(c, CaptureMode::kRelaxed);
  DevicePtr y;
  EXPECT_EQ(ask_default(4096, StreamHandle{}, y), kStreamCaptureImplicit);
  EXPECT_EQ(end(c), kStreamCaptureInvalidated);
  EXPECT_EQ(give(x, StreamHandle{}), kSuccess);
}

TEST_F(PoolCapture, on_the_capturing_stream_allocations_are_nodes) {
  const StreamHandle c = stream();
  const PoolHandle q = pool();
  const DevicePtr real = ask(4096, q, c);
  EXPECT_EQ(sync(c), kSuccess);
  begin(c, CaptureMode::kGlobal);
  const DevicePtr x = ask(4096, q, c);
  EXPECT_TRUE(x);
  EXPECT_EQ(fill(x, 4096, c), kSuccess);
  EXPECT_EQ(give(real, c), kInvalidValue);
  EXPECT_EQ(give(x, c), kSuccess);
  EXPECT_EQ(give(x, c), kInvalidValue);
  EXPECT_EQ(end(c), kSuccess);
  EXPECT_EQ(get(q, PoolAttribute::kUsedMemCurrent), 4096u);
  EXPECT_EQ(give(x, c), kInvalidValue);
  EXPECT_EQ(give(real, c), kSuccess);
}

TEST_F(PoolCapture, plain_memory_is_not_freed_on_the_capturing_stream) {
  const StreamHandle c = stream();
  begin(c, CaptureMode::kRelaxed);
  MemAlloc plain;
  plain.size = 4096;
  EXPECT_EQ(run(plain), kSuccess);
  EXPECT_EQ(give(plain.ptr, c), kInvalidValue);
  EXPECT_EQ(end(c), kSuccess);
  EXPECT_EQ(free_plain(plain.ptr), kSuccess);
}

TEST_F(PoolTest, after_a_fault_only_trims_still_work) {
  const StreamHandle s = stream();
  const StreamHandle t = stream();
  const PoolHandle q = pool(kMax);
  const DevicePtr x = ask(64 * kMib, q, t);
  MemAddressReserve reserve;
  reserve.size = 2 * kMib;
  ASSERT_EQ(run(reserve), kSuccess);
  LaunchKernel kernel;
  kernel.kind = KernelKind::kWrite;
  kernel.ptr = reserve.ptr;
  kernel.size = 4096;
  kernel.stream = s;
  EXPECT_EQ(run(kernel), kSuccess);
  EXPECT_EQ(sync(s), kIllegalAddress);
  DevicePtr y;
  EXPECT_EQ(ask(4096, q, t, y), kIllegalAddress);
  EXPECT_EQ(give(x, t), kIllegalAddress);
  EXPECT_EQ(trim(q, 0), kSuccess);
}

TEST_F(PoolTest, a_driver_that_forgets_the_threshold) {
  Quirks quirks;
  quirks.threshold_forgotten = true;
  state.set_quirks(quirks);
  const StreamHandle s = stream();
  const PoolHandle q = pool(kMax);
  EXPECT_EQ(give(ask(64 * kMib, q, s), s), kSuccess);
  EXPECT_EQ(sync(s), kSuccess);
  EXPECT_EQ(reserved(q), 0u);
}

TEST_F(PoolTest, a_followed_driver_chooses_the_place) {
  const StreamHandle s = stream();
  const PoolHandle q = pool(kMax);
  state.force_next_pool_block(0x7123'4400'0000);
  const DevicePtr x = ask(4096, q, s);
  EXPECT_EQ(x.value, 0x7123'4400'0000u);
  state.force_next_pool_block(x.value + kMib);
  EXPECT_EQ(ask(4096, q, s).value, x.value + kMib);
  state.force_next_pool_block(x.value);  // taken: the lowest instead
  EXPECT_EQ(ask(4096, q, s).value, x.value + 4096);
}

TEST_F(PoolTest, the_ledger_counts_pools_and_blocks) {
  const StreamHandle s = stream();
  const PoolHandle q = pool();
  const DevicePtr x = ask(4096, q, s);
  DevicePtr y;
  EXPECT_EQ(ask_default(4096, s, y), kSuccess);
  EXPECT_EQ(state.ledger().pools, 1u);
  EXPECT_EQ(state.ledger().pool_blocks, 2u);
  EXPECT_EQ(give(x, s), kSuccess);
  EXPECT_EQ(drop(q), kSuccess);
  EXPECT_EQ(state.ledger().pools, 0u);
  EXPECT_EQ(state.ledger().pool_blocks, 1u);
}

TEST_F(PoolTest, a_copy_of_the_machine_has_pools_of_its_own) {
  const StreamHandle s = stream();
  const PoolHandle q = pool();
  const DevicePtr x = ask(4096, q, s);
  DriverState before = state;
  EXPECT_EQ(give(x, s), kSuccess);
  std::swap(before, state);
  EXPECT_EQ(get(q, PoolAttribute::kUsedMemCurrent), 4096u);
  EXPECT_EQ(give(x, s), kSuccess);
}

}  // namespace
}  // namespace granule::model
