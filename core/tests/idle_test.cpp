// Idle ranges that captures hold or whose order fails, evictions, and pending ranges in the way.
#include <gtest/gtest.h>

#include "core_fixture.hpp"

namespace granule {
namespace {

class IdleTest : public CoreTest {
 protected:
  IdleTest() {
    stream = Stream::bind(driver, StreamHandle{0x77}).value();
    other = Stream::bind(driver, StreamHandle{0x78}).value();
    third = Stream::bind(driver, StreamHandle{0x79}).value();
  }
  /// Every stream has a context of its own.
  std::optional<DriverStatus> answer(Call& call) override {
    auto* context = std::get_if<StreamGetCtx>(&call);
    if (!context) return CoreTest::answer(call);
    context->context = ContextHandle{context->stream.value};
    return DriverStatus::kSuccess;
  }
  VirtualMemoryResource resource(FreePolicy free = FreePolicy::kSynchronize,
                                 std::uint64_t cache = 8 * kG) {
    return CoreTest::resource(free, cache);
  }
  void leave_idle(VirtualMemoryResource& r, const Stream& on) {
    EXPECT_TRUE(r.allocate(on, kG).value().close().ok());
  }
};

TEST_F(IdleTest, RangeThatACaptureHoldsIsPassedOver) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer b = r.allocate(third, kG).value();
  const DevicePtr free = b.ptr();
  EXPECT_TRUE(a.close().ok());
  EXPECT_TRUE(b.close().ok());
  capturing = stream.handle();
  EXPECT_EQ(r.allocate(other, kG).value().ptr(), free);
  Buffer c = r.allocate(other, kG).value();
  Buffer d = r.allocate(other, kG).value();
  EXPECT_EQ(driver.count<MemCreate>(), 3u) << "the one that is held is not waited for";
  capturing = {};
  EXPECT_EQ(r.statistics().cached, kG);
}

TEST_F(IdleTest, StreamThatCannotBeAskedGetsFreshMemory) {
  auto r = resource();
  leave_idle(r, stream);
  const auto plain = driver.script;
  driver.script = nullptr;
  driver.fail<StreamIsCapturing>(DriverStatus::kUnknown);
  Buffer a = r.allocate(stream, kG).value();
  EXPECT_EQ(driver.count<MemCreate>(), 2u);
  EXPECT_EQ(r.statistics().cached, kG);
  driver.script = plain;
}

TEST_F(IdleTest, TrimGoesAroundCapturesButStopsAtFailures) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  leave_idle(r, other);
  EXPECT_TRUE(a.close().ok());
  EXPECT_EQ(r.statistics().cached, 2 * kG);
  driver.fail<StreamSynchronize>(DriverStatus::kUnknown);
  EXPECT_EQ(r.trim(0).error().driver, DriverStatus::kUnknown);
  EXPECT_EQ(r.statistics().cached, 2 * kG);
  capturing = other.handle();
  EXPECT_EQ(r.trim(0).error().code, ErrorCode::kCapturing);
  EXPECT_EQ(r.statistics().cached, kG) << "that of the other stream went";
  capturing = {};
  EXPECT_TRUE(r.trim(0).ok());
  leave_idle(r, stream);
  EXPECT_TRUE(r.allocate(stream, 7 * kG).value().close().ok());
  EXPECT_EQ(r.statistics().cached, 8 * kG) << "there is room for as much as ever";
}

TEST_F(IdleTest, EvictionAfterAStickyErrorGivesBackAtOnce) {
  auto r = resource(FreePolicy::kDeferred);
  leave_idle(r, stream);
  driver.fail<EventRecord>(DriverStatus::kLaunchFailed);
  EXPECT_TRUE(r.trim(0).ok());
  ASSERT_EQ(sink.reports.size(), 1u);
  EXPECT_EQ(sink.reports[0].kind, FailureKind::kWaitSkipped);
  EXPECT_EQ(r.statistics().retired, 0u);
  EXPECT_EQ(r.statistics().mapped, 0u);
}

TEST_F(IdleTest, EvictionThatFailsOnTheWayOutOfMemoryIsReported) {
  auto r = resource();
  leave_idle(r, stream);
  driver.fail<StreamSynchronize>(DriverStatus::kUnknown);
  driver.fail<MemCreate>(DriverStatus::kOutOfMemory, 1, 9);
  EXPECT_EQ(r.allocate(stream, 2 * kG).status().error().exhausted, Exhausted::kDevice);
  ASSERT_EQ(sink.reports.size(), 1u);
  EXPECT_EQ(sink.reports[0].kind, FailureKind::kParked);
  EXPECT_EQ(sink.reports[0].error.driver, DriverStatus::kUnknown);
}

