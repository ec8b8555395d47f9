// What is closed, moved from, empty or refused at the last step.
#include <gtest/gtest.h>

#include <granule/pool.hpp>
#include <granule/resource.hpp>

#include "scripted_backend.hpp"

namespace granule {
namespace {

class EdgesTest : public testing::Test {
 protected:
  EdgesTest() {
    environment.sink = &sink;
    environment.runtime.memory = &memory;
    driver.script = [](Call& call) -> std::optional<DriverStatus> {
      if (auto* plain = std::get_if<MemAlloc>(&call)) plain->ptr = DevicePtr{1 << 20};
      if (auto* create = std::get_if<MemPoolCreate>(&call)) create->pool = PoolHandle{5};
      return std::nullopt;
    };
  }
  ~EdgesTest() override { EXPECT_EQ(memory.blocks, 0u); }
  VirtualMemoryResource resource(const VmmOptions& options = {}) {
    return VirtualMemoryResource::create(driver, options, environment).value();
  }
  static VmmOptions deferred() {
    VmmOptions options;
    options.free = FreePolicy::kDeferred;
    return options;
  }
  CountedMemory memory;
  KeptReports sink;
  Environment environment;
  ScriptedBackend driver;
  Stream stream = Stream::bind(driver, StreamHandle{0x77}).value();
  Stream other = Stream::bind(driver, StreamHandle{0x78}).value();
};

TEST_F(EdgesTest, ClosedBufferIsNothing) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer b = std::move(a);
  EXPECT_TRUE(b.close().ok());
  for (const Buffer* gone : {&a, &b}) {
    EXPECT_FALSE(gone->ptr());
    EXPECT_EQ(gone->size(), 0u);
    EXPECT_EQ(gone->capacity(), 0u);
    EXPECT_FALSE(gone->is_suspended());
    EXPECT_EQ(gone->for_each_chunk([](const ChunkView&) {}).error().code, ErrorCode::kClosed);
    r.for_each_stream(*gone, [](const Stream&) { ADD_FAILURE(); });
  }
  EXPECT_EQ(b.try_extend(kG).status().error().code, ErrorCode::kClosed);
  Buffer* set[] = {&b};
  EXPECT_EQ(r.resume(set).error().code, ErrorCode::kClosed);
  EXPECT_EQ(r.suspend(set, false).error().code, ErrorCode::kClosed);
  EXPECT_EQ(name_of(Placement::kAlias), "alias");
  EXPECT_EQ(name_of(static_cast<Placement>(9)), "");
}

TEST_F(EdgesTest, HandlesThatWereMovedFromMayBeCopiedAndDestroyed) {
  VirtualMemoryResource r = resource();
  VirtualMemoryResource taken = std::move(r);
  VirtualMemoryResource nothing = r;
  RecyclingPool pool = RecyclingPool::create(driver, {}, environment).value();
  RecyclingPool pool_taken = std::move(pool);
  RecyclingPool no_pool = pool;
  StreamOrderedPool ordered = StreamOrderedPool::create(driver, {}, environment).value();
  StreamOrderedPool ordered_taken = std::move(ordered);
  StreamOrderedPool no_ordered = ordered;
  StreamOrderedPool copy = ordered_taken;
  EXPECT_EQ(copy.handle(), PoolHandle{5});
  SharedBuffer shared(driver, HandleType::kPosixFd);
  shared.add({Descriptor{1}, kG, 1});
  SharedBuffer& same = shared;
  shared = std::move(same);
  EXPECT_EQ(shared.chunks().size(), 1u);
  SharedBuffer target;
  target = std::move(shared);
  EXPECT_EQ(target.chunks().size(), 1u);
  EXPECT_EQ(target.type(), HandleType::kPosixFd);
}

TEST_F(EdgesTest, EveryKindOfReportHasALine) {
  for (int kind = 0; kind <= 5; ++kind) {
    FailureReport report;
    report.kind = static_cast<FailureKind>(kind);
    report.size = 4096;
    report.error.driver = DriverStatus::kUnknown;
    testing::internal::CaptureStderr();
    stderr_failure_sink().report(report);
    const std::string line = testing::internal::GetCapturedStderr();
    EXPECT_NE(line.find("4096 bytes"), std::string::npos);
    EXPECT_NE(line.find("CUDA_ERROR_UNKNOWN"), std::string::npos);
    const char* const says[] = {"leaked", "for good", "until", "without waiting", "put back", ""};
    EXPECT_NE(line.find(says[kind]), std::string::npos) << line;
  }
}

TEST_F(EdgesTest, MemoryAheadIsNoReasonToTryTwice) {
  VmmOptions options;
  options.commit_ahead = 2 * kG;
  auto r = resource(options);
  driver.fail<MemCreate>(DriverStatus::kUnknown);
  EXPECT_EQ(r.allocate(stream, kG).status().error().driver, DriverStatus::kUnknown);
  EXPECT_EQ(driver.count<MemCreate>(), 1u);
  Buffer a = r.allocate(stream, kG).value();
  const std::size_t before = driver.log.size();
  EXPECT_TRUE(a.could_extend().value());
  EXPECT_EQ(driver.log.size(), before) << "memory is there";
}

TEST_F(EdgesTest, MemoryAheadThatCannotBeIsNotAskedFor) {
  for (const std::uint64_t ahead : {UINT64_MAX - kG, std::uint64_t{4 * kG}}) {
    VmmOptions options;
    options.commit_ahead = ahead;
    options.limit = 3 * kG;
    auto r = resource(options);
    Buffer a = r.allocate(stream, kG).value();
    EXPECT_EQ(driver.last<MemCreate>().size, kG);
  }
}

TEST_F(EdgesTest, ResizeMayNotTakeMemoryAheadThatAGrowTook) {
  VmmOptions options;
  options.commit_ahead = 4 * kG;
  auto r = resource(options);
  Buffer a = r.allocate(stream, kG).value();
  GrowResult b = a.grow(2 * kG).value();
  EXPECT_EQ(a.resize(2 * kG).status().error().code, ErrorCode::kInvalidArgument);
  GrowOptions wraps;
  wraps.capacity = UINT64_MAX;
  EXPECT_EQ(a.grow(2 * kG, wraps).status().error().code, ErrorCode::kOverflow);
}

TEST_F(EdgesTest, GrowThatTookTheRestAndMoreKeepsIt) {
  VmmOptions options;
  options.commit_ahead = kG;
  auto r = resource(options);
  Buffer a = r.allocate(stream, kG).value();  // two are there
  GrowResult b = a.grow(4 * kG).value();      // takes the second one, makes three more
  EXPECT_EQ(a.grow(2 * kG).status().error().code, ErrorCode::kInvalidArgument);
  GrowResult c = b.buffer.grow(5 * kG).value();  // the last one ahead
  EXPECT_EQ(c.placement, Placement::kKept);
  EXPECT_EQ(b.buffer.grow(5 * kG).status().error().code, ErrorCode::kInvalidArgument);
}

TEST_F(EdgesTest, DeferredMoveCopiesTheUsesWithTheirMarkers) {
  auto r = resource(deferred());
  Buffer a = r.allocate(stream, kG).value();
  Buffer behind = r.allocate(stream, kG).value();
  EXPECT_TRUE(a.used_on(other).ok());
  EXPECT_TRUE(r.forget(other).ok());
  for (std::size_t nth = 1; nth < 4; ++nth) {
    memory.fail_in = nth;
    EXPECT_EQ(a.resize(2 * kG).status().error().exhausted, Exhausted::kHost) << nth;
  }
  memory.fail_in = 0;
  EXPECT_EQ(a.resize(2 * kG).value().placement, Placement::kMoved);
  EXPECT_EQ(r.statistics().retired, kG);
  EXPECT_EQ(driver.count<EventRecord>(), 2u) << "the stream that is gone has its marker";
  driver.fail<EventQuery>(DriverStatus::kNotReady, 2);
  EXPECT_EQ(r.collect().pending, 1u) << "two markers are asked";
  EXPECT_EQ(r.collect().ranges, 1u);
  EXPECT_EQ(r.check_invariants(), "");
}

TEST_F(EdgesTest, PendingFreeThatCannotBeWaitedForAtTheEndIsLeaked) {
  {
    auto r = resource(deferred());
    EXPECT_TRUE(r.allocate(stream, kG).value().close().ok());
    driver.fail<EventQuery>(DriverStatus::kUnknown, 1, 9);
    driver.fail<EventSynchronize>(DriverStatus::kUnknown, 1, 9);
  }
  ASSERT_EQ(sink.reports.size(), 1u);
  EXPECT_EQ(sink.reports[0].kind, FailureKind::kReleaseFailed);
  EXPECT_EQ(sink.reports[0].size, kG);
}

TEST_F(EdgesTest, RecyclerThatEndsGoesOnAfterARefusedFree) {
  {
    RecyclingPool pool = RecyclingPool::create(driver, {}, environment).value();
    PoolBuffer a = pool.allocate(stream, 100).value();
    PoolBuffer b = pool.allocate(stream, 200).value();
    EXPECT_TRUE(a.close().ok());
    EXPECT_TRUE(b.close().ok());
    driver.fail<MemFree>(DriverStatus::kUnknown);
  }
  EXPECT_EQ(driver.count<MemFree>(), 2u);
  EXPECT_EQ(sink.reports.size(), 1u);
}

TEST_F(EdgesTest, PerThreadStreamBelongsToItsThread) {
  auto r = resource();
  const Stream mine = Stream::per_thread(driver, {0}).value();
  Buffer a = r.allocate(mine, kG).value();
  driver.script = [](Call& call) -> std::optional<DriverStatus> {
    auto* id = std::get_if<StreamGetId>(&call);
    if (!id) return std::nullopt;
    id->id = StreamId{12345};
    return DriverStatus::kSuccess;
  };
  EXPECT_EQ(a.close().error().code, ErrorCode::kInvalidArgument);
  driver.script = nullptr;
  EXPECT_TRUE(a.close().ok());
  driver.fail<StreamGetId>(DriverStatus::kUnknown);
  EXPECT_EQ(Stream::per_thread(driver, {0}).status().error().driver, DriverStatus::kUnknown);
}

TEST_F(EdgesTest, StickyErrorOfTheCaptureModeSkipsNoWait) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  driver.fail<ThreadExchangeStreamCaptureMode>(DriverStatus::kLaunchFailed);
  EXPECT_TRUE(a.close().ok());
  EXPECT_EQ(driver.count<StreamSynchronize>(), 1u);
}

