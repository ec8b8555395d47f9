// granule bench --backend cuda.
#include <cstdio>
#include <utility>

#include <granule/backends/cuda_info.hpp>

#include "bench.hpp"
#include "command.hpp"
#include "gpu.hpp"

namespace granule::cli {
namespace {

int run(const BenchFlags& flags) {
  auto opened = cuda::CudaBackend::open({});
  if (!opened.ok()) {
    std::fprintf(stderr, "granule: %s\n", to_string(opened.error()).c_str());
    return kUnfit;
  }
  bench::Gpu gpu(std::move(*opened));
  std::printf("%s\n", cuda::to_text(cuda::describe(*gpu.backend)).c_str());
  bench::run_parts(gpu, flags.parts);
  return kClean;
}

const bool kRegistered = [] {
  bench_work().on_device = run;
  return true;
}();

}  // namespace
}  // namespace granule::cli
