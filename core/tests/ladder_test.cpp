// The way out of memory, and what growth takes, promises and leaves alone.
#include <gtest/gtest.h>

#include "core_fixture.hpp"

namespace granule {
namespace {

class LadderTest : public CoreTest {
 protected:
  static VmmOptions cached() {
    VmmOptions options;
    options.cache = 8 * kG;
    return options;
  }
  static VmmOptions deferred() {
    VmmOptions options;
    options.free = FreePolicy::kDeferred;
    return options;
  }
  static VmmOptions ahead(std::uint64_t bytes) {
    VmmOptions options;
    options.commit_ahead = bytes;
    return options;
  }
};

TEST_F(LadderTest, OnlyWantOfMemoryGivesIdleMemoryBack) {
  auto r = resource(cached());
  EXPECT_TRUE(r.allocate(stream, 2 * kG).value().close().ok());
  driver.fail<MemCreate>(DriverStatus::kUnknown);
  EXPECT_EQ(r.allocate(stream, kG).status().error().driver, DriverStatus::kUnknown);
  for (std::size_t nth = 2; nth <= 4; ++nth) {  // reservation, mapping, chunk
    memory.fail_in = nth;
    const Error error = r.allocate(stream, kG).status().error();
    EXPECT_EQ(error.exhausted, Exhausted::kHost);
    EXPECT_NE(to_string(error).find("host memory"), std::string::npos);
  }
  memory.fail_in = 0;
  EXPECT_EQ(r.statistics().cached, 2 * kG);
}

TEST_F(LadderTest, IdleRangeThatACaptureHoldsDoesNotHideAPendingOne) {
  VmmOptions options = cached();
  options.free = FreePolicy::kDeferred;
  auto r = resource(options);
  EXPECT_TRUE(r.allocate(stream, kG).value().close().ok());
  driver.fail<EventQuery>(DriverStatus::kNotReady, 1, 99);
  EXPECT_TRUE(r.allocate(other, 9 * kG).value().close().ok());
  capturing = stream.handle();
  driver.fail<MemCreate>(DriverStatus::kOutOfMemory);
  EXPECT_TRUE(r.allocate(other, 2 * kG).ok());
  EXPECT_EQ(driver.count<EventSynchronize>(), 1u);
  capturing = {};
}

TEST_F(LadderTest, WhatRanOutIsSaidWhateverIsPending) {
  auto r = resource();
  driver.fail<MemMap>(DriverStatus::kOutOfMemory, 1, 9);
  EXPECT_EQ(r.allocate(stream, kG).status().error().exhausted, Exhausted::kDevice)
      << "nothing is pending";
  driver.lift();
  {
    Buffer a = r.allocate(stream, 8 * kG).value();
    capturing = stream.handle();
  }
  driver.fail<MemAddressReserve>(DriverStatus::kOutOfMemory, 1, 9);
  const Error error = r.allocate(other, kG).status().error();
  EXPECT_EQ(error.exhausted, Exhausted::kAddresses) << "pending memory is no room for these";
  EXPECT_EQ(error.object, 0u);
  capturing = {};
}

TEST_F(LadderTest, CapacityThatWrapsIsAnOverflow) {
  auto r = resource();
  EXPECT_EQ(r.allocate(stream, kG, {.capacity = UINT64_MAX}).status().error().code,
            ErrorCode::kOverflow);
  EXPECT_EQ(driver.count<MemAddressReserve>(), 0u);
}

TEST_F(LadderTest, EmptyBufferTakesAndReapsNothing) {
  VmmOptions options = cached();
  options.free = FreePolicy::kDeferred;
  options.commit_ahead = 4 * kG;
  options.self_access = Access::kRead;
  auto r = resource(options);
  driver.fail<MemCreate>(DriverStatus::kOutOfMemory);  // of the memory ahead
  EXPECT_TRUE(r.allocate(stream, kG).value().close().ok());
  EXPECT_EQ(r.statistics().cached, kG);
  EXPECT_TRUE(r.allocate(stream, 9 * kG).value().close().ok());
  const std::size_t before = driver.log.size();
  const Statistics was = r.statistics();
  Buffer a = r.allocate(stream, 0, {.zero = true}).value();
  EXPECT_EQ(a.size(), 0u) << "there is nothing to clear";
  AllocateOptions at;
  at.at = DevicePtr{std::uint64_t{1} << 40};
  Buffer b = r.allocate(stream, 0, at).value();
  EXPECT_EQ(driver.log.size(), before);
  EXPECT_EQ(r.statistics().cached, was.cached);
  EXPECT_EQ(r.statistics().retired, was.retired);
}

TEST_F(LadderTest, RangesThatFillTheCacheAreAllKept) {
  auto r = resource(cached());
  Buffer a = r.allocate(stream, 3 * kG, {.capacity = 5 * kG}).value();
  Buffer b = r.allocate(stream, 5 * kG).value();
  const DevicePtr at = a.ptr();
  EXPECT_TRUE(a.close().ok());
  EXPECT_TRUE(b.close().ok());
  EXPECT_EQ(r.statistics().cached, 8 * kG);
  EXPECT_EQ(r.statistics().reserved, 10 * kG);
  EXPECT_EQ(r.allocate(stream, 3 * kG, {.capacity = 5 * kG}).value().ptr(), at)
      << "as much as it was promised";
}

TEST_F(LadderTest, IdleRangeIsKeptWithItsMemoryAhead) {
  VmmOptions options = cached();
  options.commit_ahead = 4 * kG;
  auto r = resource(options);
  EXPECT_TRUE(r.allocate(stream, kG).value().close().ok());
  EXPECT_EQ(r.statistics().cached, 5 * kG);
  EXPECT_EQ(r.allocate(stream, 5 * kG).value().size(), 5 * kG);
  EXPECT_EQ(driver.count<MemCreate>(), 1u);
}

TEST_F(LadderTest, MemoryAheadPromisesNoMoreThanThereCanBe) {
  for (const std::uint64_t bytes : {UINT64_MAX - 2 * kG, std::uint64_t{8 * kG}}) {
    VmmOptions options = ahead(bytes);
    options.limit = 4 * kG;
    auto r = resource(options);
    Buffer a = r.allocate(stream, 2 * kG).value();
    EXPECT_EQ(driver.last<MemAddressReserve>().size, 2 * kG);
    EXPECT_EQ(r.statistics().reservations, 1u);
    EXPECT_EQ(r.statistics().charged, 2 * kG);
  }
  VmmOptions options = ahead(UINT64_MAX - 2 * kG);  // of the host, whose size nobody knows
  options.location = {LocationType::kHost, 0};
  auto r = resource(options);
  Buffer a = r.allocate(stream, 2 * kG).value();
  EXPECT_EQ(r.statistics().charged, 2 * kG);
}

TEST_F(LadderTest, ProbeBehindARangeAsksForNoAlignment) {
  VmmOptions options;
  options.alignment = 4 * kG;
  auto r = resource(options);
  Buffer a = r.allocate(stream, kG).value();
  EXPECT_EQ(a.resize(2 * kG).value().placement, Placement::kKept);
  EXPECT_EQ(driver.last<MemAddressReserve>().alignment, 0u);
  EXPECT_EQ(a.capacity(), 2 * kG);
  EXPECT_TRUE(a.could_extend().value());
  EXPECT_EQ(driver.last<MemAddressReserve>().alignment, 0u);
}

TEST_F(LadderTest, RoomThatIsTooSmallIsKnownBeforeMemoryIsMade) {
  VmmOptions options;
  options.max_chunk = kG;
  auto r = resource(options);
  Buffer a = r.allocate(stream, kG, {.capacity = 3 * kG}).value();
  EXPECT_EQ(a.resize(4 * kG).value().placement, Placement::kMoved);
  EXPECT_EQ(driver.count<MemCreate>(), 4u);
}

TEST_F(LadderTest, RequiredRdmaIsNotDropped) {
  VmmOptions options;
  options.rdma = Wish::kRequired;
  auto r = resource(options);
  driver.fail<MemCreate>(DriverStatus::kNotSupported);
  EXPECT_EQ(r.allocate(stream, kG).status().error().driver, DriverStatus::kNotSupported);
  EXPECT_EQ(driver.count<MemCreate>(), 1u);
  EXPECT_FALSE(r.properties().rdma_dropped);
}

TEST_F(LadderTest, GrowthAsksForRdmaAsTheResourceOrTheCallDoes) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  GrowOptions wish;
  wish.rdma = Wish::kRequired;
  EXPECT_TRUE(a.resize(2 * kG, wish).ok());
  EXPECT_EQ(driver.last<MemCreate>().properties.rdma, 1u);
  VmmOptions options;
  options.rdma = Wish::kIfPossible;
  auto wishing = resource(options);
  Buffer b = wishing.allocate(stream, kG).value();
  EXPECT_TRUE(b.resize(2 * kG).ok());
  EXPECT_EQ(driver.last<MemCreate>().properties.rdma, 1u);
  wish.rdma = Wish::kNo;
  EXPECT_TRUE(b.resize(3 * kG, wish).ok());
  EXPECT_EQ(driver.last<MemCreate>().properties.rdma, 0u);
}

TEST_F(LadderTest, GranularityIsAskedAsTheOptionsSay) {
  VmmOptions options;
  options.granularity = GranularityKind::kMinimum;
  auto minimum = resource(options);
  EXPECT_EQ(driver.last<MemGetAllocationGranularity>().option, GranularityKind::kMinimum);
  options.granularity = GranularityKind::kRecommended;
  auto recommended = resource(options);
  EXPECT_EQ(driver.last<MemGetAllocationGranularity>().option, GranularityKind::kRecommended);
}

TEST_F(LadderTest, MemoryAheadOfAGrownBufferIsStillItsOwn) {
  auto r = resource(ahead(4 * kG));
  Buffer a = r.allocate(stream, kG).value();
  Buffer b = a.grow(6 * kG).value().buffer;
  RangeHolder holder = b.hold().value();
  EXPECT_EQ(b.grow(7 * kG).value().placement, Placement::kKept);
  Buffer c = r.allocate(stream, kG).value();
  EXPECT_EQ(c.resize(6 * kG).value().size, 6 * kG);
  RangeHolder second = c.hold().value();
  EXPECT_EQ(c.resize(7 * kG).value().placement, Placement::kKept);
}

TEST_F(LadderTest, MemoryAheadThatAResizeTookIsTaken) {
  auto r = resource(ahead(4 * kG));
  Buffer a = r.allocate(stream, kG).value();
  Buffer alias = a.grow(kG).value().buffer;
  EXPECT_EQ(a.resize(6 * kG).value().placement, Placement::kKept);
  EXPECT_EQ(alias.grow(2 * kG).status().error().code, ErrorCode::kInvalidArgument);
}

TEST_F(LadderTest, MoveThatBecameAGrowthInPlaceLetsNothingGo) {
  auto r = resource(deferred());
  Buffer a = r.allocate(stream, kG, {.capacity = 2 * kG}).value();
  Buffer b = a.grow(2 * kG).value().buffer;
  EXPECT_TRUE(b.close().ok());
  driver.fail<EventQuery>(DriverStatus::kNotReady, 1, 2);
  driver.fail<MemCreate>(DriverStatus::kOutOfMemory);
  EXPECT_EQ(a.resize(2 * kG).value().placement, Placement::kKept);
  EXPECT_EQ(r.statistics().retired, 0u);
  EXPECT_EQ(r.collect().pending, 0u);
}

TEST_F(LadderTest, MapThatCannotBeTakenBackIsQuarantined) {
  auto r = resource();
  driver.fail<MemMap>(DriverStatus::kUnknown);
  driver.fail<MemUnmap>(DriverStatus::kUnknown);
  EXPECT_EQ(r.allocate(stream, kG).status().error().call, name_of(kind_of<MemMap>));
  EXPECT_EQ(r.statistics().quarantined, kG);
  ASSERT_EQ(sink.reports.size(), 1u);
  EXPECT_EQ(sink.reports[0].kind, FailureKind::kQuarantined);
  EXPECT_EQ(driver.count<MemRelease>(), 0u);
}

TEST_F(LadderTest, AccessListOfACallLastsAsLongAsItsChunks) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  GrowOptions options;
  options.self_access = Access::kRead;
  Buffer b = a.grow(2 * kG, options).value().buffer;
  Buffer c = a.grow(2 * kG, options).value().buffer;
  EXPECT_TRUE(b.close().ok());
  std::size_t seen = 0;
  r.for_each_mapping([&](const VirtualMemoryResource::MappingView& view) {
    if (view.base.value != c.ptr().value + kG) return;
    ++seen;
    ASSERT_EQ(view.access->count, 1u);
    EXPECT_EQ(view.access->entries[0].access, Access::kRead);
  });
  EXPECT_EQ(seen, 1u);
}

