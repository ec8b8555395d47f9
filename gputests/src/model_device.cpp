// A model in the place of a device.
#include "model_device.hpp"

#include <utility>

namespace granule::gpu {
namespace {

constexpr std::uint64_t kGranule = std::uint64_t{2} << 20;

/// A machine that owns its device.
class ModelMachine final : public prop::Machine {
 public:
  ModelMachine(std::unique_ptr<ModelDevice> device, model::Config config,
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
  std::unique_ptr<ModelDevice> device_;
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

ModelDevice::ModelDevice(model::Config config) : backend_(std::move(config)) {
  backend_.set_thread(model::ThreadId{0});
}

const std::vector<std::string>& ModelDevice::plants() {
  static const std::vector<std::string> names{"unmap-refuses-holes", "access-of-all-mappings",
                                              "create-costs-more", "release-keeps-value"};
  return names;
}

bool ModelDevice::plant(const std::string& name) {
  plant_ = name;
  if (name.empty()) return true;
  for (const std::string& known : plants())
    if (known == name) return true;
  return false;
}

DriverStatus ModelDevice::execute(Call& call) noexcept {
  if (plant_ == "unmap-refuses-holes") {
    if (const auto* unmap = std::get_if<MemUnmap>(&call)) {
      std::uint64_t mapped = 0;
      for (const auto& mapping : backend_.state().mappings_in(unmap->ptr.value, unmap->size))
        mapped += mapping.size;
      if (unmap->size % kGranule == 0 && mapped < unmap->size) return DriverStatus::kInvalidValue;
    }
  }
  return planted(call, backend_.execute(call));
}

DriverStatus ModelDevice::planted(Call& call, DriverStatus status) {
  if (plant_.empty() || status != DriverStatus::kSuccess) return status;
  if (plant_ == "access-of-all-mappings") {
    if (auto* access = std::get_if<MemGetAccess>(&call))
      if (access->access == Access::kRead) access->access = Access::kReadWrite;
  } else if (plant_ == "create-costs-more") {
    if (auto* info = std::get_if<MemGetInfo>(&call))
      info->free -= kGranule * backend_.state().ledger().allocations;
  } else if (plant_ == "release-keeps-value") {
    if (const auto* release = std::get_if<MemRelease>(&call)) {
      Call again = *release;
      if (backend_.execute(again) == DriverStatus::kSuccess) return DriverStatus::kInvalidValue;
    }
  }
  return status;
}

std::unique_ptr<prop::Machine> make_model_machine(const model::Config& config,
                                                  const std::string& plant) {
  auto device = std::make_unique<ModelDevice>(contrary(config));
  device->plant(plant);
  ModelDevice* raw = device.get();
  FollowingMachine::Options options;
  options.set_device_thread = [raw](std::uint32_t number) { raw->set_thread(number); };
  options.without_init = true;
  options.compare_free = plant == "create-costs-more";
  return std::make_unique<ModelMachine>(std::move(device), config, std::move(options));
}

}  // namespace granule::gpu
