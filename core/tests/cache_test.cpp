// Idle ranges, markers and records: what may be kept, who gets it, and how buffers end.
#include <gtest/gtest.h>

#include "core_fixture.hpp"

namespace granule {
namespace {

class CacheTest : public CoreTest {
 protected:
  std::optional<DriverStatus> answer(Call& call) override {
    if (auto* out = std::get_if<MemExportToShareableHandle>(&call)) out->descriptor = Descriptor{1};
    if (auto* in = std::get_if<MemImportFromShareableHandle>(&call))
      in->handle = AllocationHandle{5000};
    return CoreTest::answer(call);
  }
  VirtualMemoryResource resource(FreePolicy free = FreePolicy::kSynchronize) {
    VmmOptions options;
    options.cache = 8 * kG;
    options.handle_type = HandleType::kPosixFd;
    options.free = free;
    return CoreTest::resource(options);
  }
};

TEST_F(CacheTest, MemoryThatOthersMayHaveIsNotKept) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  SharedBuffer shared = r.export_buffer(a).value();
  EXPECT_TRUE(a.close().ok());
  EXPECT_EQ(r.statistics().cached, 0u) << "exported";
  Buffer b = r.import_buffer(stream, shared).value();
  EXPECT_TRUE(b.close().ok());
  EXPECT_EQ(r.statistics().cached, 0u) << "imported";
}

TEST_F(CacheTest, MemoryThatAnotherBufferMapsIsNotKept) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer alias = a.grow(kG).value().buffer;
  EXPECT_TRUE(alias.close().ok());
  EXPECT_EQ(r.statistics().cached, 0u) << "the same mapping";
  Buffer behind = r.allocate(stream, kG).value();
  GrowResult moved = a.grow(2 * kG).value();
  EXPECT_EQ(moved.placement, Placement::kMoved);
  EXPECT_TRUE(moved.buffer.close().ok());
  EXPECT_EQ(r.statistics().cached, 0u) << "the same chunk";
  EXPECT_TRUE(a.close().ok());
  EXPECT_EQ(r.statistics().cached, kG);
}

TEST_F(CacheTest, MemoryWithAccessOfItsOwnOrTooMuchOfItIsNotKept) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  GrowOptions options;
  options.self_access = Access::kRead;
  Buffer b = a.grow(2 * kG, options).value().buffer;
  EXPECT_TRUE(a.close().ok());
  EXPECT_TRUE(b.close().ok());
  EXPECT_EQ(r.statistics().cached, 0u);
  EXPECT_TRUE(r.allocate(stream, 9 * kG).value().close().ok());
  EXPECT_EQ(r.statistics().cached, 0u);
  EXPECT_TRUE(r.allocate(stream, 8 * kG).value().close().ok());
  EXPECT_EQ(r.statistics().cached, 8 * kG) << "as much as the bound";
}

// A stream that never captures takes the short ways through the cache: by the same rules.
TEST_F(CacheTest, OnAQuietStreamTheSameMayBeKept) {
  const Stream quiet = Stream::bind(driver, StreamHandle{0x7A}, {.never_captures = true}).value();
  auto r = resource();
  Buffer a = r.allocate(quiet, kG).value();
  Buffer alias = a.grow(kG).value().buffer;
  EXPECT_TRUE(alias.close().ok());
  EXPECT_EQ(r.statistics().cached, 0u) << "the same mapping";
  Buffer* const set[] = {&a};
  ASSERT_TRUE(r.suspend(set, false).ok());
  EXPECT_TRUE(a.close().ok());
  EXPECT_EQ(r.statistics().cached, 0u) << "it holds nothing";
  Buffer empty = r.allocate(quiet, 0).value();
  EXPECT_TRUE(empty.close().ok());
  EXPECT_EQ(r.check_invariants(), "");
  Buffer b = r.allocate(quiet, 2 * kG).value();
  ASSERT_TRUE(b.used_on(other).ok());
  EXPECT_EQ(calls_of([&] { EXPECT_TRUE(b.close().ok()); }), "StreamIsCapturing") << "of the other";
  EXPECT_EQ(r.statistics().cached, 2 * kG);
  Buffer whole = r.allocate(third, 8 * kG).value();  // all that the cache may hold
  EXPECT_TRUE(whole.close().ok());
  EXPECT_EQ(r.statistics().cached, 8 * kG);
}

