// Benchmarks on a GPU: the driver's own prices and the core beside them, in one run.
#include <algorithm>
#include <memory>
#include <utility>

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

}  // namespace

void run_parts(Gpu& gpu, const std::vector<std::string>& wanted) {
  for (const Part& part : kParts)
    if (wanted.empty() || std::find(wanted.begin(), wanted.end(), part.name) != wanted.end())
      part.run(gpu);
}

}  // namespace granule::bench
