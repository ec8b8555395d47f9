// suspend and resume that stop half-way: what is not tried any more, and what is left as it was.
#include <gtest/gtest.h>

#include "core_fixture.hpp"

namespace granule {
namespace {

class HalfwayTest : public CoreTest {
 protected:
  ~HalfwayTest() override { EXPECT_EQ(memory.bytes, 0u); }
  /// A suspend whose copy to the host may still be at work.
  void leave_a_copy(VirtualMemoryResource& r, std::span<Buffer* const> set) {
    driver.fail<StreamSynchronize>(DriverStatus::kUnknown, 2, 2);
    EXPECT_FALSE(r.suspend(set, true).ok());
    driver.lift();
  }
  Buffer two_chunks(VirtualMemoryResource& r, const GrowOptions& options = {}) {
    Buffer a = r.allocate(stream, kG, {.capacity = 2 * kG}).value();
    EXPECT_EQ(a.resize(2 * kG, options).value().placement, Placement::kKept);
    return a;
  }
};

TEST_F(HalfwayTest, SuspendStopsAtTheFirstChunkThatIsRefused) {
  auto r = resource();
  Buffer a = two_chunks(r);
  Buffer* set[] = {&a};
  driver.fail<MemUnmap>(DriverStatus::kUnknown);
  EXPECT_EQ(r.suspend(set, false).error().object, a.ptr().value + kG) << "from the end";
  EXPECT_EQ(driver.count<MemUnmap>(), 1u);
  EXPECT_FALSE(a.is_suspended());
}

TEST_F(HalfwayTest, ResumeStopsAtTheFirstThatIsRefused) {
  auto r = resource();
  Buffer a = two_chunks(r);
  Buffer b = r.allocate(stream, kG).value();
  Buffer* set[] = {&a, &b};
  EXPECT_TRUE(r.suspend(set, true).ok());
  const std::size_t made = driver.count<MemCreate>();
  driver.fail<MemCreate>(DriverStatus::kUnknown);
  EXPECT_EQ(r.resume(set).error().driver, DriverStatus::kUnknown);
  EXPECT_EQ(driver.count<MemCreate>(), made + 1);
  EXPECT_EQ(driver.count<MemcpyHtoDAsync>(), 0u);
  driver.fail<MemCreate>(DriverStatus::kUnknown, 3);
  EXPECT_FALSE(r.resume(set).ok());
  EXPECT_EQ(driver.count<MemcpyHtoDAsync>(), 0u) << "nothing is copied while any is missing";
  EXPECT_TRUE(a.is_suspended());
  EXPECT_TRUE(b.is_suspended());
  EXPECT_TRUE(r.resume(set).ok());
}

TEST_F(HalfwayTest, WhatAFailedResumeLeftMappedIsNotMappedTwice) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer b = r.allocate(stream, kG).value();
  Buffer* set[] = {&a, &b};
  EXPECT_TRUE(r.suspend(set, false).ok());
  driver.fail<MemCreate>(DriverStatus::kUnknown, 2);
  driver.fail<MemUnmap>(DriverStatus::kUnknown);
  EXPECT_FALSE(r.resume(set).ok());
  const std::size_t maps = driver.count<MemMap>();
  EXPECT_TRUE(r.resume(set).ok());
  EXPECT_EQ(driver.count<MemMap>(), maps + 1) << "the second buffer's";
  EXPECT_EQ(driver.last<MemMap>().ptr, b.ptr());
}

TEST_F(HalfwayTest, SuspendOfASuspendedBufferLeavesItsMemory) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer b = r.allocate(stream, kG).value();
  Buffer* set[] = {&a, &b};
  Buffer* first[] = {&a};
  driver.fail<MemUnmap>(DriverStatus::kUnknown, 2);
  driver.fail<MemSetAccess>(DriverStatus::kUnknown);
  EXPECT_FALSE(r.suspend(set, false).ok());
  EXPECT_TRUE(a.is_suspended()) << "it could not be mapped again, but has its memory";
  EXPECT_TRUE(r.suspend(first, false).ok());
  EXPECT_EQ(driver.count<MemRelease>(), 0u) << "and so its contents";
  EXPECT_TRUE(r.resume(first).ok());
  EXPECT_EQ(driver.count<MemCreate>(), 2u);
}

