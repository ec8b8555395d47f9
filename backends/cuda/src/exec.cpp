// Opening, the way of a call through guard and driver, and closing.
#include <pthread.h>

#include <atomic>
#include <new>
#include <type_traits>
#include <utility>

#include "impl.hpp"

namespace granule::cuda {
namespace {

std::atomic<unsigned> forks{0};

void count_fork() { forks.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

unsigned fork_generation() noexcept {
  static const bool watching = pthread_atfork(nullptr, nullptr, count_fork) == 0;
  static_cast<void>(watching);
  return forks.load(std::memory_order_relaxed);
}

CudaBackend::Impl::Impl(const Options& chosen, std::unique_ptr<Driver> loaded)
    : options(chosen),
      driver_object(std::move(loaded)),
      driver(*driver_object),
      generation(fork_generation()),
      contexts(driver),
      gates(driver, contexts) {}

CudaBackend::Impl::~Impl() {
  // A forked child must leave the parent's driver alone.
  if (fork_generation() != generation) return;
  gates.open_all();
  contexts.release_all();
  for (const abi::Device device : warmed) invoke(driver->cuDevicePrimaryCtxRelease, device);
}

ContextHandle CudaBackend::Impl::current() const {
  abi::Context context = nullptr;
  invoke(driver->cuCtxGetCurrent, &context);
  return {to_value(context)};
}

DriverStatus CudaBackend::Impl::execute(Call& any) {
  if (fork_generation() != generation) return DriverStatus::kNotInitialized;
  return std::visit(
      [&](auto& c) {
        using C = std::remove_cvref_t<decltype(c)>;
        if (!options.guard) return call(c);
        if (!guard.admits(c)) return DriverStatus::kUndefined;
        const DriverStatus status = call(c);
        if (status == DriverStatus::kSuccess) {
          constexpr bool kOfContext =
              std::is_same_v<C, StreamCreate> || std::is_same_v<C, EventCreate>;
          guard.note(c, kOfContext ? current() : ContextHandle{});
        }
        return status;
      },
      any);
}

CudaBackend::CudaBackend(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CudaBackend::~CudaBackend() = default;

Result<std::unique_ptr<CudaBackend>> CudaBackend::open(const Options& options) {
  Result<std::unique_ptr<Driver>> loaded = Driver::load(options.library);
  if (!loaded.ok()) return loaded.error();
  auto impl = std::make_unique<Impl>(options, std::move(*loaded));
  if (options.initialise) {
    Error error;
    int count = 0;
    error.call = "cuInit";
    error.driver = invoke(impl->driver->cuInit, 0u);
    if (error.driver == DriverStatus::kSuccess) {
      error.call = "cuDeviceGetCount";
      error.driver = invoke(impl->driver->cuDeviceGetCount, &count);
      if (error.driver == DriverStatus::kSuccess && count == 0)
        error.driver = DriverStatus::kNoDevice;
    }
    if (error.driver == DriverStatus::kNoDevice) {
      error.code = ErrorCode::kUnsupported;
      error.detail = "the driver finds no CUDA device";
    } else if (error.driver == DriverStatus::kStubLibrary ||
               error.driver == DriverStatus::kSystemDriverMismatch ||
               error.driver == DriverStatus::kUnavailable) {
      error.code = ErrorCode::kUnsupported;
      error.detail = "this libcuda is not the one of a loaded NVIDIA driver";
    }
    if (error.driver != DriverStatus::kSuccess) return error;
  }
  return std::unique_ptr<CudaBackend>(new CudaBackend(std::move(impl)));
}

DriverStatus CudaBackend::execute(Call& call) noexcept {
  try {
    return impl_->execute(call);
  } catch (const std::bad_alloc&) {
    return DriverStatus::kOutOfMemory;
  }
}

void CudaBackend::open_all_gates() noexcept { impl_->gates.open_all(); }

}  // namespace granule::cuda
