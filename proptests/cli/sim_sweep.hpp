// One run of a command for each driver call of it that can fail.
#pragma once

#include <chrono>
#include <string>

#include "sim_run.hpp"

namespace granule::cli {

struct SweepOptions {
  bool all_calls = false;  // those that give something back fail too
  std::chrono::milliseconds timeout{60'000};
  std::string keep;  // file for the program of the first run that found something
};

/// Tabulates the runs; returns the exit code.
int sweep_simulated(SimCommand command, const SweepOptions& options);

}  // namespace granule::cli
