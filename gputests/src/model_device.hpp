// A model as the device of a follower, for work without a GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <granule/backend_api/backend.hpp>
#include <granule/model/model.hpp>

#include "machine.hpp"

namespace granule::gpu {

/// A fresh device for each machine, with other choices than the oracle's: other places, handle
/// values that come back at once, work that runs as soon as it can.
model::Config contrary(model::Config config);

/// Makes machines over a fresh simulated device each, for RunOptions::make_machine. `plant`: an
/// error of the model that follows.
std::unique_ptr<prop::Machine> make_model_machine(const model::Config& config,
                                                  const std::string& plant);

}  // namespace granule::gpu
