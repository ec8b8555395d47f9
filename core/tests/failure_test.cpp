// What a caller and the failure sink are told: the kind of a report, the range, and the numbers.
#include <gtest/gtest.h>

#include <granule/resource.hpp>

#include "scripted_backend.hpp"

namespace granule {
namespace {

class FailureTest : public testing::Test {
 protected:
  VirtualMemoryResource resource(const VmmOptions& options = {}) {
    Environment environment;
    environment.sink = &sink;
    environment.runtime.memory = &memory;
    return VirtualMemoryResource::create(driver, options, environment).value();
  }
  VirtualMemoryResource deferred() {
    VmmOptions options;
    options.free = FreePolicy::kDeferred;
    return resource(options);
  }
  void capture(CaptureStatus status) {
    driver.script = [status](Call& call) -> std::optional<DriverStatus> {
      auto* query = std::get_if<StreamIsCapturing>(&call);
      if (!query) return std::nullopt;
      query->status = status;
      return DriverStatus::kSuccess;
    };
  }
  void expect_report(FailureKind kind, DevicePtr ptr, std::uint64_t size) {
    ASSERT_EQ(sink.reports.size(), 1u);
    EXPECT_EQ(sink.reports[0].kind, kind);
    EXPECT_EQ(sink.reports[0].ptr, ptr);
    EXPECT_EQ(sink.reports[0].size, size);
    sink.reports.clear();
  }
  ~FailureTest() override {
    EXPECT_EQ(memory.blocks, 0u);
    EXPECT_EQ(memory.bytes, 0u);
  }
  CountedMemory memory;
  ScriptedBackend driver;
  KeptReports sink;
  Stream stream = Stream::bind(driver, StreamHandle{0x77}).value();
  Stream other = Stream::bind(driver, StreamHandle{0x78}).value();
};

TEST_F(FailureTest, RefusedReleaseIsALeakThatStaysCharged) {
  auto r = resource();
  Buffer a = r.allocate(stream, 2 * kG).value();
  driver.fail<MemRelease>(DriverStatus::kUnknown);
  EXPECT_TRUE(a.close().ok());
  expect_report(FailureKind::kReleaseFailed, {}, 2 * kG);
  const Statistics now = r.statistics();
  EXPECT_EQ(now.leaked_handles, 1u);
  EXPECT_EQ(now.leaked_handle_bytes, 2 * kG);
  EXPECT_EQ(now.charged, 2 * kG);
  EXPECT_EQ(r.check_invariants(), "");
}

TEST_F(FailureTest, RefusedAddressFreeIsALeak) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  const DevicePtr ptr = a.ptr();
  driver.fail<MemAddressFree>(DriverStatus::kUnknown);
  EXPECT_TRUE(a.close().ok());
  EXPECT_EQ(sink.reports.at(0).error.object, ptr.value);
  expect_report(FailureKind::kReleaseFailed, ptr, kG);
  EXPECT_EQ(r.statistics().leaked_reservations, 1u);
  EXPECT_EQ(r.statistics().reservations, 0u);
}

TEST_F(FailureTest, RefusedUnmapIsQuarantined) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  const DevicePtr ptr = a.ptr();
  driver.fail<MemUnmap>(DriverStatus::kUnknown);
  EXPECT_TRUE(a.close().ok());
  expect_report(FailureKind::kQuarantined, ptr, kG);
  EXPECT_EQ(r.statistics().quarantined, kG);
  EXPECT_EQ(r.statistics().mappings, 1u);
  std::size_t seen = 0;
  r.for_each_mapping([&](const VirtualMemoryResource::MappingView& view) {
    ++seen;
    EXPECT_TRUE(view.quarantined);
    EXPECT_TRUE(view.mapped);
    EXPECT_EQ(view.base, ptr);
    EXPECT_EQ(view.reservation, ptr);
    EXPECT_EQ(view.size, kG);
    EXPECT_EQ(view.reservation_size, kG);
    EXPECT_TRUE(view.handle);
  });
  EXPECT_EQ(seen, 1u);
  EXPECT_EQ(r.check_invariants(), "");
}

TEST_F(FailureTest, ViewsTellMappedFromSuspended) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer* set[] = {&a};
  const auto view_of = [&] {
    VirtualMemoryResource::MappingView view;
    r.for_each_mapping([&](const auto& one) { view = one; });
    return view;
  };
  EXPECT_TRUE(view_of().mapped);
  EXPECT_FALSE(view_of().quarantined);
  ASSERT_TRUE(view_of().access);
  EXPECT_TRUE(r.suspend(set, false).ok());
  EXPECT_FALSE(view_of().mapped);
  EXPECT_FALSE(view_of().handle);
  EXPECT_TRUE(r.resume(set).ok());
}

