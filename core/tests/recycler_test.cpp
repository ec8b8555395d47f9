// The recycling pool, and what both pools do with blocks whose stream captures or is gone.
#include <gtest/gtest.h>

#include <granule/pool.hpp>

#include "core_fixture.hpp"

namespace granule {
namespace {

class RecyclerTest : public CoreTest {
 protected:
  std::optional<DriverStatus> answer(Call& call) override {
    if (auto* plain = std::get_if<MemAlloc>(&call)) plain->ptr = DevicePtr{next += 4096};
    if (auto* block = std::get_if<MemAllocFromPoolAsync>(&call))
      block->ptr = DevicePtr{next += 4096};
    if (auto* create = std::get_if<MemPoolCreate>(&call)) create->pool = PoolHandle{5};
    auto* query = std::get_if<StreamIsCapturing>(&call);
    if (!query) return std::nullopt;
    query->status = capture;
    return DriverStatus::kSuccess;
  }
  RecyclingPool recycler(std::uint64_t limit = kNoLimit) {
    return RecyclingPool::create(driver, {{0}, limit}, environment).value();
  }
  std::uint64_t next = 1 << 20;
  CaptureStatus capture = CaptureStatus::kNone;  // of every stream
};

TEST_F(RecyclerTest, ColdBlockIsAllocatedInThePrimaryContextInRelaxedMode) {
  RecyclingPool pool = recycler();
  PoolBuffer block;
  EXPECT_EQ(calls_of([&] { block = pool.allocate(stream, 100).value(); }),
            "StreamIsCapturing DevicePrimaryCtxRetain CtxPushCurrent "
            "ThreadExchangeStreamCaptureMode MemAlloc ThreadExchangeStreamCaptureMode "
            "CtxPopCurrent DevicePrimaryCtxRelease");
  EXPECT_EQ(driver.last<MemAlloc>().size, 100u);
  EXPECT_EQ(pool.held(), 100u);
  EXPECT_EQ(pool.cached(), 0u);
}

TEST_F(RecyclerTest, WarmPairOfAStreamMakesNoCallButCaptureQueries) {
  RecyclingPool pool = recycler();
  PoolBuffer block = pool.allocate(stream, 100).value();
  const DevicePtr ptr = block.ptr();
  EXPECT_EQ(calls_of([&] { EXPECT_TRUE(block.close().ok()); }), "StreamIsCapturing");
  EXPECT_EQ(pool.cached(), 100u);
  EXPECT_EQ(calls_of([&] { block = pool.allocate(stream, 100).value(); }), "StreamIsCapturing");
  EXPECT_EQ(block.ptr(), ptr);
  EXPECT_EQ(pool.cached(), 0u);
}

TEST_F(RecyclerTest, BlockOfAnotherSizeIsNotTaken) {
  RecyclingPool pool = recycler();
  EXPECT_TRUE(pool.allocate(stream, 100).value().close().ok());
  EXPECT_TRUE(pool.allocate(stream, 101).ok());
  EXPECT_EQ(driver.count<MemAlloc>(), 2u);
}

TEST_F(RecyclerTest, AnotherStreamTakesABlockWhoseWorkIsDone) {
  RecyclingPool pool = recycler();
  EXPECT_TRUE(pool.allocate(stream, 100).value().close().ok());
  driver.fail<EventQuery>(DriverStatus::kNotReady);
  PoolBuffer fresh = pool.allocate(other, 100).value();
  EXPECT_EQ(driver.count<MemAlloc>(), 2u) << "not done yet";
  PoolBuffer block = pool.allocate(other, 100).value();
  EXPECT_EQ(driver.count<MemAlloc>(), 2u);
  EXPECT_EQ(driver.count<EventRecord>(), 1u) << "one marker stands for that work";
  EXPECT_EQ(block.stream(), other);
}

TEST_F(RecyclerTest, StreamThatCapturesGetsAFreshBlock) {
  RecyclingPool pool = recycler();
  EXPECT_TRUE(pool.allocate(stream, 100).value().close().ok());
  capture = CaptureStatus::kActive;
  PoolBuffer block = pool.allocate(stream, 100).value();
  EXPECT_EQ(driver.count<MemAlloc>(), 2u);
  capture = CaptureStatus::kNone;
}

TEST_F(RecyclerTest, LimitCountsIdleBlocksAndTheyMakeRoom) {
  RecyclingPool pool = recycler(250);
  PoolBuffer a = pool.allocate(stream, 100).value();
  EXPECT_TRUE(pool.allocate(stream, 150).value().close().ok());
  EXPECT_EQ(pool.held(), 250u);
  PoolBuffer b = pool.allocate(stream, 120).value();
  EXPECT_EQ(driver.count<MemFree>(), 1u);
  EXPECT_EQ(pool.held(), 220u);
  const Error error = pool.allocate(stream, 31).status().error();
  EXPECT_EQ(error.code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(error.exhausted, Exhausted::kBudget);
  EXPECT_EQ(error.wanted, 31u);
  EXPECT_EQ(error.available, 30u);
  EXPECT_TRUE(pool.allocate(stream, 30).ok()) << "to the last byte";
}

TEST_F(RecyclerTest, RefusedMemoryIsNotHeld) {
  RecyclingPool pool = recycler();
  driver.fail<MemAlloc>(DriverStatus::kOutOfMemory, 1, 2);
  const Error error = pool.allocate(stream, 100).status().error();
  EXPECT_EQ(error.exhausted, Exhausted::kDevice);
  EXPECT_EQ(error.wanted, 100u);
  EXPECT_EQ(pool.held(), 0u);
  driver.fail<CtxPushCurrent>(DriverStatus::kInvalidContext);
  EXPECT_EQ(pool.allocate(stream, 100).status().error().call, name_of(kind_of<CtxPushCurrent>));
  EXPECT_EQ(pool.held(), 0u);
  driver.lift();
  driver.fail<ThreadExchangeStreamCaptureMode>(DriverStatus::kUnknown);
  EXPECT_EQ(pool.allocate(stream, 100).status().error().driver, DriverStatus::kUnknown);
  EXPECT_EQ(driver.count<MemAlloc>(), 2u);
  EXPECT_EQ(pool.allocate(stream, 0).status().error().code, ErrorCode::kInvalidArgument);
}

TEST_F(RecyclerTest, TrimFreesTheOldestUntilItFits) {
  RecyclingPool pool = recycler();
  PoolBuffer a = pool.allocate(stream, 100).value();
  PoolBuffer b = pool.allocate(stream, 200).value();
  const DevicePtr oldest = a.ptr();
  EXPECT_TRUE(a.close().ok());
  EXPECT_TRUE(b.close().ok());
  EXPECT_TRUE(pool.trim(300).ok());
  EXPECT_EQ(driver.count<MemFree>(), 0u);
  EXPECT_TRUE(pool.trim(299).ok());
  EXPECT_EQ(driver.count<MemFree>(), 1u);
  EXPECT_EQ(driver.last<MemFree>().ptr, oldest);
  EXPECT_EQ(pool.cached(), 200u);
  EXPECT_EQ(pool.held(), 200u);
}

TEST_F(RecyclerTest, RefusedFreeIsReportedAndNeverTriedAgain) {
  RecyclingPool pool = recycler();
  EXPECT_TRUE(pool.allocate(stream, 100).value().close().ok());
  driver.fail<MemFree>(DriverStatus::kUnknown);
  EXPECT_EQ(pool.trim(0).error().driver, DriverStatus::kUnknown);
  ASSERT_EQ(sink.reports.size(), 1u);
  EXPECT_EQ(sink.reports[0].kind, FailureKind::kReleaseFailed);
  EXPECT_EQ(sink.reports[0].size, 100u);
  EXPECT_EQ(pool.cached(), 0u);
  EXPECT_EQ(pool.held(), 100u) << "leaked";
  EXPECT_TRUE(pool.trim(0).ok());
  EXPECT_EQ(driver.count<MemFree>(), 1u);
}

TEST_F(RecyclerTest, FreeThatWouldBlockOrCannotEnterIsTriedLater) {
  RecyclingPool pool = recycler();
  EXPECT_TRUE(pool.allocate(stream, 100).value().close().ok());
  driver.fail<MemFree>(DriverStatus::kWouldBlock);
  EXPECT_EQ(pool.trim(0).error().driver, DriverStatus::kWouldBlock);
  EXPECT_EQ(pool.cached(), 100u);
  driver.fail<CtxPushCurrent>(DriverStatus::kInvalidContext);
  EXPECT_FALSE(pool.trim(0).ok());
  EXPECT_EQ(pool.cached(), 100u);
  EXPECT_TRUE(sink.reports.empty());
  EXPECT_TRUE(pool.trim(0).ok());
  EXPECT_EQ(pool.cached(), 0u);
}

TEST_F(RecyclerTest, PoolThatEndsFreesItsIdleBlocksAndReportsWhatStays) {
  {
    RecyclingPool pool = recycler();
    PoolBuffer a = pool.allocate(stream, 100).value();
    PoolBuffer b = pool.allocate(stream, 100).value();
    EXPECT_TRUE(a.close().ok());
    EXPECT_TRUE(b.close().ok());
    driver.fail<CtxPushCurrent>(DriverStatus::kInvalidContext);
  }
  EXPECT_EQ(driver.count<MemFree>(), 1u);
  ASSERT_EQ(sink.reports.size(), 1u);
  EXPECT_EQ(sink.reports[0].kind, FailureKind::kReleaseFailed);
  EXPECT_EQ(sink.reports[0].size, 100u);
}

TEST_F(RecyclerTest, WorkOfAnotherDeviceIsWaitedForBeforeAFree) {
  RecyclingPool pool = recycler();
  EXPECT_TRUE(pool.allocate(Stream::legacy({1}), 100).value().close().ok());
  EXPECT_TRUE(pool.trim(0).ok());
  EXPECT_EQ(driver.count<StreamSynchronize>(), 1u);
  EXPECT_TRUE(pool.allocate(stream, 100).value().close().ok());
  EXPECT_TRUE(pool.trim(0).ok());
  EXPECT_EQ(driver.count<StreamSynchronize>(), 1u) << "cuMemFree waits for its own device";
}

TEST_F(RecyclerTest, EndOfAStreamIsOneMarkerForItsBlocks) {
  {
    RecyclingPool pool = recycler();
    PoolBuffer a = pool.allocate(stream, 100).value();
    EXPECT_TRUE(pool.allocate(stream, 200).value().close().ok());
    EXPECT_TRUE(pool.forget(stream).ok());
    EXPECT_TRUE(pool.forget(stream).ok());
    EXPECT_TRUE(pool.forget(other).ok()) << "nobody needs it";
    EXPECT_EQ(driver.count<EventRecord>(), 1u);
    EXPECT_TRUE(a.close().ok());
    PoolBuffer b = pool.allocate(other, 200).value();
    EXPECT_EQ(driver.count<MemAlloc>(), 2u) << "idle, and its work is done";
  }
  EXPECT_EQ(driver.count<EventDestroy>(), 1u);
}

class ParkedBlocks : public RecyclerTest {};

TEST_F(ParkedBlocks, DropDuringACaptureParksUntilItEnds) {
  StreamOrderedPool pool = StreamOrderedPool::create(driver, {}, environment).value();
  DevicePtr ptr;
  {
    PoolBuffer block = pool.allocate(stream, 100).value();
    ptr = block.ptr();
    capture = CaptureStatus::kActive;
    EXPECT_EQ(block.close().error().code, ErrorCode::kCapturing);
    EXPECT_EQ(block.close().error().object, stream.handle().value);
    EXPECT_FALSE(block.is_closed());
  }
  ASSERT_EQ(sink.reports.size(), 1u);
  EXPECT_EQ(sink.reports[0].kind, FailureKind::kParked);
  EXPECT_EQ(sink.reports[0].ptr, ptr);
  EXPECT_EQ(sink.reports[0].size, 100u);
  EXPECT_EQ(pool.collect().pending, 1u);
  capture = CaptureStatus::kNone;
  EXPECT_EQ(pool.collect().ranges, 1u);
  EXPECT_EQ(pool.collect().pending, 0u);
  EXPECT_EQ(driver.count<MemFreeAsync>(), 1u);
}

TEST_F(ParkedBlocks, PoolThatEndsWithOneSaysThatItLeaks) {
  {
    StreamOrderedPool pool = StreamOrderedPool::create(driver, {}, environment).value();
    PoolBuffer block = pool.allocate(stream, 100).value();
    capture = CaptureStatus::kActive;
  }
  ASSERT_EQ(sink.reports.size(), 2u);
  EXPECT_EQ(sink.reports[0].kind, FailureKind::kParked);
  EXPECT_EQ(sink.reports[1].kind, FailureKind::kReleaseFailed);
  EXPECT_EQ(sink.reports[1].error.code, ErrorCode::kCapturing);
  EXPECT_EQ(sink.reports[1].size, 100u);
}

TEST_F(ParkedBlocks, CloseThatTheDriverRefusesLeavesTheBlockOpen) {
  StreamOrderedPool pool = StreamOrderedPool::create(driver, {}, environment).value();
  PoolBuffer block = pool.allocate(stream, 100).value();
  for (const DriverStatus untried :
       {DriverStatus::kInvalidHandle, DriverStatus::kInvalidContext, DriverStatus::kWouldBlock,
        DriverStatus::kStreamCaptureUnsupported}) {
    driver.fail<MemFreeAsync>(untried);
    EXPECT_FALSE(block.close(other).ok());
    EXPECT_EQ(block.stream(), stream);
    EXPECT_FALSE(block.is_closed());
  }
  EXPECT_TRUE(sink.reports.empty());
  EXPECT_TRUE(block.close().ok());
  EXPECT_EQ(driver.last<MemFreeAsync>().stream, stream.handle());
}

TEST_F(ParkedBlocks, FreeThatWasTriedAndRefusedIsNeverTriedAgain) {
  StreamOrderedPool pool = StreamOrderedPool::create(driver, {}, environment).value();
  PoolBuffer block = pool.allocate(stream, 100).value();
  const DevicePtr ptr = block.ptr();
  driver.fail<MemFreeAsync>(DriverStatus::kUnknown);
  EXPECT_TRUE(block.close().ok());
  EXPECT_TRUE(block.is_closed());
  EXPECT_EQ(pool.collect().pending, 0u);
  EXPECT_EQ(driver.count<MemFreeAsync>(), 1u);
  ASSERT_EQ(sink.reports.size(), 1u);
  EXPECT_EQ(sink.reports[0].kind, FailureKind::kReleaseFailed);
  EXPECT_EQ(sink.reports[0].ptr, ptr);
  EXPECT_EQ(sink.reports[0].size, 100u);
  EXPECT_EQ(sink.reports[0].error.driver, DriverStatus::kUnknown);
}

TEST_F(ParkedBlocks, BlockOutlivesItsStreamAndIsFreedBehindItsMarker) {
  StreamOrderedPool pool = StreamOrderedPool::create(driver, {}, environment).value();
  PoolBuffer block = pool.allocate(stream, 100).value();
  EXPECT_TRUE(pool.forget(stream).ok());
  EXPECT_TRUE(block.close().ok());
  EXPECT_EQ(driver.count<StreamWaitEvent>(), 1u);
  EXPECT_EQ(driver.last<StreamWaitEvent>().stream, kLegacyStream);
  EXPECT_EQ(driver.last<MemFreeAsync>().stream, kLegacyStream);
}

TEST_F(ParkedBlocks, MovedBlocksHaveOneOwner) {
  RecyclingPool pool = recycler();
  PoolBuffer a = pool.allocate(stream, 100).value();
  PoolBuffer b = pool.allocate(stream, 200).value();
  a = std::move(b);
  EXPECT_EQ(a.size(), 200u);
  EXPECT_EQ(pool.cached(), 100u) << "what `a` held is closed";
  RecyclingPool copy = pool;
  RecyclingPool moved = std::move(copy);
  copy = moved;
  EXPECT_EQ(copy.held(), 300u);
}

}  // namespace
}  // namespace granule
