// Export and import: descriptors, budget and what is refused.
#include <gtest/gtest.h>

#include <granule/resource.hpp>

#include "scripted_backend.hpp"

namespace granule {
namespace {

class ShareTest : public testing::Test {
 public:
  ShareTest() {
    driver.script = [this](Call& call) -> std::optional<DriverStatus> {
      if (auto* out = std::get_if<MemExportToShareableHandle>(&call))
        out->descriptor = Descriptor{++next};
      if (auto* in = std::get_if<MemImportFromShareableHandle>(&call))
        in->handle = AllocationHandle{5000 + static_cast<std::uint64_t>(++next)};
      return std::nullopt;
    };
    environment.sink = &sink;
    environment.runtime.memory = &memory;
  }
  ~ShareTest() override { EXPECT_EQ(memory.blocks, 0u); }
  VirtualMemoryResource resource(std::uint64_t limit = kNoLimit) {
    VmmOptions options;
    options.handle_type = HandleType::kPosixFd;
    options.limit = limit;
    return VirtualMemoryResource::create(driver, options, environment).value();
  }
  CountedMemory memory;
  KeptReports sink;
  Environment environment;
  ScriptedBackend driver;
  int next = 0;
  Stream stream = Stream::bind(driver, StreamHandle{0x77}).value();
};

TEST_F(ShareTest, EveryChunkHasADescriptorInAddressOrder) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  ASSERT_TRUE(a.resize(3 * kG).ok());
  EXPECT_EQ(driver.last<MemCreate>().properties.handle_types, HandleType::kPosixFd);
  SharedBuffer shared = r.export_buffer(a).value();
  ASSERT_EQ(shared.chunks().size(), 2u);
  EXPECT_EQ(shared.type(), HandleType::kPosixFd);
  EXPECT_EQ(shared.chunks()[0].size, kG);
  EXPECT_EQ(shared.chunks()[1].size, 2 * kG);
  EXPECT_EQ(shared.chunks()[0].descriptor, Descriptor{1});
  EXPECT_NE(shared.chunks()[0].origin, shared.chunks()[1].origin);
  SharedBuffer moved = std::move(shared);
  EXPECT_TRUE(shared.chunks().empty());  // NOLINT(bugprone-use-after-move): that is what is tested
  EXPECT_EQ(driver.count<CloseDescriptor>(), 0u);
  moved = SharedBuffer();
  EXPECT_EQ(driver.count<CloseDescriptor>(), 2u);
}

TEST_F(ShareTest, CloseGoesOnAndReturnsTheFirstError) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  ASSERT_TRUE(a.resize(2 * kG).ok());
  SharedBuffer shared = r.export_buffer(a).value();
  driver.fail<CloseDescriptor>(DriverStatus::kInvalidValue);
  driver.fail<CloseDescriptor>(DriverStatus::kUnknown, 2);
  EXPECT_EQ(shared.close().error().driver, DriverStatus::kInvalidValue);
  EXPECT_EQ(driver.count<CloseDescriptor>(), 2u);
  EXPECT_TRUE(shared.close().ok()) << "nothing is left";
}

TEST_F(ShareTest, ExportThatIsRefusedHalfWayClosesWhatItHad) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  ASSERT_TRUE(a.resize(2 * kG).ok());
  driver.fail<MemExportToShareableHandle>(DriverStatus::kOperatingSystem, 2);
  const Result<SharedBuffer> shared = r.export_buffer(a);
  ASSERT_FALSE(shared.ok());
  EXPECT_EQ(shared.error().call, name_of(kind_of<MemExportToShareableHandle>));
  EXPECT_EQ(shared.error().object, a.ptr().value + kG);
  EXPECT_EQ(driver.count<CloseDescriptor>(), 1u);
}

TEST_F(ShareTest, WithoutAHandleTypeThereIsNoExport) {
  auto r = VirtualMemoryResource::create(driver, {}, environment).value();
  Buffer a = r.allocate(stream, kG).value();
  EXPECT_EQ(r.export_buffer(a).status().error().code, ErrorCode::kUnsupported);
  Buffer* set[] = {&a};
  EXPECT_TRUE(r.suspend(set, false).ok());
  EXPECT_EQ(r.export_buffer(a).status().error().code, ErrorCode::kSuspended);
}

