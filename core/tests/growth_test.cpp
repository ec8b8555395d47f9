// Growth: policy, capacity, places, and what happens on the way out of memory.
#include <gtest/gtest.h>

#include "core_fixture.hpp"

namespace granule {
namespace {

class GrowthTest : public CoreTest {
 protected:
  /// No more than so many bytes at a time are to be had.
  void memory_in_pieces_of(std::uint64_t most) {
    driver.script = [most](Call& call) -> std::optional<DriverStatus> {
      const auto* create = std::get_if<MemCreate>(&call);
      if (!create || create->size <= most) return std::nullopt;
      return DriverStatus::kOutOfMemory;
    };
  }
};

TEST_F(GrowthTest, PlaceMustBeAMultipleOfGranuleAndAlignment) {
  VmmOptions options;
  options.alignment = 4 * kG;
  auto r = resource(options);
  const auto code_at = [&](std::uint64_t at) {
    AllocateOptions wanted;
    wanted.at = DevicePtr{at};
    const Result<Buffer> made = r.allocate(stream, kG, wanted);
    return made.ok() ? ErrorCode::kDriver : made.error().code;
  };
  EXPECT_EQ(code_at(kG), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_at(1), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_at(4 * kG), ErrorCode::kDriver) << "made";
  EXPECT_EQ(code_at(8 * kG), ErrorCode::kDriver) << "made";
  EXPECT_EQ(driver.last<MemAddressReserve>().alignment, 4 * kG);
  EXPECT_EQ(driver.last<MemAddressReserve>().hint.value, 8 * kG);
}

TEST_F(GrowthTest, SmallAlignmentIsThatOfAGranule) {
  VmmOptions options;
  options.alignment = 4096;
  auto r = resource(options);
  Buffer a = r.allocate(stream, kG).value();
  EXPECT_EQ(driver.last<MemAddressReserve>().alignment, kG);
}

TEST_F(GrowthTest, APlaceIsNotTakenFromTheCache) {
  VmmOptions options;
  options.cache = 8 * kG;
  auto r = resource(options);
  EXPECT_TRUE(r.allocate(stream, kG).value().close().ok());
  AllocateOptions at;
  at.at = DevicePtr{64 * kG};
  Buffer b = r.allocate(stream, kG, at).value();
  EXPECT_EQ(driver.last<MemAddressReserve>().hint, at.at);
  EXPECT_EQ(r.statistics().cached, kG);
}

TEST_F(GrowthTest, AllOfTheDeviceAndAllOfTheLimitMayBeAskedFor) {
  auto r = resource();
  EXPECT_TRUE(r.allocate(stream, 1ull << 40).ok());
  const Error error = r.allocate(stream, (1ull << 40) + 1).status().error();
  EXPECT_EQ(error.code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(error.available, 1ull << 40);
  VmmOptions options;
  options.limit = 4 * kG;
  auto limited = resource(options);
  EXPECT_TRUE(limited.allocate(stream, 4 * kG).ok());
}

// Memory ahead of need: 4 granules, so that a resize from five to six wants five more at once.
class AheadTest : public GrowthTest {
 protected:
  VirtualMemoryResource ahead(std::uint64_t cache = 0) {
    VmmOptions options;
    options.commit_ahead = 4 * kG;
    options.cache = cache;
    return resource(options);
  }
  /// A buffer of five granules, nothing committed ahead of it, at the end of its addresses.
  Buffer bare(VirtualMemoryResource& r) {
    memory_in_pieces_of(4 * kG);
    Buffer a = r.allocate(stream, kG).value();
    EXPECT_TRUE(a.resize(5 * kG).ok());
    driver.script = {};
    return a;
  }
  /// No more than so many bytes are to be had behind a buffer.
  void addresses_behind(std::uint64_t most) {
    driver.script = [most](Call& call) -> std::optional<DriverStatus> {
      const auto* reserve = std::get_if<MemAddressReserve>(&call);
      if (!reserve || !reserve->hint || reserve->size <= most) return std::nullopt;
      return DriverStatus::kOutOfMemory;
    };
  }
};

TEST_F(AheadTest, AMoveTakesMemoryAheadToo) {
  auto r = ahead();
  Buffer a = bare(r);
  ASSERT_EQ(r.statistics().live, 5 * kG);
  addresses_behind(0);
  EXPECT_EQ(a.resize(6 * kG).value().placement, Placement::kMoved);
  EXPECT_EQ(r.statistics().live, 10 * kG);
}

TEST_F(AheadTest, WhatFitsInPlaceWithoutItStays) {
  auto r = ahead();
  Buffer a = bare(r);
  addresses_behind(kG);
  EXPECT_EQ(a.resize(6 * kG).value().placement, Placement::kKept);
  EXPECT_EQ(r.statistics().live, 6 * kG);
}

TEST_F(AheadTest, NoReasonForAnExtensionToMove) {
  auto r = ahead();
  Buffer a = bare(r);
  const DevicePtr place = a.ptr();
  addresses_behind(0);
  EXPECT_EQ(a.try_extend(6 * kG).status().error().exhausted, Exhausted::kAddresses);
  EXPECT_EQ(a.ptr(), place);
  EXPECT_EQ(r.statistics().live, 5 * kG);
}

TEST_F(AheadTest, NoReasonToGiveIdleMemoryBack) {
  auto r = ahead(16 * kG);
  Buffer a = bare(r);
  Buffer idle = r.allocate(stream, 8 * kG).value();
  ASSERT_TRUE(idle.close().ok());
  const std::uint64_t cached = r.statistics().cached;
  ASSERT_NE(cached, 0u);
  memory_in_pieces_of(kG);
  ASSERT_TRUE(a.resize(6 * kG).ok());
  EXPECT_EQ(r.statistics().cached, cached);
}

TEST_F(GrowthTest, EachPropertyOfACallIsLookedAt) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  const std::size_t before = driver.log.size();
  const auto refuses = [&](const GrowOptions& options) {
    for (const std::uint64_t size : {kG, 2 * kG}) {
      const Result<GrowResult> grown = a.grow(size, options);
      ASSERT_FALSE(grown.ok());
      EXPECT_EQ(grown.error().code, ErrorCode::kInvalidArgument);
      EXPECT_FALSE(a.resize(size, options).ok());
    }
  };
  refuses({.self_access = static_cast<Access>(7)});
  refuses({.peer_access = static_cast<Access>(7)});
  refuses({.peers = std::vector<DeviceId>{{99}}});
  refuses({.rdma = static_cast<Wish>(9)});
  refuses({.handle_type = HandleType::kPosixFd});
  refuses({.location = device_location({1})});
  EXPECT_EQ(driver.log.size(), before) << "no driver call was made";
}

TEST_F(GrowthTest, RdmaIsAPropertyOfTheMemory) {
  VmmOptions options;
  options.rdma = Wish::kIfPossible;
  auto r = resource(options);
  EXPECT_EQ(driver.last<MemGetAllocationGranularity>().properties.rdma, 1u);
  Buffer a = r.allocate(stream, kG).value();
  EXPECT_EQ(driver.last<MemCreate>().properties.rdma, 1u);
  EXPECT_TRUE(r.properties().rdma);
  auto plain = resource();
  EXPECT_EQ(driver.last<MemGetAllocationGranularity>().properties.rdma, 0u);
  EXPECT_FALSE(plain.properties().rdma);
  EXPECT_FALSE(plain.properties().rdma_dropped);
}

TEST_F(GrowthTest, RdmaThatIsRefusedIsDroppedForGood) {
  VmmOptions options;
  options.rdma = Wish::kIfPossible;
  auto r = resource(options);
  driver.fail<MemCreate>(DriverStatus::kNotSupported);
  Buffer a = r.allocate(stream, kG).value();
  EXPECT_EQ(driver.last<MemCreate>().properties.rdma, 0u);
  EXPECT_FALSE(r.properties().rdma);
  EXPECT_TRUE(r.properties().rdma_dropped);
  Buffer b = r.allocate(stream, kG).value();
  EXPECT_EQ(driver.count<MemCreate>(), 3u) << "it is not asked for again";
}

TEST_F(GrowthTest, RdmaIsKeptWhereItWasNotTheTrouble) {
  VmmOptions options;
  options.rdma = Wish::kIfPossible;
  for (const DriverStatus status :
       {DriverStatus::kOutOfMemory, DriverStatus::kLaunchFailed, DriverStatus::kWouldBlock}) {
    auto r = resource(options);
    const std::size_t before = driver.count<MemCreate>();
    driver.fail<MemCreate>(status, 1, 9);
    EXPECT_FALSE(r.allocate(stream, kG).ok());
    EXPECT_EQ(driver.count<MemCreate>(), before + 1);
    EXPECT_TRUE(r.properties().rdma);
    driver.lift();
  }
  auto r = resource(options);
  driver.fail<MemCreate>(DriverStatus::kNotSupported, 1, 2);
  EXPECT_FALSE(r.allocate(stream, kG).ok());
  EXPECT_TRUE(r.properties().rdma) << "refused without it as well";
}

TEST_F(GrowthTest, RdmaThatTheDeviceLacksIsNotAskedFor) {
  driver.script = [](Call& call) -> std::optional<DriverStatus> {
    auto* get = std::get_if<DeviceGetAttribute>(&call);
    if (!get || get->attribute != DeviceAttribute::kGpuDirectRdmaWithVmm) return std::nullopt;
    get->value = 0;
    return DriverStatus::kSuccess;
  };
  VmmOptions options;
  options.rdma = Wish::kIfPossible;
  auto r = resource(options);
  EXPECT_EQ(driver.last<MemGetAllocationGranularity>().properties.rdma, 0u);
  EXPECT_FALSE(r.properties().rdma);
  EXPECT_TRUE(r.properties().rdma_dropped);
  options.rdma = Wish::kRequired;
  EXPECT_EQ(VirtualMemoryResource::create(driver, options, environment).status().error().code,
            ErrorCode::kUnsupported);
}

TEST_F(GrowthTest, ChunksAreAtMostAsLargeAsAsked) {
  VmmOptions options;
  options.max_chunk = 3 * kG + 1;
  auto r = resource(options);
  Buffer a = r.allocate(stream, 7 * kG).value();
  EXPECT_EQ(driver.count<MemCreate>(), 3u);
  EXPECT_EQ(driver.last<MemCreate>().size, kG);
  EXPECT_EQ(a.shrink(2 * kG).value(), 3 * kG);
  options.max_chunk = 1;
  auto least = resource(options);
  Buffer b = least.allocate(stream, 2 * kG).value();
  EXPECT_EQ(driver.last<MemCreate>().size, kG);
}

TEST_F(GrowthTest, MemoryAheadIsTakenOnlyWhereItIsToBeHadAtOnce) {
  VmmOptions options;
  options.commit_ahead = 3 * kG;
  options.free = FreePolicy::kDeferred;
  auto r = resource(options);
  Buffer gone = r.allocate(stream, kG).value();
  EXPECT_EQ(r.statistics().charged, 4 * kG);
  EXPECT_TRUE(gone.close().ok());
  driver.fail<EventQuery>(DriverStatus::kNotReady, 1, 99);
  memory_in_pieces_of(kG);
  Buffer a = r.allocate(stream, kG).value();
  EXPECT_EQ(driver.last<MemCreate>().size, kG);
  EXPECT_EQ(driver.count<EventSynchronize>(), 0u) << "nobody was waited for";
  EXPECT_EQ(r.statistics().retired, 4 * kG);
}

TEST_F(GrowthTest, CapacityIsWhatLiesFreeBehindTheBuffer) {
  auto r = resource();
  EXPECT_EQ(r.allocate(stream, 0).value().capacity(), 0u);
  Buffer a = r.allocate(stream, kG, {.capacity = 8 * kG}).value();
  EXPECT_EQ(a.capacity(), 8 * kG);
  EXPECT_TRUE(a.could_extend().value());
  GrowResult b = a.grow(3 * kG).value();
  EXPECT_EQ(b.buffer.capacity(), 8 * kG);
  EXPECT_EQ(a.capacity(), kG) << "the room behind it is taken";
  EXPECT_FALSE(a.could_extend().value());
  Buffer c = r.allocate(stream, 2 * kG).value();
  EXPECT_EQ(c.capacity(), 2 * kG) << "to the end of its addresses";
  EXPECT_TRUE(c.could_extend().value()) << "the addresses behind it are probed";
  EXPECT_EQ(driver.last<MemAddressReserve>().hint.value, c.ptr().value + 2 * kG);
  EXPECT_EQ(driver.count<MemAddressFree>(), 1u) << "and given back";
}

TEST_F(GrowthTest, ProbeThatIsRefusedOrElsewhereMeansNo) {
  auto r = resource();
  EXPECT_FALSE(r.allocate(stream, 0).value().could_extend().value());
  Buffer a = r.allocate(stream, kG).value();
  Buffer behind = r.allocate(stream, kG).value();
  EXPECT_FALSE(a.could_extend().value());
  driver.fail<MemAddressReserve>(DriverStatus::kInvalidValue);
  EXPECT_FALSE(behind.could_extend().value());
}

TEST_F(GrowthTest, RoomBehindAQuarantinedPlaceStaysRoom) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG, {.capacity = 8 * kG}).value();
  GrowResult b = a.grow(2 * kG).value();
  GrowResult c = b.buffer.grow(3 * kG).value();
  driver.fail<MemUnmap>(DriverStatus::kUnknown);
  EXPECT_TRUE(c.buffer.close().ok());
  EXPECT_TRUE(b.buffer.close().ok());
  EXPECT_EQ(r.statistics().quarantined, kG);
  EXPECT_EQ(a.capacity(), 2 * kG) << "up to what is quarantined";
  GrowResult d = a.grow(2 * kG).value();
  EXPECT_EQ(d.placement, Placement::kKept);
  EXPECT_EQ(d.buffer.grow(3 * kG).value().placement, Placement::kMoved);
}