std::vector<VirtualMemoryResource::RangeView> ranges_of(const VirtualMemoryResource& r) {
  std::vector<VirtualMemoryResource::RangeView> seen;
  r.for_each_range([&](const VirtualMemoryResource::RangeView& view) { seen.push_back(view); });
  return seen;
}
using RangeState = VirtualMemoryResource::RangeState;

TEST_F(LadderTest, OpenRangesAreToldOneByOne) {
  auto r = resource();
  EXPECT_TRUE(ranges_of(r).empty());
  Buffer a = r.allocate(stream, 2 * kG, {.capacity = 4 * kG}).value();
  Buffer b = a.grow(3 * kG).value().buffer;
  const Buffer empty = r.allocate(stream, 0).value();
  const auto seen = ranges_of(r);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].base, a.ptr());
  EXPECT_EQ(seen[0].committed, 2 * kG);
  EXPECT_EQ(seen[1].size, 3 * kG);
  EXPECT_EQ(seen[1].state, RangeState::kOpen);
  EXPECT_FALSE(seen[1].suspended);
}

TEST_F(LadderTest, SuspendedAndIdleRangesAreTold) {
  auto r = resource(FreePolicy::kSynchronize, 8 * kG);
  Buffer a = r.allocate(stream, kG).value();
  Buffer b = r.allocate(stream, 2 * kG).value();
  Buffer* const one[] = {&a};
  EXPECT_TRUE(r.suspend(one, false).ok());
  EXPECT_TRUE(b.close().ok());
  const auto seen = ranges_of(r);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_TRUE(seen[0].suspended);
  EXPECT_EQ(seen[1].state, RangeState::kIdle);
  EXPECT_EQ(seen[1].committed, r.statistics().cached);
}

