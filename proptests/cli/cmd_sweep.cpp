// granule sweep: programs from files, once for each way in which a call of the library can fail.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <granule/prop/text.hpp>

#include "command.hpp"
#include "sweep_work.hpp"

namespace granule::cli {
namespace {

struct SweepFileFlags {
  SweepFlags sweep;
  std::vector<std::string> paths;
  std::string only;
  std::size_t pairs_up_to = prop::SweepBreadth{}.pairs_up_to;
  bool quiet = false;
  bool every_class = false;
};

struct Loaded {
  std::string file;
  prop::Program program;
};

std::vector<Loaded> load(const SweepFileFlags& flags) {
  std::vector<Loaded> all;
  for (const std::string& file : program_files(flags.paths)) {
    prop::ParseResult parsed = prop::parse_file(file);
    for (const prop::ParseError& error : parsed.errors)
      std::fprintf(stderr, "%s\n", prop::to_text(error).c_str());
    if (!parsed.ok()) set_exit_code(kUsage);
    for (prop::Program& program : parsed.document.programs)
      if (parsed.ok() && (flags.only.empty() || flags.only == program.name))
        all.push_back({file, std::move(program)});
  }
  return all;
}

void sweep(const SweepFileFlags& flags) {
  const std::vector<Loaded> loaded = load(flags);
  if (loaded.empty()) {
    std::fprintf(stderr, "granule sweep: no program to sweep\n");
    return set_exit_code(kUsage);
  }
  SweepWork work;
  work.command = "sweep";
  work.options = sweep_options(flags.sweep);
  // Enough parts that the last program does not leave the other threads idle.
  constexpr std::uint64_t kPartsInAll = 2000;
  work.options.parts = static_cast<std::uint32_t>(std::max<std::uint64_t>(
      1, std::min<std::uint64_t>(work.options.jobs * 4, kPartsInAll / (loaded.size() + 1))));
  work.source.programs = loaded.size();
  work.source.program = [&](std::uint64_t number) { return loaded[number].program; };
  work.source.breadth = [&](std::uint64_t) {
    prop::SweepBreadth breadth;
    breadth.pairs_up_to = flags.pairs_up_to;
    return breadth;
  };
  work.title = [&](std::uint64_t number) {
    return loaded[number].file + ": " + loaded[number].program.name;
  };
  work.options.every_class = flags.every_class;
  work.list = !flags.quiet;
  set_exit_code(static_cast<ExitCode>(run_sweep_work(work, flags.sweep)));
}

void add_sweep(CLI::App& app) {
  auto flags = std::make_shared<SweepFileFlags>();
  CLI::App* command = app.add_subcommand(
      "sweep", "Fail every driver call and host allocation of programs, one after the other");
  command
      ->add_option("FILE|DIR", flags->paths,
                   "Files, or directories that are searched for *.granule")
      ->required();
  add_sweep_flags(*command, flags->sweep);
  command->add_option("--only", flags->only, "Sweep only the program of that name");
  command
      ->add_option("--pairs", flags->pairs_up_to,
                   "Also two faults, on programs of so many statements or fewer; 0: never")
      ->capture_default_str();
  command->add_flag("--every-class", flags->every_class,
                    "A class of faults that no run had is a failure: nothing was shown of it");
  command->add_flag("--quiet", flags->quiet, "Print violations and totals only");
  command->footer(
      "A program runs once without a fault, to count the driver calls and host allocations that\n"
      "the library makes: its points. Then it runs once for each point, each code that a driver\n"
      "could plausibly give there, refused or done but reported as failed, once or from then on;\n"
      "short programs also with every two faults, so that an undo fails too. At each call the\n"
      "contexts are also lost to an error of earlier work, at once or in hiding; where there was "
      "a\n"
      "hint it is not honoured, where there was memory another tenant has it, and a property that\n"
      "was asked for is refused. What the program\n"
      "expects is left out of those runs; what must hold are the standing invariants, that the\n"
      "first error is the one reported, and that everything works again when the faults are "
      "lifted.\n"
      "A violation is saved as a program with its `fail` statement, which `granule replay` runs.\n"
      "Exit code 42 if there is a violation, or if no fault point was reached or a fault did not\n"
      "fire, 44 for a hang, 45 for a crash.\n\nExamples:\n"
      "  granule sweep proptests/programs proptests/corpus\n"
      "  granule sweep --pairs 20 --driver adversarial program.granule\n"
      "  granule sweep --first --target zoo:canary proptests/programs");
  command->callback([flags] { sweep(*flags); });
}

const Command command(32, add_sweep);

}  // namespace
}  // namespace granule::cli