TEST_F(IdleTest, ReapOfAParkedRangeLeavesTheRoomOfTheCache) {
  auto r = resource();
  {
    Buffer a = r.allocate(stream, kG).value();
    capturing = stream.handle();
  }
  capturing = {};
  EXPECT_EQ(r.collect().ranges, 1u);
  EXPECT_TRUE(r.allocate(stream, 8 * kG).value().close().ok());
  EXPECT_EQ(r.statistics().cached, 8 * kG);
}

TEST_F(IdleTest, MarkersAreOfTheContextOfTheirStream) {
  auto r = resource(FreePolicy::kDeferred, 0);
  for (const Stream& one : {stream, other, stream}) {
    EXPECT_TRUE(r.allocate(one, kG).value().close().ok());
    EXPECT_EQ(r.collect().ranges, 1u);
  }
  EXPECT_EQ(driver.count<EventCreate>(), 2u) << "the first one served twice";
}

TEST_F(IdleTest, DropThatCannotBeOrderedParks) {
  auto r = resource(FreePolicy::kSynchronize, 0);
  Buffer a = r.allocate(stream, kG).value();
  driver.fail<StreamSynchronize>(DriverStatus::kUnknown);
  EXPECT_TRUE(a.drop().ok());
  EXPECT_TRUE(a.is_closed());
  EXPECT_EQ(r.statistics().parked, kG);
  Buffer b = r.allocate(stream, 0).value();
  EXPECT_EQ(r.collect().ranges, 1u);
  Buffer c = r.allocate(stream, kG).value();
  driver.lift();
  driver.fail<StreamSynchronize>(DriverStatus::kWouldBlock);
  EXPECT_EQ(c.drop().error().driver, DriverStatus::kWouldBlock);
  EXPECT_FALSE(c.is_closed());
  driver.fail<StreamSynchronize>(DriverStatus::kWouldBlock);
  c = Buffer();
  EXPECT_EQ(r.statistics().parked, kG) << "an object that goes does not stay";
}

TEST_F(IdleTest, ProbeAsksForPendingRangesInItsWayAndNoOthers) {
  auto r = resource(FreePolicy::kDeferred, 0);
  Buffer low = r.allocate(stream, kG).value();
  Buffer below = r.allocate(stream, kG).value();
  Buffer a = r.allocate(stream, kG, {.capacity = 4 * kG}).value();
  Buffer b = a.grow(2 * kG).value().buffer;
  driver.fail<EventQuery>(DriverStatus::kNotReady, 1, 9999);
  EXPECT_TRUE(below.close().ok());
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(r.allocate(stream, kG).value().close().ok());
  EXPECT_TRUE(b.close().ok());
  driver.lift();
  EXPECT_TRUE(a.could_extend().value()) << "behind eight that were reaped on the way";
  Buffer c = a.grow(2 * kG).value().buffer;
  EXPECT_EQ(r.collect().pending, 0u);
  driver.fail<EventQuery>(DriverStatus::kNotReady, 1, 9999);
  EXPECT_TRUE(low.close().ok());
  const std::size_t before = driver.count<EventQuery>();
  EXPECT_FALSE(a.could_extend().value());
  EXPECT_EQ(driver.count<EventQuery>(), before + 1) << "on the way, and not again";
}

