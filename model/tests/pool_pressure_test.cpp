// Pools at their bound and on a full device: refusals, hoards, and who empties whom.
#include "pool_fixture.hpp"

namespace granule::model {
namespace {

TEST_F(PoolTest, the_bound_is_rounded_up_to_pieces_and_can_be_had_whole) {
  const std::pair<std::uint64_t, std::uint64_t> rows[] = {
      {1, 32}, {20 * kMib, 32}, {33 * kMib, 64}, {100 * kMib, 128}, {100 * kMib + 1, 128}};
  const StreamHandle s = stream();
  for (const auto& [bound, count] : rows) {
    const PoolHandle q = pool(kMax, bound);
    const DevicePtr first = ask(kMib, q, s);
    for (std::uint64_t i = 1; i < count; ++i) ask(kMib, q, s);
    DevicePtr y;
    EXPECT_EQ(ask(kMib, q, s, y), kOutOfMemory);
    EXPECT_EQ(ask(4096, q, s, y), kOutOfMemory);
    EXPECT_EQ(reserved(q), count * kMib);
    EXPECT_EQ(give(first, s), kSuccess);
    EXPECT_EQ(ask(kMib, q, s), first);
  }
}

TEST_F(PoolTest, a_block_over_the_bound_leaves_the_pool_grown_to_it) {
  const StreamHandle s = stream();
  const PoolHandle q = pool(kMax, 20 * kMib);
  DevicePtr x;
  EXPECT_EQ(ask(32 * kMib + 1, q, s, x), kOutOfMemory);
  EXPECT_EQ(counters(q), (Counters{32 * kMib, 32 * kMib, 0, 0}));
  ask(32 * kMib, q, s);
}

TEST_F(PoolTest, at_its_bound_a_pool_hands_out_a_pending_block_and_the_stream_waits) {
  const StreamHandle s = stream();
  const StreamHandle o = stream();
  const PoolHandle q = pool(kMax, 64 * kMib);
  const DevicePtr a = ask(40 * kMib, q, s);
  hold(s);
  const EventHandle e = record(s);
  EXPECT_EQ(give(a, s), kSuccess);
  EXPECT_EQ(ask(40 * kMib, q, o), a);
  EXPECT_FALSE(done(e));
  EXPECT_EQ(counters(q), (Counters{64 * kMib, 64 * kMib, 40 * kMib, 40 * kMib}));
  EXPECT_EQ(query(o), kNotReady);
  release(s);
  EXPECT_EQ(sync(o), kSuccess);
  EXPECT_TRUE(done(e));
}

TEST_F(PoolTest, a_pending_block_brings_the_order_of_its_free_and_nothing_that_came_later) {
  const StreamHandle s = stream();
  const StreamHandle o = stream();
  const StreamHandle c = stream();
  const PoolHandle q = pool(kMax, 64 * kMib);
  const DevicePtr a = ask(40 * kMib, q, s);
  const DevicePtr z = ask(8 * kMib, q, s);
  EXPECT_EQ(sync(s), kSuccess);
  hold(s);
  hold(c);
  EXPECT_EQ(give(a, s), kSuccess);
  EXPECT_EQ(fill(z, 8 * kMib, c), kSuccess);
  wait(record(c), s);  // after the free: its stream knows of the fill, the free does not
  EXPECT_EQ(ask(40 * kMib, q, o), a);
  EXPECT_TRUE(state.take_violations().empty());
  EXPECT_EQ(give(z, o), kSuccess);
  const std::vector<Violation> found = state.take_violations();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, ViolationKind::kUnorderedFree);
  release(c);
  release(s);
  EXPECT_EQ(sync(), kSuccess);
}

class PoolPressure : public PoolTest {
 protected:
  /// Leaves `left` bytes of the device's free memory to pools and the rest of the test.
  void leave(std::uint64_t left) { EXPECT_EQ(create(start - left), kSuccess); }
  /// A pool that keeps all it got, after a request that could not be met.
  PoolHandle hoarder(std::uint64_t threshold = kMax) {
    s = stream();
    const PoolHandle q = pool(threshold);
    leave(4 * kGib);
    DevicePtr x;
    EXPECT_EQ(ask(8 * kGib, q, s, x), kOutOfMemory);
    EXPECT_FALSE(x);
    return q;
  }
  static constexpr std::uint64_t kAll = 4064 * kMib;
  StreamHandle s;
};

TEST_F(PoolPressure, a_refused_request_hoards_until_somebody_needs_it) {
  const PoolHandle q = hoarder();
  EXPECT_EQ(counters(q), (Counters{kAll, kAll, 0, 0}));
  EXPECT_EQ(query(s), kSuccess);
  EXPECT_EQ(sync(s), kSuccess);
  EXPECT_EQ(sync(), kSuccess);
  DevicePtr x;
  EXPECT_EQ(ask(8 * kGib, q, s, x), kOutOfMemory);
  EXPECT_EQ(reserved(q), kAll);
  ask(kMib, q, s);
  EXPECT_EQ(counters(q), (Counters{kAll, kAll, kMib, kMib}));
  EXPECT_EQ(create(64 * kMib), kSuccess);
  EXPECT_EQ(reserved(q), 32 * kMib);
}

TEST_F(PoolPressure, a_trim_gives_a_hoard_back) {
  const PoolHandle q = hoarder();
  EXPECT_EQ(trim(q, kGib), kSuccess);
  EXPECT_EQ(reserved(q), kGib);
  EXPECT_EQ(trim(q, 0), kSuccess);
  EXPECT_EQ(counters(q), (Counters{0, kAll, 0, 0}));
}

TEST_F(PoolPressure, a_lower_threshold_and_a_wait_give_a_hoard_back) {
  const PoolHandle q = hoarder();
  EXPECT_EQ(set(q, PoolAttribute::kReleaseThreshold, 0), kSuccess);
  EXPECT_EQ(reserved(q), kAll);
  EXPECT_EQ(sync(s), kSuccess);
  EXPECT_EQ(reserved(q), 0u);
}

TEST_F(PoolPressure, a_hoard_goes_with_its_pool) {
  const PoolHandle q = hoarder();
  EXPECT_EQ(drop(q), kSuccess);
  EXPECT_EQ(taken(), start - 4 * kGib);
}

TEST_F(PoolPressure, plain_memory_and_other_pools_empty_a_hoard) {
  const PoolHandle q = hoarder();
  MemAlloc plain;
  plain.size = 64 * kMib;
  EXPECT_EQ(run(plain), kSuccess);
  EXPECT_EQ(counters(q), (Counters{0, kAll, 0, 0}));
  DevicePtr x;
  EXPECT_EQ(ask(8 * kGib, q, s, x), kOutOfMemory);
  EXPECT_EQ(reserved(q), kAll - 64 * kMib);
  const PoolHandle other = pool();
  ask(2 * kGib, other, s);
  EXPECT_EQ(reserved(q), 0u);
  EXPECT_EQ(reserved(other), 2 * kGib);
}

TEST_F(PoolPressure, with_threshold_zero_only_the_watermark_tells) {
  const PoolHandle q = hoarder(0);
  EXPECT_EQ(counters(q), (Counters{0, kAll, 0, 0}));
  ask(kMib, q, s);
  EXPECT_EQ(counters(q), (Counters{32 * kMib, kAll, kMib, kMib}));
}

TEST_F(PoolPressure, the_default_pool_on_a_nearly_full_device) {
  s = stream();
  const PoolHandle d = default_pool();
  leave(256 * kMib);
  DevicePtr x;
  EXPECT_EQ(ask_default(512 * kMib, s, x), kOutOfMemory);
  EXPECT_EQ(counters(d), (Counters{0, 224 * kMib, 0, 0}));
  DevicePtr b;
  EXPECT_EQ(ask_default(64 * kMib, s, b), kSuccess);
  EXPECT_EQ(ask_default(512 * kMib, s, x), kOutOfMemory);
  EXPECT_EQ(counters(d), (Counters{64 * kMib, 224 * kMib, 64 * kMib, 64 * kMib}));
  EXPECT_EQ(give(b, s), kSuccess);
  EXPECT_EQ(sync(s), kSuccess);
  EXPECT_EQ(counters(d), (Counters{0, 224 * kMib, 0, 64 * kMib}));
}

TEST_F(PoolPressure, a_hopeless_create_empties_the_pools) {
  s = stream();
  const PoolHandle q = pool(kMax);
  leave(8 * kGib);
  const DevicePtr a = ask(kGib, q, s);
  EXPECT_EQ(give(a, s), kSuccess);
  EXPECT_EQ(sync(s), kSuccess);
  EXPECT_EQ(reserved(q), kGib);
  EXPECT_EQ(create(kGib * 1024), kOutOfMemory);
  EXPECT_EQ(counters(q), (Counters{0, kGib, 0, kGib}));
}

TEST_F(PoolPressure, a_create_that_lacks_little_empties_them_whole) {
  s = stream();
  const PoolHandle q = pool(kMax);
  leave(8 * kGib);
  const DevicePtr a = ask(kGib, q, s);
  EXPECT_EQ(give(a, s), kSuccess);
  EXPECT_EQ(sync(s), kSuccess);
  EXPECT_EQ(create(7 * kGib + 64 * kMib), kSuccess);
  EXPECT_EQ(reserved(q), 0u);
}

TEST_F(PoolPressure, a_create_does_not_wait_for_a_pending_free) {
  s = stream();
  const PoolHandle q = pool(kMax);
  const std::uint64_t most = start / 10 * 6 / (2 * kMib) * (2 * kMib);
  const DevicePtr x = ask(most, q, s);
  EXPECT_EQ(sync(s), kSuccess);
  hold(s);
  EXPECT_EQ(give(x, s), kSuccess);
  EXPECT_EQ(create(most), kOutOfMemory);
  release(s);
  EXPECT_EQ(sync(s), kSuccess);
  EXPECT_EQ(create(most), kSuccess);
}

TEST_F(PoolPressure, a_full_device_and_a_pending_block_need_the_internal_switch) {
  for (const bool internal : {false, true}) {
    s = stream();
    const StreamHandle t = stream();
    const PoolHandle q = pool(kMax);
    switches(q, !internal, !internal, internal);
    if (!internal) leave(4 * kGib);
    const DevicePtr a = ask(3 * kGib, q, s);
    EXPECT_EQ(sync(s), kSuccess);
    hold(s);
    EXPECT_EQ(give(a, s), kSuccess);
    DevicePtr d;
    EXPECT_EQ(ask(3 * kGib, q, t, d), internal ? kSuccess : kOutOfMemory);
    EXPECT_EQ(d == a, internal);
    EXPECT_EQ(counters(q), (Counters{kAll, kAll, internal ? 3 * kGib : 0, 3 * kGib}));
    const EventHandle marker = record(t);
    pause();
    EXPECT_EQ(done(marker), !internal);
    release(s);
    EXPECT_EQ(sync(), kSuccess);
    EXPECT_EQ(give(d, t), kSuccess);  // null is nothing
    EXPECT_EQ(sync(), kSuccess);
    EXPECT_EQ(drop(q), kSuccess);
  }
}

TEST_F(PoolPressure, a_trim_works_while_the_stream_is_busy) {
  s = stream();
  hold(s);
  const PoolHandle q = pool(kMax);
  leave(4 * kGib);
  const EventHandle e = record(s);
  DevicePtr x;
  EXPECT_EQ(ask(8 * kGib, q, s, x), kOutOfMemory);
  EXPECT_EQ(reserved(q), kAll);
  EXPECT_EQ(trim(q, 0), kSuccess);
  EXPECT_EQ(reserved(q), 0u);
  EXPECT_FALSE(done(e));
  release(s);
}

}  // namespace
}  // namespace granule::model
