// Every driver call of a life refused, one at a time and with several codes; every capture query
// answered with a capture; every host allocation refused. Whatever it was, all host memory comes
// back and the library's own audit holds.
#include <gtest/gtest.h>

#include <granule/pool.hpp>

#include "core_fixture.hpp"

namespace granule {
namespace {

class RefusalTest : public CoreTest {
 protected:
  using Life = std::function<void()>;

  std::optional<DriverStatus> answer(Call& call) override {
    if (auto* count = std::get_if<DeviceGetCount>(&call)) count->count = 2;
    if (auto* create = std::get_if<MemPoolCreate>(&call)) create->pool = PoolHandle{5};
    if (auto* get = std::get_if<DeviceGetDefaultMemPool>(&call)) get->pool = PoolHandle{6};
    if (auto* alloc = std::get_if<MemAllocFromPoolAsync>(&call)) alloc->ptr = {next_ += 4096};
    if (auto* plain = std::get_if<MemAlloc>(&call)) plain->ptr = {next_ += 4096};
    ++seen_;
    if (refused_ == seen_) return status_;
    auto* query = std::get_if<StreamIsCapturing>(&call);
    if (query && ++queries_ == captured_) {
      query->status = CaptureStatus::kActive;
      return DriverStatus::kSuccess;
    }
    return CoreTest::answer(call);
  }

  /// One run of `life`; the counters tell how far it came.
  void live(const Life& life) {
    seen_ = queries_ = 0;
    driver.log.clear();
    life();
    EXPECT_EQ(memory.blocks, blocks_before_)
        << "call " << refused_ << " " << name_of(status_) << ", query " << captured_;
    sink.reports.clear();
  }

  void in_all_ways(const Life& life) {
    blocks_before_ = memory.blocks;
    live(life);
    ASSERT_TRUE(sink.reports.empty());
    for (const DriverStatus status :
         {DriverStatus::kInvalidValue, DriverStatus::kOutOfMemory, DriverStatus::kLaunchFailed,
          DriverStatus::kStreamCaptureUnsupported, DriverStatus::kWouldBlock}) {
      status_ = status;
      for (refused_ = 1; refused_ == 1 || seen_ >= refused_ - 1; ++refused_) live(life);
    }
    refused_ = 0;
    for (captured_ = 1; captured_ == 1 || queries_ >= captured_ - 1; ++captured_) live(life);
    captured_ = 0;
    for (std::size_t n = 1;; ++n) {
      memory.fail_in = n;
      live(life);
      if (memory.fail_in != 0) break;
    }
    memory.fail_in = 0;
  }

  Result<VirtualMemoryResource> made(VmmOptions options) {
    return VirtualMemoryResource::create(driver, options, environment);
  }
  static void sound(const VirtualMemoryResource& r) { EXPECT_EQ(r.check_invariants(), ""); }

