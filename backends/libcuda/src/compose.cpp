// Where this library is put together: the reference model as the driver. The only file that sees
// the model.
#include <mutex>
#include <new>
#include <utility>

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
      const DriverStatus status = model_.execute(call);
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
  if (options.watch) {
    why = "the real driver cannot be watched by this build";
    return nullptr;
  }
  return std::make_unique<SimulatedDriver>(config_of(options));
}

}  // namespace granule::libcuda
