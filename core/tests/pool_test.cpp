// Pools: which calls they make, how they end, and what they refuse.
#include <gtest/gtest.h>

#include <granule/pool.hpp>

#include "core_fixture.hpp"

namespace granule {
namespace {

class PoolTest : public CoreTest {
 protected:
  std::optional<DriverStatus> answer(Call& call) override {
    if (auto* create = std::get_if<MemPoolCreate>(&call)) {
      create->pool = PoolHandle{5};
    } else if (auto* get = std::get_if<DeviceGetDefaultMemPool>(&call)) {
      get->pool = PoolHandle{6};
    } else if (auto* query = std::get_if<MemPoolGetAttribute>(&call)) {
      query->value = attributes[static_cast<std::size_t>(query->attribute)];
    } else if (auto* alloc = std::get_if<MemAllocFromPoolAsync>(&call)) {
      alloc->ptr = DevicePtr{next += 4096};
    } else if (auto* plain = std::get_if<MemAlloc>(&call)) {
      plain->ptr = DevicePtr{next += 4096};
    } else if (auto* asked = std::get_if<StreamIsCapturing>(&call)) {
      asked->status = capture;
      return DriverStatus::kSuccess;
    }
    return std::nullopt;
  }
  StreamOrderedPool owned(PoolOptions options = {}) {
    return StreamOrderedPool::create(driver, options, environment).value();
  }
  RecyclingPool recycler(std::uint64_t limit = kNoLimit) {
    return RecyclingPool::create(driver, {{0}, limit}, environment).value();
  }

