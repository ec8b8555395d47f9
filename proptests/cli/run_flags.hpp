// The flags that say how a program runs, shared by the subcommands that run programs.
#pragma once

#include <cstdint>
#include <string>

#include <CLI/CLI.hpp>

#include <granule/prop/run.hpp>

#include "device.hpp"

namespace granule::cli {

struct RunFlags {
  bool strict = false;
  std::string driver = "exact";
  std::string target = "core";
  std::string schedule = "lazy";
  std::string checking = "incremental";
  std::uint64_t seed = 1;
  std::uint64_t thread_seed = 0;
};

/// Puts a target ("core", "zoo:NAME") and its machine into options. Throws CLI::ValidationError.
void use_target(const std::string& name, prop::RunOptions& options);

/// Adds --backend, --alone, --hang-after, --known, --jsonl, --junit and --record.
void add_device_flags(CLI::App& command, DeviceFlags& flags);

/// Adds --strict, --driver, --target, --schedule, --checking, --seed and --thread-seed.
void add_run_flags(CLI::App& command, RunFlags& flags);
prop::RunOptions run_options(const RunFlags& flags);

}  // namespace granule::cli
