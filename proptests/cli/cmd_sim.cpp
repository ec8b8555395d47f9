// granule sim: runs a command on the simulated driver and says what it leaked and misused.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <granule/prop/text.hpp>

#include "command.hpp"
#include "sim_print.hpp"
#include "sim_program.hpp"
#include "sim_run.hpp"
#include "sim_sweep.hpp"

namespace granule::cli {
namespace {

struct SimFlags {
  std::vector<std::string> command;
  std::string profile = "h200";
  std::string memory;
  std::string driver = "exact";
  int devices = 1;
  std::vector<std::string> fail;
  std::string suppress;
  std::string record;
  std::string json;
  std::string hang_after;
  bool sweep = false;
  bool sweep_all = false;
  std::string sweep_timeout = "60";
  bool report_only = false;
  bool preload = false;
  bool no_python = false;
};

bool is_fault(const std::string& text) {
  return text.rfind("host_alloc", 0) != 0 &&
         prop::parse("granule 1\nfail " + text + "\n", "--fail").ok();
}

bool is_size(const std::string& text) {
  const std::size_t end = text.find_first_not_of("0123456789");
  const std::string unit = end == std::string::npos ? "" : text.substr(end);
  return end != 0 && !text.empty() &&
         (unit.empty() || unit == "KiB" || unit == "MiB" || unit == "GiB" || unit == "TiB");
}

/// What CLI11 does not see: the library would only print it.
const char* mistake_in(const SimFlags& flags) {
  for (const std::string& fault : flags.fail)
    if (!is_fault(fault)) return "--fail: not a fault";
  if (!flags.memory.empty() && !is_size(flags.memory)) return "--memory: not a size";
  return nullptr;
}

std::vector<std::string> settings_of(const SimFlags& flags) {
  std::vector<std::string> lines{"profile=" + flags.profile, "driver=" + flags.driver,
                                 "devices=" + std::to_string(flags.devices)};
  if (!flags.memory.empty()) lines.push_back("memory=" + flags.memory);
  if (!flags.suppress.empty())
    lines.push_back("suppress=" + std::filesystem::absolute(flags.suppress).string());
  for (const std::string& fault : flags.fail) lines.push_back("fail=" + fault);
  if (flags.no_python) lines.push_back("python=0");
  if (!flags.hang_after.empty()) lines.push_back("hang_ms=" + flags.hang_after);
  return lines;
}

void run_once(const SimFlags& flags, SimCommand command) {
  const std::string raw = flags.record.empty() ? "" : flags.record + ".calls";
  command.record = raw;
  if (!raw.empty()) std::filesystem::remove(raw);
  const SimOutcome outcome = run_simulated(command);
  if (!raw.empty()) {
    std::string error;
    if (!write_program(raw, flags.record, flags.fail, outcome.report.open() != 0, error))
      std::fprintf(stderr, "granule sim: %s\n", error.c_str());
    std::filesystem::remove(raw);
  }
  print_report(outcome, flags.json);
  const int violated = !flags.report_only && outcome.report.open() != 0 ? kViolated : kClean;
  set_exit_code(static_cast<ExitCode>(violated != kClean ? violated : outcome.exit_code));
}

void sim(const SimFlags& flags) {
  if (sim_library_folder().empty()) {
    std::fprintf(stderr, "granule sim: there is no simulated driver beside this program\n");
    return set_exit_code(kUnfit);
  }
  if (const char* mistake = mistake_in(flags)) {
    std::fprintf(stderr, "granule sim: %s\n", mistake);
    return set_exit_code(kUsage);
  }
  SimCommand command;
  command.command = flags.command;
  command.settings = settings_of(flags);
  command.preload = flags.preload;
  if (!flags.sweep) return run_once(flags, command);
  SweepOptions options;
  options.all_calls = flags.sweep_all;
  options.timeout = std::chrono::seconds(std::strtoul(flags.sweep_timeout.c_str(), nullptr, 10));
  options.keep = flags.record;
  const int result = sweep_simulated(command, options);
  set_exit_code(static_cast<ExitCode>(flags.report_only && result == kViolated ? kClean : result));
}

/// What sim and watch share.
void add_report_flags(CLI::App& command, SimFlags& flags) {
  command.add_option("--record", flags.record,
                     "Write the driver calls as a program for `granule replay`");
  command.add_option("--suppress", flags.suppress, "A file of ids that are no findings");
  command.add_option("--json", flags.json, "Write the report as JSON to this file (- for stdout)");
  command.add_flag("--report-only", flags.report_only, "Findings do not change the exit code");
  command.add_flag("--preload", flags.preload,
                   "Use LD_PRELOAD too, for programs that name their own libcuda");
  command.add_flag("--no-python", flags.no_python, "Do not ask the interpreter for its frames");
}

void add_sim(CLI::App& app) {
  auto flags = std::make_shared<SimFlags>();
  CLI::App* command =
      app.add_subcommand("sim", "Run an unchanged CUDA driver-API program on the simulated driver");
  command->add_option("COMMAND", flags->command, "The program and its arguments, after --")
      ->required();
  command->add_option("--profile", flags->profile, "The device: h200, a100 or laptop")
      ->check(CLI::IsMember({"h200", "a100", "laptop"}));
  command->add_option("--memory", flags->memory, "Free memory of each device, such as 8GiB");
  command->add_option("--devices", flags->devices, "How many devices")->check(CLI::Range(1, 15));
  command->add_option("--driver", flags->driver, "exact, portable or adversarial")
      ->check(CLI::IsMember({"exact", "portable", "adversarial"}));
  command->add_option(
      "--fail", flags->fail,
      "A fault: \"cuMemSetAccess nth=2 [times=N|all] [after] with CUDA_ERROR_...\"");
  command->add_flag("--sweep", flags->sweep,
                    "Run once for each call that can fail, with that call failing");
  command->add_flag("--sweep-all", flags->sweep_all,
                    "The same with the calls that give something back failing too");
  command->add_option("--sweep-timeout", flags->sweep_timeout, "Seconds for one run of a sweep");
  command->add_option("--hang-after", flags->hang_after,
                      "Milliseconds after which a wait that nothing ends is given up (10000)");
  add_report_flags(*command, *flags);
  command->footer(
      "Exit code 42 if something leaked or was misused, else the command's own. A suppression\n"
      "file has an id on each line, with * for any characters: leak.handle@leak.py:*\n"
      "Programs of the CUDA runtime library do not start: it asks the driver for undocumented\n"
      "tables. See backends/libcuda/README.md.\n\nExamples:\n"
      "  granule sim -- python leak.py\n"
      "  granule sim --memory 8GiB --fail \"cuMemMap nth=2 with CUDA_ERROR_UNKNOWN\" -- ./app\n"
      "  granule sim --sweep -- ./allocator_test");
  command->callback([flags] {
    flags->sweep = flags->sweep || flags->sweep_all;
    sim(*flags);
  });
}

void watch(const SimFlags& flags) {
  const std::string real = real_driver_path();
  if (sim_library_folder().empty() || real.empty()) {
    std::fprintf(stderr, "granule watch: %s\n",
                 real.empty() ? "no NVIDIA driver is installed (use granule sim without one)"
                              : "there is no library beside this program");
    return set_exit_code(kUnfit);
  }
  SimCommand command;
  command.command = flags.command;
  command.preload = flags.preload;
  command.settings = settings_of(flags);
  command.settings.push_back("real=" + real);
  run_once(flags, command);
}

void add_watch(CLI::App& app) {
  auto flags = std::make_shared<SimFlags>();
  CLI::App* command = app.add_subcommand(
      "watch", "Run a CUDA program on the real driver and say what it leaked and misused");
  command->add_option("COMMAND", flags->command, "The program and its arguments, after --")
      ->required();
  command->add_option("--fail", flags->fail, "A fault, as for granule sim");
  add_report_flags(*command, *flags);
  command->footer(
      "The calls that make or drop memory, mappings, handles and pools pass through the checker;\n"
      "all others go straight to the driver. Misuse that only the model can judge (unordered\n"
      "frees, use of what is not mapped) is not reported. Works for the CUDA runtime, too.");
  command->callback([flags] { watch(*flags); });
}

const Command command(70, add_sim);
const Command watch_command(71, add_watch);

}  // namespace
}  // namespace granule::cli
