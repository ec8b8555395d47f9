// Which stream may have a freed block: the table of driver contract section 17, row by row.
#include "pool_fixture.hpp"

namespace granule::model {
namespace {

TEST_F(PoolTest, a_block_comes_back_at_once_on_its_stream) {
  const StreamHandle s = stream();
  const PoolHandle q = pool(kMax);
  const DevicePtr x = ask(8 * kMib, q, s);
  EXPECT_EQ(give(x, s), kSuccess);
  EXPECT_EQ(ask(8 * kMib, q, s), x);
  EXPECT_EQ(counters(q), (Counters{32 * kMib, 32 * kMib, 8 * kMib, 8 * kMib}));
}

TEST_F(PoolTest, the_last_block_is_extended_in_place) {
  const StreamHandle s = stream();
  const PoolHandle q = pool(kMax);
  const DevicePtr x = ask(8 * kMib, q, s);
  EXPECT_EQ(give(x, s), kSuccess);
  const DevicePtr y = ask(12 * kMib, q, s);
  EXPECT_EQ(y, x);
  EXPECT_EQ(reserved(q), 32 * kMib);
  EXPECT_EQ(give(y, s), kSuccess);
  EXPECT_EQ(ask(128 * kMib + 1, q, s), x);
  EXPECT_EQ(reserved(q), 160 * kMib);
}

TEST_F(PoolTest, neighbours_merge_and_split_at_512_bytes) {
  const StreamHandle s = stream();
  const PoolHandle q = pool(kMax);
  const std::uint64_t sizes[] = {1024, 1024, 1024, 4096};
  DevicePtr x[4];
  for (int i = 0; i < 4; ++i) x[i] = ask(sizes[i], q, s);
  for (const DevicePtr block : x) EXPECT_EQ(give(block, s), kSuccess);
  EXPECT_EQ(counters(q), (Counters{32 * kMib, 32 * kMib, 0, 7168}));
  EXPECT_EQ(ask(1024, q, s), x[0]);
  EXPECT_EQ(ask(512, q, s), x[1]);
  EXPECT_EQ(ask(4096, q, s).value, x[1].value + 512);
  ask(2048, q, s);
  EXPECT_EQ(counters(q), (Counters{32 * kMib, 32 * kMib, 7680, 7680}));
}

// Each situation of the table with each of the eight settings of the switches (F, O, D).
class PoolReuse : public PoolTest, public ::testing::WithParamInterface<int> {
 protected:
  PoolReuse() {
    a = stream();
    b = stream();
    c = stream();
    q = pool(kMax);
    switches(q, follow(), opportunistic(), (GetParam() & 4) != 0);
    x = ask(64 * kMib, q, a);
    EXPECT_EQ(sync(a), kSuccess);
  }
  bool follow() const { return (GetParam() & 1) != 0; }
  bool opportunistic() const { return (GetParam() & 2) != 0; }
  void expect_reuse(bool reused, StreamHandle on) {
    const DevicePtr y = ask(64 * kMib, q, on);
    EXPECT_EQ(y == x, reused);
    EXPECT_EQ(reserved(q), reused ? 64 * kMib : 128 * kMib);
  }
  StreamHandle a, b, c;
  PoolHandle q;
  DevicePtr x;
};

TEST_P(PoolReuse, pending_without_a_dependency_is_never_handed_out) {
  hold(a);
  give(x, a);
  expect_reuse(false, b);
}

TEST_P(PoolReuse, behind_an_event_after_the_free_it_is_if_events_are_followed) {
  hold(a);
  give(x, a);
  wait(record(a), b);
  expect_reuse(follow(), b);
}

TEST_P(PoolReuse, the_same_through_a_third_stream) {
  hold(a);
  give(x, a);
  wait(record(a), c);
  wait(record(c), b);
  expect_reuse(follow(), b);
}

TEST_P(PoolReuse, an_event_before_the_free_is_no_licence) {
  hold(a);
  const EventHandle e = record(a);
  give(x, a);
  wait(e, b);
  expect_reuse(false, b);
}

TEST_P(PoolReuse, executed_and_unseen_needs_the_opportunistic_switch) {
  give(x, a);
  pause();
  expect_reuse(opportunistic(), b);
}

TEST_P(PoolReuse, seen_by_the_host_it_is_anybodys) {
  give(x, a);
  EXPECT_EQ(sync(a), kSuccess);
  expect_reuse(true, b);
}

TEST_P(PoolReuse, destroyed_with_the_free_pending_it_is_not) {
  const StreamHandle k = stream();
  hold(k);
  wait(record(k), a);
  give(x, a);
  EXPECT_EQ(destroy(a), kSuccess);
  expect_reuse(false, b);
  release(k);
}

TEST_P(PoolReuse, destroyed_after_the_free_it_is_anybodys) {
  give(x, a);
  pause();
  EXPECT_EQ(destroy(a), kSuccess);
  expect_reuse(true, b);
}

TEST_P(PoolReuse, the_null_stream_follows_a_blocking_one) {
  const StreamHandle blocking = stream(kStreamDefault);
  hold(blocking);
  give(x, blocking);
  expect_reuse(follow(), StreamHandle{});
  release(blocking);
}

TEST_P(PoolReuse, freed_elsewhere_it_belongs_to_the_freeing_stream) {
  hold(a);
  EXPECT_EQ(give(x, b), kSuccess);
  EXPECT_EQ(counters(q), (Counters{64 * kMib, 64 * kMib, 0, 64 * kMib}));
  expect_reuse(true, b);
}

TEST_P(PoolReuse, freed_elsewhere_the_allocating_stream_is_a_stranger) {
  hold(a);
  EXPECT_EQ(give(x, b), kSuccess);
  pause();
  expect_reuse(opportunistic(), a);
  release(a);
}

INSTANTIATE_TEST_SUITE_P(switches, PoolReuse, ::testing::Range(0, 8));

TEST_F(PoolTest, freed_elsewhere_only_the_freeing_streams_wait_gives_back) {
  const StreamHandle s = stream();
  const StreamHandle o = stream();
  const PoolHandle q = pool();
  const DevicePtr a = ask(64 * kMib, q, s);
  EXPECT_EQ(sync(s), kSuccess);
  EXPECT_EQ(give(a, o), kSuccess);
  pause();
  EXPECT_EQ(sync(s), kSuccess);
  EXPECT_EQ(reserved(q), 64 * kMib);
  EXPECT_EQ(sync(o), kSuccess);
  EXPECT_EQ(counters(q), (Counters{0, 64 * kMib, 0, 64 * kMib}));
}

TEST_F(PoolTest, a_host_free_orders_nothing_and_stays_counted) {
  const StreamHandle s = stream();
  const StreamHandle o = stream();
  const PoolHandle q = pool(kMax);
  const DevicePtr a = ask(64 * kMib, q, s);
  hold(s);
  EXPECT_EQ(free_plain(a), kSuccess);
  EXPECT_EQ(counters(q), (Counters{64 * kMib, 64 * kMib, 64 * kMib, 64 * kMib}));
  EXPECT_EQ(ask(64 * kMib, q, o), a);
  EXPECT_EQ(counters(q), (Counters{64 * kMib, 64 * kMib, 128 * kMib, 128 * kMib}));
  release(s);
  EXPECT_EQ(sync(s), kSuccess);
  EXPECT_EQ(give(a, s), kSuccess);
  EXPECT_EQ(sync(), kSuccess);
  EXPECT_EQ(get(q, PoolAttribute::kUsedMemCurrent), 64 * kMib);
}

TEST_F(PoolTest, a_host_free_gives_back_under_running_work) {
  const StreamHandle s = stream();
  DevicePtr a;
  EXPECT_EQ(ask_default(64 * kMib, s, a), kSuccess);
  hold(s);
  const EventHandle e = record(s);
  EXPECT_EQ(free_plain(a), kSuccess);
  EXPECT_FALSE(done(e));
  EXPECT_EQ(counters(default_pool()), (Counters{0, 64 * kMib, 64 * kMib, 64 * kMib}));
  EXPECT_EQ(taken(), 0u);
  release(s);
}

TEST_F(PoolTest, a_host_free_of_a_destroyed_pools_block_gives_back_at_the_call) {
  const StreamHandle s = stream();
  const PoolHandle q = pool(kMax);
  const DevicePtr a = ask(64 * kMib, q, s);
  EXPECT_EQ(drop(q), kSuccess);
  EXPECT_EQ(free_plain(a), kSuccess);
  EXPECT_EQ(taken(), 0u);
}

TEST_F(PoolTest, a_free_under_unordered_work_is_reported) {
  const StreamHandle s = stream();
  const StreamHandle o = stream();
  const PoolHandle q = pool(kMax);
  const DevicePtr a = ask(64 * kMib, q, s);
  hold(s);
  EXPECT_EQ(fill(a, 64 * kMib, s), kSuccess);
  EXPECT_EQ(give(a, o), kSuccess);
  const auto found = state.take_violations();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.front().kind, ViolationKind::kUnorderedFree);
  release(s);
}

TEST_F(PoolTest, a_free_behind_its_work_is_clean) {
  const StreamHandle s = stream();
  const StreamHandle o = stream();
  const PoolHandle q = pool();
  const DevicePtr a = ask(64 * kMib, q, s);
  hold(s);
  EXPECT_EQ(fill(a, 64 * kMib, s), kSuccess);
  wait(record(s), o);
  EXPECT_EQ(give(a, o), kSuccess);
  release(s);
  EXPECT_EQ(sync(o), kSuccess);
  EXPECT_EQ(taken(), 0u);
  EXPECT_TRUE(state.take_violations().empty());
}

// What is left pending then: the switch off, a third stream asks.
class PoolSettling : public PoolTest {
 protected:
  PoolSettling() {
    a = stream();
    b = stream();
    c = stream();
    q = pool(kMax);
  }
  DevicePtr asked_afterwards(std::uint64_t size) {
    switches(q, false, false, false);
    return ask(size, q, c);
  }
  StreamHandle a, b, c;
  PoolHandle q;
};

TEST_F(PoolSettling, memory_above_all_blocks_is_taken_behind_a_look_at_the_frees) {
  const DevicePtr x = ask(2 * kMib, q, a);
  ask(2 * kMib, q, a);
  EXPECT_EQ(give(x, a), kSuccess);
  pause();
  ask(4 * kMib, q, b);
  EXPECT_EQ(asked_afterwards(1), x);
}

TEST_F(PoolSettling, a_part_of_a_hole_is_taken_as_it_is) {
  const DevicePtr x = ask(2 * kMib, q, a);
  ask(2 * kMib, q, a);
  EXPECT_EQ(give(x, a), kSuccess);
  pause();
  const DevicePtr y = ask(62 * kMib, q, a);  // grows: x is nobody's
  EXPECT_EQ(give(y, a), kSuccess);
  pause();
  EXPECT_EQ(ask(1, q, b), x);
  EXPECT_NE(asked_afterwards(40 * kMib), y);
}

TEST_F(PoolSettling, a_whole_hole_is_taken_behind_a_look_at_the_frees) {
  const DevicePtr x = ask(2 * kMib, q, a);
  ask(2 * kMib, q, a);
  const DevicePtr hole = ask(4 * kMib, q, b);
  ask(2 * kMib, q, a);
  EXPECT_EQ(give(hole, b), kSuccess);
  EXPECT_EQ(sync(b), kSuccess);
  EXPECT_EQ(give(x, a), kSuccess);
  pause();
  EXPECT_EQ(ask(4 * kMib, q, c), hole);
  EXPECT_EQ(asked_afterwards(1), x);
}

}  // namespace
}  // namespace granule::model