TEST_F(EdgesTest, StickyErrorAtTheDefaultStreamsContextEndsItsRanges) {
  auto r = resource();
  Buffer a = r.allocate(Stream::legacy({0}), kG).value();
  driver.fail<CtxPushCurrent>(DriverStatus::kLaunchFailed, 1, 9);
  EXPECT_TRUE(a.close().ok());
  ASSERT_EQ(sink.reports.size(), 1u);
  EXPECT_EQ(sink.reports[0].kind, FailureKind::kWaitSkipped);
  EXPECT_EQ(r.statistics().mappings, 0u);
}

TEST_F(EdgesTest, SetOfSuspendedAndOpenBuffersResumesTheFormer) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer b = r.allocate(stream, kG).value();
  Buffer* one[] = {&a};
  Buffer* both[] = {&a, &b};
  EXPECT_TRUE(r.suspend(one, true).ok());
  EXPECT_EQ(r.statistics().live, kG);
  EXPECT_TRUE(r.resume(both).ok());
  EXPECT_EQ(driver.count<MemcpyHtoDAsync>(), 1u);
  EXPECT_TRUE(r.suspend(both, true).ok());
  EXPECT_EQ(driver.count<MemcpyDtoHAsync>(), 3u) << "a backup is as old as its suspend";
  driver.fail<StreamSynchronize>(DriverStatus::kUnknown, 4);
  driver.fail<StreamSynchronize>(DriverStatus::kWouldBlock, 5);
  EXPECT_FALSE(r.resume(both).ok());
  EXPECT_TRUE(sink.reports.empty()) << "a wait that would block is no failure to report";
}