TEST_F(CacheTest, ACloseOnAQuietStreamStillReapsOne) {
  const Stream quiet = Stream::bind(driver, StreamHandle{0x7A}, {.never_captures = true}).value();
  auto r = resource(FreePolicy::kDeferred);
  Buffer a = r.allocate(quiet, kG).value();
  EXPECT_TRUE(r.allocate(quiet, 9 * kG).value().close().ok());  // more than the cache may hold
  ASSERT_EQ(r.statistics().retired, 9 * kG);
  EXPECT_TRUE(a.close().ok());
  EXPECT_EQ(r.statistics().retired, 0u);
  EXPECT_EQ(r.statistics().cached, kG);
}

TEST_F(CacheTest, AQuietStreamIsOrderedBehindAnother) {
  const Stream quiet = Stream::bind(driver, StreamHandle{0x7A}, {.never_captures = true}).value();
  const Stream still = Stream::bind(driver, StreamHandle{0x7B}, {.never_captures = true}).value();
  auto r = resource();
  Buffer a = r.allocate(quiet, kG).value();
  const DevicePtr place = a.ptr();
  EXPECT_EQ(calls_of([&] { EXPECT_TRUE(a.close().ok()); }), "");
  Buffer b;
  EXPECT_EQ(calls_of([&] { b = r.allocate(quiet, kG).value(); }), "") << "its own stream";
  EXPECT_EQ(b.ptr(), place);
  EXPECT_EQ(calls_of([&] { EXPECT_TRUE(b.drop().ok()); }), "");
  EXPECT_TRUE(b.is_closed());
  EXPECT_EQ(r.statistics().cached, kG);
  Buffer c;
  const std::string calls = calls_of([&] { c = r.allocate(still, kG).value(); });
  EXPECT_EQ(c.ptr(), place);
  EXPECT_NE(calls.find("EventRecord"), std::string::npos) << calls;
  EXPECT_NE(calls.find("StreamWaitEvent"), std::string::npos) << calls;
  // Closed on a stream of its own: whoever comes next is ordered behind that one.
  EXPECT_TRUE(c.close(quiet).ok());
  const std::string again = calls_of([&] { c = r.allocate(still, kG).value(); });
  EXPECT_NE(again.find("StreamWaitEvent"), std::string::npos) << again;
}

TEST_F(CacheTest, TrimKeepsTheYoungest) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer b = r.allocate(stream, 2 * kG).value();
  EXPECT_TRUE(a.close().ok());
  EXPECT_TRUE(b.close().ok());
  EXPECT_TRUE(r.trim(3 * kG).ok());
  EXPECT_EQ(r.statistics().cached, 3 * kG);
  EXPECT_TRUE(r.trim(2 * kG).ok());
  EXPECT_EQ(r.statistics().cached, 2 * kG);
}

TEST_F(CacheTest, TrimReapsAllThatIsDoneEvenIfACaptureHoldsTheRest) {
  auto r = resource(FreePolicy::kDeferred);
  Buffer idle = r.allocate(stream, kG).value();
  std::vector<Buffer> large;
  for (int i = 0; i < 10; ++i) large.push_back(r.allocate(other, 9 * kG).value());
  EXPECT_TRUE(idle.close().ok());
  driver.fail<EventQuery>(DriverStatus::kNotReady, 1, 999);
  for (Buffer& buffer : large) EXPECT_TRUE(buffer.close().ok());
  EXPECT_EQ(r.statistics().retired, 90 * kG);
  driver.lift();
  capturing = stream.handle();
  EXPECT_EQ(r.trim(0).error().code, ErrorCode::kCapturing);
  EXPECT_EQ(r.statistics().retired, 0u);
  EXPECT_EQ(r.statistics().cached, kG);
  capturing = {};
  EXPECT_TRUE(r.trim(0).ok());
  EXPECT_EQ(r.statistics().cached, 0u);
  EXPECT_EQ(r.statistics().retired, 0u) << "and what the trim itself has retired";
}

TEST_F(CacheTest, RangeThatTwoStreamsUsedIsOrderedBehindBoth) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  EXPECT_TRUE(a.used_on(other).ok());
  EXPECT_TRUE(a.close().ok());
  Buffer b = r.allocate(third, kG).value();
  EXPECT_EQ(driver.count<StreamWaitEvent>(), 2u);
  EXPECT_EQ(driver.count<EventRecord>(), 2u);
  EXPECT_EQ(driver.last<StreamWaitEvent>().stream, third.handle());
  EXPECT_EQ(b.stream(), third);
  const std::size_t waits = driver.count<StreamSynchronize>();
  EXPECT_TRUE(b.close().ok());
  EXPECT_TRUE(r.trim(0).ok());
  EXPECT_EQ(driver.count<StreamSynchronize>(), waits + 1) << "ordered behind the third alone";
}

