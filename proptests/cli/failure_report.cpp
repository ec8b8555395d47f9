// Saving and showing failing programs.
#include "failure_report.hpp"

#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <granule/prop/campaign.hpp>
#include <granule/prop/interleave.hpp>
#include <granule/prop/text.hpp>

namespace granule::cli {

std::string flags_of(const prop::RunOptions& options, const std::string& target) {
  std::string flags;
  if (options.machine.verdict == model::Verdict::kPortable) flags += " --driver portable";
  if (options.machine.verdict == model::Verdict::kAdversarial) flags += " --driver adversarial";
  if (options.machine.schedule == model::Schedule::kEager) flags += " --schedule eager";
  if (options.machine.schedule == model::Schedule::kSeeded) flags += " --schedule seeded";
  if (options.checking == prop::Checking::kFull) flags += " --checking full";
  if (options.machine.seed != 1) flags += " --seed " + std::to_string(options.machine.seed);
  if (options.thread_seed != 0) flags += " --thread-seed " + std::to_string(options.thread_seed);
  const prop::InterleaveOptions& threads = options.interleave;
  if (threads.how == prop::Interleave::kRandom) flags += " --interleave random";
  if (threads.how == prop::Interleave::kPct)
    flags += " --interleave pct --changes " + std::to_string(threads.changes);
  if (options.promise_no_captures) flags += " --promise-no-captures";
  if (target != "core") flags += " --target " + target;
  return flags;
}

std::string failure_file_name(const std::string& signature, const std::string& tag) {
  std::string name;
  for (const char c : signature) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) {
      name += static_cast<char>(std::tolower(byte));
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
    constexpr std::size_t kLongest = 60;
    if (name.size() >= kLongest) break;
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name + "-" + tag + ".granule";
}

bool save_program(const std::string& path, const prop::Program& program,
                  const std::string& comment) {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  std::ofstream out(path, std::ios::binary);
  std::istringstream lines(comment);
  for (std::string line; std::getline(lines, line);) out << "# " << line << "\n";
  out << prop::to_text(program);
  out.close();
  if (out) return true;
  std::fprintf(stderr, "granule: cannot write %s\n", path.c_str());
  return false;
}

void settle_seed(const prop::ShrinkResult& small, prop::RunOptions& options) {
  if (!prop::is_interleaved(small.program, options)) return;
  const auto seed =
      prop::failing_seed(small.program, options, small.signature, prop::kInterleavingsTried);
  if (seed) options.thread_seed = *seed;
}

Picture picture_of(const prop::Program& program, const prop::RunOptions& options) {
  Picture picture;
  prop::RunOptions once = options;
  once.inspect = [&picture](const prop::World& world) { picture.drawing = prop::draw(world); };
  // A program as it is printed: the lines of its messages are those of the saved file.
  const prop::RunReport report = prop::run_guarded(program, once);
  if (report.failure) picture.failure = prop::describe(program, *report.failure);
  return picture;
}

std::string look_command(const std::string& flags, const std::string& path) {
  return "granule show --html " + path.substr(0, path.rfind(".granule")) + ".html" + flags + " " +
         path;
}

std::string indented(const prop::Program& program) {
  std::istringstream lines(prop::to_text(program));
  std::string text;
  bool first = true;
  for (std::string line; std::getline(lines, line);) {
    if (!first) text += "    " + line + "\n";
    first = false;
  }
  return text;
}

}  // namespace granule::cli
