// suspend and resume half-way: what is put back, what is reported, what stays to be tried again.
#include <gtest/gtest.h>

#include "core_fixture.hpp"

namespace granule {
namespace {

class SuspendTest : public CoreTest {
 protected:
  SuspendTest() {
    stream = Stream::bind(driver, StreamHandle{0x77}, {.never_captures = true}).value();
  }
};

TEST_F(SuspendTest, RefusedUnmapMapsTheSetAgain) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer b = r.allocate(stream, kG).value();
  Buffer* set[] = {&a, &b};
  driver.fail<MemUnmap>(DriverStatus::kUnknown, 2);
  const std::size_t before = driver.log.size();
  const Status done = r.suspend(set, true);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().call, name_of(kind_of<MemUnmap>));
  EXPECT_EQ(done.error().object, b.ptr().value);
  EXPECT_NE(driver.calls(before).find("MemUnmap MemUnmap MemGetAccess MemMap MemSetAccess"),
            std::string::npos);
  EXPECT_FALSE(a.is_suspended());
  EXPECT_FALSE(b.is_suspended());
  EXPECT_EQ(driver.count<MemRelease>(), 0u);
  EXPECT_TRUE(sink.reports.empty());
  EXPECT_TRUE(r.suspend(set, false).ok());
  EXPECT_TRUE(r.resume(set).ok());
  EXPECT_EQ(driver.count<MemcpyHtoDAsync>(), 0u) << "the backup went with the failure";
}

TEST_F(SuspendTest, UnmapThatWasDoneThoughRefusedIsMappedAgain) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer* set[] = {&a};
  driver.fail<MemUnmap>(DriverStatus::kUnknown);
  driver.fail<MemGetAccess>(DriverStatus::kInvalidValue);
  const std::size_t maps = driver.count<MemMap>();
  EXPECT_FALSE(r.suspend(set, false).ok());
  EXPECT_EQ(driver.count<MemMap>(), maps + 1);
  EXPECT_FALSE(a.is_suspended());
  EXPECT_EQ(r.check_invariants(), "");
}

TEST_F(SuspendTest, MapThatFindsWhatIsThereIsTriedTwice) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer* set[] = {&a};
  driver.fail<MemUnmap>(DriverStatus::kUnknown);
  driver.fail<MemGetAccess>(DriverStatus::kInvalidValue);
  driver.fail<MemMap>(DriverStatus::kUnknown);
  EXPECT_FALSE(r.suspend(set, false).ok());
  EXPECT_FALSE(a.is_suspended());
  EXPECT_EQ(r.statistics().quarantined, 0u);
  EXPECT_TRUE(sink.reports.empty());
  EXPECT_EQ(r.check_invariants(), "");
}

TEST_F(SuspendTest, WhereNobodyKnowsWhatIsThereTheBufferStaysSuspended) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer* set[] = {&a};
  driver.fail<MemUnmap>(DriverStatus::kUnknown);
  driver.fail<MemGetAccess>(DriverStatus::kInvalidValue);
  driver.fail<MemMap>(DriverStatus::kUnknown, 1, 2);
  EXPECT_FALSE(r.suspend(set, false).ok());
  EXPECT_TRUE(a.is_suspended());
  EXPECT_EQ(r.statistics().quarantined, kG);
  ASSERT_FALSE(sink.reports.empty());
  EXPECT_EQ(sink.reports.back().kind, FailureKind::kUndoFailed);
  EXPECT_EQ(sink.reports.back().ptr, a.ptr());
  EXPECT_EQ(sink.reports.back().size, kG);
  driver.lift();
  driver.fail<MemUnmap>(DriverStatus::kUnknown);
  const Status again = r.resume(set);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().call, name_of(kind_of<MemUnmap>));
  EXPECT_TRUE(a.is_suspended());
  EXPECT_TRUE(r.resume(set).ok()) << "it is tried again";
  EXPECT_EQ(r.statistics().quarantined, 0u);
  EXPECT_EQ(r.check_invariants(), "");
}

TEST_F(SuspendTest, DoubtThatStaysIsReported) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer* set[] = {&a};
  driver.fail<MemUnmap>(DriverStatus::kUnknown);
  driver.fail<MemGetAccess>(DriverStatus::kUnknown);
  EXPECT_FALSE(r.suspend(set, false).ok());
  ASSERT_EQ(sink.reports.size(), 1u);
  EXPECT_EQ(sink.reports[0].kind, FailureKind::kUndoFailed);
  EXPECT_EQ(sink.reports[0].error.call, name_of(kind_of<MemGetAccess>));
  EXPECT_FALSE(a.is_suspended());
}