TEST_F(EdgesTest, ResizeLetsGoOfWhatHasHistory) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG, {.zero = true}).value();
  Buffer b = a.grow(2 * kG).value().buffer;
  const std::size_t before = driver.count<StreamSynchronize>();
  EXPECT_TRUE(b.close(other).ok());
  EXPECT_EQ(driver.count<StreamSynchronize>(), before + 2) << "the clear is the grown one's, too";
}

TEST_F(EdgesTest, CapacityAndFitChooseAmongIdleRanges) {
  VmmOptions options;
  options.cache = 64 * kG;
  options.fit_percent = 50;
  auto r = resource(options);
  Buffer roomy = r.allocate(stream, 4 * kG, {.capacity = 16 * kG}).value();
  const DevicePtr at = roomy.ptr();
  EXPECT_TRUE(roomy.close().ok());
  Buffer larger = r.allocate(stream, 4 * kG, {.capacity = 17 * kG}).value();
  EXPECT_NE(larger.ptr(), at) << "it was promised less";
  Buffer fits = r.allocate(stream, 3 * kG, {.capacity = 16 * kG}).value();
  EXPECT_EQ(fits.ptr(), at) << "a third too large is within half";
  EXPECT_EQ(fits.size(), 3 * kG);
  EXPECT_EQ(fits.resize(4 * kG).value().placement, Placement::kKept);
  EXPECT_TRUE(fits.close().ok());
  EXPECT_EQ(r.statistics().cached, 4 * kG);
  Buffer small = r.allocate(stream, 2 * kG).value();
  EXPECT_NE(small.ptr(), at) << "twice as large is too large";
  Buffer exact = r.allocate(stream, 4 * kG).value();
  EXPECT_EQ(exact.ptr(), at);
}

TEST_F(EdgesTest, SecondOfTwoIdleRangesIsTakenIfItIsOrderedAlready) {
  VmmOptions options;
  options.cache = 64 * kG;
  auto r = resource(options);
  Buffer a = r.allocate(stream, kG).value();
  Buffer b = r.allocate(other, kG).value();
  Buffer c = r.allocate(other, kG).value();
  const DevicePtr first = b.ptr();
  EXPECT_TRUE(a.close().ok());
  EXPECT_TRUE(b.close().ok());
  EXPECT_TRUE(c.close().ok());
  EXPECT_EQ(r.allocate(other, kG).value().ptr(), first);
}

}  // namespace
}  // namespace granule
