// Pools through step(): attributes, placement and counters, frees, and when memory goes back.
#include "pool_fixture.hpp"

namespace granule::model {
namespace {

TEST_F(PoolTest, a_new_pool_has_all_switches_on_and_counts_nothing) {
  const PoolHandle q = pool();
  EXPECT_EQ(get(q, PoolAttribute::kReuseFollowEventDependencies), 1u);
  EXPECT_EQ(get(q, PoolAttribute::kReuseAllowOpportunistic), 1u);
  EXPECT_EQ(get(q, PoolAttribute::kReuseAllowInternalDependencies), 1u);
  EXPECT_EQ(get(q, PoolAttribute::kReleaseThreshold), 0u);
  EXPECT_EQ(counters(q), (Counters{0, 0, 0, 0}));
}

TEST_F(PoolTest, attributes_take_what_the_driver_takes) {
  const PoolHandle q = pool();
  EXPECT_EQ(set(q, PoolAttribute::kReuseFollowEventDependencies, 2), kSuccess);
  EXPECT_EQ(get(q, PoolAttribute::kReuseFollowEventDependencies), 1u);
  EXPECT_EQ(set(q, PoolAttribute::kReservedMemCurrent, 0), kInvalidValue);
  EXPECT_EQ(set(q, PoolAttribute::kUsedMemCurrent, 0), kInvalidValue);
  EXPECT_EQ(set(q, PoolAttribute::kReservedMemHigh, 4096), kInvalidValue);
  EXPECT_EQ(set(q, PoolAttribute::kReservedMemHigh, 0), kSuccess);
  EXPECT_EQ(set(q, static_cast<PoolAttribute>(0), 0), kInvalidValue);
  EXPECT_EQ(set(q, static_cast<PoolAttribute>(9), 0), kInvalidValue);
  MemPoolGetAttribute get_unknown;
  get_unknown.pool = q;
  get_unknown.attribute = static_cast<PoolAttribute>(9);
  EXPECT_EQ(run(get_unknown), kInvalidValue);
}

TEST_F(PoolTest, places_and_handle_types_are_checked_at_create) {
  const auto make = [&](LocationType type, std::int32_t id, std::uint32_t handles = 0,
                        std::uint32_t kind = 1) {
    MemPoolCreate call;
    call.properties.location = {type, id};
    call.properties.handle_types = static_cast<HandleType>(handles);
    call.properties.type = kind;
    return run(call);
  };
  EXPECT_EQ(make(LocationType::kHost, 0), kSuccess);
  EXPECT_EQ(make(LocationType::kHostNuma, 0), kSuccess);
  EXPECT_EQ(make(LocationType::kDevice, 0, 1), kSuccess);
  EXPECT_EQ(make(LocationType::kDevice, 0, 8), kSuccess);
  EXPECT_EQ(make(LocationType::kHostNuma, 99), kInvalidValue);
  EXPECT_EQ(make(LocationType::kHostNumaCurrent, 0), kInvalidValue);
  EXPECT_EQ(make(LocationType::kDevice, 99), kInvalidValue);
  EXPECT_EQ(make(LocationType::kDevice, -1), kInvalidValue);
  EXPECT_EQ(make(LocationType::kInvalid, 0), kInvalidValue);
  EXPECT_EQ(make(LocationType::kDevice, 0, 0x40), kInvalidValue);
  EXPECT_EQ(make(LocationType::kDevice, 0, 0, 0), kInvalidValue);
  EXPECT_EQ(make(LocationType::kDevice, 0, 0, 9), kInvalidValue);
}

TEST_F(PoolTest, the_default_pool_cannot_be_destroyed_and_follows_a_destroyed_current_one) {
  const PoolHandle d = default_pool();
  EXPECT_EQ(drop(d), kInvalidValue);
  const PoolHandle q = pool();
  DeviceSetMemPool set_current;
  set_current.pool = q;
  EXPECT_EQ(run(set_current), kSuccess);
  DeviceGetMemPool current;
  EXPECT_EQ(run(current), kSuccess);
  EXPECT_EQ(current.pool, q);
  EXPECT_EQ(drop(q), kSuccess);
  EXPECT_EQ(run(current), kSuccess);
  EXPECT_EQ(current.pool, d);
  EXPECT_EQ(drop(q), kInvalidValue);
  EXPECT_EQ(trim(q, 0), kInvalidValue);
}

TEST_F(PoolTest, fresh_neighbours_are_the_rounded_size_apart) {
  struct Row {
    std::uint64_t size, distance, reserved_one, reserved_two;
  };
  const Row rows[] = {{1, 512, 32 * kMib, 32 * kMib},
                      {255, 512, 32 * kMib, 32 * kMib},
                      {4096, 4096, 32 * kMib, 32 * kMib},
                      {2 * kMib + 1, 2 * kMib + 512, 32 * kMib, 32 * kMib},
                      {31 * kMib, 31 * kMib, 32 * kMib, 64 * kMib},
                      {33 * kMib, 33 * kMib, 64 * kMib, 96 * kMib},
                      {65 * kMib, 65 * kMib, 96 * kMib, 160 * kMib},
                      {100 * kMib, 100 * kMib, 128 * kMib, 224 * kMib},
                      {1000 * kMib, 1000 * kMib, 1024 * kMib, 2016 * kMib}};
  const StreamHandle s = stream();
  for (const Row& row : rows) {
    const PoolHandle q = pool(kMax);
    const DevicePtr x = ask(row.size, q, s);
    EXPECT_EQ(counters(q), (Counters{row.reserved_one, row.reserved_one, row.size, row.size}));
    EXPECT_EQ(taken(), row.reserved_one);
    const DevicePtr y = ask(row.size, q, s);
    EXPECT_EQ(y.value, x.value + row.distance);
    EXPECT_EQ(taken(), row.reserved_two);
    EXPECT_EQ(give(x, s), kSuccess);
    EXPECT_EQ(give(y, s), kSuccess);
    EXPECT_EQ(counters(q), (Counters{row.reserved_two, row.reserved_two, 0, 2 * row.size}));
    EXPECT_EQ(sync(s), kSuccess);
    EXPECT_EQ(reserved(q), row.reserved_two);
    EXPECT_EQ(trim(q, 0), kSuccess);
    EXPECT_EQ(counters(q), (Counters{0, row.reserved_two, 0, 2 * row.size}));
    EXPECT_EQ(taken(), 0u);
    EXPECT_EQ(drop(q), kSuccess);
  }
}

TEST_F(PoolTest, nothing_asked_gives_null_and_everything_asked_has_no_effect) {
  const StreamHandle s = stream();
  const PoolHandle q = pool(kMax);
  DevicePtr x{1};
  EXPECT_EQ(ask(0, q, s, x), kSuccess);
  EXPECT_FALSE(x);
  EXPECT_EQ(give(x, s), kSuccess);
  x = DevicePtr{1};
  EXPECT_EQ(ask(kMax, q, s, x), kOutOfMemory);
  EXPECT_FALSE(x);
  EXPECT_EQ(ask(kGib * 1024, q, s, x), kOutOfMemory);
  EXPECT_EQ(counters(q), (Counters{0, 0, 0, 0}));
  EXPECT_EQ(ask(0, PoolHandle{}, s, x), kInvalidValue);
  const DevicePtr z = ask(4096, q, s);
  EXPECT_EQ(fill(z, 4096, s), kSuccess);
  EXPECT_EQ(sync(s), kSuccess);
}

TEST_F(PoolTest, frees_that_are_none_are_refused_without_harm) {
  const StreamHandle s = stream();
  const PoolHandle q = pool();
  const DevicePtr x = ask(kMib, q, s);
  EXPECT_EQ(give(DevicePtr{x.value + 512}, s), kInvalidValue);
  EXPECT_EQ(give(DevicePtr{0x1234000}, s), kInvalidValue);
  EXPECT_EQ(free_plain(DevicePtr{x.value + 512}), kInvalidValue);
  EXPECT_EQ(give(x, s), kSuccess);
  EXPECT_EQ(give(x, s), kInvalidValue);
  EXPECT_EQ(sync(), kSuccess);
  EXPECT_EQ(give(x, s), kInvalidValue);
  EXPECT_EQ(free_plain(x), kInvalidValue);
}

TEST_F(PoolTest, the_two_kinds_of_free_take_each_others_memory) {
  const StreamHandle s = stream();
  MemAlloc plain;
  plain.size = 4096;
  ASSERT_EQ(run(plain), kSuccess);
  EXPECT_EQ(give(plain.ptr, s), kSuccess);
  EXPECT_EQ(sync(s), kSuccess);
  EXPECT_EQ(free_plain(plain.ptr), kInvalidValue);
  const PoolHandle q = pool();
  const DevicePtr y = ask(4096, q, s);
  EXPECT_EQ(sync(s), kSuccess);
  EXPECT_EQ(free_plain(y), kSuccess);
  EXPECT_EQ(give(y, s), kInvalidValue);
  EXPECT_EQ(taken(), 0u);
}

TEST_F(PoolTest, plain_memory_freed_on_a_stream_goes_behind_its_work) {
  const StreamHandle s = stream();
  MemAlloc plain;
  plain.size = 2 * kMib;
  ASSERT_EQ(run(plain), kSuccess);
  hold(s);
  EXPECT_EQ(fill(plain.ptr, 2 * kMib, s), kSuccess);
  EXPECT_EQ(give(plain.ptr, s), kSuccess);
  EXPECT_EQ(fill(plain.ptr, 2 * kMib, s), kInvalidValue);
  EXPECT_EQ(taken(), 2 * kMib);
  release(s);
  EXPECT_EQ(sync(s), kSuccess);
  EXPECT_EQ(taken(), 0u);
  EXPECT_TRUE(state.take_violations().empty());
}

class PoolGiveBack : public PoolTest {
 protected:
  void prepare(std::uint64_t threshold) {
    s = stream();
    o = stream();
    q = pool(threshold);
    DevicePtr x[3];
    for (DevicePtr& block : x) block = ask(64 * kMib, q, s);
    y = ask(kMib, q, o);
    EXPECT_EQ(sync(s), kSuccess);
    EXPECT_EQ(sync(o), kSuccess);
    EXPECT_EQ(counters(q), (Counters{224 * kMib, 224 * kMib, 193 * kMib, 193 * kMib}));
    for (const DevicePtr block : x) EXPECT_EQ(give(block, s), kSuccess);
    EXPECT_EQ(counters(q), (Counters{224 * kMib, 224 * kMib, kMib, 193 * kMib}));
  }
  StreamHandle s, o;
  PoolHandle q;
  DevicePtr y;
};

TEST_F(PoolGiveBack, only_waits_that_see_the_free_shrink_the_pool) {
  prepare(0);
  pause();
  EXPECT_EQ(query(s), kSuccess);
  EXPECT_EQ(reserved(q), 224 * kMib);
  EXPECT_EQ(sync(o), kSuccess);
  EXPECT_EQ(reserved(q), 224 * kMib);
  EXPECT_EQ(create(2 * kMib), kSuccess);
  MemAlloc plain;
  plain.size = 4096;
  EXPECT_EQ(run(plain), kSuccess);
  EXPECT_EQ(free_plain(plain.ptr), kSuccess);
  EXPECT_EQ(reserved(q), 224 * kMib);
  EXPECT_EQ(taken(), 226 * kMib);
  EXPECT_EQ(sync(s), kSuccess);
  EXPECT_EQ(reserved(q), 32 * kMib);
  EXPECT_EQ(taken(), 34 * kMib);
}

TEST_F(PoolGiveBack, a_wait_for_the_context_does) {
  prepare(0);
  EXPECT_EQ(sync(), kSuccess);
  EXPECT_EQ(counters(q), (Counters{32 * kMib, 224 * kMib, kMib, 193 * kMib}));
}

TEST_F(PoolGiveBack, a_wait_for_an_event_behind_the_free_does) {
  prepare(0);
  const EventHandle e = record(s);
  EXPECT_EQ(sync(e), kSuccess);
  EXPECT_EQ(reserved(q), 32 * kMib);
}

TEST_F(PoolGiveBack, the_threshold_rounds_down) {
  prepare(100 * kMib);
  pause();
  EXPECT_EQ(sync(s), kSuccess);
  EXPECT_EQ(reserved(q), 96 * kMib);
  EXPECT_EQ(give(y, o), kSuccess);
}

TEST_F(PoolTest, an_event_before_the_free_gives_nothing_back) {
  const StreamHandle s = stream();
  const PoolHandle q = pool();
  const DevicePtr x = ask(64 * kMib, q, s);
  const EventHandle e = record(s);
  EXPECT_EQ(give(x, s), kSuccess);
  EXPECT_EQ(sync(e), kSuccess);
  EXPECT_EQ(reserved(q), 64 * kMib);
}

TEST_F(PoolTest, a_trim_rounds_up_and_waits_for_nothing) {
  const std::pair<std::uint64_t, std::uint64_t> rows[] = {
      {0, 0},          {1, 32},           {kMib, 32},        {32 * kMib, 32},  {33 * kMib, 64},
      {64 * kMib, 64}, {100 * kMib, 128}, {128 * kMib, 128}, {500 * kMib, 128}};
  for (const auto& [keep, left] : rows) {
    const StreamHandle s = stream();
    const PoolHandle q = pool(kMax);
    DevicePtr x[4];
    for (DevicePtr& block : x) block = ask(32 * kMib, q, s);
    hold(s);
    for (const DevicePtr block : x) EXPECT_EQ(give(block, s), kSuccess);
    EXPECT_EQ(trim(q, keep), kSuccess);
    EXPECT_EQ(reserved(q), 128 * kMib);
    release(s);
    EXPECT_EQ(sync(s), kSuccess);
    EXPECT_EQ(trim(q, keep), kSuccess);
    EXPECT_EQ(reserved(q), left * kMib) << keep;
    EXPECT_EQ(drop(q), kSuccess);
  }
}

TEST_F(PoolTest, two_survivors_hold_their_pieces) {
  const StreamHandle s = stream();
  const PoolHandle q = pool(kMax);
  DevicePtr x[64];
  for (DevicePtr& block : x) block = ask(kMib, q, s);
  for (int i = 0; i < 64; ++i) {
    if (i % 32 == 0) continue;
    EXPECT_EQ(give(x[i], s), kSuccess);
  }
  EXPECT_EQ(sync(s), kSuccess);
  EXPECT_EQ(trim(q, 0), kSuccess);
  EXPECT_EQ(counters(q), (Counters{64 * kMib, 64 * kMib, 2 * kMib, 64 * kMib}));
}

TEST_F(PoolTest, watermarks_fall_only_to_the_present_value) {
  const StreamHandle s = stream();
  const PoolHandle q = pool();
  const DevicePtr x = ask(64 * kMib, q, s);
  EXPECT_EQ(give(x, s), kSuccess);
  EXPECT_EQ(sync(s), kSuccess);
  EXPECT_EQ(counters(q), (Counters{0, 64 * kMib, 0, 64 * kMib}));
  EXPECT_EQ(set(q, PoolAttribute::kReservedMemHigh, 0), kSuccess);
  EXPECT_EQ(set(q, PoolAttribute::kUsedMemHigh, 0), kSuccess);
  EXPECT_EQ(counters(q), (Counters{0, 0, 0, 0}));
  ask(kMib, q, s);
  EXPECT_EQ(counters(q), (Counters{32 * kMib, 32 * kMib, kMib, kMib}));
}

TEST_F(PoolTest, the_default_pool_gives_back_at_a_wait_for_the_null_stream) {
  const PoolHandle d = default_pool();
  DevicePtr a;
  EXPECT_EQ(ask_default(64 * kMib, StreamHandle{}, a), kSuccess);
  EXPECT_EQ(give(a, StreamHandle{}), kSuccess);
  EXPECT_EQ(counters(d), (Counters{64 * kMib, 64 * kMib, 0, 64 * kMib}));
  EXPECT_EQ(sync(StreamHandle{}), kSuccess);
  EXPECT_EQ(counters(d), (Counters{0, 64 * kMib, 0, 64 * kMib}));
}

TEST_F(PoolTest, destroying_a_stream_that_is_done_counts_as_seeing_it) {
  const StreamHandle s = stream();
  const PoolHandle q = pool();
  const DevicePtr x = ask(64 * kMib, q, s);
  EXPECT_EQ(give(x, s), kSuccess);
  pause();
  EXPECT_EQ(reserved(q), 64 * kMib);
  EXPECT_EQ(destroy(s), kSuccess);
  EXPECT_EQ(reserved(q), 0u);
}

TEST_F(PoolTest, a_destroyed_pool_keeps_its_live_blocks) {
  const StreamHandle s = stream();
  const PoolHandle q = pool(kMax);
  const DevicePtr x = ask(64 * kMib, q, s);
  EXPECT_EQ(sync(s), kSuccess);
  EXPECT_EQ(drop(q), kSuccess);
  EXPECT_EQ(taken(), 64 * kMib);
  EXPECT_EQ(fill(x, 64 * kMib, s), kSuccess);
  EXPECT_EQ(sync(s), kSuccess);
  EXPECT_EQ(give(x, s), kSuccess);
  EXPECT_EQ(taken(), 64 * kMib);
  EXPECT_EQ(sync(s), kSuccess);
  EXPECT_EQ(taken(), 0u);
}

TEST_F(PoolTest, a_pool_destroyed_with_a_free_pending_gives_back_at_the_wait) {
  const StreamHandle s = stream();
  const PoolHandle q = pool(kMax);
  hold(s);
  const DevicePtr a = ask(256 * kMib, q, s);
  EXPECT_EQ(give(a, s), kSuccess);
  EXPECT_EQ(drop(q), kSuccess);
  MemPoolGetAttribute dead;
  dead.pool = q;
  EXPECT_EQ(run(dead), kInvalidValue);
  EXPECT_EQ(taken(), 256 * kMib);
  release(s);
  pause();
  EXPECT_EQ(taken(), 256 * kMib);
  EXPECT_EQ(sync(s), kSuccess);
  EXPECT_EQ(taken(), 0u);
}

}  // namespace
}  // namespace granule::model
