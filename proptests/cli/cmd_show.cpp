// granule show: what programs do to the address space, as text, as a picture, as a page; and their
// driver calls as C.
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <granule/prop/picture.hpp>
#include <granule/prop/story.hpp>
#include <granule/prop/text.hpp>

#include "command.hpp"
#include "run_flags.hpp"

namespace granule::cli {
namespace {

struct ShowFlags {
  std::string path;
  RunFlags run;
  std::string only;
  std::string c;
  std::string svg;
  std::string html;
};

void print_steps(const prop::Story& story) {
  const std::vector<prop::Statement>& statements = story.program->statements;
  std::vector<const prop::StoryStep*> last(statements.size());
  for (const prop::StoryStep& step : story.steps) last[step.statement] = &step;
  for (std::size_t i = 0; i < statements.size(); ++i) {
    const prop::Statement& s = statements[i];
    const bool here = story.report.failure && story.report.failure->statement == i;
    std::printf("%5u  %s%s%s\n", s.line.number, s.thread.empty() ? "" : (s.thread + ": ").c_str(),
                prop::to_text(s).c_str(), here ? "   <- here" : "");
    if (last[i] && s.expected.empty() && last[i]->reply != "ok")
      std::printf("         gives %s\n", last[i]->reply.c_str());
  }
}

void print(const prop::Story& story) {
  std::printf("program %s\n", story.program->name.c_str());
  print_steps(story);
  const prop::RunReport& report = story.report;
  if (report.status == prop::RunStatus::kUnmet)
    std::printf("\nnot run: it needs %s\n", report.unmet.c_str());
  if (report.failure)
    std::printf("\n%s\n", prop::describe(*story.program, *report.failure).c_str());
  if (!story.pictures.empty())
    std::printf("\n%s: %s\n", report.failure ? "at the failure" : "at the end",
                prop::draw(story.pictures.back()).c_str());
}

/// Writes to a file, or to the standard output for "-".
void write_out(const std::string& path, const std::string& text) {
  if (path == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  } else {
    std::ofstream out(path, std::ios::binary);
    out << text;
    out.close();
    if (out) return;
  }
  std::fprintf(stderr, "granule show: %s could not be written\n", path.c_str());
  set_exit_code(kUsage);
}

void write_c(const prop::Story& story, const std::string& path) {
  const auto write = device_work().c_source;
  if (!write) return set_exit_code(static_cast<ExitCode>(no_device_work()));
  write_out(path, write(story.program->name, story.calls));
}

bool refuse(const std::string& why) {
  std::fprintf(stderr, "granule show: %s\n", why.c_str());
  set_exit_code(kUsage);
  return false;
}

/// What the flags ask for can be had of these programs.
bool fits(const ShowFlags& flags, const std::vector<const prop::Program*>& wanted) {
  if (wanted.empty())
    return refuse("no program" + (flags.only.empty() ? "" : " of the name " + flags.only) + " in " +
                  flags.path);
  const auto is_stdout = [](const std::string& path) { return path == "-" ? 1 : 0; };
  if (is_stdout(flags.c) + is_stdout(flags.svg) + is_stdout(flags.html) > 1)
    return refuse("only one of --svg, --html and --c can go to the standard output");
  for (const auto& [name, path] :
       {std::pair<const char*, const std::string&>{"--svg", flags.svg}, {"--c", flags.c}})
    if (!path.empty() && wanted.size() > 1)
      return refuse(std::string(name) + " is for one program, and there are " +
                    std::to_string(wanted.size()) + ": name one with --only (--html takes all)");
  return true;
}

void show(const ShowFlags& flags) {
  const prop::ParseResult parsed = prop::parse_file(flags.path);
  for (const prop::ParseError& error : parsed.errors)
    std::fprintf(stderr, "%s\n", prop::to_text(error).c_str());
  if (!parsed.ok()) return set_exit_code(kUsage);
  std::vector<const prop::Program*> wanted;
  for (const prop::Program& program : parsed.document.programs)
    if (flags.only.empty() || flags.only == program.name) wanted.push_back(&program);
  if (!fits(flags, wanted)) return;
  const bool as_text = flags.c.empty() && flags.svg.empty() && flags.html.empty();
  const prop::Pictures pictures =
      flags.html.empty() ? prop::Pictures::kEnd : prop::Pictures::kEveryStep;
  std::vector<prop::Story> stories;
  for (const prop::Program* program : wanted) {
    prop::Story story = prop::tell(*program, run_options(flags.run), pictures);
    if (as_text) print(story);
    if (!flags.c.empty()) write_c(story, flags.c);
    if (!flags.svg.empty()) write_out(flags.svg, prop::svg_of(story));
    if (story.report.failure) set_exit_code(kViolated);
    if (!flags.html.empty()) stories.push_back(std::move(story));
  }
  if (flags.html.empty()) return;
  const std::string name = flags.path.substr(flags.path.find_last_of('/') + 1);
  write_out(flags.html, prop::html_of(stories, name));
}

void add_show(CLI::App& app) {
  auto flags = std::make_shared<ShowFlags>();
  CLI::App* command = app.add_subcommand(
      "show", "See what a program does to the address space: as text, a picture, or a page");
  command->add_option("FILE", flags->path, "A file of programs")->required();
  add_run_flags(*command, flags->run);
  command->add_option("--only", flags->only, "Only the program of that name");
  command->add_option("--svg", flags->svg,
                      "Write a picture of the address space at the program's end, or where it "
                      "fails, as SVG; - is the standard output, here and below");
  command->add_option("--html", flags->html,
                      "Write a page that goes through the programs statement by statement: what "
                      "each gave, its driver calls, and the picture after it");
  command->add_option("--c", flags->c, "Write the program's driver calls as plain C over cuda.h");
  command->footer(
      "The program runs on the simulated driver. Without --svg, --html and --c it is printed with "
      "a\n"
      "drawing in text: one line a reservation, a letter a granule for each physical allocation "
      "(the\n"
      "same letter twice: mapped twice), and a line for each mapping with its access (of each "
      "device,\n"
      "where there are several) and the names of the buffers that see it.\n\n"
      "A picture has a row for each reservation, in order of addresses: above it the buffers, each "
      "as\n"
      "long as what it shows, and ranges that are pending, parked or idle; below it who may read "
      "and\n"
      "write. Plain memory and pool blocks have rows of their own. Colours repeat what letters "
      "and\n"
      "marks say, and there is a legend. Lengths are to scale within a row up to 8 granules; what "
      "is\n"
      "longer is marked. Many mappings that are alike become one box.\n\n"
      "A page needs no network: open it from disk and use the arrow keys. The address of a "
      "statement\n"
      "(#p1-7) can be passed on.\n\n"
      "Exit code 42 if a program fails, 2 if there is no such program or a file cannot be "
      "written.\n\n"
      "Examples:\n"
      "  granule show --html failure.html failure.granule\n"
      "  granule show --target zoo:canary --svg - FILE | rsvg-convert -o failure.png\n"
      "  granule show --only moves --svg moves.svg --c moves.c FILE");
  command->callback([flags] { show(*flags); });
}

const Command command(60, add_show);

}  // namespace
}  // namespace granule::cli
