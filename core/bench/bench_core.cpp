// The core's own time: operations over a driver that does nothing. Goal: 300 ns each for allocate,
// grow and close; a warm pair 40 ns on a stream bound as never capturing.
#include <benchmark/benchmark.h>

#include <vector>

#include <granule/resource.hpp>

#include "../tests/null_backend.hpp"

namespace granule {
namespace {

constexpr std::uint64_t kG = NullBackend::kGranule;
constexpr int kBatch = 256;

struct Bench {
  explicit Bench(const VmmOptions& options)
      : resource(VirtualMemoryResource::create(backend, options).value()),
        stream(Stream::bind(backend, StreamHandle{42}, {true}).value()) {}
  NullBackend backend;
  VirtualMemoryResource resource;
  Stream stream;
};

void allocate(benchmark::State& state) {
  Bench bench({});
  std::vector<Buffer> buffers;
  buffers.reserve(kBatch);
  while (state.KeepRunningBatch(kBatch)) {
    for (int i = 0; i < kBatch; ++i)
      buffers.push_back(bench.resource.allocate(bench.stream, kG).value());
    state.PauseTiming();
    buffers.clear();
    state.ResumeTiming();
  }
}
BENCHMARK(allocate)->Name("core/allocate");

void close(benchmark::State& state) {
  Bench bench({});
  std::vector<Buffer> buffers;
  buffers.reserve(kBatch);
  while (state.KeepRunningBatch(kBatch)) {
    state.PauseTiming();
    for (int i = 0; i < kBatch; ++i)
      buffers.push_back(bench.resource.allocate(bench.stream, kG).value());
    state.ResumeTiming();
    for (Buffer& buffer : buffers) buffer.close().ignore();
    buffers.clear();
  }
}
BENCHMARK(close)->Name("core/close");

void grow_in_place(benchmark::State& state) {
  Bench bench({});
  AllocateOptions options;
  options.capacity = (kBatch + 1) * kG;
  std::vector<Buffer> chain;
  chain.reserve(kBatch + 1);
  while (state.KeepRunningBatch(kBatch)) {
    state.PauseTiming();
    chain.clear();
    chain.push_back(bench.resource.allocate(bench.stream, kG, options).value());
    state.ResumeTiming();
    for (std::uint64_t i = 2; i <= kBatch + 1; ++i)
      chain.push_back(std::move(chain.back().grow(i * kG).value().buffer));
  }
}
BENCHMARK(grow_in_place)->Name("core/grow_in_place");

void resize_in_place(benchmark::State& state) {
  Bench bench({});
  AllocateOptions options;
  options.capacity = (kBatch + 1) * kG;
  while (state.KeepRunningBatch(kBatch)) {
    state.PauseTiming();
    {
      Buffer a = bench.resource.allocate(bench.stream, kG, options).value();
      state.ResumeTiming();
      for (std::uint64_t i = 2; i <= kBatch + 1; ++i)
        benchmark::DoNotOptimize(a.resize(i * kG).ok());
      state.PauseTiming();
    }
    state.ResumeTiming();
  }
}
BENCHMARK(resize_in_place)->Name("core/resize_in_place");

void alias(benchmark::State& state) {
  Bench bench({});
  Buffer a = bench.resource.allocate(bench.stream, 2 * kG).value();
  for (auto _ : state) benchmark::DoNotOptimize(a.grow(kG).value().buffer.ptr());
}
BENCHMARK(alias)->Name("core/alias");

void warm_pair(benchmark::State& state) {
  VmmOptions options;
  options.cache = 64 * kG;
  Bench bench(options);
  for (auto _ : state) {
    Buffer a = bench.resource.allocate(bench.stream, kG).value();
    a.close().ignore();
  }
}
BENCHMARK(warm_pair)->Name("core/warm_pair");

}  // namespace
}  // namespace granule
