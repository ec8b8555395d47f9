// Pools that grow: their idle pieces move first, and what a request finds out about frees on its
// way. Each sequence was run on an H200 (driver 580.159), with these figures.
#include "pool_fixture.hpp"

namespace granule::model {
namespace {

class PoolMove : public PoolTest {
 protected:
  PoolMove() {
    s = stream();
    t = stream();
  }
  StreamHandle s, t;
};

// 65 MiB freed at the start of the window, 1 MiB live behind them: 96 MiB in three pieces.
class PoolGrowth : public PoolMove, public ::testing::WithParamInterface<bool> {
 protected:
  PoolGrowth() {
    q = pool(kMax);
    switches(q, true, GetParam(), true);
    const DevicePtr a = ask(65 * kMib, q, s);
    ask(kMib, q, s);
    EXPECT_EQ(reserved(q), 96 * kMib);
    freed = a;
  }
  PoolHandle q;
  DevicePtr freed;
};

TEST_P(PoolGrowth, moves_pieces_whose_frees_were_observed) {
  give(freed, s);
  EXPECT_EQ(sync(s), kSuccess);
  ask(100 * kMib, q, s);
  EXPECT_EQ(reserved(q), 128 * kMib);
}

TEST_P(PoolGrowth, moves_pieces_whose_frees_have_run_with_opportunistic_reuse_only) {
  give(freed, s);
  pause();
  ask(100 * kMib, q, t);
  EXPECT_EQ(reserved(q), GetParam() ? 128 * kMib : 192 * kMib);
}

TEST_P(PoolGrowth, on_the_freeing_stream_it_is_the_same) {
  give(freed, s);
  pause();
  ask(100 * kMib, q, s);
  EXPECT_EQ(reserved(q), GetParam() ? 128 * kMib : 192 * kMib);
}

TEST_P(PoolGrowth, moves_nothing_that_is_pending) {
  hold(s);
  give(freed, s);
  ask(100 * kMib, q, s);
  EXPECT_EQ(reserved(q), 192 * kMib);
  release(s);
}

INSTANTIATE_TEST_SUITE_P(opportunistic, PoolGrowth, ::testing::Bool());

TEST_F(PoolMove, the_rest_of_a_block_taken_from_another_stream_stays_that_streams) {
  const PoolHandle q = pool();
  give(ask(33 * kMib, q, s), s);
  pause();
  give(ask(1, q, t), t);
  EXPECT_EQ(sync(t), kSuccess);
  EXPECT_EQ(reserved(q), 64 * kMib);
  EXPECT_EQ(sync(s), kSuccess);
  EXPECT_EQ(reserved(q), 0u);
}

TEST_F(PoolMove, a_request_that_joins_runs_settles_all_that_has_run) {
  const StreamHandle u = stream();
  const PoolHandle q = pool();
  const DevicePtr low = ask(100 * kMib, q, s);
  const DevicePtr high = ask(65 * kMib, q, t);
  give(low, u);
  EXPECT_EQ(sync(u), kSuccess);
  const DevicePtr own = ask(33 * kMib, q, s);
  give(high, t);
  give(own, s);
  pause();
  EXPECT_EQ(ask(99 * kMib, q, s), low);  // its own 33 MiB and nobody's behind them
  EXPECT_EQ(sync(u), kSuccess);          // not the stream of any free that is left
  EXPECT_EQ(reserved(q), 128 * kMib);
}

TEST_F(PoolMove, a_run_of_one_streams_frees_is_taken_as_it_is) {
  const StreamHandle u = stream();
  const PoolHandle q = pool();
  const DevicePtr a = ask(64 * kMib, q, s);
  const DevicePtr b = ask(32 * kMib, q, s);
  const DevicePtr other = ask(32 * kMib, q, u);
  give(ask(1, q, t), t);
  give(a, s);
  give(b, s);
  give(other, u);
  pause();
  EXPECT_EQ(ask(80 * kMib, q, t), a);
  const std::uint64_t before = reserved(q);
  EXPECT_EQ(sync(t), kSuccess);
  EXPECT_EQ(reserved(q), before - 32 * kMib);  // the piece of the 1 byte of t
}

}  // namespace
}  // namespace granule::model