TEST_F(HalfwayTest, BackupNeedsEveryChunkToBeWritable) {
  auto r = resource();
  GrowOptions read_only;
  read_only.self_access = Access::kRead;
  Buffer a = two_chunks(r, read_only);
  Buffer* set[] = {&a};
  EXPECT_EQ(r.suspend(set, true).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(driver.count<MemcpyDtoHAsync>(), 0u);
  EXPECT_TRUE(r.suspend(set, false).ok());
}

// The CPU copies memory of the host that no device has access to, and dies if it may not write.
TEST_F(HalfwayTest, BackupOfHostMemoryNeedsAWriter) {
  const auto backup_of = [&](Access self, std::vector<DeviceId> peers, Access peer) {
    VmmOptions options;
    options.location = {LocationType::kHost, 0};
    options.self_access = self;
    options.peers = std::move(peers);
    options.peer_access = peer;
    auto r = resource(options);
    Buffer a = r.allocate(stream, kG).value();
    Buffer* set[] = {&a};
    return r.suspend(set, true).ok();
  };
  EXPECT_TRUE(backup_of(Access::kReadWrite, {}, Access::kReadWrite));
  EXPECT_FALSE(backup_of(Access::kRead, {}, Access::kReadWrite));
  EXPECT_FALSE(backup_of(Access::kNone, {}, Access::kReadWrite));
  EXPECT_FALSE(backup_of(Access::kReadWrite, {{1}}, Access::kReadWrite)) << "not the stream's";
  EXPECT_TRUE(backup_of(Access::kReadWrite, {{0}}, Access::kReadWrite));
  EXPECT_FALSE(backup_of(Access::kReadWrite, {{0}}, Access::kRead));
}

TEST_F(HalfwayTest, EmptyBufferNeedsNoBackup) {
  auto r = resource();
  Buffer a = r.allocate(stream, 0).value();
  Buffer* set[] = {&a};
  const std::size_t blocks = memory.blocks;
  EXPECT_TRUE(r.suspend(set, true).ok());
  EXPECT_EQ(memory.blocks, blocks);
  EXPECT_EQ(driver.count<MemcpyDtoHAsync>(), 0u);
  EXPECT_TRUE(r.resume(set).ok());
}

TEST_F(HalfwayTest, ResumeWithoutContentsAsksForNoCapture) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer* set[] = {&a};
  EXPECT_TRUE(r.suspend(set, false).ok());
  capturing = stream.handle();
  EXPECT_TRUE(r.resume(set).ok());
  EXPECT_TRUE(r.resume(set).ok()) << "nothing to do";
  capturing = {};
  EXPECT_TRUE(r.suspend(set, true).ok());
  capturing = stream.handle();
  EXPECT_EQ(r.resume(set).error().code, ErrorCode::kCapturing);
  capturing = {};
}

// The copy of a suspend that failed may still be on its way into the backup.
TEST_F(HalfwayTest, ResumeLeavesTheBackupOfACopyThatDidNotEnd) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer* set[] = {&a};
  driver.fail<StreamSynchronize>(DriverStatus::kUnknown, 2, 2);
  EXPECT_FALSE(r.suspend(set, true).ok());
  EXPECT_FALSE(a.is_suspended());
  const std::size_t blocks = memory.blocks;
  capturing = stream.handle();
  EXPECT_TRUE(r.resume(set).ok()) << "nothing to do";
  capturing = {};
  EXPECT_EQ(memory.blocks, blocks);
  EXPECT_EQ(driver.count<MemcpyHtoDAsync>(), 0u);
  driver.lift();
  EXPECT_TRUE(r.suspend(set, false).ok());
  EXPECT_EQ(memory.blocks, blocks - 1) << "now it has ended";
}

