// The flags that say how a program runs, shared by the subcommands that run programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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
  std::string interleave = "statements";
  std::uint32_t changes = 3;
  std::vector<std::uint16_t> choices;
  bool promise_no_captures = false;
};

/// "statements", "random", "pct", "told" to a value; the default for anything else.
prop::Interleave interleave_named(const std::string& name);

/// Puts a target ("core", "zoo:NAME") and its machine into options. Throws CLI::ValidationError.
void use_target(const std::string& name, prop::RunOptions& options);

/// Adds --backend, --alone, --hang-after, --known, --jsonl, --junit and --record.
void add_device_flags(CLI::App& command, DeviceFlags& flags);
/// On the model alone: throws a usage error for a flag that would do nothing there. `reports` says
/// that the command writes --jsonl and --junit itself.
struct ModelCan {
  bool report = false;
};
void refuse_device_flags(const DeviceFlags& flags, const ModelCan& can);

/// Adds --strict, --driver, --target, --schedule, --checking, --seed, --thread-seed, --interleave,
/// --changes and --choices.
void add_run_flags(CLI::App& command, RunFlags& flags);
prop::RunOptions run_options(const RunFlags& flags);

}  // namespace granule::cli
