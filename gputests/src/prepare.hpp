// What is done with programs before any device is asked: made, and run on the model alone.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "jobs.hpp"

namespace granule::gpu {

/// Makes the programs of jobs that have none yet, and says which need a process; with `model_first`
/// runs each on the model alone. On all processors. An outcome for each job that fails there, or
/// nothing; jobs behind `stop` keep nothing.
std::vector<std::optional<Outcome>> prepare(std::vector<Job>& jobs, bool model_first,
                                            const std::function<bool()>& stop);

}  // namespace granule::gpu
