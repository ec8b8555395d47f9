// What a release or a reuse is ordered behind: streams that are gone, that are default streams, or
// that come second; and the markers that stand for them.
#include <gtest/gtest.h>

#include "core_fixture.hpp"

namespace granule {
namespace {

class OrderTest : public CoreTest {
 protected:
  VirtualMemoryResource deferred() { return resource(FreePolicy::kDeferred); }
  VirtualMemoryResource cached() { return resource(FreePolicy::kSynchronize, 8 * kG); }
};

TEST_F(OrderTest, ClearOnADefaultStreamRunsInItsPrimaryContext) {
  auto r = cached();
  Buffer a;
  const std::string calls =
      calls_of([&] { a = r.allocate(Stream::legacy({0}), kG, {.zero = true}).value(); });
  EXPECT_NE(calls.find("CtxPushCurrent MemsetD8Async CtxPopCurrent"), std::string::npos) << calls;
}

TEST_F(OrderTest, ADefaultStreamsContextIsKeptOnce) {
  auto r = resource();
  AllocateOptions zero;
  zero.zero = true;
  Buffer a = r.allocate(Stream::legacy({0}), kG, zero).value();
  EXPECT_EQ(driver.count<EventRecord>(), 1u);
  Buffer b = r.allocate(Stream::legacy({0}), kG, zero).value();
  EXPECT_EQ(driver.count<EventRecord>(), 1u) << "a marker holds the context already";
}

TEST_F(OrderTest, ClearNeedsAnAccessOfTheStreamsDevice) {
  auto r = cached();
  EXPECT_EQ(r.allocate(Stream::legacy({1}), kG, {.zero = true}).status().error().code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(driver.count<MemCreate>(), 0u);
}

// A driver without ids of streams (before 12.0) cannot tell a new stream from an old one of the
// same handle.
TEST_F(OrderTest, NewStreamOfAnOldHandleIsOrderedBehindTheOldOne) {
  auto r = cached();
  EXPECT_TRUE(r.allocate(stream, kG).value().close().ok());
  EXPECT_TRUE(r.forget(stream).ok());
  const Stream same = Stream::bind(driver, stream.handle()).value();
  EXPECT_EQ(calls_of([&] { EXPECT_TRUE(r.allocate(same, kG).ok()); }),
            "StreamIsCapturing StreamWaitEvent StreamIsCapturing");
  EXPECT_EQ(driver.count<MemCreate>(), 1u);
}

TEST_F(OrderTest, OwnStreamIsOrderedBehindTheOtherOneThatUsedTheRange) {
  auto r = cached();
  Buffer a = r.allocate(stream, kG).value();
  EXPECT_TRUE(a.used_on(other).ok());
  EXPECT_TRUE(a.close().ok());
  Buffer b = r.allocate(stream, kG).value();
  EXPECT_EQ(driver.count<MemCreate>(), 1u);
  EXPECT_EQ(driver.count<StreamWaitEvent>(), 1u) << "behind its own work it is already";
  EXPECT_EQ(driver.last<StreamWaitEvent>().stream, stream.handle());
}

TEST_F(OrderTest, OrderThatWasRefusedHandsItsMarkersBack) {
  auto r = cached();
  EXPECT_TRUE(r.allocate(stream, kG).value().close().ok());
  driver.fail<StreamWaitEvent>(DriverStatus::kUnknown);
  Buffer fresh = r.allocate(other, kG).value();
  EXPECT_EQ(driver.count<MemCreate>(), 2u);
  EXPECT_TRUE(r.forget(other).ok());
  EXPECT_EQ(driver.count<EventCreate>(), 1u) << "the event was free again";
}

// What the library was told of a stream that died with its context: nothing runs there any more,
// and its handle means nothing.
TEST_F(OrderTest, StreamThatDiedIsNeverNamedAgain) {
  for (const bool idle : {false, true}) {
    auto r = resource(FreePolicy::kDeferred, idle ? 8 * kG : 0);
    Buffer a = r.allocate(stream, kG).value();
    Buffer b = r.allocate(stream, 2 * kG, {.capacity = 4 * kG}).value();
    EXPECT_TRUE(b.used_on(third).ok());
    driver.fail<EventRecord>(DriverStatus::kLaunchFailed, 1, 2);
    EXPECT_TRUE(r.forget(stream).ok());
    EXPECT_TRUE(r.forget(third).ok());
    driver.lift();
    const std::size_t before = driver.log.size();
    const std::string calls = calls_of([&] {
      EXPECT_TRUE(a.close().ok());
      EXPECT_TRUE(b.shrink(0).ok());
      EXPECT_TRUE(b.close().ok());
      if (idle) r.allocate(other, kG).value().close().value();
    });
    for (const char* const call : {"StreamSynchronize", "StreamWaitEvent", "EventQuery"})
      EXPECT_EQ(calls.find(call), std::string::npos) << calls;
    for (std::size_t i = before; i < driver.log.size(); ++i)
      if (const auto* query = std::get_if<StreamIsCapturing>(&driver.log[i])) {
        EXPECT_EQ(query->stream, other.handle());
      }
    for (const Call& call : driver.log)
      if (const auto* record = std::get_if<EventRecord>(&call)) {
        EXPECT_EQ(record->event, driver.last<EventRecord>().event) << "those of the forgets alone";
      }
    EXPECT_TRUE(r.trim(0).ok());
    EXPECT_EQ(r.statistics().mapped, 0u);
    driver.log.clear();
  }
}

TEST_F(OrderTest, MarkerOfAForgottenStreamLastsAsLongAsAnybodyNeedsIt) {
  const auto shared_by = [&](auto&& let_go) {
    auto r = deferred();
    Buffer a = r.allocate(stream, 2 * kG).value();
    ASSERT_EQ(a.resize(3 * kG).value().placement, Placement::kKept);
    EXPECT_TRUE(a.used_on(other).ok());
    EXPECT_TRUE(r.forget(stream).ok());
    EXPECT_TRUE(r.forget(other).ok());
    const std::size_t before = driver.count<EventCreate>();
    let_go(a);
    EXPECT_EQ(r.collect().pending, 0u);
    EXPECT_TRUE(r.allocate(third, kG).value().close().ok());
    EXPECT_EQ(driver.count<EventCreate>(), before + 1) << "the buffer still needs both";
    EXPECT_TRUE(a.close().ok());
  };
  shared_by([](Buffer& a) { EXPECT_TRUE(a.hold().value().drop().ok()); });
  shared_by([](Buffer& a) { EXPECT_TRUE(a.shrink(2 * kG).ok()); });
}

TEST_F(OrderTest, WhatAShrinkLetsGoIsOrderedBehindEveryStream) {
  auto r = deferred();
  Buffer a = r.allocate(stream, 2 * kG).value();
  ASSERT_EQ(a.resize(3 * kG).value().placement, Placement::kKept);
  EXPECT_TRUE(a.used_on(other).ok());
  EXPECT_TRUE(a.shrink(2 * kG).ok());
  EXPECT_EQ(driver.count<EventRecord>(), 2u);
  EXPECT_EQ(driver.last<EventRecord>().stream, other.handle());
}

TEST_F(OrderTest, TrimReapsAllThatItRetired) {
  auto r = resource(FreePolicy::kDeferred, 8 * kG);
  Buffer a = r.allocate(stream, kG).value();
  Buffer b = r.allocate(stream, kG).value();
  EXPECT_TRUE(a.close().ok());
  EXPECT_TRUE(b.close().ok());
  EXPECT_TRUE(r.trim(0).ok());
  EXPECT_EQ(r.statistics().cached, 0u);
  EXPECT_EQ(r.statistics().retired, 0u);
}

TEST_F(OrderTest, RangeIsPendingUntilAllItsMarkersAreReached) {
  auto r = deferred();
  Buffer a = r.allocate(stream, kG).value();
  EXPECT_TRUE(a.used_on(other).ok());
  EXPECT_TRUE(a.close().ok());
  driver.fail<EventQuery>(DriverStatus::kNotReady);
  EXPECT_EQ(r.collect().pending, 1u) << "the second one alone is not enough";
  EXPECT_EQ(r.collect().ranges, 1u);
}

TEST_F(OrderTest, ParkedRangeWhoseCaptureCannotBeAskedAboutStaysParked) {
  auto r = resource(FreePolicy::kSynchronize);
  {
    Buffer a = r.allocate(stream, kG).value();
    capturing = stream.handle();
  }
  capturing = {};
  const auto plain = driver.script;
  driver.script = nullptr;
  driver.fail<StreamIsCapturing>(DriverStatus::kUnknown);
  EXPECT_EQ(r.collect().pending, 1u);
  EXPECT_EQ(r.statistics().parked, kG);
  EXPECT_EQ(r.collect().ranges, 1u);
  driver.script = plain;
}

TEST_F(OrderTest, CollectThatCannotRelaxTheCaptureModeLeavesAllPending) {
  auto r = deferred();
  EXPECT_TRUE(r.allocate(stream, kG).value().close().ok());
  driver.fail<ThreadExchangeStreamCaptureMode>(DriverStatus::kUnknown);
  const CollectResult none = r.collect();
  EXPECT_EQ(none.ranges, 0u);
  EXPECT_EQ(none.pending, 1u);
  EXPECT_EQ(r.collect().pending, 0u);
}

TEST_F(OrderTest, FurtherStreamThatWouldEndACaptureParksTheRange) {
  auto r = resource(FreePolicy::kSynchronize);
  Buffer a = r.allocate(stream, kG).value();
  EXPECT_TRUE(a.used_on(Stream::legacy({0})).ok());
  disturbed = true;
  EXPECT_TRUE(a.close().ok());
  EXPECT_EQ(r.statistics().parked, kG);
  ASSERT_EQ(sink.reports.size(), 1u);
  EXPECT_EQ(sink.reports[0].error.code, ErrorCode::kCapturing);
  EXPECT_EQ(driver.count<StreamSynchronize>(), 0u);
  disturbed = false;
  EXPECT_EQ(r.collect().ranges, 1u);
}

TEST_F(OrderTest, EmptyBufferIsClosedWhateverCaptures) {
  auto r = resource(FreePolicy::kSynchronize);
  Buffer a = r.allocate(stream, 0).value();
  capturing = stream.handle();
  EXPECT_EQ(calls_of([&] { EXPECT_TRUE(a.close().ok()); }), "");
  capturing = {};
}

TEST_F(OrderTest, DropDuringACaptureIsParkedNotKept) {
  auto r = cached();
  {
    Buffer a = r.allocate(stream, kG).value();
    capturing = stream.handle();
  }
  EXPECT_EQ(r.statistics().parked, kG);
  EXPECT_EQ(r.statistics().cached, 0u);
  capturing = {};
  EXPECT_EQ(r.collect().ranges, 1u);
}

TEST_F(OrderTest, PerThreadStreamThatCannotBeAskedIsNotUsed) {
  auto r = resource(FreePolicy::kSynchronize);
  Buffer a = r.allocate(Stream::per_thread(driver, {0}).value(), kG).value();
  driver.fail<StreamGetId>(DriverStatus::kUnknown);
  EXPECT_EQ(a.close().error().call, name_of(kind_of<StreamGetId>));
  EXPECT_EQ(driver.count<StreamIsCapturing>(), 0u);
  driver.lift();
  const std::size_t asked = driver.count<StreamGetId>();
  driver.fail<CtxPushCurrent>(DriverStatus::kInvalidContext);
  EXPECT_EQ(a.close().error().call, name_of(kind_of<CtxPushCurrent>));
  EXPECT_EQ(driver.count<StreamGetId>(), asked) << "not in its context";
}

TEST_F(OrderTest, EventThatDiedWithItsContextIsNoFailure) {
  {
    auto r = deferred();
    EXPECT_TRUE(r.allocate(stream, kG).value().close().ok());
    EXPECT_EQ(r.collect().ranges, 1u);
    driver.fail<EventDestroy>(DriverStatus::kLaunchFailed);
  }
  EXPECT_EQ(driver.count<EventDestroy>(), 1u);
  EXPECT_TRUE(sink.reports.empty());
}

TEST_F(OrderTest, ClosedBufferHoldsNothingOfItsResource) {
  const auto end_in_all_ways = {+[](Buffer& a, const Stream&) { return a.close(); },
                                +[](Buffer& a, const Stream& s) { return a.close(s); },
                                +[](Buffer& a, const Stream&) { return a.drop(); }};
  for (const auto end : end_in_all_ways) {
    Buffer a;
    {
      auto r = cached();
      a = r.allocate(stream, kG).value();
    }
    EXPECT_TRUE(end(a, stream).ok());
    EXPECT_EQ(memory.blocks, 0u);
  }
}

}  // namespace
}  // namespace granule
