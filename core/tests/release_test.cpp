// Uses, markers and lists at the edges: what is asked twice, kept, shared or handed back.
#include <gtest/gtest.h>

#include <granule/pool.hpp>
#include "core_fixture.hpp"

namespace granule {
namespace {

class ReleaseTest : public CoreTest {
 protected:
  std::optional<DriverStatus> answer(Call& call) override {
    if (auto* create = std::get_if<MemPoolCreate>(&call)) create->pool = PoolHandle{5};
    if (auto* plain = std::get_if<MemAlloc>(&call)) plain->ptr = DevicePtr{next += 4096};
    if (auto* block = std::get_if<MemAllocFromPoolAsync>(&call))
      block->ptr = DevicePtr{next += 4096};
    return CoreTest::answer(call);
  }
  VirtualMemoryResource resource(FreePolicy free = FreePolicy::kSynchronize,
                                 std::uint64_t cache = 0) {
    return CoreTest::resource(free, cache);
  }
  std::uint64_t next = 1 << 20;
};

TEST_F(ReleaseTest, ClearOfAWarmRangeThatIsRefusedLeavesItIdle) {
  auto r = resource(FreePolicy::kSynchronize, 8 * kG);
  EXPECT_TRUE(r.allocate(stream, kG).value().close().ok());
  driver.fail<MemsetD8Async>(DriverStatus::kUnknown);
  EXPECT_FALSE(r.allocate(stream, kG, {.zero = true}).ok());
  EXPECT_EQ(r.statistics().cached, kG);
  EXPECT_TRUE(r.allocate(stream, kG, {.zero = true}).ok());
}

TEST_F(ReleaseTest, OrderThatWasRefusedLeavesNoMarkerBehind) {
  auto r = resource(FreePolicy::kSynchronize, 8 * kG);
  EXPECT_TRUE(r.allocate(stream, kG).value().close().ok());
  driver.fail<StreamWaitEvent>(DriverStatus::kUnknown);
  Buffer fresh = r.allocate(other, kG).value();
  const std::size_t before = driver.log.size();
  Buffer warm = r.allocate(stream, kG).value();
  EXPECT_EQ(driver.calls(before), "StreamIsCapturing") << "ordered by its own stream";
}

TEST_F(ReleaseTest, MarkersAreSetOnAllStreamsOrOnNone) {
  auto r = resource(FreePolicy::kDeferred);
  Buffer a = r.allocate(stream, kG).value();
  EXPECT_TRUE(a.used_on(other).ok());
  EXPECT_TRUE(a.used_on(third).ok());
  driver.fail<EventRecord>(DriverStatus::kUnknown, 3);
  EXPECT_FALSE(a.close().ok());
  EXPECT_TRUE(a.close().ok());
  EXPECT_EQ(driver.count<EventRecord>(), 6u) << "work may have been queued in between";
}

TEST_F(ReleaseTest, MarkerThatIsReachedIsNotAskedAgain) {
  auto r = resource(FreePolicy::kDeferred);
  Buffer a = r.allocate(stream, kG).value();
  EXPECT_TRUE(a.used_on(other).ok());
  EXPECT_TRUE(a.close().ok());
  driver.fail<EventQuery>(DriverStatus::kNotReady, 2);
  EXPECT_EQ(r.collect().pending, 1u);
  EXPECT_EQ(driver.count<EventQuery>(), 2u);
  EXPECT_EQ(r.collect().ranges, 1u);
  EXPECT_EQ(driver.count<EventQuery>(), 3u);
}

TEST_F(ReleaseTest, QuestionThatFailsLeavesTheRangePending) {
  auto r = resource(FreePolicy::kDeferred);
  EXPECT_TRUE(r.allocate(stream, kG).value().close().ok());
  driver.fail<EventQuery>(DriverStatus::kUnknown);
  EXPECT_EQ(r.collect().pending, 1u);
  EXPECT_TRUE(sink.reports.empty());
  EXPECT_EQ(r.collect().ranges, 1u);
}

TEST_F(ReleaseTest, StreamThatIsUsedAfterItWasForgottenIsAFurtherUse) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  EXPECT_TRUE(r.forget(stream).ok());
  EXPECT_TRUE(a.used_on(stream).ok());
  EXPECT_TRUE(a.used_on(other).ok());
  EXPECT_TRUE(r.forget(other).ok());
  EXPECT_TRUE(a.used_on(other).ok());
  EXPECT_TRUE(a.close().ok());
  EXPECT_EQ(driver.count<EventSynchronize>(), 2u);
  EXPECT_EQ(driver.count<StreamSynchronize>(), 2u);
}

TEST_F(ReleaseTest, ParkedCloseHandsTheFormerMarkerBack) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  EXPECT_TRUE(r.forget(stream).ok());
  disturbed = true;
  EXPECT_TRUE(a.close(Stream::legacy({0})).ok());
  EXPECT_EQ(r.statistics().parked, kG);
  disturbed = false;
  Buffer b = r.allocate(other, kG).value();
  EXPECT_EQ(r.statistics().parked, 0u);
  EXPECT_TRUE(r.forget(other).ok());
  EXPECT_TRUE(b.close().ok());
  EXPECT_EQ(driver.count<EventCreate>(), 1u) << "it was free again each time";
}