TEST_F(IdleTest, EmptyBufferHasNoPlaceToExtendIn) {
  auto r = resource();
  Buffer a = r.allocate(stream, 0).value();
  const Error error = a.try_extend(kG).status().error();
  EXPECT_EQ(error.code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(error.exhausted, Exhausted::kAddresses);
  EXPECT_EQ(driver.count<MemAddressReserve>(), 0u);
  EXPECT_EQ(a.resize(kG).value().placement, Placement::kMoved);
}

TEST_F(IdleTest, MillionChunksAreTooMany) {
  VmmOptions options;
  options.location = {LocationType::kHost, 0};
  options.max_chunk = kG;
  auto r = VirtualMemoryResource::create(driver, options, environment).value();
  EXPECT_EQ(r.allocate(stream, kG << 20).status().error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(driver.count<MemAddressReserve>(), 0u);
}

TEST_F(IdleTest, StreamWhoseContextDiedDoesNotCapture) {
  auto r = resource(FreePolicy::kSynchronize, 0);
  Buffer a = r.allocate(stream, kG).value();
  driver.script = nullptr;
  driver.fail<StreamIsCapturing>(DriverStatus::kLaunchFailed);
  driver.fail<StreamSynchronize>(DriverStatus::kLaunchFailed);
  EXPECT_TRUE(a.close().ok());
  ASSERT_EQ(sink.reports.size(), 1u);
  EXPECT_EQ(sink.reports[0].kind, FailureKind::kWaitSkipped);
}

TEST_F(IdleTest, RangeThatIsNotDoneLetsTheNextOneHaveItsTurn) {
  auto r = resource(FreePolicy::kDeferred, 0);
  Buffer a = r.allocate(stream, kG).value();
  Buffer b = r.allocate(stream, 2 * kG).value();
  EXPECT_TRUE(a.close().ok());
  const EventHandle first = driver.last<EventRecord>().event;
  const auto plain = driver.script;
  driver.script = [=](Call& call) -> std::optional<DriverStatus> {
    const auto* query = std::get_if<EventQuery>(&call);
    if (query && query->event == first) return DriverStatus::kNotReady;
    return plain(call);
  };
  EXPECT_TRUE(b.close().ok());
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(r.allocate(stream, 0).value().close().ok());
  EXPECT_EQ(r.statistics().retired, kG) << "a close looks at one at a time";
  driver.script = plain;
}

TEST_F(IdleTest, WantOfAddressesEvictsOnlyWhereTheRangeMayMove) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  leave_idle(r, stream);
  EXPECT_EQ(a.try_extend(2 * kG).status().error().exhausted, Exhausted::kAddresses);
  EXPECT_EQ(r.statistics().cached, kG) << "room elsewhere is no help";
  driver.fail<MemAddressReserve>(DriverStatus::kOutOfMemory);
  EXPECT_TRUE(r.allocate(stream, 2 * kG).ok());
  EXPECT_LE(r.statistics().cached, 2 * kG) << "the idle one went, the new one came";
  EXPECT_EQ(driver.count<MemAddressFree>(), 2u) << "of the probe and of the idle range";
}

TEST_F(IdleTest, WhatIsDoneIsReapedBeforeIdleMemoryGoes) {
  auto r = resource(FreePolicy::kDeferred, kG);
  driver.fail<EventQuery>(DriverStatus::kNotReady, 1, 999);
  leave_idle(r, stream);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(r.allocate(stream, 2 * kG).value().close().ok());
  driver.lift();
  driver.fail<MemCreate>(DriverStatus::kOutOfMemory);
  EXPECT_TRUE(r.allocate(stream, 3 * kG).ok());
  EXPECT_EQ(r.statistics().cached, kG);
}

TEST_F(IdleTest, SlackIsAShareToTheGranule) {
  VmmOptions options;
  options.slack_percent = 100;
  auto r = VirtualMemoryResource::create(driver, options, environment).value();
  Buffer a = r.allocate(stream, 300 * kG).value();
  ASSERT_TRUE(a.resize(301 * kG).ok());
  EXPECT_EQ(r.statistics().live, 600 * kG);
}

TEST_F(IdleTest, OrderThatIsRefusedIsNotTriedOnTheNextRange) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer b = r.allocate(third, kG).value();
  EXPECT_TRUE(a.close().ok());
  EXPECT_TRUE(b.close().ok());
  driver.fail<StreamWaitEvent>(DriverStatus::kUnknown);
  Buffer fresh = r.allocate(other, kG).value();
  EXPECT_EQ(driver.count<StreamWaitEvent>(), 1u);
  EXPECT_EQ(driver.count<MemCreate>(), 3u);
}

TEST_F(IdleTest, ExtensionInPlaceMakesRoomForItsMemory) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG, {.capacity = 4 * kG}).value();
  leave_idle(r, stream);
  driver.fail<MemCreate>(DriverStatus::kOutOfMemory);
  EXPECT_EQ(a.try_extend(2 * kG).value().placement, Placement::kKept);
  EXPECT_EQ(r.statistics().cached, 0u);
}

}  // namespace
}  // namespace granule
