// A model in the place of a device.
#include "model_device.hpp"

#include <utility>

namespace granule::gpu {
namespace {

/// A machine that owns its device.
class ModelMachine final : public prop::Machine {
 public:
  ModelMachine(std::unique_ptr<model::ModelBackend> device, model::Config config,
               FollowingMachine::Options options)
      : device_(std::move(device)), machine_(*device_, std::move(config), std::move(options)) {}
  Backend& driver() override { return machine_.driver(); }
  model::DriverState& oracle() override { return machine_.oracle(); }
  void set_thread(std::uint32_t number) override { machine_.set_thread(number); }
  bool is_model() const override { return false; }
  std::optional<prop::MachineFinding> after_statement() override {
    return machine_.after_statement();
  }
  std::uint64_t followed() const override { return machine_.followed(); }

 private:
  std::unique_ptr<model::ModelBackend> device_;
  FollowingMachine machine_;
};

}  // namespace

model::Config contrary(model::Config config) {
  config.verdict = model::Verdict::kExact;
  config.schedule = model::Schedule::kEager;
  config.placement = model::Placement::kFresh;
  config.handle_reuse = model::HandleReuse::kAtOnce;
  config.seed += 17;
  return config;
}

std::unique_ptr<prop::Machine> make_model_machine(const model::Config& config,
                                                  const std::string& plant) {
  auto device = std::make_unique<model::ModelBackend>(contrary(config));
  device->set_thread(model::ThreadId{0});
  model::ModelBackend* raw = device.get();
  FollowingMachine::Options options;
  options.set_device_thread = [raw](std::uint32_t number) {
    raw->set_thread(model::ThreadId{number});
  };
  options.without_init = true;
  options.compare_free = false;
  options.plant = plant;
  return std::make_unique<ModelMachine>(std::move(device), config, std::move(options));
}

}  // namespace granule::gpu
