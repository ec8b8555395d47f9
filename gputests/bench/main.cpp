// Benchmarks on a GPU: the driver's own prices and the core beside them, in one run.
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include <granule/backends/cuda_info.hpp>

#include "bench.hpp"

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

}  // namespace granule::bench

namespace {

using namespace granule::bench;

struct Part {
  const char* name;
  void (*run)(Gpu& gpu);
  const char* what;
};

constexpr Part kParts[] = {
    {"warm", run_warm, "allocations without a driver call, beside the bare calls"},
    {"growth", run_growth, "growing buffers"},
    {"churn", run_churn, "allocate and free in a random order"},
    {"deferred", run_deferred, "deferred frees behind a running kernel"},
    {"suspend", run_suspend, "suspend and resume"},
    {"latency", run_latency, "each driver call by size and threads; launches beside mapping work"},
};

int usage(FILE* out) {
  std::fprintf(out,
               "Usage: gpu_bench [PART...]\nPrices on device 0. Without a part all are run:\n");
  for (const Part& part : kParts) std::fprintf(out, "  %-10s %s\n", part.name, part.what);
  std::fprintf(out, "Exit codes: 0 done, 2 usage, 3 no usable driver or device.\n");
  return out == stdout ? 0 : 2;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--help") == 0 || std::strcmp(argv[i], "-h") == 0)
      return usage(stdout);
    bool known = false;
    for (const Part& part : kParts) known = known || std::strcmp(argv[i], part.name) == 0;
    if (!known) return usage(stderr);
  }
  auto opened = granule::cuda::CudaBackend::open({});
  if (!opened.ok()) {
    std::fprintf(stderr, "gpu_bench: %s\n", granule::to_string(opened.error()).c_str());
    return 3;
  }
  Gpu gpu(std::move(*opened));
  std::printf("%s\n", granule::cuda::to_text(granule::cuda::describe(*gpu.backend)).c_str());
  for (const Part& part : kParts) {
    bool wanted = argc == 1;
    for (int i = 1; i < argc; ++i) wanted = wanted || std::strcmp(argv[i], part.name) == 0;
    if (wanted) part.run(gpu);
  }
  return 0;
}