TEST_F(GrowthTest, AnotherGrowOfTheSameInputMayNotTakeItsMemoryAhead) {
  VmmOptions options;
  options.commit_ahead = 4 * kG;
  auto r = resource(options);
  Buffer a = r.allocate(stream, kG).value();
  GrowResult b = a.grow(2 * kG).value();
  const Result<GrowResult> second = a.grow(2 * kG);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kInvalidArgument);
  memory.fail_in = 1;
  EXPECT_FALSE(b.buffer.grow(3 * kG).ok());
  GrowResult c = b.buffer.grow(3 * kG).value();
  EXPECT_EQ(c.placement, Placement::kKept) << "the grow that failed took nothing";
}

TEST_F(GrowthTest, LadderReapsAllThatIsDoneAtOnce) {
  VmmOptions options;
  options.free = FreePolicy::kDeferred;
  auto r = resource(options);
  driver.fail<EventQuery>(DriverStatus::kNotReady, 1, 999);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(r.allocate(stream, kG).value().close().ok());
  driver.lift();
  EXPECT_EQ(r.statistics().retired, 20 * kG);
  Buffer warm = r.allocate(stream, kG).value();
  EXPECT_EQ(r.statistics().retired, 12 * kG) << "an operation reaps eight on its way";
  driver.fail<MemCreate>(DriverStatus::kOutOfMemory);
  Buffer a = r.allocate(stream, kG).value();
  EXPECT_EQ(r.statistics().retired, 0u);
  EXPECT_EQ(driver.count<EventSynchronize>(), 0u);
}