  std::uint64_t next = 1 << 20;
  std::array<std::uint64_t, 16> attributes{};
  CaptureStatus capture = CaptureStatus::kNone;  // of every stream
};

constexpr std::string_view kRelaxed = "ThreadExchangeStreamCaptureMode";

/// The calls, each in relaxed capture mode.
std::string relaxed(std::initializer_list<std::string_view> calls) {
  std::string text;
  for (const std::string_view call : calls) {
    text += text.empty() ? "" : " ";
    text.append(kRelaxed).append(" ").append(call).append(" ").append(kRelaxed);
  }
  return text;
}

TEST_F(PoolTest, OwnedPoolIsMadeSetAndDestroyed) {
  EXPECT_EQ(calls_of([&] {
              owned({{1}, false, 77, 1 << 25});
            }),
            "DeviceGetCount DeviceGetAttribute DeviceTotalMem " +
                relaxed({"MemPoolCreate", "MemPoolSetAttribute", "MemPoolGetAttribute",
                         "MemPoolDestroy"}));
  EXPECT_EQ(driver.last<MemPoolCreate>().properties.location, device_location({1}));
  EXPECT_EQ(driver.last<MemPoolCreate>().max_size, 1u << 25);
  EXPECT_EQ(driver.last<MemPoolSetAttribute>().attribute, PoolAttribute::kReleaseThreshold);
  EXPECT_EQ(driver.last<MemPoolSetAttribute>().value, 77u);
  EXPECT_EQ(driver.last<MemPoolDestroy>().pool, PoolHandle{5});
  EXPECT_TRUE(sink.reports.empty());
}

TEST_F(PoolTest, DefaultPoolIsPutBackAsItWasFound) {
  attributes[static_cast<std::size_t>(PoolAttribute::kReleaseThreshold)] = 11;
  attributes[static_cast<std::size_t>(PoolAttribute::kReservedMemCurrent)] = 22;
  {
    PoolOptions options;
    options.bind_default = true;
    StreamOrderedPool pool = owned(options);
    EXPECT_EQ(pool.handle(), PoolHandle{6});
    EXPECT_EQ(driver.last<MemPoolSetAttribute>().value, kNoLimit);
  }
  EXPECT_EQ(driver.last<MemPoolSetAttribute>().value, 11u);
  EXPECT_EQ(driver.last<MemPoolTrimTo>().keep, 22u);
  EXPECT_EQ(driver.count<MemPoolDestroy>(), 0u);
}

TEST_F(PoolTest, DefaultPoolThatCannotBeBoundIsLeftAlone) {
  PoolOptions options;
  options.bind_default = true;
  driver.fail<MemPoolSetAttribute>(DriverStatus::kUnknown);
  const auto pool = StreamOrderedPool::create(driver, options, environment);
  ASSERT_FALSE(pool.ok());
  EXPECT_EQ(pool.error().call, name_of(kind_of<MemPoolSetAttribute>));
  EXPECT_EQ(driver.count<MemPoolSetAttribute>(), 1u);
  driver.lift();
  driver.fail<MemPoolGetAttribute>(DriverStatus::kUnknown, 2);
  EXPECT_EQ(StreamOrderedPool::create(driver, options, environment).error().call,
            name_of(kind_of<MemPoolGetAttribute>));
  EXPECT_TRUE(sink.reports.empty());
}

TEST_F(PoolTest, WhatCannotBePutBackIsReported) {
  PoolOptions options;
  options.bind_default = true;
  {
    StreamOrderedPool pool = owned(options);
    driver.fail<MemPoolSetAttribute>(DriverStatus::kUnknown);
    driver.fail<MemPoolTrimTo>(DriverStatus::kUnknown);
  }
  ASSERT_EQ(sink.reports.size(), 2u);
  for (const FailureReport& report : sink.reports)
    EXPECT_EQ(report.kind, FailureKind::kReleaseFailed);
}

TEST_F(PoolTest, PoolWithLiveBlocksIsLeakedAndSaidSo) {
  {
    StreamOrderedPool pool = owned();
    attributes[static_cast<std::size_t>(PoolAttribute::kUsedMemCurrent)] = 512;
  }
  EXPECT_EQ(driver.count<MemPoolDestroy>(), 0u);
  ASSERT_EQ(sink.reports.size(), 1u);
  EXPECT_EQ(sink.reports[0].kind, FailureKind::kReleaseFailed);
  EXPECT_EQ(sink.reports[0].error.object, 5u) << "the pool";
  EXPECT_EQ(sink.reports[0].size, 512u);
}

TEST_F(PoolTest, RefusedDestroyIsReported) {
  {
    StreamOrderedPool pool = owned();
    driver.fail<MemPoolDestroy>(DriverStatus::kUnknown);
  }
  ASSERT_EQ(sink.reports.size(), 1u);
  EXPECT_EQ(sink.reports[0].error.call, name_of(kind_of<MemPoolDestroy>));
  EXPECT_EQ(sink.reports[0].error.object, 5u) << "the pool is named";
}

TEST_F(PoolTest, PeersAreTakenAwayOneByOneBeforeTheEnd) {
  {
    StreamOrderedPool pool = owned();
    EXPECT_TRUE(pool.set_peer_access({1}, Access::kReadWrite).ok());
    EXPECT_EQ(driver.last<MemPoolSetAccess>().access.entries[0].access, Access::kReadWrite);
  }
  EXPECT_EQ(driver.count<MemPoolSetAccess>(), 2u);
  EXPECT_EQ(driver.last<MemPoolSetAccess>().access.entries[0].access, Access::kNone);
  EXPECT_EQ(driver.last<MemPoolSetAccess>().access.entries[0].location, device_location({1}));
  {
    StreamOrderedPool pool = owned();
    EXPECT_TRUE(pool.set_peer_access({1}, Access::kReadWrite).ok());
    EXPECT_TRUE(pool.set_peer_access({1}, Access::kNone).ok());
  }
  EXPECT_EQ(driver.count<MemPoolSetAccess>(), 4u) << "nothing was left to take away";
}

TEST_F(PoolTest, HighestPeerIsTakenAwayToo) {
  driver.script = [this](Call& call) -> std::optional<DriverStatus> {
    auto* count = std::get_if<DeviceGetCount>(&call);
    if (!count) return answer(call);
    count->count = 40;
    return DriverStatus::kSuccess;
  };
  {
    StreamOrderedPool pool = owned();
    EXPECT_TRUE(pool.set_peer_access({31}, Access::kReadWrite).ok());
  }
  EXPECT_EQ(driver.count<MemPoolSetAccess>(), 2u);
  {
    StreamOrderedPool pool = owned({{1}, false, 0, 0});
    EXPECT_TRUE(pool.set_peer_access({0}, Access::kReadWrite).ok());
  }
  EXPECT_EQ(driver.count<MemPoolSetAccess>(), 4u);
}

TEST_F(PoolTest, PeersThatCannotBeAreRefused) {
  StreamOrderedPool pool = owned();
  const auto refused = [&](std::int32_t peer) {
    const Status done = pool.set_peer_access({peer}, Access::kReadWrite);
    return done.ok() ? ErrorCode::kDriver : done.error().code;
  };
  for (const std::int32_t peer : {0, -1, 2, 32})  // of two devices
    EXPECT_EQ(refused(peer), ErrorCode::kInvalidArgument) << peer;
  EXPECT_EQ(driver.count<DeviceCanAccessPeer>(), 0u);
  driver.fail<DeviceCanAccessPeer>(DriverStatus::kUnknown);
  EXPECT_EQ(pool.set_peer_access({1}, Access::kReadWrite).error().driver, DriverStatus::kUnknown);
  driver.script = [this](Call& call) -> std::optional<DriverStatus> {
    auto* can = std::get_if<DeviceCanAccessPeer>(&call);
    if (!can) return answer(call);
    can->can = 0;
    return DriverStatus::kSuccess;
  };
  EXPECT_EQ(refused(1), ErrorCode::kInvalidArgument);
  EXPECT_EQ(driver.count<MemPoolSetAccess>(), 0u);
  EXPECT_TRUE(pool.set_peer_access({1}, Access::kNone).ok()) << "taking away asks nothing";
}

TEST_F(PoolTest, DevicesWithoutPoolsAndDevicesThatAreNoneAreRefused) {
  const auto code_of = [&](PoolOptions options) {
    return StreamOrderedPool::create(driver, options, environment).status().error().code;
  };
  EXPECT_EQ(code_of({{2}, false, 0, 0}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of({{-1}, false, 0, 0}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(RecyclingPool::create(driver, {{2}, 0}, environment).status().error().code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(RecyclingPool::create(driver, {{-1}, 0}, environment).status().error().code,
            ErrorCode::kInvalidArgument);
  driver.script = [this](Call& call) -> std::optional<DriverStatus> {
    auto* get = std::get_if<DeviceGetAttribute>(&call);
    if (!get) return answer(call);
    get->value = 0;
    return DriverStatus::kSuccess;
  };
  EXPECT_EQ(code_of({}), ErrorCode::kUnsupported);
  driver.script = [this](Call& call) { return answer(call); };
  driver.fail<DeviceGetAttribute>(DriverStatus::kInvalidValue);
  EXPECT_TRUE(StreamOrderedPool::create(driver, {}, environment).ok()) << "an older driver";
  driver.fail<DeviceGetCount>(DriverStatus::kNotInitialized, 1, 2);
  EXPECT_EQ(code_of({}), ErrorCode::kDriver);
  EXPECT_EQ(RecyclingPool::create(driver, {}, environment).status().error().code,
            ErrorCode::kDriver);
}

TEST_F(PoolTest, BlocksComeAndGoInRelaxedMode) {
  StreamOrderedPool pool = owned();
  std::optional<PoolBuffer> block;
  EXPECT_EQ(calls_of([&] { block = pool.allocate(stream, 100).value(); }),
            "StreamIsCapturing " + std::string(kRelaxed) + " MemAllocFromPoolAsync " +
                std::string(kRelaxed));
  EXPECT_EQ(block->size(), 100u);
  EXPECT_EQ(block->stream(), stream);
  EXPECT_EQ(
      calls_of([&] { EXPECT_TRUE(block->close(other).ok()); }),
      "StreamIsCapturing " + std::string(kRelaxed) + " MemFreeAsync " + std::string(kRelaxed));
  EXPECT_EQ(driver.last<MemFreeAsync>().stream, other.handle());
  EXPECT_TRUE(block->is_closed());
  EXPECT_EQ(block->size(), 0u);
  EXPECT_FALSE(block->ptr());
  EXPECT_TRUE(block->close().ok());
}

TEST_F(PoolTest, DefaultStreamEntersItsContextForABlock) {
  StreamOrderedPool pool = owned();
  EXPECT_EQ(calls_of([&] { (void)pool.allocate_raw(Stream::legacy({1}), 100).value(); }),
            "DevicePrimaryCtxRetain CtxPushCurrent StreamIsCapturing CtxPopCurrent "
            "DevicePrimaryCtxRelease DevicePrimaryCtxRetain CtxPushCurrent " +
                relaxed({"MemAllocFromPoolAsync"}) + " CtxPopCurrent DevicePrimaryCtxRelease");
  EXPECT_TRUE(pool.free(Stream::legacy({1}), DevicePtr{4096}).ok());
  EXPECT_EQ(driver.last<DevicePrimaryCtxRetain>().device, DeviceId{1});
}

TEST_F(PoolTest, RefusedRequestTrimsThePool) {
  StreamOrderedPool pool = owned();
  driver.fail<MemAllocFromPoolAsync>(DriverStatus::kOutOfMemory);
  const Error error = pool.allocate(stream, 100).status().error();
  EXPECT_EQ(error.code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(error.wanted, 100u);
  EXPECT_EQ(driver.last<MemPoolTrimTo>().keep, 0u);
  driver.lift();
  driver.fail<MemAllocFromPoolAsync>(DriverStatus::kUnknown);
  EXPECT_EQ(pool.allocate(stream, 100).status().error().code, ErrorCode::kDriver);
  EXPECT_EQ(driver.count<MemPoolTrimTo>(), 1u) << "not for other errors";
}

TEST_F(PoolTest, HopelessAndEmptyRequestsReachNoDriver) {
  StreamOrderedPool pool = owned();
  const std::size_t before = driver.log.size();
  EXPECT_EQ(pool.allocate(stream, 0).status().error().code, ErrorCode::kInvalidArgument);
  const Error error = pool.allocate(stream, (1ull << 40) + 1).status().error();
  EXPECT_EQ(error.exhausted, Exhausted::kDevice);
  EXPECT_EQ(error.wanted, (1ull << 40) + 1);
  EXPECT_EQ(error.available, 1ull << 40);
  EXPECT_TRUE(pool.free(stream, {}).ok()) << "null";
  EXPECT_EQ(driver.log.size(), before);
  EXPECT_TRUE(pool.allocate_raw(stream, 1ull << 40).ok()) << "all of it may be asked for";
}

TEST_F(PoolTest, UsageReadsFourCountersAndHighsAreReset) {
  StreamOrderedPool pool = owned();
  attributes[static_cast<std::size_t>(PoolAttribute::kReservedMemCurrent)] = 1;
  attributes[static_cast<std::size_t>(PoolAttribute::kReservedMemHigh)] = 2;
  attributes[static_cast<std::size_t>(PoolAttribute::kUsedMemHigh)] = 4;
  const PoolUsage usage = pool.usage().value();
  EXPECT_EQ(usage.reserved, 1u);
  EXPECT_EQ(usage.reserved_high, 2u);
  EXPECT_EQ(usage.used, 0u);
  EXPECT_EQ(usage.used_high, 4u);
  const std::size_t before = driver.log.size();
  EXPECT_TRUE(pool.reset_high().ok());
  EXPECT_EQ(driver.calls(before), relaxed({"MemPoolSetAttribute", "MemPoolSetAttribute"}));
  EXPECT_EQ(driver.last<MemPoolSetAttribute>().attribute, PoolAttribute::kUsedMemHigh);
  EXPECT_EQ(driver.last<MemPoolSetAttribute>().value, 0u);
  driver.fail<MemPoolSetAttribute>(DriverStatus::kUnknown);
  EXPECT_FALSE(pool.reset_high().ok());
  driver.fail<MemPoolGetAttribute>(DriverStatus::kUnknown);
  EXPECT_FALSE(pool.usage().ok());
}

TEST_F(PoolTest, ReusePoliciesAreAttributes) {
  StreamOrderedPool pool = owned();
  const std::pair<ReusePolicy, PoolAttribute> all[] = {
      {ReusePolicy::kFollowEvents, PoolAttribute::kReuseFollowEventDependencies},
      {ReusePolicy::kOpportunistic, PoolAttribute::kReuseAllowOpportunistic},
      {ReusePolicy::kInternalDependencies, PoolAttribute::kReuseAllowInternalDependencies}};
  for (const auto& [policy, attribute] : all)
    for (const bool on : {true, false}) {
      EXPECT_TRUE(pool.set_reuse(policy, on).ok());
      EXPECT_EQ(driver.last<MemPoolSetAttribute>().attribute, attribute);
      EXPECT_EQ(driver.last<MemPoolSetAttribute>().value, on ? 1u : 0u);
    }
  EXPECT_TRUE(pool.set_threshold(99).ok());
  EXPECT_EQ(driver.last<MemPoolSetAttribute>().value, 99u);
}

}  // namespace
}  // namespace granule
