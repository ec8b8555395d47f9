// The worker of a resource on threads of the machine's own. How it mixes with others is tested with
// programs, under chosen interleavings.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include <granule/resource.hpp>

#include "concurrent_backend.hpp"

namespace granule {
namespace {

constexpr std::uint64_t kPiece = ConcurrentBackend::kGranule;

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
    options.worker = true;
    options.worker_interval_ns = 10'000;
    environment.sink = &sink;
  }
  Result<VirtualMemoryResource> make() {
    return VirtualMemoryResource::create(backend, options, environment);
  }
  /// Waits for as long as it takes.
  template <class Condition>
  static void until(Condition&& holds) {
    while (!holds()) std::this_thread::yield();
  }
  ConcurrentBackend backend;
  LastReport sink;
  VmmOptions options;
  Environment environment;
  Stream stream = Stream::legacy({0});
};

TEST_F(WorkerTest, GivesPendingRangesBackByItself) {
  options.free = FreePolicy::kDeferred;
  {
    VirtualMemoryResource resource = make().value();
    for (int i = 0; i < 3; ++i) {
      Buffer buffer = resource.allocate(stream, kPiece).value();
      ASSERT_TRUE(buffer.close().ok());
    }
    until([&] { return resource.statistics().worker_ranges == 3; });
    EXPECT_EQ(resource.statistics().handles, 0u);
    EXPECT_EQ(resource.collect().pending, 0u);
  }
  EXPECT_EQ(backend.held(), 0);
}

TEST_F(WorkerTest, CommitsAheadWhatTheNextGrowthTakesWithoutADriverCall) {
  options.commit_ahead = 2 * kPiece;
  {
    VirtualMemoryResource resource = make().value();
    AllocateOptions room;
    room.capacity = 8 * kPiece;
    Buffer buffer = resource.allocate(stream, kPiece, room).value();
    until([&] { return resource.statistics().worker_bytes == 2 * kPiece; });
    EXPECT_EQ(buffer.size(), kPiece);
    const std::uint64_t before = backend.calls();
    const ResizeResult grown = buffer.resize(2 * kPiece).value();
    EXPECT_EQ(grown.placement, Placement::kKept);
    EXPECT_EQ(grown.size, 2 * kPiece);
    until([&] { return resource.statistics().worker_bytes == 3 * kPiece; });
    EXPECT_EQ(backend.calls() - before, 3u);  // of the worker: create, map, access
    ASSERT_TRUE(buffer.close().ok());
  }
  EXPECT_EQ(backend.held(), 0);
}

TEST_F(WorkerTest, IsJoinedWithTheResourceWhateverIsPending) {
  options.free = FreePolicy::kDeferred;
  options.commit_ahead = kPiece;
  for (int i = 0; i < 50; ++i) {
    VirtualMemoryResource resource = make().value();
    Buffer kept = resource.allocate(stream, kPiece, {4 * kPiece, {}, false}).value();
    Buffer closed = resource.allocate(stream, kPiece).value();
    ASSERT_TRUE(closed.close().ok());
  }
  EXPECT_EQ(backend.held(), 0);
  EXPECT_EQ(sink.reports.load(), 0);
}

TEST_F(WorkerTest, WantOfMemoryAheadIsNoFailureButADriversErrorIsReported) {
  options.commit_ahead = kPiece;
  {
    VirtualMemoryResource resource = make().value();
    Buffer buffer = resource.allocate(stream, kPiece, {4 * kPiece, {}, false}).value();
    until([&] { return resource.statistics().worker_bytes == kPiece; });
    backend.refuse_creates(DriverStatus::kOutOfMemory);
    const std::uint64_t before = backend.calls();
    ASSERT_TRUE(buffer.resize(2 * kPiece).ok());  // what was ahead: no call but the worker's next
    until([&] { return backend.calls() != before; });
    EXPECT_EQ(sink.reports.load(), 0);
    backend.refuse_creates(DriverStatus::kUnknown);
    ASSERT_TRUE(buffer.shrink(kPiece).ok());
    until([&] { return sink.reports.load() != 0; });
    EXPECT_EQ(sink.kind.load(), FailureKind::kWorkerFailed);
    EXPECT_EQ(buffer.size(), kPiece);
    backend.refuse_creates(DriverStatus::kSuccess);
  }
  EXPECT_EQ(backend.held(), 0);
}

TEST_F(WorkerTest, IntervalsOfNothingAndOfMoreThanAnHourAreRefused) {
  for (const std::uint64_t interval : {std::uint64_t{0}, std::uint64_t{3'600'000'000'001}}) {
    options.worker_interval_ns = interval;
    EXPECT_EQ(make().status().error().code, ErrorCode::kInvalidArgument);
    options.worker = false;
    EXPECT_TRUE(make().ok());
    options.worker = true;
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
  environment.runtime.hooks = &hooks;
  const Result<VirtualMemoryResource> made = make();
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(made.status().error().exhausted, Exhausted::kHost);
  options.worker = false;
  EXPECT_TRUE(make().ok());
}

}  // namespace
}  // namespace granule
