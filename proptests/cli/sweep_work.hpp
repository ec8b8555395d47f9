// What `granule sweep` and `granule enumerate` share: flags, progress, the report, crashes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <granule/prop/sweep.hpp>

#include "run_flags.hpp"

namespace granule::cli {

struct SweepFlags {
  RunFlags run;
  std::uint32_t jobs = 0;
  std::uint64_t kept = 10;
  std::string out = "granule-failures";
  std::string shrink_time = "10s";
  std::string hang_after = "60s";
  bool first_only = false;
  bool no_shrink = false;
  bool json = false;
  bool in_process = false;
};

void add_sweep_flags(CLI::App& command, SweepFlags& flags);
/// Jobs, run and so on; not yet slots, progress and interrupts.
prop::SweepOptions sweep_options(const SweepFlags& flags);

/// A sweep as a command does it.
struct SweepWork {
  std::string command;  // "sweep", "enumerate": for file names
  prop::SweepSource source;
  prop::SweepOptions options;
  /// What program `number` is called in a report.
  std::function<std::string(std::uint64_t number)> title;
  bool list = false;    // a line for each program
  std::string summary;  // a further line in front of the totals; may be empty
};

/// Runs in a child process unless asked not to, prints, saves what was found; gives the exit code.
int run_sweep_work(SweepWork& work, const SweepFlags& flags);

}  // namespace granule::cli
