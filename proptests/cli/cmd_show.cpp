// granule show: prints programs and a drawing of the address space where each ends or fails.
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <granule/prop/run.hpp>
#include <granule/prop/text.hpp>

#include "command.hpp"
#include "run_flags.hpp"

namespace granule::cli {
namespace {

struct ShowFlags {
  std::string path;
  RunFlags run;
  std::string only;
  std::string c_file;
};

void show_program(const prop::Program& program, const ShowFlags& flags) {
  prop::RunOptions options = run_options(flags.run);
  options.keep_steps = true;
  std::string drawing;
  options.inspect = [&drawing](const prop::World& world) { drawing = prop::draw(world); };
  const prop::RunReport report = prop::run(program, options);
  std::printf("program %s\n", program.name.c_str());
  std::size_t next = 0;
  for (std::size_t i = 0; i < program.statements.size(); ++i) {
    const prop::Statement& statement = program.statements[i];
    std::printf("%5u  %s%s%s\n", statement.line.number,
                statement.thread.empty() ? "" : (statement.thread + ": ").c_str(),
                prop::to_text(statement).c_str(),
                report.failure && report.failure->statement == i ? "   <- here" : "");
    while (next < report.steps.size() && report.steps[next].statement < i) ++next;
    if (next < report.steps.size() && report.steps[next].statement == i &&
        statement.expected.empty() && report.steps[next].reply != "ok")
      std::printf("         gives %s\n", report.steps[next].reply.c_str());
  }
  if (report.status == prop::RunStatus::kUnmet)
    std::printf("\nnot run: it needs %s\n", report.unmet.c_str());
  if (report.failure) std::printf("\n%s\n", prop::describe(program, *report.failure).c_str());
  if (!drawing.empty())
    std::printf("\n%s: %s\n", report.failure ? "at the failure" : "at the end", drawing.c_str());
  if (report.failure) set_exit_code(kViolated);
}

/// Writes the driver calls of a run on the simulated driver as a C program.
void write_c(const prop::Program& program, const ShowFlags& flags) {
  const auto write = device_work().c_source;
  if (!write) return set_exit_code(static_cast<ExitCode>(no_device_work()));
  prop::RunOptions options = run_options(flags.run);
  record::RecordBackend* recorder = nullptr;
  std::vector<record::Entry> calls;
  options.decorate = [&](Backend& inner) {
    auto made = std::make_unique<record::RecordBackend>(inner);
    recorder = made.get();
    return made;
  };
  options.inspect = [&](const prop::World&) { calls = recorder->take(); };
  prop::run(program, options);
  std::ofstream out(flags.c_file);
  out << write(program.name, calls);
  if (out) return;
  std::fprintf(stderr, "granule show: %s could not be written\n", flags.c_file.c_str());
  set_exit_code(kUsage);
}

void show(const ShowFlags& flags) {
  const prop::ParseResult parsed = prop::parse_file(flags.path);
  for (const prop::ParseError& error : parsed.errors)
    std::fprintf(stderr, "%s\n", prop::to_text(error).c_str());
  if (!parsed.ok()) return set_exit_code(kUsage);
  for (const prop::Program& program : parsed.document.programs)
    if (flags.only.empty() || flags.only == program.name)
      flags.c_file.empty() ? show_program(program, flags) : write_c(program, flags);
}

void add_show(CLI::App& app) {
  auto flags = std::make_shared<ShowFlags>();
  CLI::App* command =
      app.add_subcommand("show", "Print a program and draw the address space at its end");
  command->add_option("FILE", flags->path, "A file of programs")->required();
  add_run_flags(*command, flags->run);
  command->add_option("--only", flags->only, "Only the program of that name");
  command->add_option("--c", flags->c_file,
                      "Write the program's driver calls as plain C over cuda.h");
  command->footer(
      "The program runs on the simulated driver. The drawing has one line a reservation, a letter\n"
      "a granule for each physical allocation (the same letter twice: mapped twice), and the\n"
      "names of the buffers that see it.");
  command->callback([flags] { show(*flags); });
}

const Command command(60, add_show);

}  // namespace
}  // namespace granule::cli
