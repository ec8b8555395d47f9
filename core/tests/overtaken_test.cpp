// What other threads may do in the middle of an operation, done from within a driver call: no lock
// is held there.
#include <gtest/gtest.h>

#include <granule/resource.hpp>

#include "scripted_backend.hpp"

namespace granule {
namespace {

/// No locks, so that a call from within a call shows who holds one; waits and notes are counted.
class OneThread final : public SyncHooks {
 public:
  void lock(const void*) override { EXPECT_EQ(++held, 1); }
  void unlock(const void*) override { --held; }
  void wait(const void*, const void*) override { ++waits; }
  void notify_all(const void*) override { ++notes; }
  void yield_point() override { EXPECT_EQ(held, 0) << "a driver call under a lock"; }
  std::uint64_t now_ns() override { return 0; }
  int held = 0;
  int waits = 0;
  int notes = 0;
};

class OvertakenTest : public testing::Test {
 protected:
  OvertakenTest() {
    environment.sink = &sink;
    environment.runtime.memory = &memory;
    environment.runtime.hooks = &threads;
  }
  ~OvertakenTest() override { EXPECT_EQ(memory.blocks, 0u); }
  VirtualMemoryResource resource(FreePolicy free = FreePolicy::kSynchronize) {
    VmmOptions options;
    options.free = free;
    return VirtualMemoryResource::create(driver, options, environment).value();
  }
  /// Runs `act` inside the next call of that kind, before it is made.
  template <class C, class F>
  void inside(F act) {
    driver.script = [this, act](Call& call) -> std::optional<DriverStatus> {
      if (kind(call) == kind_of<C>) {
        driver.script = nullptr;
        act();
      }
      return std::nullopt;
    };
  }
  OneThread threads;
  CountedMemory memory;
  KeptReports sink;
  Environment environment;
  ScriptedBackend driver;
  Stream stream = Stream::bind(driver, StreamHandle{0x77}).value();
};

TEST_F(OvertakenTest, GrantReachesWhatIsMadeMeanwhile) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  std::vector<Buffer> more;
  inside<MemSetAccess>([&] { more.push_back(r.allocate(stream, kG).value()); });
  EXPECT_TRUE(r.grant({1}, Access::kRead).ok());
  EXPECT_EQ(driver.last<MemSetAccess>().ptr, more[0].ptr());
  EXPECT_EQ(driver.last<MemSetAccess>().access.entries[0].location, device_location({1}));
  EXPECT_EQ(threads.notes, 1);
}

TEST_F(OvertakenTest, GrantThatIsOvertakenByTooManyIsUndone) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  std::vector<Buffer> more;
  inside<MemSetAccess>([&] {
    for (int i = 0; i < 65; ++i) more.push_back(r.allocate(stream, kG).value());
  });
  const Status done = r.grant({1}, Access::kRead);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(driver.last<MemSetAccess>().access.entries[0].access, Access::kNone);
  for (Buffer& one : more) EXPECT_TRUE(one.close().ok());
  EXPECT_EQ(r.statistics().mappings, 1u) << "nothing is pinned";
  EXPECT_TRUE(r.grant({1}, Access::kRead).ok());
  EXPECT_EQ(r.check_invariants(), "");
}

TEST_F(OvertakenTest, GrantMadeWhileAChunkIsMappedReachesIt) {
  auto r = resource();
  Buffer first = r.allocate(stream, kG).value();
  inside<MemMap>([&] { EXPECT_TRUE(r.grant({1}, Access::kRead).ok()); });
  Buffer a = r.allocate(stream, kG).value();
  EXPECT_EQ(driver.last<MemSetAccess>().ptr, a.ptr());
  EXPECT_EQ(driver.last<MemSetAccess>().access.count, 2u);
  inside<MemSetAccess>([&] { EXPECT_TRUE(r.grant({0}, Access::kReadWrite).ok()); });
  Buffer b = r.allocate(stream, kG).value();
  EXPECT_EQ(driver.last<MemSetAccess>().access.count, 2u);
}

