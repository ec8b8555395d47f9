// The worker step by step: it runs until it rests, then the test does, and never both at once.
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "core_fixture.hpp"

namespace granule {
namespace {

/// Hands the turn from the test to the worker and back. No lock is needed: only one of them runs.
class TurnByTurn final : public SyncHooks {
 public:
  void lock(const void*) override {}
  void unlock(const void*) override {}
  void notify_all(const void*) override {}
  void yield_point() override {}
  std::uint64_t now_ns() override { return 0; }
  void wait(const void*, const void*) override { rest(0); }
  bool wait_for(const void*, const void*, std::uint64_t ns) override {
    rest(ns);
    return true;
  }
  std::uint64_t start_thread(void (*run)(void*), void* argument) override {
    if (no_threads) return 0;
    thread_ = std::thread([=, this] {
      await(true);
      run(argument);
      ended_ = true;
      give(false);
    });
    return 1;
  }
  void join_thread(std::uint64_t) override {
    step();
    thread_.join();
  }
  /// The worker's turn, until it rests.
  void step() {
    if (ended_) return;
    give(true);
    await(false);
  }
  bool no_threads = false;
  std::uint64_t rested = 99;  // how long it means to rest; 0: until it is woken

 private:
  void rest(std::uint64_t ns) {
    rested = ns;
    give(false);
    await(true);
  }
  void give(bool workers) {
    const std::lock_guard lock(mutex_);
    workers_turn_ = workers;
    changed_.notify_all();
  }
  void await(bool workers) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return workers_turn_ == workers; });
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_;
  bool workers_turn_ = false;
  bool ended_ = false;
};

class SteppedWorkerTest : public CoreTest {
 protected:
  SteppedWorkerTest() {
    options.worker = true;
    options.worker_interval_ns = 100;
    options.commit_ahead = 2 * kG;
    environment.runtime.hooks = &turns;
  }
  VirtualMemoryResource resource() { return CoreTest::resource(options); }
  /// The calls of the worker until it rests.
  std::string step() {
    return calls_of([&] { turns.step(); });
  }
  VmmOptions options;
  TurnByTurn turns;
};

constexpr std::string_view kExtend = "MemCreate MemMap MemSetAccess";

TEST_F(SteppedWorkerTest, CommitsSoMuchAheadAndRests) {
  auto r = resource();
  EXPECT_EQ(step(), "");
  EXPECT_EQ(turns.rested, 0u) << "until it is woken";
  Buffer empty = r.allocate(stream, 0).value();
  Buffer a = r.allocate(stream, kG, {.capacity = 8 * kG}).value();
  EXPECT_EQ(driver.last<MemCreate>().size, kG) << "what is ahead is the worker's";
  EXPECT_EQ(step(), kExtend);
  EXPECT_EQ(driver.last<MemCreate>().size, 2 * kG);
  EXPECT_EQ(driver.last<MemMap>().ptr.value, a.ptr().value + kG);
  EXPECT_EQ(r.statistics().worker_bytes, 2 * kG);
  EXPECT_EQ(r.check_invariants(), "");
  EXPECT_EQ(step(), "");
  EXPECT_EQ(a.resize(2 * kG).value().placement, Placement::kKept);
  EXPECT_EQ(step(), kExtend);
  EXPECT_EQ(driver.last<MemCreate>().size, kG) << "one is left of before";
  EXPECT_EQ(a.resize(7 * kG).value().placement, Placement::kKept);
  EXPECT_EQ(step(), "") << "there is no room of its own for two more";
  EXPECT_EQ(r.statistics().worker_bytes, 3 * kG);
  EXPECT_TRUE(a.shrink(0).ok());
  EXPECT_EQ(step(), "") << "behind nothing there is nothing to have";
}

TEST_F(SteppedWorkerTest, LeavesAloneWhatIsSuspendedOrBeyondTheLimit) {
  options.limit = 4 * kG;
  auto r = resource();
  Buffer a = r.allocate(stream, kG, {.capacity = 8 * kG}).value();
  Buffer* set[] = {&a};
  EXPECT_TRUE(r.suspend(set, false).ok());
  EXPECT_EQ(step(), "");
  EXPECT_TRUE(r.resume(set).ok());
  EXPECT_EQ(step(), kExtend);
  EXPECT_EQ(a.resize(3 * kG).value().placement, Placement::kKept);
  EXPECT_EQ(step(), "");
  EXPECT_EQ(r.statistics().charged, 3 * kG);
}