TEST_F(FailureTest, StickyErrorSkipsTheWaitAndSaysSo) {
  for (const bool later : {false, true}) {
    auto r = later ? deferred() : resource();
    Buffer a = r.allocate(stream, kG).value();
    const DevicePtr ptr = a.ptr();
    driver.fail<StreamSynchronize>(DriverStatus::kLaunchFailed, 1, 9);
    driver.fail<EventRecord>(DriverStatus::kLaunchFailed, 1, 9);
    EXPECT_TRUE(a.close().ok());
    expect_report(FailureKind::kWaitSkipped, ptr, kG);
    EXPECT_EQ(r.statistics().mapped, 0u) << "given back at once";
    driver.lift();
  }
}

TEST_F(FailureTest, StickyErrorOfAMarkerEndsItsRange) {
  auto r = deferred();
  Buffer a = r.allocate(stream, kG).value();
  const DevicePtr ptr = a.ptr();
  EXPECT_TRUE(a.close().ok());
  driver.fail<EventQuery>(DriverStatus::kLaunchFailed);
  EXPECT_EQ(r.collect().ranges, 1u);
  expect_report(FailureKind::kWaitSkipped, ptr, kG);
}

TEST_F(FailureTest, WaitThatFailsOtherwiseLeavesTheBufferOpen) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  driver.fail<StreamSynchronize>(DriverStatus::kUnknown);
  const Status closed = a.close();
  ASSERT_FALSE(closed.ok());
  EXPECT_EQ(closed.error().code, ErrorCode::kDriver);
  EXPECT_EQ(closed.error().object, stream.handle().value);
  EXPECT_FALSE(a.is_closed());
  EXPECT_TRUE(sink.reports.empty());
}

TEST_F(FailureTest, CloseOnAnotherStreamThatFailsIsUndone) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG, {.zero = true}).value();
  driver.fail<StreamSynchronize>(DriverStatus::kUnknown);
  EXPECT_FALSE(a.close(other).ok());
  EXPECT_EQ(a.stream(), stream);
  driver.lift();
  const std::size_t before = driver.count<StreamSynchronize>();
  EXPECT_TRUE(a.close(other).ok());
  EXPECT_EQ(driver.count<StreamSynchronize>(), before + 2);
}

TEST_F(FailureTest, DropDuringACaptureParksAndTheNextCallReaps) {
  auto r = resource();
  const DevicePtr ptr = [&] {
    Buffer a = r.allocate(stream, kG).value();
    capture(CaptureStatus::kActive);
    return a.ptr();
  }();
  EXPECT_EQ(sink.reports.at(0).error.code, ErrorCode::kCapturing);
  expect_report(FailureKind::kParked, ptr, kG);
  EXPECT_EQ(r.statistics().parked, kG);
  EXPECT_EQ(r.collect().pending, 1u);
  EXPECT_TRUE(sink.reports.empty()) << "said once";
  driver.script = nullptr;
  EXPECT_EQ(r.collect().ranges, 1u);
  EXPECT_EQ(r.statistics().parked, 0u);
}

TEST_F(FailureTest, CloseDuringACaptureIsAnErrorWithTheStream) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  capture(CaptureStatus::kActive);
  EXPECT_EQ(a.close().error().code, ErrorCode::kCapturing);
  EXPECT_EQ(a.shrink(0).status().error().object, stream.handle().value);
  EXPECT_EQ(a.size(), kG);
  driver.script = nullptr;
}

TEST_F(FailureTest, ResourceThatEndsWithAParkedRangeSaysThatItLeaks) {
  {
    auto r = resource();
    Buffer a = r.allocate(stream, kG).value();
    capture(CaptureStatus::kActive);
  }
  ASSERT_EQ(sink.reports.size(), 2u);
  EXPECT_EQ(sink.reports[0].kind, FailureKind::kParked);
  EXPECT_EQ(sink.reports[1].kind, FailureKind::kReleaseFailed);
  EXPECT_EQ(sink.reports[1].error.code, ErrorCode::kCapturing);
  EXPECT_EQ(sink.reports[1].size, kG);
  EXPECT_EQ(driver.count<MemUnmap>(), 0u);
}

TEST_F(FailureTest, ResourceThatEndsGivesIdleRangesBack) {
  VmmOptions options;
  options.cache = 8 * kG;
  {
    auto r = resource(options);
    Buffer a = r.allocate(stream, kG).value();
    Buffer b = r.allocate(stream, kG).value();
    EXPECT_TRUE(a.close().ok());
    EXPECT_TRUE(b.close().ok());
  }
  EXPECT_EQ(driver.count<MemAddressFree>(), 2u);
  EXPECT_TRUE(sink.reports.empty());
}