TEST_F(SuspendTest, RemapThatIsRefusedLeavesThatBufferSuspended) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer b = r.allocate(stream, kG).value();
  Buffer* set[] = {&a, &b};
  driver.fail<MemUnmap>(DriverStatus::kUnknown, 2);
  driver.fail<MemSetAccess>(DriverStatus::kUnknown);
  EXPECT_FALSE(r.suspend(set, false).ok());
  EXPECT_TRUE(a.is_suspended());
  EXPECT_FALSE(b.is_suspended());
  ASSERT_EQ(sink.reports.size(), 1u);
  EXPECT_EQ(sink.reports[0].kind, FailureKind::kUndoFailed);
  EXPECT_EQ(sink.reports[0].ptr, a.ptr());
  driver.lift();
  EXPECT_TRUE(r.resume(set).ok());
  EXPECT_FALSE(a.is_suspended());
}

TEST_F(SuspendTest, RefusedReleaseIsALeakAndTheBufferIsSuspended) {
  auto r = resource();
  Buffer a = r.allocate(stream, 2 * kG).value();
  Buffer* set[] = {&a};
  driver.fail<MemRelease>(DriverStatus::kUnknown);
  EXPECT_TRUE(r.suspend(set, false).ok());
  ASSERT_EQ(sink.reports.size(), 1u);
  EXPECT_EQ(sink.reports[0].kind, FailureKind::kReleaseFailed);
  EXPECT_EQ(sink.reports[0].size, 2 * kG);
  EXPECT_EQ(r.statistics().leaked_handles, 1u);
  EXPECT_EQ(r.statistics().leaked_handle_bytes, 2 * kG);
  EXPECT_EQ(r.statistics().charged, 2 * kG);
  EXPECT_EQ(r.check_invariants(), "");
}

TEST_F(SuspendTest, ResumeThatFindsNoMemoryTakesTheRestDown) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer b = r.allocate(stream, kG).value();
  Buffer* set[] = {&a, &b};
  EXPECT_TRUE(r.suspend(set, true).ok());
  driver.fail<MemCreate>(DriverStatus::kOutOfMemory, 2, 9);
  EXPECT_EQ(calls_of([&] { EXPECT_EQ(r.resume(set).error().code, ErrorCode::kOutOfMemory); }),
            "ThreadExchangeStreamCaptureMode StreamSynchronize ThreadExchangeStreamCaptureMode "
            "ThreadExchangeStreamCaptureMode StreamSynchronize ThreadExchangeStreamCaptureMode "
            "MemCreate MemMap MemSetAccess MemCreate MemUnmap MemRelease");
  EXPECT_TRUE(a.is_suspended());
  EXPECT_EQ(r.statistics().charged, 0u);
  driver.lift();
  EXPECT_TRUE(r.resume(set).ok());
  EXPECT_EQ(driver.count<MemcpyHtoDAsync>(), 2u);
  EXPECT_EQ(r.statistics().charged, 2 * kG);
}

TEST_F(SuspendTest, MappingThatCannotBeTakenDownStaysAndIsReported) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer b = r.allocate(stream, kG).value();
  Buffer* set[] = {&a, &b};
  EXPECT_TRUE(r.suspend(set, false).ok());
  driver.fail<MemCreate>(DriverStatus::kUnknown, 2);
  driver.fail<MemUnmap>(DriverStatus::kUnknown);
  EXPECT_FALSE(r.resume(set).ok());
  ASSERT_EQ(sink.reports.size(), 1u);
  EXPECT_EQ(sink.reports[0].kind, FailureKind::kUndoFailed);
  EXPECT_EQ(sink.reports[0].ptr, a.ptr());
  EXPECT_EQ(sink.reports[0].size, kG);
  EXPECT_EQ(r.statistics().charged, kG) << "what is still mapped is held";
  driver.lift();
  const std::size_t made = driver.count<MemCreate>();
  EXPECT_TRUE(r.resume(set).ok());
  EXPECT_EQ(driver.count<MemCreate>(), made + 1) << "the other one's";
}

TEST_F(SuspendTest, CopyThatMayBeQueuedIsWaitedForBeforeItsMemoryGoes) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer* set[] = {&a};
  EXPECT_TRUE(r.suspend(set, true).ok());
  driver.fail<MemcpyHtoDAsync>(DriverStatus::kUnknown);
  EXPECT_EQ(
      calls_of([&] { EXPECT_EQ(r.resume(set).error().call, name_of(kind_of<MemcpyHtoDAsync>)); }),
      "ThreadExchangeStreamCaptureMode StreamSynchronize ThreadExchangeStreamCaptureMode "
      "MemCreate MemMap MemSetAccess CtxPushCurrent ThreadExchangeStreamCaptureMode "
      "MemcpyHtoDAsync ThreadExchangeStreamCaptureMode CtxPopCurrent "
      "ThreadExchangeStreamCaptureMode StreamSynchronize ThreadExchangeStreamCaptureMode "
      "MemUnmap MemRelease");
  driver.lift();
  EXPECT_EQ(calls_of([&] { EXPECT_TRUE(a.close().ok()); }), "MemAddressFree")
      << "nothing is on its way any more";
}