TEST_F(CacheTest, OrderThatIsRefusedLeavesTheRangeIdle) {
  for (const std::size_t nth : {std::size_t{1}, std::size_t{2}}) {
    auto r = resource();
    Buffer a = r.allocate(stream, kG).value();
    EXPECT_TRUE(a.used_on(other).ok());
    EXPECT_TRUE(a.close().ok());
    driver.fail<StreamWaitEvent>(DriverStatus::kUnknown, nth);
    const std::size_t made = driver.count<MemCreate>();
    Buffer b = r.allocate(third, kG).value();
    EXPECT_EQ(driver.count<MemCreate>(), made + 1) << "fresh memory";
    EXPECT_EQ(r.statistics().cached, kG);
    driver.lift();
  }
}

TEST_F(CacheTest, StreamThatCapturesGetsNoIdleRange) {
  auto r = resource();
  EXPECT_TRUE(r.allocate(stream, kG).value().close().ok());
  capturing = other.handle();
  const std::size_t made = driver.count<MemCreate>();
  Buffer b = r.allocate(other, kG).value();
  EXPECT_EQ(driver.count<MemCreate>(), made + 1);
  EXPECT_EQ(driver.count<StreamWaitEvent>(), 0u);
  capturing = {};
}

TEST_F(CacheTest, CloseOnAnotherStreamKeepsTheWorkThatTheLibraryKnowsOf) {
  auto r = resource();
  EXPECT_TRUE(r.allocate(stream, kG).value().close().ok());
  Buffer warm = r.allocate(stream, kG).value();  // ordered by its stream alone
  EXPECT_TRUE(warm.close(other).ok());
  Buffer b = r.allocate(third, kG).value();
  EXPECT_EQ(driver.count<StreamWaitEvent>(), 2u) << "the stream named, and the former one";
}

TEST_F(CacheTest, CloseOnTheSameStreamIsNoFurtherUse) {
  auto r = resource();
  EXPECT_TRUE(r.allocate(stream, kG).value().close().ok());
  Buffer warm = r.allocate(stream, kG).value();
  EXPECT_TRUE(warm.close(stream).ok());
  warm = r.allocate(stream, kG).value();
  EXPECT_EQ(driver.count<StreamWaitEvent>(), 0u);
  EXPECT_EQ(driver.count<EventCreate>(), 0u);
}

TEST_F(CacheTest, MarkersOfAForgottenStreamComeBackWithItsBuffer) {
  auto r = resource(FreePolicy::kDeferred);
  Buffer a = r.allocate(stream, 9 * kG).value();
  EXPECT_TRUE(r.forget(stream).ok());
  EXPECT_TRUE(a.close(other).ok());
  EXPECT_EQ(r.collect().ranges, 1u);
  Buffer b = r.allocate(third, 9 * kG).value();
  EXPECT_TRUE(r.forget(third).ok());
  EXPECT_TRUE(b.close().ok());
  EXPECT_EQ(driver.count<EventCreate>(), 2u) << "that of the first stream was free again";
}

TEST_F(CacheTest, MarkerOfAForgottenStreamIsSharedByAGrow) {
  auto r = resource();
  Buffer a = r.allocate(stream, 9 * kG).value();
  EXPECT_TRUE(r.forget(stream).ok());
  Buffer b = a.grow(10 * kG).value().buffer;
  EXPECT_TRUE(a.close().ok());
  EXPECT_TRUE(b.close().ok());
  EXPECT_EQ(driver.count<EventSynchronize>(), 2u);
  EXPECT_EQ(driver.count<EventRecord>(), 1u);
  std::size_t streams = 0;
  Buffer c = r.allocate(other, kG).value();
  EXPECT_TRUE(c.used_on(third).ok());
  r.for_each_stream(c, [&](const Stream&) { ++streams; });
  EXPECT_EQ(streams, 2u);
  EXPECT_TRUE(r.forget(other).ok());
  r.for_each_stream(c, [&](const Stream& left) { EXPECT_EQ(left, third); });
}

