// granule enumerate: every short program over a palette of operations, with faults if asked.
#include <cstdio>
#include <memory>
#include <string>

#include <granule/prop/text.hpp>

#include "command.hpp"
#include "sweep_work.hpp"

namespace granule::cli {
namespace {

struct EnumerateFlags {
  SweepFlags sweep;
  std::uint32_t length = 4;
  bool faults = false;
  bool all = false;
  std::string resource;
};

/// The options of `resource r vmm ...`, as they are written.
std::vector<prop::Option> resource_options(const std::string& text) {
  const prop::ParseResult parsed =
      prop::parse("granule 1\nresource r vmm " + text + "\n", "--resource");
  if (!parsed.ok() || parsed.document.programs.size() != 1 ||
      parsed.document.programs[0].statements.size() != 1)
    throw CLI::ValidationError("--resource", parsed.errors.empty()
                                                 ? "expected options of a vmm resource"
                                                 : prop::to_text(parsed.errors[0]));
  return parsed.document.programs[0].statements[0].options;
}

/// All faults up to length 3, refused once and host allocations above.
prop::SweepBreadth breadth_of(const EnumerateFlags& flags, std::uint32_t length) {
  constexpr std::uint32_t kAllUpTo = 3;
  prop::SweepBreadth breadth;
  if (flags.all) return breadth;
  breadth.pairs_up_to = 0;
  if (flags.faults && length <= kAllUpTo) return breadth;
  breadth.every_code = breadth.after = breadth.from_then_on = breadth.not_ready = false;
  breadth.contexts = breadth.surroundings = false;
  breadth.calls = breadth.host = flags.faults;
  return breadth;
}

void enumerate(const EnumerateFlags& flags) {
  const prop::Palette palette(flags.length, resource_options(flags.resource));
  SweepWork work;
  work.command = "enumerate";
  work.options = sweep_options(flags.sweep);
  work.options.each = false;
  work.options.needs_faults = flags.faults || flags.all;
  work.source.programs = palette.programs();
  work.source.program = [&](std::uint64_t number) { return palette.program(number); };
  work.source.breadth = [&](std::uint64_t number) {
    return breadth_of(flags, palette.length_of(number));
  };
  work.title = [&](std::uint64_t number) { return "program " + std::to_string(number); };
  set_exit_code(static_cast<ExitCode>(run_sweep_work(work, flags.sweep)));
}

void add_enumerate(CLI::App& app) {
  auto flags = std::make_shared<EnumerateFlags>();
  CLI::App* command =
      app.add_subcommand("enumerate", "Run every short program over a palette of operations");
  command->add_option("--length", flags->length, "Operations a program, at most")
      ->check(CLI::Range(1, 6))
      ->capture_default_str();
  command->add_flag("--faults", flags->faults,
                    "Sweep each: all faults up to length 3; above, calls refused once and host "
                    "allocations");
  command->add_flag("--all-faults", flags->all,
                    "Sweep each with all faults at every length, and with two faults");
  command->add_option("--resource", flags->resource,
                      "Options of the resource, as behind `resource r vmm`: \"free=deferred "
                      "cache=8g\"");
  add_sweep_flags(*command, flags->sweep);
  command->footer(
      "The palette: allocate 1g; allocate 1g with capacity 4g; grow the first or the last open\n"
      "buffer by 1g; resize the last by 1g; shrink the last to 1g; close the first or the last;\n"
      "addresses taken behind the last; use the last. Programs that are the same up to names run\n"
      "once. Exit codes as those of `granule sweep`.\n\nExamples:\n"
      "  granule enumerate --length 4 --faults\n"
      "  granule enumerate --length 3 --faults --resource \"free=deferred cache=8g\"");
  command->callback([flags] { enumerate(*flags); });
}

const Command command(34, add_enumerate);

}  // namespace
}  // namespace granule::cli
