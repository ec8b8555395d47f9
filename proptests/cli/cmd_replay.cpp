// granule replay: runs programs from files and says which of them fail.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <granule/prop/interleave.hpp>
#include <granule/prop/run.hpp>
#include <granule/prop/text.hpp>

#include "command.hpp"
#include "replay_report.hpp"
#include "run_flags.hpp"

namespace granule::cli {
namespace {

struct ReplayFlags {
  std::vector<std::string> paths;
  RunFlags run;
  std::string only;
  bool steps = false;
  bool quiet = false;
  bool explore = false;
  prop::ExploreOptions bounds;
  DeviceFlags device;
};

struct Tally {
  std::uint64_t passed = 0;
  std::uint64_t failed = 0;
  std::uint64_t unmet = 0;
  std::uint64_t skipped = 0;
};

void print_steps(const prop::Program& program, const prop::RunReport& report) {
  for (const prop::Step& step : report.steps)
    std::printf("    %s   -> %s\n", prop::to_text(program.statements[step.statement]).c_str(),
                step.reply.c_str());
}

/// Every interleaving within the bounds; the report of the one that failed, or a clean one.
prop::RunReport explored(const std::string& file, const prop::Program& program,
                         const prop::RunOptions& options, const ReplayFlags& flags) {
  prop::ExploreResult result = prop::explore(program, options, flags.bounds);
  if (!flags.quiet || result.failed)
    std::printf("%s: %s: %llu interleavings with at most %u pre-emptions%s\n", file.c_str(),
                program.name.c_str(), static_cast<unsigned long long>(result.runs),
                flags.bounds.preemptions,
                result.complete ? ", which are all"
                : result.failed ? ""
                                : "; there are more");
  if (!result.failed) return {};
  std::string choices;
  for (const std::uint16_t taken : result.told)
    choices += (choices.empty() ? "" : ",") + std::to_string(taken);
  std::printf("  the last one: --interleave told --choices %s\n",
              choices.empty() ? "0" : choices.c_str());
  return std::move(*result.failed);
}

void replay_program(const std::string& file, const prop::Program& program, const ReplayFlags& flags,
                    Tally& tally, ReplayReport& machines) {
  prop::RunOptions options = run_options(flags.run);
  options.keep_steps = flags.steps;
  const prop::RunReport report =
      flags.explore ? explored(file, program, options, flags) : prop::run(program, options);
  tally.skipped += report.skipped_count;
  machines.add(file, program, report);
  if (flags.steps) print_steps(program, report);
  switch (report.status) {
    case prop::RunStatus::kClean:
      ++tally.passed;
      if (!flags.quiet && report.skipped_count > 0)
        std::printf("%s: %s: clean, %llu statements skipped\n", file.c_str(), program.name.c_str(),
                    static_cast<unsigned long long>(report.skipped_count));
      break;
    case prop::RunStatus::kUnmet:
      ++tally.unmet;
      if (!flags.quiet)
        std::printf("%s: %s: skipped, it needs %s\n", file.c_str(), program.name.c_str(),
                    report.unmet.c_str());
      break;
    case prop::RunStatus::kFailed:
      ++tally.failed;
      std::printf("%s: %s: FAILED\n  %s\n", file.c_str(), program.name.c_str(),
                  prop::describe(program, *report.failure).c_str());
      set_exit_code(kViolated);
      break;
  }
}

void replay_on_device(const ReplayFlags& flags) {
  DeviceReplay work{flags.device, program_files(flags.paths), flags.only, flags.quiet,
                    run_options(flags.run)};
  const auto run = device_work().replay;
  set_exit_code(static_cast<ExitCode>(run ? run(work) : no_device_work()));
}

void replay(const ReplayFlags& flags) {
  if (!flags.device.recorded.empty()) {
    const auto run = device_work().recorded;
    return set_exit_code(
        static_cast<ExitCode>(run ? run(flags.device.recorded) : no_device_work()));
  }
  if (flags.paths.empty()) {
    std::fprintf(stderr, "granule replay: no file and no --recorded\n");
    return set_exit_code(kUsage);
  }
  if (flags.device.backend != "model") return replay_on_device(flags);
  refuse_device_flags(flags.device, {.report = true});
  Tally tally;
  ReplayReport machines(flags.device.json, flags.device.junit);
  bool broken = false;
  for (const std::string& file : program_files(flags.paths)) {
    const prop::ParseResult parsed = prop::parse_file(file);
    for (const prop::ParseError& error : parsed.errors)
      std::fprintf(stderr, "%s\n", prop::to_text(error).c_str());
    if (!parsed.ok()) {
      set_exit_code(kUsage);
      broken = true;
      continue;
    }
    for (const prop::Program& program : parsed.document.programs)
      if (flags.only.empty() || flags.only == program.name)
        replay_program(file, program, flags, tally, machines);
  }
  if (!machines.finish()) {
    std::fprintf(stderr, "granule replay: the report could not be written\n");
    set_exit_code(kUsage);
  }
  if (tally.passed + tally.failed + tally.unmet == 0 && !broken) {
    std::fprintf(stderr, "granule replay: no program to run%s\n",
                 flags.only.empty() ? "" : (" of the name " + flags.only).c_str());
    return set_exit_code(kUsage);
  }
  std::printf(
      "%llu clean, %llu failed, %llu with unmet needs, %llu statements skipped\n",
      static_cast<unsigned long long>(tally.passed), static_cast<unsigned long long>(tally.failed),
      static_cast<unsigned long long>(tally.unmet), static_cast<unsigned long long>(tally.skipped));
}

void add_replay(CLI::App& app) {
  auto flags = std::make_shared<ReplayFlags>();
  CLI::App* command = app.add_subcommand("replay", "Run programs from files and check them");
  command->add_option("FILE|DIR", flags->paths,
                      "Files, or directories that are searched for *.granule");
  add_run_flags(*command, flags->run);
  add_device_flags(*command, flags->device);
  command->add_option("--recorded", flags->device.recorded,
                      "Hold a recording of a device against today's model; runs no program");
  command->add_option("--only", flags->only, "Run only the program of that name");
  command->add_flag("--explore", flags->explore,
                    "Run each program under every interleaving of its threads, depth first, within "
                    "--preemptions and --max-interleavings; print how many there were");
  command
      ->add_option("--preemptions", flags->bounds.preemptions,
                   "--explore: points at which a thread gives way although it could go on")
      ->capture_default_str();
  command
      ->add_option("--max-interleavings", flags->bounds.max_runs,
                   "--explore: runs at most, each "
                   "program")
      ->capture_default_str();
  command->add_flag("--steps", flags->steps, "Print what every statement gave");
  command->add_flag("--quiet", flags->quiet, "Print failures and the last line only");
  command->footer(
      "A program fails if a statement gives something else than its =>, if an `expect` does not\n"
      "hold, or if a standing invariant breaks: known contents, access, statistics against the\n"
      "driver's ledger, misuse that the simulated driver saw, and at the end everything given\n"
      "back. Exit code 42 if any failed. With --backend cuda each call is also compared with the\n"
      "model's answer, and free memory after each statement: 43 if they differ, 44 if a program\n"
      "hangs, 45 if a process died, 3 if there is no idle GPU.\n\nExamples:\n"
      "  granule replay --strict proptests/programs\n"
      "  granule replay --steps --driver adversarial failure.granule\n"
      "  granule replay --explore --preemptions 2 proptests/corpus/threads-*.granule\n"
      "  granule replay --backend cuda --strict --junit out.xml proptests/programs");
  command->callback([flags] { replay(*flags); });
}

const Command command(20, add_replay);

}  // namespace
}  // namespace granule::cli
