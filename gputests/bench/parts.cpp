// Benchmarks on a GPU: the driver's own prices and the core beside them, in one run.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include <granule/backends/cuda_info.hpp>

#include "bench.hpp"
#include "command.hpp"
#include "gpu.hpp"

namespace granule::bench {

Gpu::Gpu(std::unique_ptr<cuda::CudaBackend> opened) : backend(std::move(opened)) {
  must(backend->warm_up());
  const auto context = call(*backend, DevicePrimaryCtxRetain{{0}, {}});
  call(*backend, CtxSetCurrent{context.context});
  raw = call(*backend, StreamCreate{kStreamNonBlocking, {}}).stream;
  stream = must(Stream::bind(*backend, raw, {true}));
  asked = must(Stream::bind(*backend, raw, {false}));
}

std::uint64_t Gpu::free_bytes() { return call(*backend, MemGetInfo{}).free; }

namespace {

struct Part {
  const char* name;
  void (*run)(Gpu& gpu);
};

constexpr Part kParts[] = {
    {"warm", run_warm},         {"growth", run_growth},   {"churn", run_churn},
    {"deferred", run_deferred}, {"suspend", run_suspend}, {"latency", run_latency},
};

int run(const cli::BenchFlags& flags) {
  auto opened = cuda::CudaBackend::open({});
  if (!opened.ok()) {
    std::fprintf(stderr, "granule: %s\n", to_string(opened.error()).c_str());
    return cli::kUnfit;
  }
  Gpu gpu(std::move(*opened));
  std::printf("%s\n", cuda::to_text(cuda::describe(*gpu.backend)).c_str());
  for (const Part& part : kParts) {
    const auto& wanted = flags.parts;
    if (wanted.empty() || std::find(wanted.begin(), wanted.end(), part.name) != wanted.end())
      part.run(gpu);
  }
  return cli::kClean;
}

const bool registered = [] {
  cli::bench_work().on_device = run;
  return true;
}();

}  // namespace
}  // namespace granule::bench