TEST_F(SteppedWorkerTest, TriesOnceForEachSizeAndTellsOfDriverErrorsOnly) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG, {.capacity = 16 * kG}).value();
  driver.fail<MemCreate>(DriverStatus::kOutOfMemory);
  EXPECT_EQ(step(), "MemCreate");
  EXPECT_EQ(a.could_extend().value(), true);
  EXPECT_EQ(step(), "") << "not again for the same size";
  EXPECT_TRUE(sink.reports.empty()) << "want of memory is no failure";
  driver.fail<MemCreate>(DriverStatus::kUnknown, 2);
  EXPECT_TRUE(a.resize(3 * kG).ok());
  EXPECT_EQ(step(), "MemCreate");
  ASSERT_EQ(sink.reports.size(), 1u);
  EXPECT_EQ(sink.reports[0].kind, FailureKind::kWorkerFailed);
  EXPECT_EQ(sink.reports[0].ptr, a.ptr());
  EXPECT_EQ(sink.reports[0].size, 3 * kG);
  EXPECT_EQ(sink.reports[0].error.call, name_of(kind_of<MemCreate>));
  EXPECT_TRUE(a.resize(4 * kG).ok());
  EXPECT_EQ(step(), kExtend);
}

TEST_F(SteppedWorkerTest, AsksForRdmaUnlessItWasDropped) {
  options.rdma = Wish::kIfPossible;
  auto r = resource();
  Buffer a = r.allocate(stream, kG, {.capacity = 8 * kG}).value();
  EXPECT_EQ(step(), kExtend);
  EXPECT_EQ(driver.last<MemCreate>().properties.rdma, 1u);
  driver.fail<MemCreate>(DriverStatus::kNotSupported);
  Buffer b = r.allocate(stream, kG, {.capacity = 8 * kG}).value();
  EXPECT_TRUE(r.properties().rdma_dropped);
  EXPECT_EQ(step(), kExtend);
  EXPECT_EQ(driver.last<MemCreate>().properties.rdma, 0u);
}

TEST_F(SteppedWorkerTest, ServesTheBufferThatReachesFurthest) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG, {.capacity = 16 * kG}).value();
  Buffer alias = a.grow(kG).value().buffer;
  EXPECT_EQ(step(), kExtend) << "one of the two";
  EXPECT_EQ(r.statistics().worker_bytes, 2 * kG);
  EXPECT_EQ(r.check_invariants(), "");
  EXPECT_TRUE(a.close().ok());
  EXPECT_TRUE(alias.close().ok());
  EXPECT_EQ(r.statistics().charged, 0u);
  Buffer b = r.allocate(stream, kG, {.capacity = 16 * kG}).value();
  EXPECT_EQ(step(), kExtend);
  RangeHolder holder = b.hold().value();
  EXPECT_EQ(b.resize(3 * kG).value().placement, Placement::kKept);
  EXPECT_EQ(r.check_invariants(), "");
}

TEST_F(SteppedWorkerTest, LooksAtPendingRangesLessAndLessOften) {
  options.free = FreePolicy::kDeferred;
  options.commit_ahead = 0;
  auto r = resource();
  driver.fail<EventQuery>(DriverStatus::kNotReady, 1, 7);
  EXPECT_TRUE(r.allocate(stream, kG).value().close().ok());
  Buffer b = r.allocate(stream, kG).value();
  EXPECT_EQ(driver.count<EventQuery>(), 0u) << "that is left to the worker";
  for (const std::uint64_t rest : std::initializer_list<std::uint64_t>{2, 4, 8, 16, 32, 64, 64}) {
    step();
    EXPECT_EQ(turns.rested, rest * 100);
  }
  EXPECT_EQ(driver.count<EventQuery>(), 7u);
  step();
  EXPECT_EQ(turns.rested, 0u);
  EXPECT_EQ(r.statistics().worker_ranges, 1u);
  EXPECT_EQ(r.statistics().retired, 0u);
  driver.fail<EventQuery>(DriverStatus::kNotReady, 1, 1);
  EXPECT_TRUE(b.close().ok());
  step();
  EXPECT_EQ(turns.rested, 200u) << "from the beginning";
}

