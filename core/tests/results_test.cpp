// What operations return, and what they do on the way: sizes, places, reaping, handles.
#include <gtest/gtest.h>

#include <granule/pool.hpp>
#include "core_fixture.hpp"

namespace granule {
namespace {

class ResultsTest : public CoreTest {
 protected:
  std::optional<DriverStatus> answer(Call& call) override {
    if (auto* create = std::get_if<MemPoolCreate>(&call)) create->pool = PoolHandle{5};
    if (auto* block = std::get_if<MemAllocFromPoolAsync>(&call))
      block->ptr = DevicePtr{next += 4096};
    if (auto* out = std::get_if<MemExportToShareableHandle>(&call)) out->descriptor = Descriptor{1};
    return CoreTest::answer(call);
  }
  static VmmOptions deferred() {
    VmmOptions options;
    options.free = FreePolicy::kDeferred;
    return options;
  }
  std::uint64_t next = 1 << 20;
};

TEST_F(ResultsTest, ResizeSaysWhereTheBufferIsNow) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer behind = r.allocate(stream, kG).value();
  const DevicePtr before = a.ptr();
  ResizeResult moved = a.resize(4 * kG).value();
  EXPECT_EQ(moved.placement, Placement::kMoved);
  EXPECT_EQ(moved.old_ptr, before);
  EXPECT_EQ(moved.new_ptr, a.ptr());
  EXPECT_NE(moved.new_ptr, before);
  EXPECT_EQ(moved.size, 4 * kG);
  ResizeResult smaller = a.resize(kG).value();
  EXPECT_EQ(smaller.placement, Placement::kKept);
  EXPECT_EQ(smaller.size, kG);
  EXPECT_EQ(a.size(), kG);
  ResizeResult empty = a.resize(0).value();
  EXPECT_EQ(empty.placement, Placement::kMoved);
  EXPECT_EQ(empty.size, 0u);
  EXPECT_FALSE(empty.new_ptr);
  EXPECT_EQ(a.size(), 0u);
}

TEST_F(ResultsTest, ResizeIntoMemoryAheadTakesItForGood) {
  VmmOptions options;
  options.commit_ahead = 3 * kG;
  auto r = resource(options);
  Buffer a = r.allocate(stream, kG).value();
  RangeHolder holder = a.hold().value();
  ResizeResult more = a.resize(2 * kG).value();
  EXPECT_EQ(more.size, 2 * kG);
  EXPECT_EQ(more.placement, Placement::kKept);
  EXPECT_EQ(a.size(), 2 * kG);
  Buffer b = a.grow(3 * kG).value().buffer;
  EXPECT_EQ(b.size(), 3 * kG);
  EXPECT_EQ(a.resize(3 * kG).status().error().code, ErrorCode::kInvalidArgument);
  Buffer c = b.grow(9 * kG).value().buffer;  // the rest of it, and more
  EXPECT_EQ(b.resize(4 * kG).status().error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(r.check_invariants(), "");
}

TEST_F(ResultsTest, DeferredMoveThatFailsLateLeavesNoRecordBehind) {
  auto r = resource(deferred());
  Buffer a = r.allocate(stream, kG).value();
  Buffer behind = r.allocate(stream, kG).value();
  const std::size_t blocks = memory.blocks;
  driver.fail<MemMap>(DriverStatus::kUnknown, 2);
  EXPECT_FALSE(a.resize(2 * kG).ok());
  EXPECT_EQ(memory.blocks, blocks + 1) << "the marker";
  EXPECT_EQ(r.statistics().retired, 0u);
  driver.lift();
  driver.fail<EventRecord>(DriverStatus::kLaunchFailed);
  EXPECT_TRUE(a.resize(2 * kG).ok());
  ASSERT_EQ(sink.reports.size(), 1u);
  EXPECT_EQ(sink.reports[0].kind, FailureKind::kWaitSkipped);
  EXPECT_EQ(sink.reports[0].size, kG);
}

TEST_F(ResultsTest, OperationsReapAFewRangesAndClosesOne) {
  const auto reaps = [&](std::size_t most, auto&& operation) {
    auto r = resource(deferred());
    Buffer a = r.allocate(stream, 4 * kG, {.capacity = 8 * kG}).value();
    ASSERT_TRUE(a.resize(6 * kG).ok());
    driver.fail<EventQuery>(DriverStatus::kNotReady, 1, 9999);
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(r.allocate(stream, kG).value().close().ok());
    driver.lift();
    const std::size_t before = driver.count<MemAddressFree>();
    operation(r, a);
    EXPECT_EQ(driver.count<MemAddressFree>(), before + most);
  };
  reaps(1, [](auto&, Buffer& a) { EXPECT_TRUE(a.close().ok()); });
  reaps(1, [](auto&, Buffer& a) { EXPECT_TRUE(a.drop().ok()); });
  reaps(8, [](auto&, Buffer& a) { EXPECT_TRUE(a.shrink(4 * kG).ok()); });
  reaps(8, [](auto& r, Buffer& a) {
    Buffer* set[] = {&a};
    EXPECT_TRUE(r.suspend(set, false).ok());
  });
}

TEST_F(ResultsTest, MarkerThatFellToAStickyErrorIsReportedOnce) {
  auto r = resource(deferred());
  Buffer a = r.allocate(stream, kG).value();
  EXPECT_TRUE(a.used_on(other).ok());
  EXPECT_TRUE(a.close().ok());
  driver.fail<EventQuery>(DriverStatus::kLaunchFailed);
  driver.fail<EventQuery>(DriverStatus::kNotReady, 2);
  EXPECT_EQ(r.collect().pending, 1u);
  EXPECT_EQ(r.collect().ranges, 1u);
  EXPECT_EQ(driver.count<EventQuery>(), 3u);
  EXPECT_EQ(sink.reports.size(), 1u);
}

TEST_F(ResultsTest, MemoryMadeAnewAfterASuspendIsNobodyElses) {
  VmmOptions options;
  options.handle_type = HandleType::kPosixFd;
  options.cache = 8 * kG;
  auto r = resource(options);
  Buffer a = r.allocate(stream, kG).value();
  EXPECT_TRUE(r.export_buffer(a).value().close().ok());
  Buffer* set[] = {&a};
  EXPECT_TRUE(r.suspend(set, false).ok());
  EXPECT_TRUE(r.resume(set).ok());
  EXPECT_TRUE(a.close().ok());
  EXPECT_EQ(r.statistics().cached, kG);
}

TEST_F(ResultsTest, ParkedBlocksAreFreedByWhateverComesNext) {
  const auto frees = [&](auto&& operation) {
    auto pool = StreamOrderedPool::create(driver, {}, environment).value();
    PoolBuffer live = pool.allocate(other, 100).value();
    {
      PoolBuffer parked = pool.allocate(stream, 100).value();
      capturing = stream.handle();
    }
    capturing = {};
    const std::size_t before = driver.count<MemFreeAsync>();
    operation(pool, live);
    EXPECT_GT(driver.count<MemFreeAsync>(), before);
    EXPECT_EQ(std::get<MemFreeAsync>(
                  *std::find_if(driver.log.begin(), driver.log.end(),
                                [&, seen = std::size_t{0}](const Call& call) mutable {
                                  return kind(call) == kind_of<MemFreeAsync> && seen++ == before;
                                }))
                  .stream,
              stream.handle());
  };
  frees([](auto& pool, PoolBuffer&) { EXPECT_TRUE(pool.trim(0).ok()); });
  frees([&](auto& pool, PoolBuffer&) { EXPECT_TRUE(pool.allocate_raw(other, 8).ok()); });
  frees([](auto&, PoolBuffer& live) { EXPECT_TRUE(live.close().ok()); });
}

TEST_F(ResultsTest, PoolWhoseUseIsUnknownIsLeftAndEventsThatStayAreReported) {
  {
    auto pool = StreamOrderedPool::create(driver, {}, environment).value();
    PoolBuffer block = pool.allocate(stream, 100).value();
    EXPECT_TRUE(pool.forget(stream).ok());
    EXPECT_TRUE(block.close().ok());
    driver.fail<MemPoolGetAttribute>(DriverStatus::kUnknown);
    driver.fail<EventDestroy>(DriverStatus::kUnknown);
  }
  EXPECT_EQ(driver.count<MemPoolDestroy>(), 0u);
  ASSERT_EQ(sink.reports.size(), 2u);
  EXPECT_EQ(sink.reports[0].error.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(sink.reports[0].error.object, 5u);
  EXPECT_EQ(sink.reports[1].kind, FailureKind::kReleaseFailed);
  EXPECT_EQ(sink.reports[1].error.call, name_of(kind_of<EventDestroy>));
  for (const FailureReport& report : sink.reports) EXPECT_EQ(report.size, 0u);
}

TEST_F(ResultsTest, CopiesOfAHandleKeepThePool) {
  std::optional<StreamOrderedPool> first =
      StreamOrderedPool::create(driver, {}, environment).value();
  {
    StreamOrderedPool copy = *first;
    first.reset();
    EXPECT_EQ(driver.count<MemPoolDestroy>(), 0u);
    StreamOrderedPool another = StreamOrderedPool::create(driver, {}, environment).value();
    another = copy;
    EXPECT_EQ(driver.count<MemPoolDestroy>(), 1u) << "the other pool";
  }
  EXPECT_EQ(driver.count<MemPoolDestroy>(), 2u);
}

}  // namespace
}  // namespace granule
