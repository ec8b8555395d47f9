// Where this library is put together: the reference model as the driver, or the real one. The only
// file that sees either.
#include <dlfcn.h>

#include <mutex>
#include <new>
#include <utility>

#include <granule/backends/cuda.hpp>
#include <granule/model/model.hpp>

#include "driver.hpp"
#include "profile.hpp"

namespace granule::libcuda {
namespace {

thread_local std::vector<Misuse> found;

/// The model behind one more lock, so that what a call was found to do goes to its own thread.
class SimulatedDriver final : public Driver {
 public:
  explicit SimulatedDriver(model::Config config) : model_(std::move(config)) {}

  DriverStatus execute(Call& call) noexcept override {
    const std::lock_guard lock(mutex_);
    try {
      const auto* unmap = std::get_if<MemUnmap>(&call);
      const bool early =
          unmap != nullptr && model_.state().work_pending_on(unmap->ptr.value, unmap->size);
      const DriverStatus status = model_.execute(call);
      if (early && status == DriverStatus::kSuccess)
        found.push_back({"unmap_under_work",
                         "unmapped while stream work that uses it had not run: nothing waited for "
                         "it, and an unmap does not"});
      if (!model_.state().violations().empty()) hand_over();
      return status;
    } catch (const std::bad_alloc&) {
      return DriverStatus::kOutOfMemory;
    }
  }

  std::vector<Misuse> take_misuse() override { return std::exchange(found, {}); }

 private:
  void hand_over() {
    for (model::Violation& violation : model_.take_violations())
      found.push_back({std::string(name_of(violation.kind)), std::move(violation.message)});
  }

  std::recursive_mutex mutex_;  // host functions call back in
  model::ModelBackend model_;
};

/// The real driver; what its client does wrong shows in its answers alone.
class WatchedDriver final : public Driver {
 public:
  explicit WatchedDriver(std::unique_ptr<cuda::CudaBackend> cuda) : cuda_(std::move(cuda)) {}
  DriverStatus execute(Call& call) noexcept override { return cuda_->execute(call); }
  std::vector<Misuse> take_misuse() override { return {}; }

 private:
  std::unique_ptr<cuda::CudaBackend> cuda_;
};

std::unique_ptr<Driver> watch_driver(const Options& options, std::string& why) {
  // First so that its own symbols come before ours in its eyes; it stays loaded.
  if (dlopen(options.real.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) == nullptr) {
    why = dlerror();
    return nullptr;
  }
  cuda::Options real;
  real.library = options.real.c_str();
  real.initialise = false;
  real.guard = false;
  auto opened = cuda::CudaBackend::open(real);
  if (opened.ok()) return std::make_unique<WatchedDriver>(std::move(*opened));
  why = to_string(opened.error());
  return nullptr;
}

model::Config config_of(const Options& options) {
  model::Config config;
  const Profile& profile = profile_named(options.profile);
  model::DeviceConfig device;
  device.memory = memory_of(options);
  device.rdma = profile.rdma;
  config.devices.assign(static_cast<std::size_t>(options.devices), device);
  config.seed = options.seed;
  config.real_pinned = true;
  switch (options.driver) {
    case Strictness::kExact:
      break;
    case Strictness::kPortable:
      config.verdict = model::Verdict::kPortable;
      break;
    case Strictness::kAdversarial:
      config.verdict = model::Verdict::kAdversarial;
      config.placement = model::Placement::kAdversarial;
      config.handle_reuse = model::HandleReuse::kAtOnce;
      break;
  }
  return config;
}

}  // namespace

std::unique_ptr<Driver> make_driver(const Options& options, std::string& why) {
  if (options.watch) return watch_driver(options, why);
  return std::make_unique<SimulatedDriver>(config_of(options));
}

}  // namespace granule::libcuda