 private:
  std::uint64_t next_ = std::uint64_t{1} << 46;
  std::size_t blocks_before_ = 0;
  std::size_t seen_ = 0;
  std::size_t queries_ = 0;
  std::size_t refused_ = 0;
  std::size_t captured_ = 0;
  DriverStatus status_ = DriverStatus::kSuccess;
};

TEST_F(RefusalTest, ADeviceThatCannotBe) {
  for (const std::int32_t id : {-1, 2}) {
    VmmOptions options;
    options.location = device_location({id});
    EXPECT_FALSE(made(options).ok());
  }
}

TEST_F(RefusalTest, SuspendAndResume) {
  for (const FreePolicy free : {FreePolicy::kSynchronize, FreePolicy::kDeferred})
    for (const Stream& on : {stream, Stream::legacy({0})})
      in_all_ways([&] {
        VmmOptions options;
        options.free = free;
        Result<VirtualMemoryResource> r = made(options);
        if (!r) return;
        Result<Buffer> a = r->allocate(on, kG);
        Result<Buffer> b = r->allocate(stream, 2 * kG);
        if (!a || !b) return;
        a->used_on(other).ignore();
        Buffer* const set[] = {&*a, &*b};
        r->suspend(set, true).ignore();
        (void)a->could_extend();
        r->resume(set).ignore();
        r->forget(on).ignore();
        r->for_each_stream(*a, [](const Stream&) {});
        r->suspend({set, 1}, true).ignore();
        r->resume(set).ignore();         // of one that is suspended and one that is not
        r->suspend(set, true).ignore();  // by another stream, if that one was forgotten
        r->suspend(set, true).ignore();
        r->resume(set).ignore();
        r->resume(set).ignore();
        sound(*r);
        a->close(other).ignore();
        b->close().ignore();
        r->collect();
        sound(*r);
      });
}

// Memory of the host is copied mapping by mapping.
TEST_F(RefusalTest, BackupsOfHostMemoryInSeveralMappings) {
  std::size_t whole = 0;
  in_all_ways([&] {
    VmmOptions options;
    options.location = {LocationType::kHostNuma, 0};
    options.peers = {{0}};
    options.max_chunk = kG;
    Result<VirtualMemoryResource> r = made(options);
    if (!r) return;
    Result<Buffer> a = r->allocate(stream, 3 * kG);
    if (!a) return;
    Buffer* const set[] = {&*a};
    const bool away = r->suspend(set, true).ok();
    if (r->resume(set).ok() && away) ++whole;
    sound(*r);
    a->close().ignore();
    r->collect();
    sound(*r);
  });
  EXPECT_NE(whole, 0u);
}

TEST_F(RefusalTest, GrantsBesideIdleAndPendingRanges) {
  in_all_ways([&] {
    VmmOptions options;
    options.free = FreePolicy::kDeferred;
    options.cache = 4 * kG;
    options.self_access = Access::kRead;
    Result<VirtualMemoryResource> r = made(options);
    if (!r) return;
    Result<Buffer> kept = r->allocate(stream, kG);
    for (const std::uint64_t size : {kG, 2 * kG, 8 * kG})
      if (Result<Buffer> a = r->allocate(other, size); a.ok()) a->close().ignore();
    r->grant({0}, Access::kReadWrite).ignore();
    r->trim(0).ignore();
    sound(*r);
  });
}

TEST_F(RefusalTest, ClearsOnADefaultStream) {
  in_all_ways([&] {
    VmmOptions options;
    options.cache = 4 * kG;
    Result<VirtualMemoryResource> r = made(options);
    if (!r) return;
    AllocateOptions zero;
    zero.zero = true;
    for (int i = 0; i < 3; ++i)
      if (Result<Buffer> a = r->allocate(i == 1 ? stream : Stream::legacy({0}), kG, zero); a.ok())
        a->close().ignore();
    sound(*r);
  });
}

TEST_F(RefusalTest, ForgottenStreamsAndTheirMarkers) {
  for (const FreePolicy free : {FreePolicy::kSynchronize, FreePolicy::kDeferred})
    in_all_ways([&] {
      VmmOptions options;
      options.free = free;
      options.cache = 2 * kG;
      Result<VirtualMemoryResource> r = made(options);
      if (!r) return;
      Result<Buffer> a = r->allocate(stream, kG);
      Result<Buffer> b = r->allocate(stream, 4 * kG);
      if (!a || !b) return;
      a->used_on(other).ignore();
      b->used_on(third).ignore();
      r->forget(stream).ignore();
      r->forget(third).ignore();
      if (Result<GrowResult> grown = b->grow(6 * kG); grown.ok()) grown->buffer.close().ignore();
      a->close().ignore();
      b->close(other).ignore();
      if (Result<Buffer> next = r->allocate(third, kG); next.ok()) next->drop().ignore();
      r->trim(0).ignore();
      sound(*r);
    });
}

TEST_F(RefusalTest, ExportsAndImports) {
  in_all_ways([&] {
    VmmOptions options;
    options.handle_type = HandleType::kPosixFd;
    Result<VirtualMemoryResource> r = made(options);
    if (!r) return;
    Result<Buffer> a = r->allocate(stream, kG);
    if (!a) return;
    (void)a->resize(3 * kG);
    (void)a->chunks();
    Result<SharedBuffer> shared = r->export_buffer(*a);
    if (!shared) return;
    Result<Buffer> b = r->import_buffer(other, *shared);
    sound(*r);
    a->close().ignore();
    if (b.ok()) {
      Buffer* const set[] = {&*b};
      r->suspend(set, false).ignore();
      r->resume(set).ignore();
      b->close().ignore();
    }
    sound(*r);
  });
}

TEST_F(RefusalTest, PoolsOfTheDriver) {
  for (const bool bind : {false, true})
    in_all_ways([&] {
      PoolOptions options;
      options.bind_default = bind;
      Result<StreamOrderedPool> pool = StreamOrderedPool::create(driver, options, environment);
      if (!pool) return;
      pool->set_peer_access({1}, Access::kReadWrite).ignore();
      Result<PoolBuffer> a = pool->allocate(stream, 4096);
      Result<PoolBuffer> b = pool->allocate(other, 4096);
      pool->forget(stream).ignore();
      (void)pool->usage();
      pool->trim(0).ignore();
      if (a.ok()) a->close().ignore();
      pool->forget(other).ignore();
      if (b.ok()) b->drop().ignore();
      pool->collect();
    });
}

TEST_F(RefusalTest, RecycledBlocks) {
  in_all_ways([&] {
    RecyclerOptions options;
    options.limit = 3 * 4096;
    Result<RecyclingPool> pool = RecyclingPool::create(driver, options, environment);
    if (!pool) return;
    for (const Stream& on : {stream, Stream::legacy({1}), other}) {
      Result<PoolBuffer> a = pool->allocate(on, 4096);
      if (a.ok()) a->close().ignore();
    }
    Result<PoolBuffer> large = pool->allocate(Stream::legacy({1}), 2 * 4096);
    if (large.ok()) large->close().ignore();
    pool->forget(stream).ignore();
    pool->trim(0).ignore();
  });
}

}  // namespace
}  // namespace granule
