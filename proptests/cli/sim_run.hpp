// Running a command on the simulated driver and reading what its processes reported.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace granule::cli {

/// One finding of a report; see backends/libcuda.
struct SimFinding {
  std::string id;
  std::string type;
  std::string text;
  std::string json;
  bool suppressed = false;
};

/// What all processes of one run reported together.
struct SimReport {
  std::vector<SimFinding> findings;
  std::vector<std::string> faults;
  std::vector<std::string> points;
  std::map<std::string, std::uint64_t> unsupported;
  std::uint64_t calls = 0;
  std::uint64_t processes = 0;
  std::uint64_t open() const;  // findings not suppressed
};

struct SimCommand {
  std::vector<std::string> command;
  std::vector<std::string> settings;  // lines of GRANULE_SIM, without report and record
  std::string record;                 // where the calls go, in the library's own form
  bool preload = false;
  bool quiet = false;  // the command's output is thrown away
  std::chrono::milliseconds timeout{0};
};

struct SimOutcome {
  int exit_code = 0;  // 128 + n for signal n
  bool started = true;
  bool timed_out = false;
  SimReport report;
};

/// The folder of our libcuda.so.1; empty if there is none beside this program.
std::string sim_library_folder();
/// Where the system's libcuda.so.1 lies; empty if there is none.
std::string real_driver_path();
SimOutcome run_simulated(const SimCommand& command);

}  // namespace granule::cli