TEST_F(GrowthTest, LadderTrimsThenWaitsForTheOldest) {
  VmmOptions options;
  options.free = FreePolicy::kDeferred;
  options.cache = kG;
  auto r = resource(options);
  driver.fail<EventQuery>(DriverStatus::kNotReady, 1, 99);
  EXPECT_TRUE(r.allocate(stream, 2 * kG).value().close().ok());
  EXPECT_TRUE(r.allocate(stream, kG).value().close().ok());
  EXPECT_EQ(r.statistics().cached, kG);
  driver.fail<MemCreate>(DriverStatus::kOutOfMemory, 1, 2);
  Buffer a = r.allocate(stream, 3 * kG).value();
  EXPECT_EQ(r.statistics().cached, 0u);
  EXPECT_EQ(driver.count<EventSynchronize>(), 1u) << "the oldest pending free was enough";
  EXPECT_EQ(r.statistics().retired, kG);
}

TEST_F(GrowthTest, WaitOfTheLadderThatFailsIsReportedAndEndsIt) {
  VmmOptions options;
  options.free = FreePolicy::kDeferred;
  auto r = resource(options);
  driver.fail<EventQuery>(DriverStatus::kNotReady, 1, 99);
  EXPECT_TRUE(r.allocate(stream, 2 * kG).value().close().ok());
  driver.fail<EventSynchronize>(DriverStatus::kUnknown);
  driver.fail<MemCreate>(DriverStatus::kOutOfMemory, 1, 9);
  const Error error = r.allocate(stream, 3 * kG).status().error();
  EXPECT_EQ(error.code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(error.call, name_of(kind_of<MemCreate>));
  ASSERT_EQ(sink.reports.size(), 1u);
  EXPECT_EQ(sink.reports[0].kind, FailureKind::kParked);
  EXPECT_EQ(sink.reports[0].error.driver, DriverStatus::kUnknown);
  EXPECT_EQ(sink.reports[0].size, 0u);
  EXPECT_FALSE(sink.reports[0].ptr);
  EXPECT_EQ(r.statistics().retired, 2 * kG) << "as it was";
  driver.lift();
  driver.fail<EventQuery>(DriverStatus::kNotReady, 1, 99);
  driver.fail<EventSynchronize>(DriverStatus::kWouldBlock);
  driver.fail<MemCreate>(DriverStatus::kOutOfMemory, 1, 9);
  EXPECT_EQ(r.allocate(stream, 3 * kG).status().error().driver, DriverStatus::kWouldBlock);
  EXPECT_EQ(sink.reports.size(), 1u);
}

}  // namespace
}  // namespace granule
