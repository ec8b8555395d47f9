// Binding of streams, contexts and capture modes: which calls are made, and put right again.
#include <gtest/gtest.h>

#include <granule/resource.hpp>

#include "scripted_backend.hpp"

namespace granule {
namespace {

constexpr StreamHandle kHandle{0x77};

class StreamTest : public testing::Test {
 protected:
  ScriptedBackend driver;
};

TEST_F(StreamTest, DefaultStreamsAreNotBoundByHandle) {
  for (const StreamHandle handle : {kLegacyStream, kPerThreadStream, StreamHandle{}}) {
    const Result<Stream> bound = Stream::bind(driver, handle);
    ASSERT_FALSE(bound.ok());
    EXPECT_EQ(bound.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(bound.error().object, handle.value);
  }
  EXPECT_TRUE(driver.log.empty());
}

TEST_F(StreamTest, BindingAsksForContextIdAndDevice) {
  driver.script = [](Call& call) -> std::optional<DriverStatus> {
    if (auto* get = std::get_if<CtxGetDevice>(&call)) {
      get->device = DeviceId{1};
      return DriverStatus::kSuccess;
    }
    return std::nullopt;
  };
  const Stream stream = Stream::bind(driver, kHandle, {.never_captures = true}).value();
  EXPECT_EQ(stream.handle(), kHandle);
  EXPECT_EQ(stream.kind(), StreamKind::kCreated);
  EXPECT_EQ(stream.context(), ContextHandle{7});
  EXPECT_EQ(stream.device(), DeviceId{1});
  EXPECT_EQ(stream.id(), StreamId{kHandle.value});
  EXPECT_TRUE(stream.never_captures());
  EXPECT_EQ(driver.calls(), "StreamGetCtx StreamGetId CtxPushCurrent CtxGetDevice CtxPopCurrent");
  EXPECT_FALSE(Stream::bind(driver, kHandle).value().never_captures());
}

template <class C>
void expect_refused(ErrorCode code) {
  ScriptedBackend driver;
  driver.fail<C>(DriverStatus::kUnknown);
  const Result<Stream> bound = Stream::bind(driver, kHandle);
  ASSERT_FALSE(bound.ok()) << name_of(kind_of<C>);
  EXPECT_EQ(bound.error().code, code);
  EXPECT_EQ(bound.error().driver, DriverStatus::kUnknown);
  EXPECT_EQ(bound.error().call, name_of(kind_of<C>));
  const bool pushed = kind_of<C> == kind_of<CtxGetDevice>;
  EXPECT_EQ(driver.count<CtxPopCurrent>(), pushed ? 1u : 0u);
}

TEST_F(StreamTest, BindingThatTheDriverRefusesSaysWhichCall) {
  expect_refused<StreamGetCtx>(ErrorCode::kDriver);
  expect_refused<StreamGetId>(ErrorCode::kDriver);
  expect_refused<CtxPushCurrent>(ErrorCode::kDriver);
  expect_refused<CtxGetDevice>(ErrorCode::kDriver);
}

TEST_F(StreamTest, WithoutIdsTheHandleHasToDo) {
  driver.fail<StreamGetId>(DriverStatus::kUnavailable);
  EXPECT_EQ(Stream::bind(driver, kHandle).value().id(), StreamId{kHandle.value});
}

TEST_F(StreamTest, StreamThatCapturesIsBoundBefore) {
  driver.fail<StreamGetId>(DriverStatus::kStreamCaptureUnsupported);
  const Result<Stream> bound = Stream::bind(driver, kHandle);
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error().code, ErrorCode::kCapturing);
  EXPECT_EQ(bound.error().object, kHandle.value);
}

TEST_F(StreamTest, LegacyStreamIsNamedWithoutACall) {
  const Stream stream = Stream::legacy({1});
  EXPECT_EQ(stream.handle(), kLegacyStream);
  EXPECT_EQ(stream.kind(), StreamKind::kLegacy);
  EXPECT_EQ(stream.device(), DeviceId{1});
  EXPECT_FALSE(stream == Stream::legacy({0}));
}

TEST_F(StreamTest, PerThreadStreamAsksInItsPrimaryContext) {
  const Stream stream = Stream::per_thread(driver, {1}).value();
  EXPECT_EQ(stream.handle(), kPerThreadStream);
  EXPECT_EQ(stream.kind(), StreamKind::kPerThread);
  EXPECT_EQ(stream.device(), DeviceId{1});
  EXPECT_EQ(stream.id(), StreamId{kPerThreadStream.value});
  EXPECT_EQ(driver.calls(),
            "DevicePrimaryCtxRetain CtxPushCurrent StreamGetId CtxPopCurrent "
            "DevicePrimaryCtxRelease");
  EXPECT_EQ(driver.last<DevicePrimaryCtxRelease>().device, DeviceId{1});
}

TEST_F(StreamTest, RefusedRetainIsTheErrorAndNothingIsEntered) {
  driver.fail<DevicePrimaryCtxRetain>(DriverStatus::kOutOfMemory);
  const Result<Stream> bound = Stream::per_thread(driver, {0});
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(bound.error().exhausted, Exhausted::kDevice);
  EXPECT_EQ(driver.calls(), "DevicePrimaryCtxRetain");
}

TEST_F(StreamTest, RefusedPushGivesTheRetainBack) {
  driver.fail<CtxPushCurrent>(DriverStatus::kInvalidContext);
  const Result<Stream> bound = Stream::per_thread(driver, {0});
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error().object, 7u) << "the context";
  EXPECT_EQ(driver.calls(), "DevicePrimaryCtxRetain CtxPushCurrent DevicePrimaryCtxRelease");
}

TEST_F(StreamTest, RefusedPopIsTriedAgainWhileTheContextIsStillThere) {
  driver.script = [](Call& call) -> std::optional<DriverStatus> {
    auto* now = std::get_if<CtxGetCurrent>(&call);
    if (!now) return std::nullopt;
    now->context = ContextHandle{7};
    return DriverStatus::kSuccess;
  };
  driver.fail<CtxPopCurrent>(DriverStatus::kUnknown);
  EXPECT_TRUE(Stream::bind(driver, kHandle).ok());
  EXPECT_EQ(driver.calls(3), "CtxGetDevice CtxPopCurrent CtxGetCurrent CtxPopCurrent");
}

TEST_F(StreamTest, RefusedPopThatWasDoneIsNotDoneTwice) {
  driver.script = [](Call& call) -> std::optional<DriverStatus> {
    auto* now = std::get_if<CtxGetCurrent>(&call);
    if (!now) return std::nullopt;
    now->context = ContextHandle{8};
    return DriverStatus::kSuccess;
  };
  driver.fail<CtxPopCurrent>(DriverStatus::kUnknown);
  EXPECT_TRUE(Stream::bind(driver, kHandle).ok());
  EXPECT_EQ(driver.calls(3), "CtxGetDevice CtxPopCurrent CtxGetCurrent");
}

class ModeTest : public StreamTest {
 protected:
  ModeTest() {
    driver.script = [this](Call& call) -> std::optional<DriverStatus> {
      auto* exchange = std::get_if<ThreadExchangeStreamCaptureMode>(&call);
      if (!exchange) return std::nullopt;
      modes.push_back(exchange->mode);
      if (!refused.empty() && modes.size() == refused.front()) {
        refused.erase(refused.begin());
        exchange->previous = CaptureMode::kRelaxed;  // poison
        return DriverStatus::kUnknown;
      }
      exchange->previous = CaptureMode::kThreadLocal;
      return DriverStatus::kSuccess;
    };
  }
  Status close_one() {
    auto r = VirtualMemoryResource::create(driver, {}).value();
    const Stream stream = Stream::bind(driver, kHandle).value();
    Buffer a = r.allocate(stream, NullBackend::kGranule).value();
    Status closed = a.close();
    modes_of_close = modes.size();
    return closed;
  }
  std::vector<CaptureMode> modes;
  std::vector<std::size_t> refused;  // numbers of the exchanges, from 1
  std::size_t modes_of_close = 0;
};

TEST_F(ModeTest, CaptureModeIsRelaxedForAWaitAndPutBack) {
  EXPECT_TRUE(close_one().ok());
  ASSERT_EQ(modes_of_close, 2u);
  EXPECT_EQ(modes[0], CaptureMode::kRelaxed);
  EXPECT_EQ(modes[1], CaptureMode::kThreadLocal);
}

TEST_F(ModeTest, ModeThatWasNotPutBackIsPutBackOnASecondTry) {
  refused = {2};
  EXPECT_TRUE(close_one().ok());
  ASSERT_EQ(modes_of_close, 3u);
  EXPECT_EQ(modes[1], CaptureMode::kThreadLocal);
  EXPECT_EQ(modes[2], CaptureMode::kThreadLocal);
}

TEST_F(ModeTest, ModeThatWasNotRelaxedIsLeftAlone) {
  refused = {1};
  const Status closed = close_one();
  ASSERT_FALSE(closed.ok());
  EXPECT_EQ(closed.error().call, name_of(kind_of<ThreadExchangeStreamCaptureMode>));
  EXPECT_EQ(modes_of_close, 1u);
}

}  // namespace
}  // namespace granule