TEST_F(HalfwayTest, CopyThatWouldEndACaptureNamesItsStream) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer* set[] = {&a};
  EXPECT_TRUE(r.forget(stream).ok());
  disturbed = true;
  const Error error = r.suspend(set, true).error();
  EXPECT_EQ(error.code, ErrorCode::kCapturing);
  EXPECT_EQ(error.object, kLegacyStream.value);
  disturbed = false;
}

TEST_F(HalfwayTest, PlaceThatStaysQuarantinedIsTheErrorOfItsResume) {
  auto r = resource();
  Buffer a = two_chunks(r);
  Buffer* set[] = {&a};
  driver.fail<MemUnmap>(DriverStatus::kUnknown);
  driver.fail<MemGetAccess>(DriverStatus::kInvalidValue);
  driver.fail<MemMap>(DriverStatus::kUnknown, 1, 2);
  EXPECT_FALSE(r.suspend(set, false).ok());
  EXPECT_TRUE(a.is_suspended());
  driver.lift();
  const std::size_t made = driver.count<MemCreate>();
  driver.fail<MemUnmap>(DriverStatus::kUnknown);
  const Status again = r.resume(set);
  EXPECT_EQ(again.error().call, name_of(kind_of<MemUnmap>));
  EXPECT_EQ(again.error().object, a.ptr().value + kG);
  EXPECT_TRUE(r.resume(set).ok());
  EXPECT_EQ(driver.count<MemCreate>(), made + 1) << "what the failed resume had given back";
}

TEST_F(HalfwayTest, FailedSuspendLeavesTheBackupOfWhatWasSuspendedBefore) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer b = r.allocate(stream, kG).value();
  Buffer* first[] = {&a};
  Buffer* both[] = {&a, &b};
  EXPECT_TRUE(r.suspend(first, true).ok());
  driver.fail<MemUnmap>(DriverStatus::kUnknown);
  EXPECT_FALSE(r.suspend(both, true).ok());
  EXPECT_TRUE(r.resume(both).ok());
  EXPECT_EQ(driver.count<MemcpyHtoDAsync>(), 1u) << "the first one's contents";
}

TEST_F(HalfwayTest, BufferThatIsNamedTwiceIsSuspendedOnce) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  const std::size_t blocks = memory.blocks;
  Buffer* twice[] = {&a, &a};
  EXPECT_TRUE(r.suspend(twice, true).ok());
  EXPECT_EQ(driver.count<MemUnmap>(), 1u);
  EXPECT_EQ(memory.blocks, blocks + 1) << "one backup";
  EXPECT_TRUE(r.resume(twice).ok());
  EXPECT_EQ(memory.blocks, blocks);
}

TEST_F(HalfwayTest, SuspendedBufferIsClosedWithoutAWait) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer* set[] = {&a};
  leave_a_copy(r, set);
  EXPECT_TRUE(r.suspend(set, false).ok()) << "which also ends the copy that failed";
  const std::size_t before = driver.log.size();
  EXPECT_TRUE(a.close().ok());
  EXPECT_EQ(driver.calls(before), "MemAddressFree");
  a = r.allocate(stream, kG).value();
  EXPECT_TRUE(r.suspend(set, true).ok());
  const std::size_t again = driver.log.size();
  EXPECT_TRUE(a.close().ok());
  EXPECT_EQ(driver.calls(again), "MemAddressFree");
}

// The copies of a buffer whose stream is gone run on the legacy stream, which becomes a use of the
// buffer for as long as they last.
TEST_F(HalfwayTest, CopyBehindADestroyedStreamLeavesNoUseBehind) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer* set[] = {&a};
  EXPECT_TRUE(r.forget(stream).ok());
  const auto uses = [&] {
    std::size_t count = 0;
    r.for_each_stream(a, [&](const Stream&) { ++count; });
    return count;
  };
  driver.fail<ThreadExchangeStreamCaptureMode>(DriverStatus::kUnknown, 3);
  EXPECT_FALSE(r.suspend(set, true).ok()) << "nothing is waited for out of relaxed mode";
  driver.lift();
  const std::size_t waits = driver.count<StreamSynchronize>();
  EXPECT_TRUE(r.suspend(set, true).ok());
  EXPECT_EQ(driver.count<StreamSynchronize>(), waits + 2) << "before and behind the copy";
  EXPECT_EQ(uses(), 0u);
  driver.fail<MemcpyHtoDAsync>(DriverStatus::kUnknown);
  driver.fail<StreamSynchronize>(DriverStatus::kUnknown, 2);
  EXPECT_FALSE(r.resume(set).ok());
  EXPECT_EQ(uses(), 1u) << "the copy may still run there";
  driver.lift();
  EXPECT_TRUE(r.resume(set).ok());
  EXPECT_EQ(uses(), 0u);
}