TEST_F(FailureTest, IdleRangeThatCannotBeWaitedForIsParkedThenLeaked) {
  VmmOptions options;
  options.cache = 8 * kG;
  DevicePtr ptr;
  {
    auto r = resource(options);
    Buffer a = r.allocate(stream, kG).value();
    ptr = a.ptr();
    EXPECT_TRUE(a.close().ok());
    driver.fail<StreamSynchronize>(DriverStatus::kUnknown, 1, 9);
  }
  ASSERT_EQ(sink.reports.size(), 2u);
  EXPECT_EQ(sink.reports[0].kind, FailureKind::kParked);
  EXPECT_EQ(sink.reports[0].ptr, ptr);
  EXPECT_EQ(sink.reports[0].size, kG);
  EXPECT_EQ(sink.reports[1].kind, FailureKind::kReleaseFailed);
  EXPECT_EQ(driver.count<MemAddressFree>(), 0u);
}

TEST_F(FailureTest, EventThatIsNotDestroyedIsReported) {
  {
    auto r = deferred();
    Buffer a = r.allocate(stream, kG).value();
    EXPECT_TRUE(a.close().ok());
    driver.fail<EventDestroy>(DriverStatus::kUnknown);
  }
  expect_report(FailureKind::kReleaseFailed, {}, 0);
}

TEST_F(FailureTest, MarkerOfADefaultStreamHoldsItsPrimaryContext) {
  {
    auto r = deferred();
    Buffer a = r.allocate(Stream::legacy({1}), kG).value();
    EXPECT_TRUE(a.close().ok());
    EXPECT_EQ(driver.count<DevicePrimaryCtxRetain>(), driver.count<DevicePrimaryCtxRelease>() + 1);
  }
  EXPECT_EQ(driver.count<DevicePrimaryCtxRetain>(), driver.count<DevicePrimaryCtxRelease>());
  EXPECT_EQ(driver.last<DevicePrimaryCtxRelease>().device, DeviceId{1});
}

TEST_F(FailureTest, EventThatIsNotMadeGivesTheContextBack) {
  auto r = deferred();
  Buffer a = r.allocate(Stream::legacy({0}), kG).value();
  driver.fail<EventCreate>(DriverStatus::kOutOfMemory);
  const Status closed = a.close();
  ASSERT_FALSE(closed.ok());
  EXPECT_EQ(closed.error().call, name_of(kind_of<EventCreate>));
  EXPECT_EQ(driver.count<DevicePrimaryCtxRetain>(), driver.count<DevicePrimaryCtxRelease>());
}

TEST_F(FailureTest, RecordThatACaptureForbidsIsCapturing) {
  auto r = deferred();
  Buffer a = r.allocate(stream, kG).value();
  driver.fail<EventRecord>(DriverStatus::kStreamCaptureUnsupported);
  EXPECT_EQ(a.close().error().code, ErrorCode::kCapturing);
  driver.lift();
  driver.fail<EventRecord>(DriverStatus::kUnknown);
  EXPECT_EQ(a.close().error().code, ErrorCode::kDriver);
}

TEST_F(FailureTest, WaitThatACaptureForbidsIsCapturing) {
  for (const DriverStatus status :
       {DriverStatus::kStreamCaptureUnsupported, DriverStatus::kStreamCaptureInvalidated,
        DriverStatus::kStreamCaptureImplicit}) {
    auto r = resource();
    Buffer a = r.allocate(stream, kG).value();
    driver.fail<StreamSynchronize>(status);
    EXPECT_EQ(a.close().error().code, ErrorCode::kCapturing);
    driver.lift();
  }
}

