// The sweep: what a command leaks or misuses when one of its driver calls fails.
#include "sim_sweep.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include <unistd.h>

#include "command.hpp"
#include "sim_print.hpp"
#include "sim_program.hpp"

namespace granule::cli {
namespace {

namespace fs = std::filesystem;

/// What such a call plausibly fails with.
const char* plausible_status(const std::string& call) {
  static const std::map<std::string, const char*> kStatus{
      {"cuMemAddressReserve", "CUDA_ERROR_OUT_OF_MEMORY"},
      {"cuMemCreate", "CUDA_ERROR_OUT_OF_MEMORY"},
      {"cuMemAlloc", "CUDA_ERROR_OUT_OF_MEMORY"},
      {"cuMemAllocHost", "CUDA_ERROR_OUT_OF_MEMORY"},
      {"cuMemAllocAsync", "CUDA_ERROR_OUT_OF_MEMORY"},
      {"cuMemAllocFromPoolAsync", "CUDA_ERROR_OUT_OF_MEMORY"},
      {"cuMemPoolCreate", "CUDA_ERROR_OUT_OF_MEMORY"},
      {"cuMemExportToShareableHandle", "CUDA_ERROR_OPERATING_SYSTEM"}};
  const auto it = kStatus.find(call);
  return it != kStatus.end() ? it->second : "CUDA_ERROR_UNKNOWN";
}

std::string outcome_word(const SimOutcome& outcome) {
  if (outcome.timed_out) return "hang";
  if (outcome.exit_code > 128) return "signal " + std::to_string(outcome.exit_code - 128);
  return "exit " + std::to_string(outcome.exit_code);
}

/// Findings that the run without a fault does not have.
std::vector<const SimFinding*> new_findings(const SimReport& report,
                                            const std::set<std::string>& known) {
  std::vector<const SimFinding*> found;
  for (const SimFinding& finding : report.findings)
    if (!finding.suppressed && known.count(finding.id) == 0) found.push_back(&finding);
  return found;
}

struct Sweep {
  SimCommand command;
  SweepOptions options;
  std::string raw;  // recording of the run in progress
  std::set<std::string> known;
  std::uint64_t runs = 0;
  std::uint64_t bad = 0;
  bool shown = false;

  void run_point(const std::string& call, std::uint64_t nth);
  void show_first(const std::string& fault, const std::vector<const SimFinding*>& found);
};

void Sweep::show_first(const std::string& fault, const std::vector<const SimFinding*>& found) {
  shown = true;
  for (const SimFinding* finding : found) std::fputs(with_lines(finding->text).c_str(), stdout);
  const std::string program = options.keep.empty() ? raw + ".granule" : options.keep;
  std::string error;
  if (!write_program(raw, program, {fault}, true, error)) return;
  std::printf("  the program of this run%s:\n",
              options.keep.empty() ? "" : (", in " + options.keep).c_str());
  std::ifstream in(program);
  for (std::string line; std::getline(in, line);) std::printf("    %s\n", line.c_str());
  if (options.keep.empty()) fs::remove(program);
}

void Sweep::run_point(const std::string& call, std::uint64_t nth) {
  SimCommand one = command;
  const std::string fault =
      call + " nth=" + std::to_string(nth) + " with " + plausible_status(call);
  one.settings.push_back("fail=" + fault);
  one.record = raw;
  one.quiet = true;
  one.timeout = options.timeout;
  fs::remove(raw);
  const SimOutcome outcome = run_simulated(one);
  ++runs;
  const auto found = new_findings(outcome.report, known);
  const bool crashed = outcome.timed_out || outcome.exit_code > 128;
  std::printf("%-60s %-10s %s\n", fault.c_str(), outcome_word(outcome).c_str(),
              outcome.report.faults.empty() ? "fault not reached"
              : found.empty() && !crashed   ? "clean"
                                            : "FOUND");
  if (found.empty() && !crashed) return;
  ++bad;
  for (const SimFinding* finding : found) std::printf("  %s\n", finding->id.c_str());
  if (!shown) show_first(fault, found);
}

}  // namespace

int sweep_simulated(SimCommand command, const SweepOptions& options) {
  Sweep sweep;
  sweep.options = options;
  sweep.raw = (fs::temp_directory_path() / ("granule-sweep-" + std::to_string(getpid()))).string();
  command.settings.push_back(options.all_calls ? "points=all" : "points=1");
  const SimOutcome plain = run_simulated(command);
  print_report(plain, "");
  for (const SimFinding& finding : plain.report.findings) sweep.known.insert(finding.id);
  if (plain.report.points.empty()) {
    std::fprintf(stderr, "granule sim: the command makes no driver call that a sweep can fail\n");
    return kUsage;
  }
  sweep.command = command;
  std::map<std::string, std::uint64_t> seen;
  for (const std::string& call : plain.report.points) sweep.run_point(call, ++seen[call]);
  fs::remove(sweep.raw);
  std::printf("%llu fault points, %llu with findings\n",
              static_cast<unsigned long long>(sweep.runs),
              static_cast<unsigned long long>(sweep.bad));
  return sweep.bad != 0 || plain.report.open() != 0 ? kViolated : kClean;
}

}  // namespace granule::cli