TEST_F(ReleaseTest, IdleCloseHandsTheFormerMarkerBack) {
  auto r = resource(FreePolicy::kSynchronize, 8 * kG);
  Buffer a = r.allocate(stream, kG).value();
  EXPECT_TRUE(r.forget(stream).ok());
  EXPECT_TRUE(a.close(other).ok());
  Buffer b = r.allocate(third, 2 * kG).value();
  EXPECT_TRUE(r.forget(third).ok());
  EXPECT_EQ(driver.count<EventCreate>(), 1u);
}

TEST_F(ReleaseTest, EveryOperationReapsAFewRangesThatAreDone) {
  const auto reaps = [&](auto&& operation) {
    auto r = resource(FreePolicy::kDeferred);
    Buffer a = r.allocate(stream, 4 * kG, {.capacity = 8 * kG}).value();
    driver.fail<EventQuery>(DriverStatus::kNotReady, 1, 9999);
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(r.allocate(stream, kG).value().close().ok());
    driver.lift();
    ASSERT_EQ(r.statistics().retired, 10 * kG);
    operation(r, a);
    EXPECT_EQ(r.statistics().retired, 2 * kG);
  };
  reaps([](auto&, Buffer& a) { EXPECT_TRUE(a.could_extend().ok()); });
  reaps([](auto&, Buffer& a) { EXPECT_TRUE(a.resize(5 * kG).ok()); });
  std::vector<Buffer> kept;
  reaps([&](auto&, Buffer& a) { kept.push_back(a.grow(5 * kG).value().buffer); });
  reaps([&](auto& r, Buffer&) { kept.push_back(r.allocate(stream, kG).value()); });
  AllocateOptions at;
  at.at = DevicePtr{std::uint64_t{1} << 40};
  reaps([&](auto& r, Buffer&) { kept.push_back(r.allocate(stream, kG, at).value()); });
}

TEST_F(ReleaseTest, ResourceThatEndsGivesParkedRangesBackIfTheCapturesHaveEnded) {
  {
    auto r = resource();
    {
      Buffer a = r.allocate(stream, kG).value();
      Buffer b = r.allocate(stream, kG).value();
      capturing = stream.handle();
    }
    EXPECT_EQ(r.statistics().parked, 2 * kG);
    capturing = {};
    sink.reports.clear();
  }
  EXPECT_TRUE(sink.reports.empty());
  EXPECT_EQ(driver.count<MemAddressFree>(), 2u);
}

