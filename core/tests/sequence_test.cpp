// The driver calls of each operation, in order: what is made first, waited for, put back.
#include <gtest/gtest.h>

#include "core_fixture.hpp"

namespace granule {
namespace {

class SequenceTest : public CoreTest {};

VmmOptions deferred() {
  VmmOptions options;
  options.free = FreePolicy::kDeferred;
  return options;
}

VmmOptions cached(std::uint64_t bytes) {
  VmmOptions options;
  options.cache = bytes;
  return options;
}

constexpr std::string_view kWait =
    "StreamIsCapturing ThreadExchangeStreamCaptureMode StreamSynchronize "
    "ThreadExchangeStreamCaptureMode";
constexpr std::string_view kMarker = "CtxPushCurrent EventCreate CtxPopCurrent EventRecord";

TEST_F(SequenceTest, AllocateReservesThenMakesThenMaps) {
  auto r = resource();
  std::optional<Buffer> a;
  EXPECT_EQ(calls_of([&] { a = r.allocate(stream, kG).value(); }),
            "MemAddressReserve MemCreate MemMap MemSetAccess");
  EXPECT_EQ(driver.last<MemAddressReserve>().alignment, 0u);
  EXPECT_EQ(driver.last<MemCreate>().properties.rdma, 0u);
  EXPECT_EQ(calls_of([&] { EXPECT_TRUE(a->close().ok()); }),
            std::string(kWait) + " MemUnmap MemRelease MemAddressFree");
  EXPECT_TRUE(sink.reports.empty());
}

TEST_F(SequenceTest, GrowProbesBehindAndIsKept) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  std::optional<GrowResult> b;
  EXPECT_EQ(calls_of([&] { b = a.grow(2 * kG).value(); }),
            "MemAddressReserve MemCreate MemMap MemSetAccess")
      << "the driver that does nothing hands out ascending addresses";
  EXPECT_EQ(b->placement, Placement::kKept);
  EXPECT_EQ(b->buffer.ptr(), a.ptr());
  EXPECT_EQ(driver.last<MemAddressReserve>().hint.value, a.ptr().value + kG);
  EXPECT_EQ(driver.last<MemAddressReserve>().size, kG);
}

TEST_F(SequenceTest, GrowThatMovesGivesTheProbeBackAndMapsEveryChunk) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer behind = r.allocate(stream, kG).value();
  std::optional<GrowResult> b;
  EXPECT_EQ(calls_of([&] { b = a.grow(3 * kG).value(); }),
            "MemAddressReserve MemAddressFree MemAddressReserve MemCreate MemMap MemSetAccess "
            "MemMap MemSetAccess");
  EXPECT_EQ(b->placement, Placement::kMoved);
  EXPECT_EQ(b->buffer.size(), 3 * kG);
  EXPECT_EQ(driver.last<MemMap>().size, 2 * kG);
  EXPECT_EQ(driver.last<MemMap>().ptr.value, b->buffer.ptr().value + kG);
  EXPECT_EQ(r.check_invariants(), "");
}

TEST_F(SequenceTest, DeferredCloseMarksAndIsReapedByALaterCall) {
  auto r = resource(deferred());
  Buffer a = r.allocate(stream, kG).value();
  EXPECT_EQ(calls_of([&] { EXPECT_TRUE(a.close().ok()); }),
            "StreamIsCapturing " + std::string(kMarker));
  EXPECT_EQ(r.statistics().retired, kG);
  driver.fail<EventQuery>(DriverStatus::kNotReady);
  EXPECT_EQ(calls_of([&] { EXPECT_EQ(r.collect().pending, 1u); }),
            "ThreadExchangeStreamCaptureMode EventQuery ThreadExchangeStreamCaptureMode");
  EXPECT_EQ(calls_of([&] { EXPECT_EQ(r.collect().ranges, 1u); }),
            "ThreadExchangeStreamCaptureMode EventQuery MemUnmap MemRelease MemAddressFree "
            "ThreadExchangeStreamCaptureMode");
  EXPECT_EQ(r.statistics().retired, 0u);
  EXPECT_EQ(calls_of([&] { r.collect(); }), "") << "nothing is pending";
}

TEST_F(SequenceTest, MarkersAreUsedAgainInTheirContext) {
  auto r = resource(deferred());
  for (int i = 0; i < 3; ++i) {
    Buffer a = r.allocate(stream, kG).value();
    EXPECT_TRUE(a.close().ok());
    EXPECT_EQ(r.collect().ranges, 1u);
  }
  EXPECT_EQ(driver.count<EventCreate>(), 1u);
  EXPECT_EQ(driver.count<EventDestroy>(), 0u);
  r = resource();
  EXPECT_EQ(driver.count<EventDestroy>(), 1u);
}

TEST_F(SequenceTest, WarmPairOfAnotherStreamIsOrderedBehindAMarker) {
  auto r = resource(cached(8 * kG));
  Buffer a = r.allocate(stream, kG).value();
  EXPECT_EQ(calls_of([&] { EXPECT_TRUE(a.close().ok()); }), "StreamIsCapturing");
  EXPECT_EQ(r.statistics().cached, kG);
  EXPECT_EQ(calls_of([&] { a = r.allocate(other, kG).value(); }),
            "StreamIsCapturing StreamIsCapturing " + std::string(kMarker) + " StreamWaitEvent");
  EXPECT_EQ(driver.last<StreamWaitEvent>().stream, other.handle());
  EXPECT_EQ(r.statistics().cached, 0u);
  EXPECT_EQ(a.stream(), other);
}

