// The bookkeeping of pools alone, with streams and device memory played by the test.
#include <gtest/gtest.h>

#include <set>

#include "pool.hpp"

namespace granule::model {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

class FakeWorld final : public PoolWorld {
 public:
  bool has_run(const StreamPoint& point) const override { return run.count(point) != 0; }
  bool follows(std::uint64_t stream, const StreamPoint& point) const override {
    return order.count({stream, point}) != 0;
  }
  bool take(const Location&, std::uint64_t bytes) override {
    if (bytes > left) return false;
    left -= bytes;
    return true;
  }
  void give(const Location&, std::uint64_t bytes) override { left += bytes; }
  std::uint64_t window_size() const override { return 16 * kGiB; }
  bool claim(const AddressRange& window) override { return windows.insert(window.base).second; }
  void unclaim(const AddressRange& window) override { windows.erase(window.base); }

  std::set<std::uint64_t> windows;
  std::set<StreamPoint> run;
  std::set<std::pair<std::uint64_t, StreamPoint>> order;
  std::uint64_t left = 8 * kGiB;
};

class PoolBook : public ::testing::Test {
 protected:
  DevicePtr ask(std::uint64_t size, std::uint64_t stream) {
    grant = pools.allocate(pool, {size, {stream, ++position}, {}}, world);
    return grant.ptr;
  }
  StreamPoint drop(DevicePtr ptr, std::uint64_t stream) {
    const StreamPoint at{stream, ++position};
    EXPECT_EQ(pools.free_ordered(ptr, at), DriverStatus::kSuccess);
    return at;
  }
  std::uint64_t reserved() { return pools.find(pool)->reserved(); }

  PoolState pools;
  FakeWorld world;
  PoolHandle pool = pools.create({}, 0, world);
  PoolGrant grant;
  std::uint64_t position = 0;
};

TEST_F(PoolBook, blocks_are_packed_at_512_bytes_and_straddle_pieces) {
  const DevicePtr a = ask(1, 1);
  const DevicePtr b = ask(31 * kMiB, 1);
  const DevicePtr c = ask(31 * kMiB, 1);
  EXPECT_EQ(b.value, a.value + 512);
  EXPECT_EQ(c.value, b.value + 31 * kMiB);
  EXPECT_EQ(reserved(), 64 * kMiB);
  EXPECT_EQ(pools.find(pool)->used, 62 * kMiB + 1);
}

TEST_F(PoolBook, neighbours_freed_on_one_stream_serve_one_request) {
  std::vector<DevicePtr> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(ask(16 * kMiB, 1));
  for (const DevicePtr block : blocks) drop(block, 1);
  EXPECT_EQ(ask(128 * kMiB + 1, 1), blocks.front());
  EXPECT_EQ(reserved(), 160 * kMiB);
}

TEST_F(PoolBook, a_pending_block_needs_a_licence) {
  const DevicePtr x = ask(64 * kMiB, 1);
  const StreamPoint freed = drop(x, 1);
  EXPECT_NE(ask(64 * kMiB, 2), x);
  world.order.insert({3, freed});
  EXPECT_EQ(ask(64 * kMiB, 3), x);
  EXPECT_TRUE(grant.waits.empty());
}

TEST_F(PoolBook, a_full_device_hands_out_a_pending_block_with_a_wait) {
  pools.set_attribute(pool, PoolAttribute::kReleaseThreshold, UINT64_MAX);
  world.left = 96 * kMiB;
  const DevicePtr x = ask(64 * kMiB, 1);
  const StreamPoint freed = drop(x, 1);
  EXPECT_EQ(ask(64 * kMiB, 2), x);
  EXPECT_EQ(grant.waits, std::vector<StreamPoint>{freed});
  EXPECT_EQ(reserved(), 96 * kMiB);
}

TEST_F(PoolBook, a_refused_request_hoards_under_a_high_threshold_only) {
  ask(9 * kGiB, 1);
  EXPECT_EQ(grant.status, DriverStatus::kOutOfMemory);
  EXPECT_EQ(reserved(), 0u);
  EXPECT_EQ(pools.find(pool)->reserved_high, 8 * kGiB);
  pools.set_attribute(pool, PoolAttribute::kReleaseThreshold, UINT64_MAX);
  ask(9 * kGiB, 1);
  EXPECT_EQ(reserved(), 8 * kGiB);
  pools.set_attribute(pool, PoolAttribute::kReleaseThreshold, 0);
  pools.observed(2, 100, world);
  EXPECT_EQ(reserved(), 8 * kGiB);
  pools.observed(1, 100, world);
  EXPECT_EQ(reserved(), 0u);
  EXPECT_EQ(world.left, 8 * kGiB);
}

TEST_F(PoolBook, thresholds_round_down_and_trims_round_up) {
  const DevicePtr x = ask(224 * kMiB, 1);
  drop(x, 1);
  pools.set_attribute(pool, PoolAttribute::kReleaseThreshold, 100 * kMiB);
  pools.observed(1, position, world);
  EXPECT_EQ(reserved(), 96 * kMiB);
  pools.trim(pool, 33 * kMiB, world);
  EXPECT_EQ(reserved(), 64 * kMiB);
}

TEST_F(PoolBook, a_destroyed_pool_lives_until_its_last_block_is_seen_free) {
  const DevicePtr x = ask(64 * kMiB, 1);
  EXPECT_EQ(pools.destroy(pool, world), DriverStatus::kSuccess);
  EXPECT_EQ(pools.find(pool), nullptr);
  const StreamPoint freed = drop(x, 1);
  EXPECT_EQ(world.left, 8 * kGiB - 64 * kMiB);
  pools.observed(1, freed.position, world);
  EXPECT_EQ(world.left, 8 * kGiB);
  EXPECT_TRUE(pools.pools().empty());
}

TEST_F(PoolBook, span_sets_merge_and_split) {
  SpanSet set;
  set.insert({0, 10});
  set.insert({20, 30});
  set.insert({10, 20});
  EXPECT_EQ(set.spans().size(), 1u);
  set.erase({5, 25});
  EXPECT_EQ(set.total(), 10u);
  EXPECT_EQ(set.missing({0, 30}), (std::vector<Span>{{5, 25}}));
  set.insert({4, 26});
  EXPECT_EQ(set.total(), 30u);
  EXPECT_EQ(set.spans().size(), 1u);
}

}  // namespace
}  // namespace granule::model