TEST_F(SteppedWorkerTest, RestsAreShortAgainOnceSomethingWasDone) {
  options.free = FreePolicy::kDeferred;
  auto r = resource();
  Buffer a = r.allocate(stream, kG, {.capacity = 16 * kG}).value();
  step();
  driver.fail<EventQuery>(DriverStatus::kNotReady, 1, 99);
  EXPECT_TRUE(r.allocate(stream, kG).value().close().ok());
  step();
  EXPECT_EQ(turns.rested, 200u);
  driver.fail<MemCreate>(DriverStatus::kOutOfMemory);
  EXPECT_TRUE(a.resize(2 * kG).ok());
  step();
  EXPECT_EQ(turns.rested, 400u) << "nothing came of it";
  EXPECT_TRUE(a.resize(3 * kG).ok());
  step();
  EXPECT_EQ(turns.rested, 100u) << "it extended the buffer";
  step();
  step();
  EXPECT_EQ(turns.rested, 400u);
  driver.lift();
  EXPECT_EQ(r.collect().ranges, 1u);
  step();
  EXPECT_EQ(turns.rested, 0u);
  driver.fail<EventQuery>(DriverStatus::kNotReady);
  EXPECT_TRUE(r.allocate(stream, kG).value().close().ok());
  step();
  EXPECT_EQ(turns.rested, 200u);
}

TEST_F(SteppedWorkerTest, ReapsAndGoesOnAtOnceWhileThereIsMore) {
  options.free = FreePolicy::kDeferred;
  options.commit_ahead = 0;
  auto r = resource();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(r.allocate(stream, kG).value().close().ok());
  step();
  EXPECT_EQ(r.statistics().worker_ranges, 8u);
  EXPECT_EQ(turns.rested, 100u) << "the shortest rest";
  step();
  EXPECT_EQ(r.statistics().worker_ranges, 10u);
}

TEST_F(SteppedWorkerTest, ResourceThatGetsNoThreadLeavesNothing) {
  turns.no_threads = true;
  EXPECT_FALSE(VirtualMemoryResource::create(driver, options, environment).ok());
  EXPECT_EQ(memory.blocks, 0u);
}

TEST_F(SteppedWorkerTest, BufferThatStayedOpenIsServedOn) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG, {.capacity = 16 * kG}).value();
  driver.fail<StreamSynchronize>(DriverStatus::kWouldBlock, 1, 2);
  EXPECT_FALSE(a.close().ok());
  EXPECT_EQ(step(), kExtend);
  EXPECT_FALSE(a.drop().ok());
  EXPECT_TRUE(a.resize(2 * kG).ok());
  EXPECT_EQ(step(), kExtend);
}

TEST_F(SteppedWorkerTest, IdleRangeIsServedLikeAFreshOne) {
  options.cache = 8 * kG;
  auto r = resource();
  Buffer a = r.allocate(stream, kG, {.capacity = 16 * kG}).value();
  driver.fail<MemCreate>(DriverStatus::kOutOfMemory);
  EXPECT_EQ(step(), "MemCreate");
  EXPECT_TRUE(a.close().ok());
  EXPECT_EQ(step(), "");
  a = r.allocate(stream, kG).value();
  EXPECT_EQ(driver.count<MemCreate>(), 2u) << "it is the same one";
  EXPECT_EQ(step(), kExtend);
}

TEST_F(SteppedWorkerTest, AsksForNoMoreThanTheDeviceHas) {
  options.commit_ahead = 1ull << 40;
  auto r = resource();
  Buffer a = r.allocate(stream, kG, {.capacity = 1ull << 41}).value();
  EXPECT_EQ(step(), "") << "such a request empties every pool of the process";
}

}  // namespace
}  // namespace granule