TEST_F(SequenceTest, WarmPairOfItsOwnStreamIsPreferred) {
  auto r = resource(cached(8 * kG));
  Buffer a = r.allocate(stream, kG).value();
  Buffer b = r.allocate(other, kG).value();
  const DevicePtr of_other = b.ptr();
  EXPECT_TRUE(a.close().ok());
  EXPECT_TRUE(b.close().ok());
  EXPECT_EQ(calls_of([&] { a = r.allocate(other, kG).value(); }), "StreamIsCapturing");
  EXPECT_EQ(a.ptr(), of_other);
}

TEST_F(SequenceTest, SuspendWithABackupCopiesOutBeforeItUnmaps) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer* set[] = {&a};
  EXPECT_EQ(calls_of([&] { EXPECT_TRUE(r.suspend(set, true).ok()); }),
            std::string(kWait) +
                " StreamIsCapturing CtxPushCurrent ThreadExchangeStreamCaptureMode MemcpyDtoHAsync "
                "StreamSynchronize ThreadExchangeStreamCaptureMode CtxPopCurrent MemUnmap "
                "MemRelease");
  EXPECT_TRUE(a.is_suspended());
  EXPECT_EQ(r.statistics().charged, 0u);
  EXPECT_EQ(calls_of([&] { EXPECT_TRUE(r.suspend(set, true).ok()); }), "") << "done already";
  EXPECT_EQ(calls_of([&] { EXPECT_TRUE(r.resume(set).ok()); }),
            "StreamIsCapturing StreamIsCapturing ThreadExchangeStreamCaptureMode "
            "StreamSynchronize ThreadExchangeStreamCaptureMode MemCreate MemMap MemSetAccess "
            "CtxPushCurrent ThreadExchangeStreamCaptureMode MemcpyHtoDAsync StreamSynchronize "
            "ThreadExchangeStreamCaptureMode CtxPopCurrent");
  EXPECT_FALSE(a.is_suspended());
  EXPECT_EQ(r.statistics().charged, kG);
  EXPECT_EQ(calls_of([&] { EXPECT_TRUE(r.resume(set).ok()); }), "");
}

TEST_F(SequenceTest, DefaultStreamIsWaitedForInItsPrimaryContext) {
  auto r = resource();
  Buffer a = r.allocate(Stream::legacy({1}), kG).value();
  EXPECT_EQ(calls_of([&] { EXPECT_TRUE(a.close().ok()); }),
            "DevicePrimaryCtxRetain CtxPushCurrent StreamIsCapturing CtxPopCurrent "
            "DevicePrimaryCtxRelease ThreadExchangeStreamCaptureMode DevicePrimaryCtxRetain "
            "CtxPushCurrent StreamSynchronize CtxPopCurrent DevicePrimaryCtxRelease "
            "ThreadExchangeStreamCaptureMode MemUnmap MemRelease MemAddressFree");
  EXPECT_EQ(driver.last<DevicePrimaryCtxRetain>().device, DeviceId{1});
}

TEST_F(SequenceTest, StreamThatNeverCapturesIsNotAsked) {
  auto r = resource();
  const Stream quiet = Stream::bind(driver, StreamHandle{0x79}, {.never_captures = true}).value();
  Buffer a = r.allocate(quiet, kG).value();
  EXPECT_TRUE(a.close().ok());
  EXPECT_EQ(driver.count<StreamIsCapturing>(), 0u);
}

TEST_F(SequenceTest, ZeroIsQueuedOnTheStreamAndIsHistoryOfACloseOnAnother) {
  auto r = resource();
  std::optional<Buffer> a;
  EXPECT_EQ(calls_of([&] { a = r.allocate(stream, kG, {.zero = true}).value(); }),
            "StreamIsCapturing MemAddressReserve MemCreate MemMap MemSetAccess MemsetD8Async");
  EXPECT_EQ(driver.last<MemsetD8Async>().stream, stream.handle());
  EXPECT_EQ(driver.last<MemsetD8Async>().value, 0u);
  calls_of([&] { EXPECT_TRUE(a->close(other).ok()); });
  EXPECT_EQ(driver.count<StreamSynchronize>(), 2u) << "the stream named and that of the clear";
}

TEST_F(SequenceTest, EveryStreamOfABufferIsWaitedFor) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  EXPECT_TRUE(a.used_on(other).ok());
  EXPECT_TRUE(a.used_on(other).ok()) << "known already";
  EXPECT_TRUE(a.used_on(stream).ok()) << "its own";
  EXPECT_TRUE(a.close().ok());
  EXPECT_EQ(driver.count<StreamSynchronize>(), 2u);
}

TEST_F(SequenceTest, EndOfAStreamIsOneMarkerForAllItsBuffers) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer b = r.allocate(stream, kG).value();
  Buffer c = r.allocate(other, kG).value();
  EXPECT_TRUE(c.used_on(stream).ok());
  EXPECT_EQ(calls_of([&] { EXPECT_TRUE(r.forget(stream).ok()); }),
            "StreamIsCapturing " + std::string(kMarker));
  EXPECT_EQ(calls_of([&] { EXPECT_TRUE(r.forget(stream).ok()); }), "") << "nothing needs it";
  for (Buffer* buffer : {&a, &b, &c}) EXPECT_TRUE(buffer->close().ok());
  EXPECT_EQ(driver.count<EventSynchronize>(), 3u);
  EXPECT_EQ(driver.count<StreamSynchronize>(), 1u) << "that of c";
}

}  // namespace
}  // namespace granule
