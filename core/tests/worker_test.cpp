// The worker of a resource on threads of the machine's own. How it mixes with others is tested with
// programs, under chosen interleavings.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include <granule/resource.hpp>

#include "concurrent_backend.hpp"

namespace granule {
namespace {

class LastReport final : public FailureSink {
 public:
  void report(const FailureReport& report) noexcept override {
    kind.store(report.kind);
    reports.fetch_add(1);
  }
  std::atomic<int> reports{0};
  std::atomic<FailureKind> kind{FailureKind::kReleaseFailed};
};

class WorkerTest : public testing::Test {
 protected:
  WorkerTest() {
    options_.worker = true;
    options_.worker_interval_ns = 10'000;
    environment_.sink = &sink_;
  }
  Result<VirtualMemoryResource> make() {
    return VirtualMemoryResource::create(backend_, options_, environment_);
  }
  /// Waits for as long as it takes.
  template <class Condition>
  static void until(Condition&& holds) {
    while (!holds()) std::this_thread::yield();
  }
  ConcurrentBackend backend_;
  LastReport sink_;
  VmmOptions options_;
  Environment environment_;
  Stream stream_ = Stream::legacy({0});
};

TEST_F(WorkerTest, GivesPendingRangesBackByItself) {
  options_.free = FreePolicy::kDeferred;
  {
    VirtualMemoryResource resource = make().value();
    for (int i = 0; i < 3; ++i) {
      Buffer buffer = resource.allocate(stream_, kGranule).value();
      ASSERT_TRUE(buffer.close().ok());
    }
    until([&] { return resource.statistics().worker_ranges == 3; });
    EXPECT_EQ(resource.statistics().handles, 0u);
    EXPECT_EQ(resource.collect().pending, 0u);
  }
  EXPECT_EQ(backend_.held(), 0);
}

TEST_F(WorkerTest, CommitsAheadWhatTheNextGrowthTakesWithoutADriverCall) {
  options_.commit_ahead = 2 * kGranule;
  {
    VirtualMemoryResource resource = make().value();
    AllocateOptions room;
    room.capacity = 8 * kGranule;
    Buffer buffer = resource.allocate(stream_, kGranule, room).value();
    until([&] { return resource.statistics().worker_bytes == 2 * kGranule; });
    EXPECT_EQ(buffer.size(), kGranule);
    const std::uint64_t before = backend_.calls();
    const ResizeResult grown = buffer.resize(2 * kGranule).value();
    EXPECT_EQ(grown.placement, Placement::kKept);
    EXPECT_EQ(grown.size, 2 * kGranule);
    until([&] { return resource.statistics().worker_bytes == 3 * kGranule; });
    EXPECT_EQ(backend_.calls() - before, 3u);  // of the worker: create, map, access
    ASSERT_TRUE(buffer.close().ok());
  }
  EXPECT_EQ(backend_.held(), 0);
}

TEST_F(WorkerTest, ShrinkGivesMemoryAheadBackAndShowsNoneOfIt) {
  options_.commit_ahead = 2 * kGranule;
  {
    VirtualMemoryResource resource = make().value();
    Buffer buffer = resource.allocate(stream_, 2 * kGranule, {16 * kGranule, {}, false}).value();
    until([&] { return resource.statistics().worker_bytes == 2 * kGranule; });
    ASSERT_TRUE(buffer.resize(3 * kGranule).ok());  // half of the worker's chunk
    until([&] { return resource.statistics().worker_bytes == 3 * kGranule; });
    EXPECT_EQ(buffer.shrink(3 * kGranule).value(), 3 * kGranule);
    EXPECT_EQ(buffer.size(), 3 * kGranule);
    ASSERT_TRUE(buffer.close().ok());
  }
  EXPECT_EQ(backend_.held(), 0);
}

TEST_F(WorkerTest, IsJoinedWithTheResourceWhateverIsPending) {
  options_.free = FreePolicy::kDeferred;
  options_.commit_ahead = kGranule;
  for (int i = 0; i < 50; ++i) {
    VirtualMemoryResource resource = make().value();
    Buffer kept = resource.allocate(stream_, kGranule, {4 * kGranule, {}, false}).value();
    Buffer closed = resource.allocate(stream_, kGranule).value();
    ASSERT_TRUE(closed.close().ok());
  }
  EXPECT_EQ(backend_.held(), 0);
  EXPECT_EQ(sink_.reports.load(), 0);
}

TEST_F(WorkerTest, WantOfMemoryAheadIsNoFailureButADriversErrorIsReported) {
  options_.commit_ahead = kGranule;
  {
    VirtualMemoryResource resource = make().value();
    Buffer buffer = resource.allocate(stream_, kGranule, {4 * kGranule, {}, false}).value();
    until([&] { return resource.statistics().worker_bytes == kGranule; });
    backend_.refuse_creates(DriverStatus::kOutOfMemory);
    const std::uint64_t before = backend_.calls();
    ASSERT_TRUE(buffer.resize(2 * kGranule).ok());  // what was ahead: no call but the worker's next
    until([&] { return backend_.calls() != before; });
    EXPECT_EQ(sink_.reports.load(), 0);
    backend_.refuse_creates(DriverStatus::kUnknown);
    ASSERT_TRUE(buffer.shrink(kGranule).ok());
    until([&] { return sink_.reports.load() != 0; });
    EXPECT_EQ(sink_.kind.load(), FailureKind::kWorkerFailed);
    EXPECT_EQ(buffer.size(), kGranule);
    backend_.refuse_creates(DriverStatus::kSuccess);
  }
  EXPECT_EQ(backend_.held(), 0);
}

TEST_F(WorkerTest, IntervalsOfNothingAndOfMoreThanAnHourAreRefused) {
  for (const std::uint64_t interval : {std::uint64_t{0}, std::uint64_t{3'600'000'000'001}}) {
    options_.worker_interval_ns = interval;
    EXPECT_EQ(make().status().error().code, ErrorCode::kInvalidArgument);
    options_.worker = false;
    EXPECT_TRUE(make().ok());
    options_.worker = true;
  }
}

/// A machine that has no thread to give.
class NoThreads final : public SyncHooks {
 public:
  void lock(const void*) override {}
  void unlock(const void*) override {}
  void wait(const void*, const void*) override {}
  bool wait_for(const void*, const void*, std::uint64_t) override { return false; }
  void notify_all(const void*) override {}
  std::uint64_t start_thread(void (*)(void*), void*) override { return 0; }
  void join_thread(std::uint64_t) override {}
  void yield_point() override {}
  std::uint64_t now_ns() override { return 0; }
};

TEST_F(WorkerTest, WithoutAThreadThereIsNoResource) {
  NoThreads hooks;
  environment_.runtime.hooks = &hooks;
  const Result<VirtualMemoryResource> made = make();
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(made.status().error().exhausted, Exhausted::kHost);
  options_.worker = false;
  EXPECT_TRUE(make().ok());
}

}  // namespace
}  // namespace granule
