// Child processes with the simulated driver on their loader path.
#include "sim_run.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

namespace granule::cli {
namespace {

namespace fs = std::filesystem;

/// A folder that goes when the scope ends.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern =
        (fs::temp_directory_path() / ("granule-sim-" + std::string(6, 'X'))).string();
    if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code error;
    if (!path_.empty()) fs::remove_all(path_, error);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void prepend(const char* variable, const std::string& value, char separator) {
  const char* before = std::getenv(variable);
  const std::string all = before != nullptr && *before != '\0' ? value + separator + before : value;
  setenv(variable, all.c_str(), 1);
}

/// The child's side: never returns.
[[noreturn]] void become(const SimCommand& command, const std::string& settings) {
  setenv("GRANULE_SIM", settings.c_str(), 1);
  const std::string folder = sim_library_folder();
  prepend("LD_LIBRARY_PATH", folder, ':');
  if (command.preload) prepend("LD_PRELOAD", folder + "/libcuda.so.1", ':');
  if (command.quiet) {
    const int nowhere = open("/dev/null", O_RDWR);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    setpgid(0, 0);
  }
  std::vector<char*> arguments;
  for (const std::string& word : command.command)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  std::perror(arguments[0]);
  std::_Exit(127);
}

/// Waits; kills the child's group when its time is over.
int wait_for(pid_t child, const SimCommand& command, bool& timed_out) {
  using Clock = std::chrono::steady_clock;
  const auto give_up = Clock::now() + command.timeout;
  int status = 0;
  for (;;) {
    const bool bounded = command.timeout.count() != 0;
    const pid_t ended = waitpid(child, &status, bounded ? WNOHANG : 0);
    if (ended == child) return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (!bounded) continue;
    if (Clock::now() > give_up && !timed_out) {
      timed_out = true;
      kill(command.quiet ? -child : child, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

void add_report(const nlohmann::json& from, SimReport& to) {
  for (const auto& finding : from.at("findings"))
    to.findings.push_back({finding.at("id"), finding.at("type"), finding.at("text"), finding.dump(),
                           finding.at("suppressed")});
  for (const auto& fault : from.at("faults")) to.faults.push_back(fault);
  for (const auto& point : from.at("points")) to.points.push_back(point);
  for (const auto& [name, count] : from.at("unsupported").items())
    to.unsupported[name] += count.get<std::uint64_t>();
  to.calls += from.at("calls").get<std::uint64_t>();
  ++to.processes;
}

SimReport read_reports(const std::string& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  SimReport report;
  for (const fs::path& file : files) {
    std::ifstream in(file);
    const nlohmann::json parsed = nlohmann::json::parse(in, nullptr, false);
    if (!parsed.is_discarded()) add_report(parsed, report);
  }
  return report;
}

}  // namespace

std::uint64_t SimReport::open() const {
  return static_cast<std::uint64_t>(
      std::count_if(findings.begin(), findings.end(),
                    [](const SimFinding& finding) { return !finding.suppressed; }));
}

std::string sim_library_folder() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* place : {"../backends/libcuda/driver", "../lib/granule"}) {
    const fs::path folder = (self / place).lexically_normal();
    if (fs::exists(folder / "libcuda.so.1", error)) return folder.string();
  }
  return {};
}

std::string real_driver_path() {
  void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return {};
  link_map* map = nullptr;
  std::string path;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr) path = map->l_name;
  dlclose(library);
  return path;
}

SimOutcome run_simulated(const SimCommand& command) {
  SimOutcome outcome;
  const TemporaryFolder folder;
  std::string settings = "report=" + folder.path() + "\n";
  if (!command.record.empty()) settings += "record=" + fs::absolute(command.record).string() + "\n";
  for (const std::string& line : command.settings) settings += line + "\n";
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) become(command, settings);
  if (child < 0) {
    outcome.started = false;
    return outcome;
  }
  struct sigaction ignore {};
  struct sigaction before {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGINT, &ignore, &before);
  outcome.exit_code = wait_for(child, command, outcome.timed_out);
  sigaction(SIGINT, &before, nullptr);
  outcome.report = read_reports(folder.path());
  return outcome;
}

}  // namespace granule::cli