TEST_F(HalfwayTest, CopiesLeaveTheStreamsThatTheCallerNamed) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  EXPECT_TRUE(a.used_on(Stream::legacy({0})).ok());
  Buffer* set[] = {&a};
  EXPECT_TRUE(r.suspend(set, true).ok());
  EXPECT_TRUE(r.resume(set).ok());
  std::size_t uses = 0;
  r.for_each_stream(a, [&](const Stream&) { ++uses; });
  EXPECT_EQ(uses, 2u);
}

TEST_F(HalfwayTest, MemoryThatCannotBeMappedAgainIsGivenBack) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer* set[] = {&a};
  EXPECT_TRUE(r.suspend(set, false).ok());
  driver.fail<MemMap>(DriverStatus::kUnknown);
  driver.fail<MemGetAccess>(DriverStatus::kInvalidValue);
  EXPECT_EQ(r.resume(set).error().call, name_of(kind_of<MemMap>));
  EXPECT_EQ(r.statistics().charged, 0u);
  EXPECT_EQ(driver.count<MemRelease>(), 2u);
  EXPECT_TRUE(r.resume(set).ok());
}

TEST_F(HalfwayTest, FailedSuspendGivesItsBackupBack) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer* set[] = {&a};
  const std::size_t blocks = memory.blocks;
  driver.fail<MemUnmap>(DriverStatus::kUnknown);
  EXPECT_FALSE(r.suspend(set, true).ok());
  EXPECT_EQ(memory.blocks, blocks);
}

TEST_F(HalfwayTest, CloseOnAnotherStreamWaitsForTheCopyToo) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer* set[] = {&a};
  leave_a_copy(r, set);
  const std::size_t waits = driver.count<StreamSynchronize>();
  EXPECT_TRUE(a.close(Stream::legacy({0})).ok());
  EXPECT_EQ(driver.count<StreamSynchronize>(), waits + 2);
}

TEST_F(HalfwayTest, BackupIsOfTheFirstSuspendOrOfNone) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer* set[] = {&a};
  EXPECT_TRUE(r.suspend(set, false).ok());
  EXPECT_TRUE(r.suspend(set, true).ok()) << "nothing to do";
  EXPECT_EQ(driver.count<MemcpyDtoHAsync>(), 0u);
  EXPECT_TRUE(r.resume(set).ok());
  EXPECT_EQ(driver.count<MemcpyHtoDAsync>(), 0u);
}

TEST_F(HalfwayTest, StreamOfACopyThatTheCallerNamesIsTheCallers) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer* set[] = {&a};
  EXPECT_TRUE(r.forget(stream).ok());
  leave_a_copy(r, set);
  EXPECT_TRUE(a.used_on(Stream::legacy({0})).ok());
  EXPECT_TRUE(r.suspend(set, false).ok());
  EXPECT_TRUE(r.resume(set).ok());
  std::size_t uses = 0;
  r.for_each_stream(a, [&](const Stream&) { ++uses; });
  EXPECT_EQ(uses, 1u);
}

TEST_F(HalfwayTest, RangeThatACopyMayStillReadIsNotKeptIdle) {
  VmmOptions options;
  options.cache = 8 * kG;
  auto r = resource(options);
  Buffer a = r.allocate(stream, kG).value();
  Buffer* set[] = {&a};
  leave_a_copy(r, set);
  EXPECT_TRUE(a.close().ok());
  EXPECT_EQ(r.statistics().cached, 0u);
  EXPECT_EQ(r.statistics().mapped, 0u);
}

}  // namespace
}  // namespace granule
