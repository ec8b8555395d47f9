// The `granule` command: finds its subcommands, parses, runs one.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <utility>
#include <vector>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "command.hpp"

namespace granule::cli {
namespace {

using Entry = std::pair<int, void (*)(CLI::App&)>;

std::vector<Entry>& entries() {
  static std::vector<Entry> list;
  return list;
}

ExitCode exit_code = kClean;

}  // namespace

Command::Command(int order, void (*add)(CLI::App& app)) { entries().emplace_back(order, add); }

void set_exit_code(ExitCode code) {
  if (exit_code == kClean) exit_code = code;
}

std::vector<std::string> program_files(const std::vector<std::string>& paths) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(path, error))
      if (entry.path().extension() == ".granule") found.push_back(entry.path().string());
    std::sort(found.begin(), found.end());
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

namespace {

/// A campaign takes and gives back the same few MiB a hundred thousand times: kept, rather than
/// faulted in anew each time.
void keep_host_memory() {
#if defined(__GLIBC__)
  constexpr int kKept = 256 << 20;
  mallopt(M_MMAP_THRESHOLD, kKept);
  mallopt(M_TRIM_THRESHOLD, kKept);
#endif
}

}  // namespace

int run_command(int argc, char** argv) {
  keep_host_memory();
  CLI::App app{
      "Growable GPU buffers over CUDA virtual memory: check, replay and look at programs.\n"
      "Nothing here needs a GPU unless --backend cuda says so."};
  app.name("granule");
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 clean, 2 usage, 3 unfit machine, 42 property violated,\n"
      "43 model and driver differ, 44 hang, 45 child crashed, 46 interrupted (clean so far).");
  std::vector<Entry> sorted = entries();
  std::sort(sorted.begin(), sorted.end(),
            [](const Entry& a, const Entry& b) { return a.first < b.first; });
  for (const Entry& entry : sorted) entry.second(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kClean : kUsage;
  }
  return exit_code;
}

}  // namespace granule::cli

int main(int argc, char** argv) {
  try {
    return granule::cli::run_command(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "granule: %s\n", error.what());
    return granule::cli::kUnfit;
  }
}