TEST_F(ShareTest, MemoryThatTheResourceHoldsIsChargedOnce) {
  auto r = resource(3 * kG);
  Buffer a = r.allocate(stream, 2 * kG).value();
  SharedBuffer shared = r.export_buffer(a).value();
  Buffer b = r.import_buffer(stream, shared).value();
  EXPECT_EQ(b.size(), 2 * kG);
  EXPECT_EQ(r.statistics().charged, 2 * kG);
  EXPECT_EQ(r.export_buffer(b).status().error().code, ErrorCode::kUnsupported);
  EXPECT_TRUE(a.close().ok());
  EXPECT_EQ(r.statistics().charged, 2 * kG) << "the import holds it now";
  EXPECT_EQ(r.check_invariants(), "");
  EXPECT_TRUE(b.close().ok());
  EXPECT_EQ(r.statistics().charged, 0u);
}

TEST_F(ShareTest, MemoryOfAnotherProcessCountsByItself) {
  auto r = resource();
  Buffer a = r.allocate(stream, 2 * kG).value();
  SharedBuffer exported = r.export_buffer(a).value();
  SharedBuffer received(driver, HandleType::kPosixFd);
  for (SharedBuffer::Chunk chunk : exported.chunks()) {
    chunk.origin = 0;
    received.add(chunk);
  }
  Buffer b = r.import_buffer(stream, received).value();
  EXPECT_EQ(r.statistics().live, 4 * kG);
  Buffer c = r.import_buffer(stream, received).value();
  EXPECT_EQ(r.statistics().charged, 6 * kG) << "who knows whether it is the same";
  EXPECT_EQ(r.check_invariants(), "");
}

TEST_F(ShareTest, MemoryOfOthersIsChargedAndGivenBackOnFailure) {
  auto theirs = resource();
  auto ours = resource(3 * kG);
  Buffer a = theirs.allocate(stream, 2 * kG).value();
  SharedBuffer shared = theirs.export_buffer(a).value();
  driver.fail<MemImportFromShareableHandle>(DriverStatus::kUnknown);
  EXPECT_FALSE(ours.import_buffer(stream, shared).ok());
  EXPECT_EQ(ours.statistics().charged, 0u);
  Buffer b = ours.import_buffer(stream, shared).value();
  EXPECT_EQ(ours.statistics().charged, 2 * kG);
  const Error full = ours.allocate(stream, 2 * kG).status().error();
  EXPECT_EQ(full.exhausted, Exhausted::kBudget);
  EXPECT_TRUE(b.close().ok());
  EXPECT_EQ(ours.statistics().charged, 0u);
}