TEST_F(LadderTest, PendingAndParkedRangesAreTold) {
  auto r = resource(deferred());
  Buffer a = r.allocate(stream, kG).value();
  Buffer b = r.allocate(other, 2 * kG).value();
  driver.fail<EventQuery>(DriverStatus::kNotReady, 1, 9);
  EXPECT_TRUE(a.close().ok());
  capturing = other.handle();
  EXPECT_FALSE(b.close().ok());
  EXPECT_TRUE(b.drop().ok());
  const auto seen = ranges_of(r);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].state, RangeState::kRetired);
  EXPECT_EQ(seen[0].committed, r.statistics().retired);
  EXPECT_EQ(seen[1].state, RangeState::kParked);
  EXPECT_EQ(seen[1].committed, r.statistics().parked);
  capturing = {};
}

TEST_F(LadderTest, ChunkThatTwoLeakedRangesMapIsForgottenOnce) {
  {
    auto r = resource();
    Buffer a = r.allocate(stream, kG).value();
    Buffer behind = r.allocate(other, kG).value();
    Buffer b = a.grow(2 * kG).value().buffer;
    EXPECT_NE(a.ptr(), b.ptr());
    capturing = stream.handle();
  }
  capturing = {};
  EXPECT_EQ(sink.reports.size(), 4u) << "parked, then leaked";
}

TEST_F(LadderTest, ChunkThatIsMappedTwiceIsOneHandle) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer behind = r.allocate(stream, kG).value();
  Buffer b = a.grow(2 * kG).value().buffer;
  EXPECT_EQ(r.statistics().mappings, 4u);
  EXPECT_EQ(r.statistics().handles, 3u);
  Buffer* set[] = {&behind};
  EXPECT_TRUE(r.suspend(set, false).ok());
  EXPECT_EQ(r.statistics().handles, 2u);
}

}  // namespace
}  // namespace granule