TEST_F(OvertakenTest, AccessThatWidenedMeanwhileAndIsRefusedFailsTheChunk) {
  auto r = resource();
  Buffer first = r.allocate(stream, kG).value();
  inside<MemSetAccess>([&] {
    EXPECT_TRUE(r.grant({1}, Access::kRead).ok());
    driver.fail<MemSetAccess>(DriverStatus::kUnknown, 2);
  });
  const Result<Buffer> a = r.allocate(stream, kG);
  ASSERT_FALSE(a.ok());
  EXPECT_EQ(a.error().call, name_of(kind_of<MemSetAccess>));
  EXPECT_EQ(r.statistics().mappings, 1u);
  EXPECT_EQ(r.check_invariants(), "");
}

TEST_F(OvertakenTest, RangeThatIsBeingReapedIsLeftToItsReaper) {
  auto r = resource(FreePolicy::kDeferred);
  EXPECT_TRUE(r.allocate(stream, kG).value().close().ok());
  std::uint64_t inner = 99;
  inside<EventQuery>([&] { inner = r.collect().ranges; });
  EXPECT_EQ(r.collect().ranges, 1u);
  EXPECT_EQ(inner, 0u);
}

TEST_F(OvertakenTest, WantOfMemoryWaitsForARangeThatIsBeingReaped) {
  auto r = resource(FreePolicy::kDeferred);
  EXPECT_TRUE(r.allocate(stream, kG).value().close().ok());
  std::optional<Buffer> b;
  inside<EventQuery>([&] {
    driver.fail<MemCreate>(DriverStatus::kOutOfMemory);
    b = r.allocate(stream, kG).value();
  });
  EXPECT_EQ(r.collect().ranges, 1u);
  EXPECT_EQ(threads.waits, 1) << "and then there was memory";
  EXPECT_TRUE(b.has_value());
}

TEST_F(OvertakenTest, RangeThatIsWaitedForIsNotReapedByOthers) {
  auto r = resource(FreePolicy::kDeferred);
  driver.fail<EventQuery>(DriverStatus::kNotReady, 1, 2);
  EXPECT_TRUE(r.allocate(stream, kG).value().close().ok());
  std::uint64_t inner = 99;
  inside<EventSynchronize>([&] { inner = r.collect().ranges; });
  driver.fail<MemCreate>(DriverStatus::kOutOfMemory);
  const int notes = threads.notes;
  Buffer b = r.allocate(stream, kG).value();
  EXPECT_EQ(inner, 0u);
  EXPECT_EQ(driver.count<MemUnmap>(), 1u);
  EXPECT_EQ(threads.notes, notes + 3) << "two looks and the wait";
}

TEST_F(OvertakenTest, RoomThatAnotherGrowTookFirstMeansAMove) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG, {.capacity = 4 * kG}).value();
  std::optional<GrowResult> winner;
  inside<MemCreate>([&] {
    // The place is claimed before the memory is made.
    winner = a.grow(2 * kG).value();
  });
  GrowResult b = a.grow(2 * kG).value();
  EXPECT_EQ(b.placement, Placement::kKept);
  EXPECT_EQ(winner->placement, Placement::kMoved);
  EXPECT_EQ(r.check_invariants(), "");
}

TEST_F(OvertakenTest, NoDriverCallIsMadeUnderALock) {
  auto r = resource(FreePolicy::kDeferred);
  Buffer a = r.allocate(stream, kG).value();
  Buffer b = a.grow(2 * kG).value().buffer;
  Buffer* set[] = {&b};
  EXPECT_TRUE(a.close().ok());
  EXPECT_TRUE(r.suspend(set, true).ok());
  EXPECT_TRUE(r.resume(set).ok());
  EXPECT_TRUE(r.grant({1}, Access::kRead).ok());
  EXPECT_TRUE(r.forget(stream).ok());
  EXPECT_TRUE(r.trim(0).ok());
}

}  // namespace
}  // namespace granule
