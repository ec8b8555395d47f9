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

/// Free and live bytes tile the window; live bytes and tagged ones are backed; memory adds up.
void expect_consistent(const PoolState& pools, const FakeWorld& world, std::uint64_t total) {
  std::uint64_t reserved = 0;
  for (const auto& [handle, pool] : pools.pools()) {
    std::map<std::uint64_t, std::uint64_t> tiles;
    for (const auto& [begin, extent] : pool.free.extents()) {
      tiles[begin] = extent.end;
      if (extent.freed) {
        EXPECT_TRUE(pool.backed.contains({begin, extent.end}));
      }
    }
    for (const auto& [begin, block] : pool.live) {
      EXPECT_EQ(tiles.count(begin), 0u);
      tiles[begin] = begin + block.span;
      EXPECT_TRUE(pool.backed.contains({begin, begin + block.span}));
    }
    std::uint64_t at = 0;
    for (const auto& [begin, end] : tiles) {
      EXPECT_EQ(begin, at);
      at = end;
    }
    EXPECT_EQ(at, pool.window.size);
    EXPECT_LE(pool.reserved(), pool.limit());
    EXPECT_LE(pool.reserved(), pool.reserved_high);
    EXPECT_EQ(pool.reserved() % kPoolPiece, 0u);
    reserved += pool.reserved();
  }
  EXPECT_EQ(world.left + reserved, total);
}

TEST_F(PoolBook, any_sequence_of_calls_keeps_the_books_straight) {
  std::uint64_t random = 7;
  const auto roll = [&](std::uint64_t below) {
    random = random * 6364136223846793005ull + 1442695040888963407ull;
    return (random >> 33) % below;
  };
  world.left = kGiB;
  std::vector<PoolHandle> handles{pool, pools.create({}, 100 * kMiB, world)};
  std::vector<DevicePtr> blocks;
  std::vector<StreamPoint> frees;
  for (int i = 0; i < 4000; ++i) {
    const std::uint64_t stream = roll(3);
    switch (roll(8)) {
      case 0:
      case 1:
      case 2: {
        pool = handles[roll(2)];
        const PoolPlacement place{
            roll(2) != 0 ? PoolPlacement::Kind::kPick : PoolPlacement::Kind::kLowest, roll(100)};
        const std::uint64_t size = 1 + roll(roll(2) != 0 ? 4096 : 200 * kMiB);
        grant = pools.allocate(pool, {size, {stream, ++position}, place}, world);
        if (grant.ptr) blocks.push_back(grant.ptr);
        break;
      }
      case 3:
      case 4: {
        if (blocks.empty()) break;
        const auto which = static_cast<std::ptrdiff_t>(roll(blocks.size()));
        const DevicePtr ptr = blocks[static_cast<std::size_t>(which)];
        blocks.erase(blocks.begin() + which);
        if (roll(8) == 0) {
          EXPECT_EQ(pools.free_now(ptr, world), DriverStatus::kSuccess);
        } else {
          frees.push_back(drop(ptr, stream));
        }
        break;
      }
      case 5:
        for (const StreamPoint& point : frees)
          if (roll(2) != 0) world.run.insert(point);
        pools.observed(stream, position, world);
        break;
      case 6:
        pools.set_attribute(handles[roll(2)], PoolAttribute::kReleaseThreshold, roll(300) * kMiB);
        pools.trim(handles[roll(2)], roll(200 * kMiB), world);
        break;
      default: {
        if (roll(8) == 0) pools.release_idle({}, world);
        if (roll(40) != 0) break;
        const std::uint64_t which = roll(2);
        EXPECT_EQ(pools.destroy(handles[which], world), DriverStatus::kSuccess);
        handles[which] = pools.create({}, which == 0 ? 0 : 100 * kMiB, world);
      }
    }
    expect_consistent(pools, world, kGiB);
    if (HasFailure()) FAIL() << "after step " << i;
  }
  for (const DevicePtr ptr : blocks) drop(ptr, 1);
  for (std::uint64_t stream = 0; stream <= 2; ++stream) pools.observed(stream, position, world);
  pools.release_idle({}, world);
  EXPECT_EQ(world.left, kGiB);
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
