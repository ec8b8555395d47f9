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
  void unlock(const void*) override {
    --held;
    if (unlocks != 0 && --unlocks == 0) std::exchange(behind_unlock, nullptr)();
  }
  void wait(const void*, const void*) override { ++waits; }
  void notify_all(const void*) override { ++notes; }
  void yield_point() override { EXPECT_EQ(held, 0) << "a driver call under a lock"; }
  bool wait_for(const void*, const void*, std::uint64_t) override { return false; }
  std::uint64_t start_thread(void (*)(void*), void*) override { return 0; }
  void join_thread(std::uint64_t) override {}
  std::uint64_t now_ns() override { return 0; }
  /// `act` runs when a lock is let go for the nth time from here on.
  void after_unlock(int nth, std::function<void()> act) {
    unlocks = nth;
    behind_unlock = std::move(act);
  }
  int unlocks = 0;
  std::function<void()> behind_unlock;
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
  /// Imports are given handles.
  void share() {
    driver.script = [](Call& call) -> std::optional<DriverStatus> {
      if (auto* in = std::get_if<MemImportFromShareableHandle>(&call))
        in->handle = AllocationHandle{5000};
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

TEST_F(OvertakenTest, GrantLeavesAloneWhatIsBeingUnmapped) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer b = r.allocate(stream, kG).value();
  inside<MemUnmap>([&] { EXPECT_TRUE(r.grant({1}, Access::kRead).ok()); });
  EXPECT_TRUE(a.close().ok());
  EXPECT_EQ(driver.count<MemSetAccess>(), 3u) << "two when made, one by the grant";
  EXPECT_EQ(driver.last<MemSetAccess>().ptr, b.ptr());
}

TEST_F(OvertakenTest, ChunkWithoutMemoryYetIsNoChunk) {
  VmmOptions options;
  options.handle_type = HandleType::kPosixFd;
  auto r = VirtualMemoryResource::create(driver, options, environment).value();
  Buffer a = r.allocate(stream, kG).value();
  SharedBuffer shared = r.export_buffer(a).value();
  EXPECT_TRUE(a.close().ok());
  std::optional<Buffer> b;
  inside<MemCreate>([&] {
    EXPECT_EQ(r.statistics().handles, 0u);
    share();
    b = r.import_buffer(stream, shared).value();
  });
  Buffer c = r.allocate(stream, kG).value();
  EXPECT_EQ(r.statistics().handles, 2u);
  EXPECT_EQ(r.statistics().charged, 2 * kG);
}

TEST_F(OvertakenTest, MemoryThatTwoThreadsImportAtOnceIsGivenBackOnce) {
  VmmOptions options;
  options.handle_type = HandleType::kPosixFd;
  auto theirs = VirtualMemoryResource::create(driver, options, environment).value();
  auto ours = VirtualMemoryResource::create(driver, options, environment).value();
  Buffer a = theirs.allocate(stream, kG).value();
  SharedBuffer shared = theirs.export_buffer(a).value();
  std::optional<Buffer> b;
  inside<MemAddressReserve>([&] {
    share();
    const auto import = driver.script;
    driver.script = [&, import](Call& call) {
      if (!std::holds_alternative<MemImportFromShareableHandle>(call)) return import(call);
      driver.script = import;
      b = ours.import_buffer(stream, shared).value();
      return import(call);
    };
  });
  Buffer c = ours.import_buffer(stream, shared).value();
  EXPECT_TRUE(b->close().ok());
  EXPECT_TRUE(c.close().ok());
  EXPECT_EQ(ours.statistics().charged, 0u);
}

// Whenever another thread takes the room behind a buffer, nobody maps over anybody.
TEST_F(OvertakenTest, TwoGrowsIntoTheSameRoomNeverMeet) {
  for (int nth = 1;; ++nth) {
    auto r = resource();
    Buffer a = r.allocate(stream, kG, {.capacity = 4 * kG}).value();
    Buffer b = a.grow(kG).value().buffer;
    bool overtaken = false;
    threads.after_unlock(nth, [&] {
      overtaken = true;
      EXPECT_TRUE(b.resize(3 * kG).ok());
    });
    EXPECT_TRUE(a.resize(2 * kG).ok());
    threads.unlocks = 0;
    EXPECT_EQ(r.check_invariants(), "") << nth;
    EXPECT_EQ(a.size(), 2 * kG);
    if (!overtaken) break;
    EXPECT_EQ(b.size(), 3 * kG);
    EXPECT_NE(a.ptr(), b.ptr()) << nth;
    ASSERT_LT(nth, 200);
  }
}

// Whenever a chunk is made beside a grant, it has the access that was granted.
TEST_F(OvertakenTest, GrantReachesWhatIsMadeAtAnyMoment) {
  for (int nth = 1;; ++nth) {
    auto r = resource();
    Buffer a = r.allocate(stream, kG).value();
    std::optional<Buffer> b;
    threads.after_unlock(nth, [&] { b = r.allocate(stream, kG).value(); });
    EXPECT_TRUE(r.grant({1}, Access::kRead).ok());
    threads.unlocks = 0;
    EXPECT_EQ(r.check_invariants(), "") << nth;
    if (!b) break;
    r.for_each_mapping(
        [&](const VirtualMemoryResource::MappingView& view) { EXPECT_EQ(view.access->count, 2u); });
    bool reached = false;
    for (const Call& call : driver.log)
      if (const auto* set = std::get_if<MemSetAccess>(&call))
        for (const AccessEntry& entry : set->access)
          reached = reached || (set->ptr == b->ptr() && entry.location == device_location({1}));
    EXPECT_TRUE(reached) << nth;
    ASSERT_LT(nth, 200);
  }
}

TEST_F(OvertakenTest, ImportWhoseOtherHolderGoesMeanwhileIsCharged) {
  VmmOptions options;
  options.handle_type = HandleType::kPosixFd;
  auto r = VirtualMemoryResource::create(driver, options, environment).value();
  Buffer a = r.allocate(stream, kG).value();
  SharedBuffer shared = r.export_buffer(a).value();
  inside<MemAddressReserve>([&] {
    share();
    const auto import = driver.script;
    driver.script = [&, import](Call& call) {
      if (!std::holds_alternative<MemImportFromShareableHandle>(call)) return import(call);
      driver.script = import;
      EXPECT_TRUE(a.close().ok());
      return import(call);
    };
  });
  Buffer b = r.import_buffer(stream, shared).value();
  EXPECT_EQ(r.statistics().charged, kG);
  EXPECT_EQ(r.check_invariants(), "");
  EXPECT_TRUE(b.close().ok());
  EXPECT_EQ(r.statistics().charged, 0u);
}

TEST_F(OvertakenTest, RangeThatIsGoingIsInNobodysWay) {
  auto r = resource(FreePolicy::kDeferred);
  Buffer a = r.allocate(stream, kG, {.capacity = 2 * kG}).value();
  Buffer b = r.allocate(stream, kG).value();
  EXPECT_TRUE(b.close().ok());
  inside<MemUnmap>([&] { EXPECT_EQ(a.resize(4 * kG).value().placement, Placement::kMoved); });
  EXPECT_EQ(r.collect().ranges, 1u);
  EXPECT_EQ(r.check_invariants(), "");
}

}  // namespace
}  // namespace granule