TEST_F(CacheTest, StreamThatDiedOfAStickyErrorIsForgottenAsDone) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  driver.fail<EventRecord>(DriverStatus::kLaunchFailed);
  EXPECT_TRUE(r.forget(stream).ok());
  driver.lift();
  EXPECT_TRUE(a.close().ok());
  EXPECT_TRUE(r.trim(0).ok());
  EXPECT_EQ(driver.count<StreamSynchronize>(), 0u) << "the stream is gone";
  Buffer b = r.allocate(other, kG).value();
  driver.fail<EventRecord>(DriverStatus::kUnknown);
  EXPECT_EQ(r.forget(other).error().driver, DriverStatus::kUnknown);
}

TEST_F(CacheTest, ForgettingACapturingStreamIsRefused) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  capturing = stream.handle();
  EXPECT_EQ(r.forget(stream).error().code, ErrorCode::kCapturing);
  capturing = {};
}

TEST_F(CacheTest, CollectKeepsItsBudgetButDoesOneRange) {
  class Clock final : public SyncHooks {
   public:
    void lock(const void*) override {}
    void unlock(const void*) override {}
    void wait(const void*, const void*) override {}
    bool wait_for(const void*, const void*, std::uint64_t) override { return false; }
    std::uint64_t start_thread(void (*)(void*), void*) override { return 0; }
    void join_thread(std::uint64_t) override {}
    void notify_all(const void*) override {}
    void yield_point() override {}
    std::uint64_t now_ns() override { return now += 100; }
    std::uint64_t now = 0;
  } clock;
  environment.runtime.hooks = &clock;
  {
    auto r = resource(FreePolicy::kDeferred);
    driver.fail<EventQuery>(DriverStatus::kNotReady, 1, 999);
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(r.allocate(stream, 9 * kG).value().close().ok());
    driver.lift();
    EXPECT_EQ(r.collect(0).ranges, 1u);
    EXPECT_EQ(r.collect(150).ranges, 2u) << "100 ns a look at the clock";
    EXPECT_EQ(r.collect().ranges, 1u);
  }
}

TEST_F(CacheTest, ParkedRangeGoesOnWithMarkersWhenTheCaptureHasEnded) {
  auto r = resource();
  {
    Buffer a = r.allocate(stream, kG).value();
    capturing = stream.handle();
  }
  capturing = {};
  driver.fail<EventQuery>(DriverStatus::kNotReady);
  EXPECT_EQ(r.collect().pending, 1u);
  EXPECT_EQ(r.statistics().retired, kG);
  EXPECT_EQ(r.collect().ranges, 1u);
  {
    Buffer a = r.allocate(stream, kG).value();
    capturing = stream.handle();
  }
  capturing = {};
  driver.fail<EventRecord>(DriverStatus::kUnknown);
  EXPECT_EQ(r.collect().pending, 1u) << "no marker: still parked";
  EXPECT_EQ(r.statistics().parked, kG);
  driver.lift();
  driver.fail<EventRecord>(DriverStatus::kLaunchFailed);
  EXPECT_EQ(r.collect().ranges, 1u) << "after a sticky error nothing runs any more";
}

TEST_F(CacheTest, EveryStreamIsAskedWhetherItCaptures) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  EXPECT_TRUE(a.used_on(other).ok());
  EXPECT_TRUE(a.used_on(third).ok());
  for (const Stream& one : {stream, other, third}) {
    capturing = one.handle();
    EXPECT_EQ(a.close().error().code, ErrorCode::kCapturing);
  }
  capturing = {};
}

TEST_F(CacheTest, CaptureWeighsMoreThanADisturbedDefaultStream) {
  auto r = resource();
  Buffer a = r.allocate(Stream::legacy({0}), kG).value();
  EXPECT_TRUE(a.used_on(other).ok());
  const auto plain = driver.script;
  driver.script = [&](Call& call) -> std::optional<DriverStatus> {
    const auto* query = std::get_if<StreamIsCapturing>(&call);
    if (query && query->stream == kLegacyStream) return DriverStatus::kStreamCaptureImplicit;
    return plain(call);
  };
  capturing = other.handle();
  EXPECT_EQ(a.close().error().code, ErrorCode::kCapturing);
  capturing = {};
  EXPECT_TRUE(a.close().ok()) << "parked";
  EXPECT_EQ(r.statistics().parked, kG);
  driver.script = plain;
  EXPECT_EQ(r.collect().ranges, 1u);
}

}  // namespace
}  // namespace granule