TEST_F(ShareTest, ImportChecksTypeAndSizes) {
  auto r = resource();
  SharedBuffer odd(driver, HandleType::kPosixFd);
  odd.add({Descriptor{1}, kG + 1, 1});
  EXPECT_EQ(r.import_buffer(stream, odd).status().error().code, ErrorCode::kInvalidArgument);
  SharedBuffer none(driver, HandleType::kPosixFd);
  none.add({Descriptor{1}, 0, 1});
  EXPECT_EQ(r.import_buffer(stream, none).status().error().code, ErrorCode::kInvalidArgument);
  SharedBuffer huge(driver, HandleType::kPosixFd);
  huge.add({Descriptor{1}, UINT64_MAX - kG + 1, 1});
  huge.add({Descriptor{2}, UINT64_MAX - kG + 1, 2});
  EXPECT_EQ(r.import_buffer(stream, huge).status().error().code, ErrorCode::kOverflow);
  SharedBuffer other(driver, HandleType::kFabric);
  other.add({Descriptor{1}, kG, 1});
  EXPECT_EQ(r.import_buffer(stream, other).status().error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(driver.count<MemImportFromShareableHandle>(), 0u);
  EXPECT_EQ(r.import_buffer(stream, SharedBuffer(driver, HandleType::kFabric)).value().size(), 0u);
}

TEST_F(ShareTest, ImportMapsChunkBehindChunk) {
  auto theirs = resource();
  auto ours = resource();
  Buffer a = theirs.allocate(stream, kG).value();
  ASSERT_TRUE(a.resize(3 * kG).ok());
  SharedBuffer shared = theirs.export_buffer(a).value();
  const std::size_t before = driver.log.size();
  Buffer b = ours.import_buffer(stream, shared).value();
  EXPECT_EQ(driver.calls(before),
            "MemAddressReserve MemImportFromShareableHandle MemMap MemSetAccess "
            "MemImportFromShareableHandle MemMap MemSetAccess");
  EXPECT_EQ(driver.last<MemMap>().ptr.value, b.ptr().value + kG);
  EXPECT_EQ(driver.last<MemMap>().size, 2 * kG);
  std::vector<std::uint64_t> sizes;
  EXPECT_TRUE(b.for_each_chunk([&](const ChunkView& chunk) { sizes.push_back(chunk.size); }).ok());
  EXPECT_EQ(sizes, (std::vector<std::uint64_t>{kG, 2 * kG}));
}

TEST_F(ShareTest, ImportOnTopOfOtherMemoryIsCharged) {
  auto theirs = resource();
  auto ours = resource();
  Buffer own = ours.allocate(stream, kG).value();
  Buffer a = theirs.allocate(stream, 2 * kG).value();
  SharedBuffer shared = theirs.export_buffer(a).value();
  Buffer b = ours.import_buffer(stream, shared).value();
  EXPECT_EQ(driver.last<MemAddressReserve>().hint, DevicePtr{}) << "anywhere";
  EXPECT_EQ(ours.statistics().charged, 3 * kG);
  Buffer c = ours.import_buffer(stream, shared).value();
  EXPECT_EQ(ours.statistics().charged, 3 * kG);
  EXPECT_TRUE(b.close().ok());
  EXPECT_EQ(ours.statistics().charged, 3 * kG) << "the second import holds it now";
  EXPECT_EQ(ours.check_invariants(), "");
  Buffer* set[] = {&c};
  EXPECT_TRUE(ours.suspend(set, false).ok());
  EXPECT_EQ(ours.statistics().charged, kG);
  Buffer d = ours.import_buffer(stream, shared).value();
  EXPECT_EQ(ours.statistics().charged, 3 * kG) << "what is suspended holds nothing";
  EXPECT_EQ(ours.check_invariants(), "");
}

TEST_F(ShareTest, EveryHostAllocationOfAnImportMayFail) {
  auto theirs = resource();
  auto ours = resource();
  Buffer a = theirs.allocate(stream, kG).value();
  SharedBuffer shared = theirs.export_buffer(a).value();
  for (std::size_t nth = 1; nth <= 4; ++nth) {  // record, reservation, chunk, mapping
    memory.fail_in = nth;
    const Error error = ours.import_buffer(stream, shared).status().error();
    EXPECT_EQ(error.exhausted, Exhausted::kHost) << nth;
    EXPECT_LT(error.wanted, 1024u) << "a record, no chunk of memory";
    EXPECT_EQ(ours.statistics().reservations, 0u);
  }
  memory.fail_in = 0;
  EXPECT_EQ(driver.count<MemImportFromShareableHandle>(), 0u);
}

TEST_F(ShareTest, ImportReapsAFewRangesOnItsWay) {
  VmmOptions options;
  options.handle_type = HandleType::kPosixFd;
  options.free = FreePolicy::kDeferred;
  auto r = VirtualMemoryResource::create(driver, options, environment).value();
  Buffer a = r.allocate(stream, kG).value();
  SharedBuffer shared = r.export_buffer(a).value();
  driver.fail<EventQuery>(DriverStatus::kNotReady, 1, 99);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(r.allocate(stream, kG).value().close().ok());
  driver.lift();
  Buffer b = r.import_buffer(stream, shared).value();
  EXPECT_EQ(r.statistics().retired, 0u);
  const std::size_t before = driver.log.size();
  EXPECT_TRUE(r.import_buffer(stream, SharedBuffer(driver, HandleType::kPosixFd)).ok());
  EXPECT_EQ(driver.log.size(), before) << "nothing needs no addresses";
}

TEST_F(ShareTest, ClosedBufferIsNotExported) {
  auto r = resource();
  Buffer a = r.allocate(stream, kG).value();
  EXPECT_TRUE(a.close().ok());
  EXPECT_EQ(r.export_buffer(a).status().error().code, ErrorCode::kClosed);
}

}  // namespace
}  // namespace granule