TEST_F(SuspendTest, CopyThatCannotBeWaitedForKeepsItsMemory) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer* set[] = {&a};
  EXPECT_TRUE(r.suspend(set, true).ok());
  driver.fail<StreamSynchronize>(DriverStatus::kUnknown, 2, 2);
  EXPECT_FALSE(r.resume(set).ok());
  EXPECT_EQ(driver.count<MemUnmap>(), 1u) << "that of the suspend";
  ASSERT_EQ(sink.reports.size(), 1u);
  EXPECT_EQ(sink.reports[0].kind, FailureKind::kUndoFailed);
  driver.lift();
  driver.fail<StreamSynchronize>(DriverStatus::kUnknown);
  EXPECT_FALSE(a.close().ok()) << "the copy may still run";
  driver.lift();
  driver.fail<StreamSynchronize>(DriverStatus::kLaunchFailed);
  EXPECT_TRUE(a.close().ok()) << "after a sticky error it does not";
  EXPECT_EQ(driver.count<MemUnmap>(), 2u);
}

TEST_F(SuspendTest, BackupThatCannotBeTakenChangesNothing) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer b = r.allocate(stream, kG).value();
  Buffer* set[] = {&a, &b};
  driver.fail<MemcpyDtoHAsync>(DriverStatus::kUnknown);
  EXPECT_EQ(r.suspend(set, true).error().call, name_of(kind_of<MemcpyDtoHAsync>));
  EXPECT_EQ(driver.count<MemcpyDtoHAsync>(), 1u) << "the second one is not tried";
  EXPECT_EQ(driver.count<MemUnmap>(), 0u);
  memory.fail_in = 2;
  const Error error = r.suspend(set, true).error();
  EXPECT_EQ(error.exhausted, Exhausted::kHost);
  EXPECT_EQ(error.wanted, kG);
  EXPECT_FALSE(a.is_suspended());
  EXPECT_EQ(r.check_invariants(), "");
}

TEST_F(SuspendTest, MemoryThatNobodyMayReadIsNotBackedUp) {
  VmmOptions options;
  options.self_access = Access::kNone;
  auto r = resource(options);
  Buffer a = r.allocate(stream, kG).value();
  Buffer* set[] = {&a};
  EXPECT_EQ(r.suspend(set, true).error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(r.suspend(set, false).ok());
}

TEST_F(SuspendTest, SharedChunksAreNotTakenAway) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  RangeHolder holder = a.hold().value();
  Buffer* set[] = {&a};
  const Error error = r.suspend(set, false).error();
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.object, a.ptr().value);
  EXPECT_TRUE(holder.drop().ok());
  EXPECT_TRUE(r.suspend(set, false).ok());
  EXPECT_EQ(a.hold().status().error().code, ErrorCode::kSuspended);
  EXPECT_EQ(a.grow(2 * kG).status().error().code, ErrorCode::kSuspended);
  EXPECT_EQ(a.grow(2 * kG).status().error().object, a.ptr().value);
  EXPECT_EQ(a.shrink(0).status().error().code, ErrorCode::kSuspended);
  EXPECT_EQ(a.for_each_chunk([](const ChunkView&) {}).error().code, ErrorCode::kSuspended);
}

TEST_F(SuspendTest, PendingFreesThatShareTheChunksAreWaitedFor) {
  VmmOptions options;
  options.free = FreePolicy::kDeferred;
  auto r = resource(options);
  Buffer a = r.allocate(stream, kG).value();
  Buffer alias = a.grow(kG).value().buffer;
  EXPECT_TRUE(alias.close().ok());
  driver.fail<EventQuery>(DriverStatus::kNotReady, 1, 99);
  Buffer* set[] = {&a};
  EXPECT_TRUE(r.suspend(set, false).ok());
  EXPECT_EQ(driver.count<EventSynchronize>(), 1u);
}

TEST_F(SuspendTest, ImportedMemoryIsOursAfterAResume) {
  driver.script = [](Call& call) -> std::optional<DriverStatus> {
    if (auto* out = std::get_if<MemExportToShareableHandle>(&call)) out->descriptor = Descriptor{1};
    if (auto* in = std::get_if<MemImportFromShareableHandle>(&call))
      in->handle = AllocationHandle{5000};
    return std::nullopt;
  };
  VmmOptions options;
  options.handle_type = HandleType::kPosixFd;
  auto r = resource(options);
  Buffer a = r.allocate(stream, kG).value();
  SharedBuffer shared = r.export_buffer(a).value();
  Buffer b = r.import_buffer(stream, shared).value();
  EXPECT_EQ(r.statistics().charged, kG);
  EXPECT_EQ(r.statistics().live, kG);
  Buffer* set[] = {&b};
  EXPECT_TRUE(r.suspend(set, false).ok());
  EXPECT_EQ(r.statistics().charged, kG);
  EXPECT_TRUE(r.resume(set).ok());
  EXPECT_EQ(r.statistics().charged, 2 * kG) << "memory of its own now";
  EXPECT_EQ(r.statistics().live, 2 * kG);
  EXPECT_TRUE(r.export_buffer(b).ok());
  EXPECT_TRUE(b.close().ok());
  EXPECT_EQ(r.statistics().charged, kG);
  EXPECT_TRUE(a.close().ok());
  EXPECT_EQ(r.statistics().charged, 0u);
}

}  // namespace
}  // namespace granule
