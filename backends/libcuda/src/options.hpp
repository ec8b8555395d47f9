// What a simulated run is told: by the environment variable GRANULE_SIM, lines of key=value that
// `granule sim` writes. Everything has a default, so that the library works without the command.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <granule/backends/fault.hpp>

namespace granule::libcuda {

/// How the simulated driver answers where drivers differ.
enum class Strictness : std::uint8_t { kExact, kPortable, kAdversarial };

struct Options {
  std::string profile = "h200";  // h200, a100, laptop
  std::uint64_t memory = 0;      // bytes free on each device; 0: the profile's
  int devices = 1;
  Strictness driver = Strictness::kExact;
  std::uint64_t seed = 1;
  std::uint64_t hang_ms = 10'000;      // a wait that nothing can end is given up after so long
  bool python = true;                  // ask the interpreter for the creating line
  bool points = false;                 // list the calls that a sweep can fail
  bool all_points = false;             // those that give something back too
  bool silent = false;                 // no report: another library watches this one
  bool watch = false;                  // the real driver behind, not the model
  std::string real;                    // path of the real driver, to watch
  std::string report;                  // folder for report.PID.json; empty: text on stderr
  std::string record;                  // file for the calls that were made
  std::string suppress;                // file of ids that are no findings
  std::vector<fault::FaultRule> fail;  // faults to inject
  std::vector<std::string> fail_texts;
  std::vector<std::string> errors;  // what could not be understood
};

/// "cuMemSetAccess nth=2 [times=N|all] [after] with CUDA_ERROR_UNKNOWN", or "any ..."; nothing if
/// it is malformed.
std::optional<fault::FaultRule> parse_fault(std::string_view text);

/// A size such as "8GiB", "512MiB" or "4096"; nothing if it is malformed.
std::optional<std::uint64_t> parse_size(std::string_view text);

/// The options in `text`, lines of key=value; unknown keys become errors.
Options parse_options(std::string_view text);

}  // namespace granule::libcuda
