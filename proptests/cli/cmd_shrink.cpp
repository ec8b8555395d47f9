// granule shrink: cuts failing programs down to what fails.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include <granule/prop/shrink.hpp>
#include <granule/prop/text.hpp>

#include "check_flags.hpp"
#include "command.hpp"
#include "failure_report.hpp"
#include "run_flags.hpp"

namespace granule::cli {
namespace {

struct ShrinkFlags {
  std::string file;
  RunFlags run;
  std::string only;
  std::string out;
  std::string time = "60s";
};

std::string output_path(const ShrinkFlags& flags, const prop::Program& program) {
  if (!flags.out.empty()) return flags.out;
  const std::filesystem::path file(flags.file);
  return (file.parent_path() / (program.name + ".min.granule")).string();
}

void shrink_program(const prop::Program& program, const ShrinkFlags& flags) {
  prop::RunOptions run = run_options(flags.run);
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + duration_of(flags.time);
  prop::ShrinkOptions options;
  options.stop = [end] { return Clock::now() >= end; };
  const prop::ShrinkResult small = prop::shrink(program, prop::judge_by_run(run), options);
  if (small.signature.empty()) {
    std::printf("%s: does not fail with these flags; nothing to shrink\n", program.name.c_str());
    return;
  }
  settle_seed(small, run);
  const Picture picture = picture_of(small.program, run);
  const std::string path = output_path(flags, program);
  const std::string replay = "granule replay" + flags_of(run, flags.run.target) + " " + path;
  save_program(path, small.program,
               small.signature + "\n" + picture.failure + "\nReproduce: " + replay);
  std::printf("%s: %s\n\n%zu of %zu statements left%s, after %llu runs:\n%s\n%s\n\n%s\n",
              program.name.c_str(), small.signature.c_str(), small.program.statements.size(),
              program.statements.size(),
              small.minimal ? ", proven minimal (taking anything away loses the failure)"
                            : ", the time ran out",
              static_cast<unsigned long long>(small.runs), indented(small.program).c_str(),
              picture.failure.c_str(), picture.drawing.c_str());
  std::printf("  saved:     %s\n  reproduce: %s\n  look:      %s\n", path.c_str(), replay.c_str(),
              look_command(flags_of(run, flags.run.target), path).c_str());
  set_exit_code(kViolated);
}

void shrink_file(const ShrinkFlags& flags) {
  const prop::ParseResult parsed = prop::parse_file(flags.file);
  for (const prop::ParseError& error : parsed.errors)
    std::fprintf(stderr, "%s\n", prop::to_text(error).c_str());
  if (!parsed.ok()) return set_exit_code(kUsage);
  for (const prop::Program& program : parsed.document.programs)
    if (flags.only.empty() || flags.only == program.name) shrink_program(program, flags);
}

void add_shrink(CLI::App& app) {
  auto flags = std::make_shared<ShrinkFlags>();
  CLI::App* command = app.add_subcommand("shrink", "Cut a failing program down to what fails");
  command->add_option("FILE", flags->file, "A file of programs")->required();
  add_run_flags(*command, flags->run);
  command->add_option("--only", flags->only, "Only the program of that name");
  command->add_option("--out", flags->out, "Where to save (default: NAME.min.granule beside FILE)");
  command->add_option("--time", flags->time, "Time a program")->capture_default_str();
  command->footer(
      "A smaller program is kept only if it fails in the same way (the same signature). At the "
      "end\n"
      "no statement can be left out and no argument made simpler without losing the failure.\n"
      "Exit code 42 if a program fails, 0 if none does.");
  command->callback([flags] { shrink_file(*flags); });
}

const Command command(40, add_shrink);

}  // namespace
}  // namespace granule::cli
