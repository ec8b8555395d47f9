// Benchmarks on a GPU: the driver's own prices and the core beside them, in one run.
#include <cstring>
#include <granule/backends/cuda_info.hpp>

#include "bench.hpp"

namespace granule::bench {

Gpu::Gpu() : backend(must(cuda::CudaBackend::open({}))) {
  must(backend->warm_up());
  const auto context = call(*backend, DevicePrimaryCtxRetain{{0}, {}});
  call(*backend, CtxSetCurrent{context.context});
  raw = call(*backend, StreamCreate{kStreamNonBlocking, {}}).stream;
  stream = must(Stream::bind(*backend, raw, {true}));
  asked = must(Stream::bind(*backend, raw, {false}));
}

std::uint64_t Gpu::free_bytes() { return call(*backend, MemGetInfo{}).free; }

}  // namespace granule::bench

int main(int argc, char** argv) {
  using namespace granule::bench;
  const auto wanted = [&](const char* name) {
    for (int i = 1; i < argc; ++i)
      if (std::strcmp(argv[i], name) == 0) return true;
    return argc == 1;
  };
  Gpu gpu;
  std::printf("%s\n", granule::cuda::to_text(granule::cuda::describe(*gpu.backend)).c_str());
  if (wanted("warm")) run_warm(gpu);
  if (wanted("growth")) run_growth(gpu);
  if (wanted("churn")) run_churn(gpu);
  if (wanted("deferred")) run_deferred(gpu);
  if (wanted("suspend")) run_suspend(gpu);
  if (wanted("latency")) run_latency(gpu);
  return 0;
}
