// A model as the device of a follower: for tests without a GPU, and for planted differences.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <granule/backend_api/backend.hpp>
#include <granule/model/model.hpp>

#include "machine.hpp"

namespace granule::gpu {

/// A simulated device with choices of its own, one machine for all programs as hardware is.
class ModelDevice final : public Backend {
 public:
  explicit ModelDevice(model::Config config);
  DriverStatus execute(Call& call) noexcept override;
  void set_thread(std::uint32_t number) { backend_.set_thread(model::ThreadId{number}); }
  const model::Config& config() const { return backend_.state().config(); }

  /// Names of differences that can be planted.
  static const std::vector<std::string>& plants();
  /// From here on the device deviates; "" for none. False: no such plant.
  bool plant(const std::string& name);

 private:
  DriverStatus planted(Call& call, DriverStatus status);
  model::ModelBackend backend_;
  std::string plant_;
};

/// A fresh device for each machine, with other choices than the oracle's: other places, handle
/// values that come back at once, work that runs as soon as it can.
model::Config contrary(model::Config config);

/// Makes machines over a fresh ModelDevice each, for RunOptions::make_machine.
std::unique_ptr<prop::Machine> make_model_machine(const model::Config& config,
                                                  const std::string& plant);

}  // namespace granule::gpu