TEST_F(FailureTest, BudgetThatIsReachedSaysHowMuchThereIs) {
  VmmOptions options;
  options.limit = 4 * kG;
  auto r = resource(options);
  Buffer a = r.allocate(stream, 3 * kG).value();
  const Error error = r.allocate(stream, 2 * kG).status().error();
  EXPECT_EQ(error.code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(error.exhausted, Exhausted::kBudget);
  EXPECT_EQ(error.wanted, 2 * kG);
  EXPECT_EQ(error.available, kG);
  EXPECT_TRUE(r.allocate(stream, kG).ok()) << "to the last byte";
  const Error hopeless = r.allocate(stream, 5 * kG).status().error();
  EXPECT_EQ(hopeless.exhausted, Exhausted::kBudget);
  EXPECT_EQ(hopeless.wanted, 5 * kG);
  EXPECT_EQ(hopeless.available, 4 * kG);
}

TEST_F(FailureTest, WantOfDeviceMemorySaysHowMuchWasWanted) {
  auto r = resource();
  driver.fail<MemCreate>(DriverStatus::kOutOfMemory, 1, 9);
  const Error error = r.allocate(stream, 2 * kG).status().error();
  EXPECT_EQ(error.code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(error.exhausted, Exhausted::kDevice);
  EXPECT_EQ(error.wanted, 2 * kG);
  EXPECT_EQ(error.call, name_of(kind_of<MemCreate>));
  EXPECT_EQ(r.statistics().charged, 0u);
}

TEST_F(FailureTest, WantOfAddressesSaysSo) {
  auto r = resource();
  driver.fail<MemAddressReserve>(DriverStatus::kOutOfMemory, 1, 9);
  const Error error = r.allocate(stream, kG, {.capacity = 8 * kG}).status().error();
  EXPECT_EQ(error.exhausted, Exhausted::kAddresses);
  EXPECT_EQ(error.wanted, 8 * kG);
}

TEST_F(FailureTest, MemoryHeldBackByACaptureIsPending) {
  auto r = resource();
  {
    Buffer a = r.allocate(stream, 2 * kG).value();
    capture(CaptureStatus::kActive);
  }
  driver.fail<MemCreate>(DriverStatus::kOutOfMemory, 1, 9);
  const Error error = r.allocate(stream, 2 * kG).status().error();
  EXPECT_EQ(error.exhausted, Exhausted::kPending);
  EXPECT_EQ(error.available, 2 * kG);
  EXPECT_EQ(r.allocate(stream, 3 * kG).status().error().exhausted, Exhausted::kDevice)
      << "that would not have been enough";
  driver.script = nullptr;
}

TEST_F(FailureTest, EveryHostAllocationMayFail) {
  auto r = resource();
  for (std::size_t nth = 1; nth <= 4; ++nth) {
    memory.fail_in = nth;
    const Result<Buffer> a = r.allocate(stream, kG);
    ASSERT_FALSE(a.ok()) << nth;
    EXPECT_EQ(a.error().code, ErrorCode::kOutOfMemory);
    EXPECT_EQ(a.error().exhausted, Exhausted::kHost);
    EXPECT_GT(a.error().wanted, 0u);
    EXPECT_EQ(r.statistics().charged, 0u);
    EXPECT_EQ(r.statistics().reservations, 0u);
  }
  memory.fail_in = 5;
  EXPECT_TRUE(r.allocate(stream, kG).ok()) << "record, reservation, mapping, chunk: no more";
  memory.fail_in = 0;
}

TEST_F(FailureTest, MapThatWasDoneThoughRefusedIsTakenBack) {
  auto r = resource();
  driver.fail<MemMap>(DriverStatus::kUnknown);
  const std::size_t before = driver.log.size();
  const Result<Buffer> a = r.allocate(stream, kG);
  ASSERT_FALSE(a.ok());
  EXPECT_EQ(a.error().call, name_of(kind_of<MemMap>));
  EXPECT_EQ(driver.calls(before),
            "MemAddressReserve MemCreate MemMap MemGetAccess MemUnmap MemRelease MemAddressFree");
}

TEST_F(FailureTest, MapThatWasNotDoneIsLeftAlone) {
  auto r = resource();
  driver.fail<MemMap>(DriverStatus::kUnknown);
  driver.fail<MemGetAccess>(DriverStatus::kInvalidValue);
  const std::size_t before = driver.log.size();
  EXPECT_FALSE(r.allocate(stream, kG).ok());
  EXPECT_EQ(driver.calls(before),
            "MemAddressReserve MemCreate MemMap MemGetAccess MemRelease MemAddressFree");
}

TEST_F(FailureTest, NotReadyIsTriedAgainEightTimes) {
  auto r = resource();
  driver.fail<MemCreate>(DriverStatus::kNotReady, 1, 8);
  EXPECT_TRUE(r.allocate(stream, kG).ok());
  driver.lift();
  driver.fail<MemCreate>(DriverStatus::kNotReady, 1, 9);
  EXPECT_EQ(r.allocate(stream, kG).status().error().driver, DriverStatus::kNotReady);
}

TEST_F(FailureTest, MessagesSayWhatToDo) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  capture(CaptureStatus::kActive);
  EXPECT_NE(to_string(a.close().error()).find("captured"), std::string::npos);
  driver.script = nullptr;
  EXPECT_TRUE(a.close().ok());
  EXPECT_NE(to_string(a.grow(kG).status().error()).find("the buffer is closed"), std::string::npos);
}

}  // namespace
}  // namespace granule
