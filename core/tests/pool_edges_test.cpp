// Pools at the edges: blocks of streams that are gone or capture, the last byte, and the end.
#include <gtest/gtest.h>

#include <granule/pool.hpp>

#include "core_fixture.hpp"

namespace granule {
namespace {

class PoolEdgesTest : public CoreTest {
 protected:
  std::optional<DriverStatus> answer(Call& call) override {
    if (auto* plain = std::get_if<MemAlloc>(&call)) plain->ptr = DevicePtr{next += 4096};
    if (auto* block = std::get_if<MemAllocFromPoolAsync>(&call))
      block->ptr = DevicePtr{next += 4096};
    if (auto* create = std::get_if<MemPoolCreate>(&call)) create->pool = PoolHandle{5};
    return CoreTest::answer(call);
  }
  StreamOrderedPool ordered(const PoolOptions& options = {}) {
    return StreamOrderedPool::create(driver, options, environment).value();
  }
  RecyclingPool recycler(std::uint64_t limit = kNoLimit) {
    return RecyclingPool::create(driver, {{0}, limit}, environment).value();
  }
  std::uint64_t next = 1 << 20;
};

TEST_F(PoolEdgesTest, MarkerThatACloseOnAnotherStreamReplacesComesBack) {
  {
    StreamOrderedPool pool = ordered();
    PoolBuffer block = pool.allocate(stream, 100).value();
    EXPECT_TRUE(pool.forget(stream).ok());
    EXPECT_TRUE(block.close(other).ok());
    EXPECT_EQ(driver.last<MemFreeAsync>().stream, other.handle());
    EXPECT_EQ(driver.count<StreamWaitEvent>(), 0u) << "the caller has seen to the order";
  }
  EXPECT_EQ(driver.count<EventCreate>(), 1u);
  EXPECT_EQ(driver.count<EventDestroy>(), 1u);
}

TEST_F(PoolEdgesTest, PoolThatEndsFreesParkedBlocksWhoseCaptureHasEnded) {
  {
    StreamOrderedPool pool = ordered();
    PoolBuffer block = pool.allocate(stream, 100).value();
    capturing = stream.handle();
    block = PoolBuffer();
    capturing = {};
    sink.reports.clear();
  }
  EXPECT_EQ(driver.count<MemFreeAsync>(), 1u);
  EXPECT_TRUE(sink.reports.empty());
}

TEST_F(PoolEdgesTest, RecyclerReusesAParkedBlockOnceItsCaptureHasEnded) {
  RecyclingPool pool = recycler();
  PoolBuffer block = pool.allocate(stream, 100).value();
  const DevicePtr ptr = block.ptr();
  capturing = stream.handle();
  block = PoolBuffer();
  EXPECT_EQ(pool.cached(), 0u);
  capturing = {};
  EXPECT_EQ(pool.allocate(stream, 100).value().ptr(), ptr);
}

TEST_F(PoolEdgesTest, StickyErrorOfAnotherDeviceDoesNotKeepABlock) {
  RecyclingPool pool = recycler();
  EXPECT_TRUE(pool.allocate(Stream::legacy({1}), 100).value().close().ok());
  driver.fail<StreamSynchronize>(DriverStatus::kUnknown);
  EXPECT_FALSE(pool.trim(0).ok());
  EXPECT_EQ(pool.cached(), 100u) << "its work may still run";
  driver.lift();
  driver.fail<StreamSynchronize>(DriverStatus::kLaunchFailed);
  EXPECT_TRUE(pool.trim(0).ok());
  EXPECT_EQ(driver.count<MemFree>(), 1u);
}

TEST_F(PoolEdgesTest, NewStreamOfAnOldHandleWaitsForTheOldOnesWork) {
  RecyclingPool pool = recycler();
  EXPECT_TRUE(pool.allocate(stream, 100).value().close().ok());
  EXPECT_TRUE(pool.forget(stream).ok());
  const Stream same = Stream::bind(driver, stream.handle()).value();
  driver.fail<EventQuery>(DriverStatus::kNotReady);
  PoolBuffer fresh = pool.allocate(same, 100).value();
  EXPECT_EQ(driver.count<MemAlloc>(), 2u);
}

TEST_F(PoolEdgesTest, BlockOfAnotherStreamIsNotTakenInDoubt) {
  RecyclingPool pool = recycler();
  EXPECT_TRUE(pool.allocate(stream, 100).value().close().ok());
  std::vector<PoolBuffer> fresh;
  capturing = stream.handle();
  fresh.push_back(pool.allocate(other, 100).value());
  EXPECT_EQ(driver.count<EventRecord>(), 0u) << "no event on a stream that captures";
  capturing = {};
  driver.fail<ThreadExchangeStreamCaptureMode>(DriverStatus::kUnknown);
  fresh.push_back(pool.allocate(other, 100).value());
  EXPECT_EQ(driver.count<EventRecord>(), 0u) << "nor beside one, unless in relaxed mode";
  driver.fail<EventQuery>(DriverStatus::kUnknown);
  fresh.push_back(pool.allocate(other, 100).value());
  EXPECT_EQ(driver.count<EventQuery>(), 1u);
  EXPECT_EQ(driver.count<MemAlloc>(), 4u);
}

TEST_F(PoolEdgesTest, EveryIdleByteMakesRoomAndIsFreedAtTheEnd) {
  {
    RecyclingPool pool = recycler(2);
    EXPECT_TRUE(pool.allocate(stream, 1).value().close().ok());
    EXPECT_TRUE(pool.allocate(stream, 2).ok());
    EXPECT_TRUE(pool.trim(0).ok());
    EXPECT_TRUE(pool.allocate(stream, 1).value().close().ok());
  }
  EXPECT_EQ(driver.count<MemFree>(), 3u);
  EXPECT_TRUE(sink.reports.empty());
}

TEST_F(PoolEdgesTest, WithoutASizeOfTheDeviceAnyRequestIsTried) {
  driver.fail<DeviceTotalMem>(DriverStatus::kUnknown, 1, 2);
  StreamOrderedPool pool = ordered();
  EXPECT_TRUE(pool.allocate(stream, 100).ok());
  EXPECT_TRUE(recycler().allocate(stream, 100).ok());
}

TEST_F(PoolEdgesTest, HopelessRequestIsWantOfMemory) {
  StreamOrderedPool pool = ordered();
  EXPECT_EQ(pool.allocate(stream, (1ull << 40) + 1).status().error().code, ErrorCode::kOutOfMemory);
  const Error error = recycler().allocate(stream, (1ull << 40) + 1).status().error();
  EXPECT_EQ(error.code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(error.exhausted, Exhausted::kDevice);
  EXPECT_EQ(error.wanted, (1ull << 40) + 1);
  EXPECT_EQ(error.available, 1ull << 40);
  EXPECT_TRUE(recycler().allocate(stream, 1ull << 40).ok()) << "all of it may be asked for";
}

TEST_F(PoolEdgesTest, BothHighsAreSetToNothing) {
  StreamOrderedPool pool = ordered();
  const std::size_t before = driver.log.size();
  EXPECT_TRUE(pool.reset_high().ok());
  std::vector<PoolAttribute> set;
  for (std::size_t i = before; i < driver.log.size(); ++i)
    if (const auto* call = std::get_if<MemPoolSetAttribute>(&driver.log[i])) {
      EXPECT_EQ(call->value, 0u);
      set.push_back(call->attribute);
    }
  EXPECT_EQ(set, (std::vector<PoolAttribute>{PoolAttribute::kReservedMemHigh,
                                             PoolAttribute::kUsedMemHigh}));
}

TEST_F(PoolEdgesTest, WhatFailsAtTheEndIsReportedWithoutASize) {
  {
    StreamOrderedPool pool = ordered({{1}, false, 0, 0});
    EXPECT_TRUE(pool.set_peer_access({0}, Access::kReadWrite).ok());
    driver.fail<MemPoolDestroy>(DriverStatus::kUnknown);
  }
  ASSERT_EQ(sink.reports.size(), 1u) << "every peer was taken away, and nothing else";
  EXPECT_EQ(sink.reports[0].kind, FailureKind::kReleaseFailed);
  EXPECT_EQ(sink.reports[0].size, 0u);
  EXPECT_EQ(driver.count<MemPoolSetAccess>(), 2u);
}

TEST_F(PoolEdgesTest, BlockOfAStreamThatDiedIsFreedBehindNothing) {
  StreamOrderedPool pool = ordered();
  PoolBuffer block = pool.allocate(stream, 100).value();
  driver.fail<EventRecord>(DriverStatus::kLaunchFailed);
  EXPECT_TRUE(pool.forget(stream).ok());
  EXPECT_TRUE(block.close().ok());
  EXPECT_EQ(driver.count<StreamWaitEvent>(), 0u) << "there is nothing to be behind";
  EXPECT_EQ(driver.last<MemFreeAsync>().stream, kLegacyStream);
}

TEST_F(PoolEdgesTest, MarkerStandsForAStreamThatCapturesByNow) {
  RecyclingPool pool = recycler();
  EXPECT_TRUE(pool.allocate(stream, 100).value().close().ok());
  driver.fail<EventQuery>(DriverStatus::kNotReady);
  PoolBuffer fresh = pool.allocate(other, 100).value();
  capturing = stream.handle();
  PoolBuffer warm = pool.allocate(other, 100).value();
  EXPECT_EQ(driver.count<MemAlloc>(), 2u) << "its work before the capture is done";
  capturing = {};
}

TEST_F(PoolEdgesTest, ParkedBlockThatStaysIsNotCounted) {
  StreamOrderedPool pool = ordered();
  PoolBuffer block = pool.allocate(stream, 100).value();
  capturing = stream.handle();
  block = PoolBuffer();
  const CollectResult none = pool.collect();
  EXPECT_EQ(none.ranges, 0u);
  EXPECT_EQ(none.pending, 1u);
  capturing = {};
  EXPECT_EQ(pool.collect().ranges, 1u);
}

TEST_F(PoolEdgesTest, FreeWhoseContextCannotBeEnteredWasNotTried) {
  StreamOrderedPool pool = ordered();
  PoolBuffer block = pool.allocate(Stream::legacy({0}), 100).value();
  driver.fail<CtxPushCurrent>(DriverStatus::kUnknown, 2);  // the first asks for captures
  EXPECT_EQ(block.close().error().call, name_of(kind_of<CtxPushCurrent>));
  EXPECT_FALSE(block.is_closed());
  EXPECT_TRUE(sink.reports.empty());
  EXPECT_TRUE(block.close().ok());
}

}  // namespace
}  // namespace granule
