// One resource, many threads of the machine's own, everything at once. What a thread sanitizer
// makes of it is the point; without one it takes a moment and looks at what is left at the end.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include <granule/pool.hpp>
#include <granule/resource.hpp>

#include "concurrent_backend.hpp"

namespace granule {
namespace {

class AtomicSink final : public FailureSink {
 public:
  void report(const FailureReport&) noexcept override { reports.fetch_add(1); }
  std::atomic<int> reports{0};
};

/// What one thread does: its own buffers in every way, those of all in ways that change nothing.
class Stressor {
 public:
  Stressor(ConcurrentBackend& backend, VirtualMemoryResource resource,
           const std::vector<Buffer>& common, std::uint32_t number)
      : backend_(backend),
        resource_(std::move(resource)),
        common_(common),
        next_stream_(std::uint64_t{1000} * (number + 1)),
        random_(number + 1),
        stream_(Stream::bind(backend, StreamHandle{next_stream_}).value()) {}

  void run(int steps) {
    for (int i = 0; i < steps; ++i) step();
    for (Buffer& buffer : own_) ASSERT_TRUE(buffer.close().ok());
  }

 private:
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  Buffer* pick() { return own_.empty() ? nullptr : &own_[below(own_.size())]; }
  void keep(Buffer buffer) {
    constexpr std::size_t kMost = 6;
    if (own_.size() >= kMost) own_.erase(own_.begin());  // dropped, open
    own_.push_back(std::move(buffer));
  }

  void step() {
    const std::uint64_t kind = below(18);
    if (kind < 4) return allocate();
    if (kind < 6) return grow(common_[below(common_.size())]);
    if (kind == 6) return look();
    if (kind == 7) return change_stream();
    if (kind == 8) return void(resource_.collect(below(2) * 1000));
    if (kind == 9) return resource_.trim(below(3) * kGranule).ignore();
    if (kind == 10) return share(common_[below(common_.size())]);
    Buffer* const buffer = pick();
    if (!buffer) return;
    Buffer* set[] = {buffer};
    switch (kind) {
      case 11:
        return grow(*buffer);
      case 12:
        return buffer->resize((1 + below(4)) * kGranule).status().ignore();
      case 13:
        return buffer->shrink(kGranule).status().ignore();
      case 14:
        resource_.suspend(set, below(2) != 0).ignore();
        return resource_.resume(set).ignore();
      case 15:
        return buffer->used_on(stream_).ignore();
      default:
        EXPECT_TRUE(buffer->close().ok());
        std::swap(*buffer, own_.back());
        own_.pop_back();
    }
  }

  void allocate() {
    AllocateOptions options;
    if (below(2) != 0) options.capacity = 8 * kGranule;
    Result<Buffer> made = resource_.allocate(stream_, (1 + below(3)) * kGranule, options);
    if (made.ok()) keep(std::move(*made));
  }
  void grow(const Buffer& input) {
    Result<GrowResult> grown = input.grow((1 + below(4)) * kGranule);
    if (grown.ok()) keep(std::move(grown->buffer));
  }
  void share(const Buffer& buffer) {
    Result<SharedBuffer> shared = resource_.export_buffer(buffer);
    if (!shared.ok()) return;
    Result<Buffer> imported = resource_.import_buffer(stream_, *shared);
    if (imported.ok()) keep(std::move(*imported));
  }
  void look() {
    const Statistics now = resource_.statistics();
    EXPECT_LE(now.cached, 8 * kGranule);
    std::uint64_t mapped = 0;
    resource_.for_each_mapping([&](const auto& view) { mapped += view.mapped ? view.size : 0; });
    for (const Buffer& buffer : own_) {
      mapped += buffer.capacity();
      buffer.could_extend().status().ignore();
    }
  }
  /// The old one is announced as gone, with idle and pending ranges of this thread behind it.
  void change_stream() {
    for (Buffer& buffer : own_) EXPECT_TRUE(buffer.close().ok());
    own_.clear();
    EXPECT_TRUE(resource_.forget(stream_).ok());
    stream_ = Stream::bind(backend_, StreamHandle{++next_stream_}).value();
  }

