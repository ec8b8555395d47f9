// What the core refuses or does without any driver call, and how it treats the seam. Behaviour
// against a driver is tested with programs on the model.
#include <gtest/gtest.h>

#include <granule/adaptor.hpp>
#include <granule/resource.hpp>
#include <vector>

#include "null_backend.hpp"

namespace granule {
namespace {

class BufferTest : public testing::Test {
 protected:
  VirtualMemoryResource resource(const VmmOptions& options = {}) {
    return VirtualMemoryResource::create(backend, options, {}).value();
  }
  NullBackend backend;
  Stream stream = Stream::legacy({0});
};

TEST_F(BufferTest, SizeZeroMakesNoDriverCall) {
  VirtualMemoryResource r = resource();
  const std::uint64_t before = backend.calls;
  Buffer a = r.allocate(stream, 0).value();
  EXPECT_EQ(a.size(), 0u);
  EXPECT_EQ(backend.calls, before);
}

TEST_F(BufferTest, SizeThatWrapsMakesNoDriverCall) {
  VirtualMemoryResource r = resource();
  const std::uint64_t before = backend.calls;
  Result<Buffer> a = r.allocate(stream, UINT64_MAX);
  ASSERT_FALSE(a.ok());
  EXPECT_EQ(a.error().code, ErrorCode::kOverflow);
  EXPECT_EQ(backend.calls, before);
}

TEST_F(BufferTest, HopelessSizeMakesNoDriverCall) {
  VirtualMemoryResource r = resource();
  const std::uint64_t before = backend.calls;
  Result<Buffer> a = r.allocate(stream, 1ull << 50);
  ASSERT_FALSE(a.ok());
  EXPECT_EQ(a.error().exhausted, Exhausted::kDevice);
  EXPECT_EQ(backend.calls, before);
  EXPECT_THROW(r.allocate(stream, 1ull << 50).value(), OutOfMemory);
}

TEST_F(BufferTest, CoveredGrowIsAnAliasWithoutDriverCall) {
  VirtualMemoryResource r = resource();
  Buffer a = r.allocate(stream, 2 * kG).value();
  const std::uint64_t before = backend.calls;
  GrowResult b = a.grow(kG).value();
  EXPECT_EQ(b.placement, Placement::kAlias);
  EXPECT_EQ(b.buffer.ptr(), a.ptr());
  EXPECT_EQ(b.buffer.size(), 2 * kG);
  EXPECT_EQ(backend.calls, before);
}

TEST_F(BufferTest, ClosedBufferRefusesEverythingButClose) {
  VirtualMemoryResource r = resource();
  Buffer a = r.allocate(stream, kG).value();
  EXPECT_TRUE(a.close().ok());
  EXPECT_TRUE(a.close().ok());
  EXPECT_TRUE(a.drop().ok());
  EXPECT_EQ(a.grow(kG).status().error().code, ErrorCode::kClosed);
  EXPECT_EQ(a.resize(kG).status().error().code, ErrorCode::kClosed);
  EXPECT_EQ(a.shrink(kG).status().error().code, ErrorCode::kClosed);
  EXPECT_EQ(a.used_on(stream).error().code, ErrorCode::kClosed);
  EXPECT_THROW(a.grow(kG).value(), BackendError);
}

TEST_F(BufferTest, BuffersOutliveTheirResource) {
  Buffer a;
  {
    VirtualMemoryResource r = resource();
    a = r.allocate(stream, kG).value();
  }
  EXPECT_TRUE(a.grow(2 * kG).ok());
}

TEST_F(BufferTest, ForeignBufferIsRefusedByName) {
  VirtualMemoryResource r = resource();
  VirtualMemoryResource other = resource();
  Buffer a = r.allocate(stream, kG).value();
  Buffer* set[] = {&a};
  EXPECT_EQ(other.suspend(set, false).error().code, ErrorCode::kWrongResource);
  EXPECT_EQ(other.export_buffer(a).status().error().code, ErrorCode::kWrongResource);
  EXPECT_FALSE(other.owns(a));
  EXPECT_TRUE(r.owns(a));
}

class CollectingSink final : public FailureSink {
 public:
  void report(const FailureReport&) noexcept override { ++reports; }
  int reports = 0;
};

class CountingMemory final : public HostMemory {
 public:
  void* allocate(std::size_t size, std::size_t alignment) noexcept override {
    ++allocations;
    bytes += size;
    return default_host_memory().allocate(size, alignment);
  }
  void deallocate(void* block, std::size_t size, std::size_t alignment) noexcept override {
    ++deallocations;
    bytes -= size;
    default_host_memory().deallocate(block, size, alignment);
  }
  std::uint64_t allocations = 0;
  std::uint64_t deallocations = 0;
  std::uint64_t bytes = 0;
};

TEST_F(BufferTest, HostMemoryComesBackAndAChunkTakesAtMost200Bytes) {
  CountingMemory memory;
  Environment environment;
  environment.runtime.memory = &memory;
  {
    auto r = VirtualMemoryResource::create(backend, {}, environment).value();
    AllocateOptions options;
    options.capacity = 101 * kG;
    Buffer a = r.allocate(stream, kG, options).value();
    const std::uint64_t before = memory.bytes;
    for (std::uint64_t i = 2; i <= 101; ++i) ASSERT_TRUE(a.resize(i * kG).ok());
    EXPECT_LE((memory.bytes - before) / 100, 200u);
    EXPECT_EQ(r.check_invariants(), "");
  }
  EXPECT_EQ(memory.bytes, 0u);
  EXPECT_EQ(memory.allocations, memory.deallocations);
}

TEST_F(BufferTest, WarmPairMakesNoMemoryCallAndNoHostAllocation) {
  CountingMemory memory;
  Environment environment;
  environment.runtime.memory = &memory;
  VmmOptions options;
  options.cache = 64 * kG;
  auto r = VirtualMemoryResource::create(backend, options, environment).value();
  const Stream bound = Stream::bind(backend, StreamHandle{42}, {true}).value();
  EXPECT_TRUE(r.allocate(bound, kG).value().close().ok());
  const std::uint64_t calls = backend.calls;
  const std::uint64_t allocations = memory.allocations;
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(r.allocate(bound, kG).value().close().ok());
  EXPECT_EQ(backend.calls, calls);
  EXPECT_EQ(memory.allocations, allocations);
}

TEST_F(BufferTest, MemoryCommittedAheadServesGrowthWithoutDriverCall) {
  VmmOptions options;
  options.commit_ahead = 4 * kG;
  VirtualMemoryResource r = resource(options);
  Buffer a = r.allocate(stream, kG).value();
  EXPECT_EQ(a.size(), kG);
  const std::uint64_t before = backend.calls;
  GrowResult b = a.grow(3 * kG).value();
  EXPECT_EQ(b.placement, Placement::kKept);
  EXPECT_EQ(b.buffer.size(), 3 * kG);
  EXPECT_EQ(backend.calls, before);
  EXPECT_EQ(r.statistics().live, 5 * kG);
  EXPECT_EQ(r.check_invariants(), "");
}

TEST_F(BufferTest, MemoryCommittedAheadHasOneOwner) {
  VmmOptions options;
  options.commit_ahead = 4 * kG;
  VirtualMemoryResource r = resource(options);
  Buffer a = r.allocate(stream, kG).value();
  GrowResult b = a.grow(2 * kG).value();
  EXPECT_EQ(a.grow(2 * kG).status().error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(b.buffer.grow(3 * kG).ok());
  b.buffer = Buffer();
  EXPECT_TRUE(a.grow(2 * kG).ok()) << "alone again, it owns what is behind it";
}

TEST_F(BufferTest, LargestChunkIsBounded) {
  VmmOptions options;
  options.max_chunk = 4 * kG;
  VirtualMemoryResource r = resource(options);
  Buffer a = r.allocate(stream, 10 * kG).value();
  std::vector<std::uint64_t> sizes;
  EXPECT_TRUE(a.for_each_chunk([&](const ChunkView& c) { sizes.push_back(c.size / kG); }).ok());
  EXPECT_EQ(sizes, (std::vector<std::uint64_t>{4, 4, 2}));
  EXPECT_EQ(r.check_invariants(), "");
}

TEST_F(BufferTest, SlackGrowsByAShareOfWhatIsThere) {
  VmmOptions options;
  options.slack_percent = 50;
  VirtualMemoryResource r = resource(options);
  Buffer a = r.allocate(stream, 10 * kG).value();
  ASSERT_TRUE(a.resize(11 * kG).ok());
  EXPECT_EQ(a.size(), 11 * kG);
  EXPECT_EQ(r.statistics().live, 15 * kG);
  ASSERT_TRUE(a.resize(15 * kG).ok());
  EXPECT_EQ(r.statistics().live, 15 * kG);
}

TEST_F(BufferTest, AnAddressLeadsToTheLargestBufferThatShowsIt) {
  VirtualMemoryResource r = resource();
  EXPECT_FALSE(r.buffer_at({}).has_value());
  Buffer a = r.allocate(stream, 2 * kG, {.capacity = 8 * kG}).value();
  const std::uint64_t base = a.ptr().value;
  Buffer grown = a.grow(3 * kG).value().buffer;
  ASSERT_EQ(grown.ptr(), a.ptr());
  Buffer other = r.allocate(stream, kG).value();
  for (const std::uint64_t at : {base, base + 2 * kG - 1, base + 2 * kG, base + 3 * kG - 1}) {
    const std::optional<BufferView> view = r.buffer_at({at});
    ASSERT_TRUE(view.has_value()) << at - base;
    EXPECT_EQ(view->ptr.value, base);
    EXPECT_EQ(view->size, 3 * kG);
    EXPECT_EQ(view->chunk.base.value, at < base + 2 * kG ? base : base + 2 * kG);
    EXPECT_EQ(view->chunk.size, at < base + 2 * kG ? 2 * kG : kG);
    EXPECT_TRUE(view->chunk.handle.value);
  }
  EXPECT_FALSE(r.buffer_at({base + 3 * kG}).has_value()) << "reserved, shown by nobody";
  EXPECT_FALSE(r.buffer_at({base - 1}).has_value());
  EXPECT_EQ(r.buffer_at(other.ptr())->size, kG);
  Buffer small = a.grow(2 * kG).value().buffer;  // behind the larger one in the list
  EXPECT_EQ(r.buffer_at({base})->size, 3 * kG);
  ASSERT_TRUE(small.close().ok());
  ASSERT_TRUE(grown.close().ok());
  EXPECT_EQ(r.buffer_at({base})->size, 2 * kG);
  EXPECT_FALSE(r.buffer_at({base + 2 * kG}).has_value());
  Buffer* const set[] = {&a};
  ASSERT_TRUE(r.suspend(set, false).ok());
  EXPECT_FALSE(r.buffer_at({base})->chunk.handle.value);
  ASSERT_TRUE(a.close().ok());
  EXPECT_FALSE(r.buffer_at({base}).has_value());
}

TEST_F(BufferTest, ChunksComeInAddressOrder) {
  Buffer a = resource().allocate(stream, kG).value();
  for (std::uint64_t size = 2; size < 6; ++size) ASSERT_TRUE(a.resize(size * kG).ok());
  std::uint64_t end = a.ptr().value;
  const std::vector<ChunkView> chunks = a.chunks().value();
  ASSERT_EQ(chunks.size(), 5u);
  for (const ChunkView& chunk : chunks) {
    EXPECT_EQ(chunk.base.value, end);
    end += chunk.size;
  }
  EXPECT_EQ(end, a.ptr().value + a.size());
  std::size_t visited = 0;
  ASSERT_TRUE(a.for_each_chunk([&](const ChunkView& chunk) {
                 EXPECT_EQ(chunk.handle, chunks[visited++].handle);
               }).ok());
  EXPECT_EQ(visited, chunks.size());
  ASSERT_TRUE(a.close().ok());
  EXPECT_EQ(a.chunks().error().code, ErrorCode::kClosed);
}

TEST_F(BufferTest, AdaptorHasTheShapeOfOtherMemoryResources) {
  CollectingSink sink;
  MemoryResourceAdaptor adaptor(resource(), sink);
  void* a = adaptor.allocate(stream, 1000);
  EXPECT_NE(a, nullptr);
  EXPECT_EQ(adaptor.resource().statistics().live, kG);
  adaptor.deallocate(stream, a, 1000);
  EXPECT_EQ(adaptor.resource().statistics().live, 0u);
  EXPECT_EQ(adaptor.allocate(stream, 0), nullptr);
  adaptor.deallocate(stream, nullptr, 0, 256);
  EXPECT_EQ(sink.reports, 0);
  adaptor.deallocate(stream, a, 1000);
  EXPECT_EQ(sink.reports, 1) << "given back twice";
  EXPECT_THROW(adaptor.allocate(stream, 1ull << 50), std::bad_alloc);
  EXPECT_THROW(adaptor.allocate(stream, 1, 4 * kG), BackendError);
}

}  // namespace
}  // namespace granule