TEST_F(ReleaseTest, ResourceThatEndsWaitsForPendingFrees) {
  {
    auto r = resource(FreePolicy::kDeferred);
    driver.fail<EventQuery>(DriverStatus::kNotReady, 1, 99);
    EXPECT_TRUE(r.allocate(stream, kG).value().close().ok());
    EXPECT_TRUE(r.allocate(stream, kG).value().close().ok());
  }
  EXPECT_EQ(driver.count<EventSynchronize>(), 2u);
  EXPECT_EQ(driver.count<MemAddressFree>(), 2u);
  EXPECT_EQ(driver.count<EventDestroy>(), driver.count<EventCreate>());
}

TEST_F(ReleaseTest, TryExtendNeverMoves) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  EXPECT_EQ(a.try_extend(2 * kG).value().placement, Placement::kKept);
  Buffer behind = r.allocate(stream, kG).value();
  const Error error = a.try_extend(4 * kG).status().error();
  EXPECT_EQ(error.code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(error.exhausted, Exhausted::kAddresses);
  EXPECT_EQ(error.wanted, 2 * kG);
  EXPECT_EQ(a.size(), 2 * kG);
  EXPECT_TRUE(a.close().ok());
  EXPECT_EQ(a.try_extend(kG).status().error().code, ErrorCode::kClosed);
}

TEST_F(ReleaseTest, IdleRangeThatACaptureHoldsIsNoRoom) {
  auto r = resource(FreePolicy::kSynchronize, 8 * kG);
  EXPECT_TRUE(r.allocate(stream, 2 * kG).value().close().ok());
  capturing = stream.handle();
  driver.fail<MemCreate>(DriverStatus::kOutOfMemory, 1, 9);
  const Error error = r.allocate(other, kG).status().error();
  EXPECT_EQ(error.exhausted, Exhausted::kPending);
  EXPECT_EQ(error.available, 2 * kG);
  EXPECT_NE(error.detail.find("capture"), std::string_view::npos);
  EXPECT_TRUE(sink.reports.empty());
  EXPECT_EQ(r.allocate(other, 3 * kG).status().error().exhausted, Exhausted::kDevice);
  capturing = {};
}

TEST_F(ReleaseTest, RecyclersMarkerIsSharedByItsBlocks) {
  RecyclingPool pool = RecyclingPool::create(driver, {}, environment).value();
  PoolBuffer a = pool.allocate(stream, 100).value();
  PoolBuffer b = pool.allocate(other, 200).value();
  EXPECT_TRUE(pool.forget(stream).ok());
  EXPECT_TRUE(pool.forget(other).ok());
  EXPECT_EQ(driver.count<EventCreate>(), 2u) << "the first one is still in use";
  EXPECT_TRUE(a.close().ok());
  EXPECT_TRUE(b.close().ok());
}

TEST_F(ReleaseTest, RecyclersBlockOfAStreamThatDiedIsDone) {
  RecyclingPool pool = RecyclingPool::create(driver, {}, environment).value();
  PoolBuffer a = pool.allocate(stream, 100).value();
  driver.fail<EventRecord>(DriverStatus::kLaunchFailed);
  EXPECT_TRUE(pool.forget(stream).ok());
  EXPECT_TRUE(a.close().ok());
  PoolBuffer b = pool.allocate(other, 100).value();
  EXPECT_EQ(driver.count<MemAlloc>(), 1u);
  EXPECT_EQ(driver.count<EventQuery>(), 0u);
}

TEST_F(ReleaseTest, RawBlockIsNotFreedInACapture) {
  StreamOrderedPool pool = StreamOrderedPool::create(driver, {}, environment).value();
  const DevicePtr block = pool.allocate_raw(stream, 100).value();
  capturing = stream.handle();
  EXPECT_EQ(pool.free(stream, block).error().code, ErrorCode::kCapturing);
  EXPECT_EQ(pool.allocate_raw(stream, 100).status().error().code, ErrorCode::kCapturing);
  EXPECT_EQ(driver.count<MemFreeAsync>(), 0u);
  capturing = {};
  EXPECT_TRUE(pool.free(stream, block).ok());
  EXPECT_EQ(driver.count<MemFreeAsync>(), 1u);
}

}  // namespace
}  // namespace granule