  ConcurrentBackend& backend_;
  VirtualMemoryResource resource_;
  const std::vector<Buffer>& common_;
  std::vector<Buffer> own_;
  std::uint64_t next_stream_;
  std::minstd_rand random_;
  Stream stream_;
};

void stress(const VmmOptions& options) {
  constexpr std::uint32_t kThreads = 4;
  constexpr int kSteps = 400;
  ConcurrentBackend backend;
  AtomicSink sink;
  Environment environment;
  environment.sink = &sink;
  {
    auto resource = VirtualMemoryResource::create(backend, options, environment).value();
    const Stream stream = Stream::bind(backend, StreamHandle{500}).value();
    std::vector<Buffer> common;
    for (int i = 0; i < 3; ++i) {
      AllocateOptions room;
      room.capacity = 16 * kGranule;
      common.push_back(resource.allocate(stream, kGranule, room).value());
    }
    std::vector<std::thread> threads;
    for (std::uint32_t i = 0; i < kThreads; ++i)
      threads.emplace_back([&, i] { Stressor(backend, resource, common, i).run(kSteps); });
    for (std::thread& thread : threads) thread.join();
    for (Buffer& buffer : common) EXPECT_TRUE(buffer.close().ok());
    if (!options.worker) {
      EXPECT_EQ(resource.check_invariants(), "");
    }
  }
  EXPECT_EQ(backend.held(), 0);
  EXPECT_EQ(sink.reports.load(), 0);
}

VmmOptions exportable() {
  VmmOptions options;
  options.handle_type = HandleType::kPosixFd;
  return options;
}

TEST(Stress, Synchronous) { stress(exportable()); }

TEST(Stress, Deferred) {
  VmmOptions options = exportable();
  options.free = FreePolicy::kDeferred;
  stress(options);
}

TEST(Stress, CachedWithALimit) {
  VmmOptions options = exportable();
  options.cache = 8 * kGranule;
  options.limit = 48 * kGranule;
  options.fit_percent = 100;
  stress(options);
}

TEST(Stress, DeferredAndCached) {
  VmmOptions options = exportable();
  options.free = FreePolicy::kDeferred;
  options.cache = 8 * kGranule;
  options.limit = 48 * kGranule;
  stress(options);
}

TEST(Stress, WithAWorker) {
  VmmOptions options = exportable();
  options.free = FreePolicy::kDeferred;
  options.cache = 4 * kGranule;
  options.commit_ahead = 2 * kGranule;
  options.max_chunk = kGranule;
  options.worker = true;
  options.worker_interval_ns = 20'000;
  stress(options);
}

/// One thread on a pool of either kind: blocks that come and go, and streams that end.
template <class Pool>
void use_pool(ConcurrentBackend& backend, Pool pool, std::uint64_t number) {
  std::minstd_rand random(static_cast<std::uint32_t>(number + 1));
  std::uint64_t handle = 1000 * (number + 1);
  Stream stream = Stream::bind(backend, StreamHandle{handle}).value();
  std::vector<PoolBuffer> own;
  for (int i = 0; i < 400; ++i) {
    switch (random() % 8) {
      case 0:
        EXPECT_TRUE(pool.trim(0).ok());
        break;
      case 1:
        for (PoolBuffer& block : own) EXPECT_TRUE(block.close().ok());
        own.clear();
        EXPECT_TRUE(pool.forget(stream).ok());
        stream = Stream::bind(backend, StreamHandle{++handle}).value();
        break;
      case 2:
      case 3:
        if (own.empty()) break;
        EXPECT_TRUE((random() % 2 != 0 ? own.back().close(stream) : own.back().close()).ok());
        own.pop_back();
        break;
      default:
        if (Result<PoolBuffer> made = pool.allocate(stream, 512 * (1 + random() % 4)); made.ok())
          own.push_back(std::move(*made));
    }
  }
}

template <class Pool>
void stress_pool(ConcurrentBackend& backend, const Pool& pool) {
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < 4; ++i)
    threads.emplace_back([&, i] { use_pool<Pool>(backend, pool, i); });
  for (std::thread& thread : threads) thread.join();
}

TEST(Stress, APoolOfEitherKind) {
  ConcurrentBackend backend;
  AtomicSink sink;
  Environment environment;
  environment.sink = &sink;
  stress_pool(backend, StreamOrderedPool::create(backend, {}, environment).value());
  stress_pool(backend, RecyclingPool::create(backend, {}, environment).value());
  EXPECT_EQ(backend.held(), 0);
  EXPECT_EQ(sink.reports.load(), 0);
}

}  // namespace
}  // namespace granule
