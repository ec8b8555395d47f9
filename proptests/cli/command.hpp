// How a subcommand joins the `granule` command: a file of its own with one Command object.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace granule::cli {

/// Exit codes of the command.
enum ExitCode : int {
  kClean = 0,
  kUsage = 2,
  kUnfit = 3,      // the machine cannot be used for this
  kViolated = 42,  // a property does not hold
  kDiverged = 43,  // model and driver differ
  kHang = 44,
  kChildCrashed = 45,
  kInterrupted = 46,  // clean as far as it came
};

/// Adds a subcommand. `order` is its place in the help; `add` is called once, by main.
struct Command {
  Command(int order, void (*add)(CLI::App& app));
};

/// What main returns; a later failure does not hide an earlier one.
void set_exit_code(ExitCode code);

/// The text of a file or of all `.granule` files of a directory, in order of names.
std::vector<std::string> program_files(const std::vector<std::string>& paths);

}  // namespace granule::cli
