// granule nightly: conformance, corpus and fresh programs on a GPU for a given time; goes on where
// it was if it is started again.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "check_flags.hpp"
#include "command.hpp"
#include "device_commands.hpp"
#include "run_flags.hpp"

namespace granule::cli {
namespace {

using Clock = std::chrono::system_clock;

struct NightlyFlags {
  DeviceFlags device;
  std::string time = "8h";
  std::string out = "granule-nightly";
  std::uint64_t seed = 0;
  std::vector<std::string> corpus{"proptests/conformance", "proptests/programs"};
  double conform_share = 0.6;
};

/// Where a night stands. Written after each step, so that a killed run loses one step at most.
struct State {
  std::uint64_t seed = 0;
  std::int64_t end = 0;  // seconds of the system clock
  bool known = false;
  bool corpus = false;
  std::uint64_t conform_next = 0;
  std::uint64_t check_next = 0;
  std::uint64_t calls = 0;
  std::uint64_t programs = 0;
  int exit_code = 0;
};

std::string state_path(const NightlyFlags& flags) { return flags.out + "/state.json"; }

bool load(const std::string& path, State& state) {
  std::ifstream in(path);
  const nlohmann::json json = nlohmann::json::parse(in, nullptr, false);
  if (!json.is_object()) return false;
  state.seed = json.value("seed", std::uint64_t{0});
  state.end = json.value("end", std::int64_t{0});
  state.known = json.value("known", false);
  state.corpus = json.value("corpus", false);
  state.conform_next = json.value("conform_next", std::uint64_t{0});
  state.check_next = json.value("check_next", std::uint64_t{0});
  state.calls = json.value("calls", std::uint64_t{0});
  state.programs = json.value("programs", std::uint64_t{0});
  state.exit_code = json.value("exit_code", 0);
  return true;
}

void store(const std::string& path, const State& state) {
  const std::string next = path + ".new";
  {
    std::ofstream out(next);
    out << nlohmann::json{{"seed", state.seed},
                          {"end", state.end},
                          {"known", state.known},
                          {"corpus", state.corpus},
                          {"conform_next", state.conform_next},
                          {"check_next", state.check_next},
                          {"calls", state.calls},
                          {"programs", state.programs},
                          {"exit_code", state.exit_code}}
               .dump(2)
        << "\n";
  }
  std::error_code error;
  std::filesystem::rename(next, path, error);
}

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::seconds>(Clock::now().time_since_epoch()).count();
}

/// One night, or the rest of one.
class Night {
 public:
  Night(const NightlyFlags& flags, State state) : flags_(flags), state_(state) {
    gpu::SessionOptions options = session_options(flags.device);
    options.quiet = true;
    options.out = flags.out + "/failures";
    if (options.json.empty()) options.json = flags.out + "/programs.jsonl";
    if (options.junit.empty()) options.junit = flags.out + "/junit.xml";
    const std::int64_t end = state_.end;
    options.stop = [end] { return now() >= end; };
    session_ = std::make_unique<gpu::Session>(options);
  }

  int run() {
    if (!session_->open("nightly", state_.seed)) return session_->exit_code();
    if (!state_.known && session_->run_known()) done(&state_.known);
    if (!state_.corpus && corpus()) done(&state_.corpus);
    double conform_seconds = 0;
    double check_seconds = 0;
    bool fit = true;
    while (fit && !session_->interrupted()) {
      const double all = conform_seconds + check_seconds;
      const auto begin = std::chrono::steady_clock::now();
      const bool conform = conform_seconds <= all * flags_.conform_share;
      fit = conform ? conform_step() : check_step();
      const double took =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      (conform ? conform_seconds : check_seconds) += took;
    }
    session_->close();
    note_progress();
    summary();
    return state_.exit_code;
  }

 private:
  void done(bool* what) {
    if (session_->interrupted()) return;
    *what = true;
    note_progress();
  }

  void note_progress() {
    state_.calls += session_->report().calls() - counted_calls_;
    state_.programs += session_->programs() - counted_programs_;
    counted_calls_ = session_->report().calls();
    counted_programs_ = session_->programs();
    if (state_.exit_code == 0) state_.exit_code = session_->exit_code();
    store(state_path(flags_), state_);
  }

  bool corpus() {
    std::vector<gpu::Job> jobs;
    prop::RunOptions strict;
    strict.strict = true;
    if (!jobs_of_files(program_files(flags_.corpus), "", strict, jobs)) return false;
    // Conformance programs each in a process of their own.
    for (gpu::Job& job : jobs)
      if (job.file.find("conformance") != std::string::npos) job.alone = true;
    return session_->run("corpus", std::move(jobs));
  }

  bool conform_step() {
    constexpr std::uint64_t kStep = 100;
    constexpr std::uint32_t kLength = 400;
    const bool fit =
        session_->run("conform", conform_jobs(state_.seed, state_.conform_next, kStep, kLength),
                      {.batch = kStep, .model_first = false, .shrink = true});
    if (!session_->interrupted()) state_.conform_next += kStep;
    note_progress();
    return fit;
  }

  bool check_step() {
    constexpr std::uint64_t kStep = 500;
    const auto campaign = std::make_shared<prop::CampaignOptions>();
    campaign->seed = state_.seed;
    const bool fit = session_->run("check", check_jobs(campaign, state_.check_next, kStep),
                                   {.batch = kStep, .model_first = true, .shrink = true});
    if (!session_->interrupted()) state_.check_next += kStep;
    note_progress();
    return fit;
  }

  void summary() const {
    std::ofstream out(flags_.out + "/summary.txt");
    const gpu::Profile& profile = session_->profile();
    out << "driver " << profile.driver << "\nGPU " << profile.gpu << "\nkernel " << profile.kernel
        << "\nMIG " << profile.mig << "\nseed " << state_.seed << "\nprograms " << state_.programs
        << "\ndriver calls " << state_.calls << "\nconformance programs " << state_.conform_next
        << "\nfresh programs " << state_.check_next << "\nexit code " << state_.exit_code << "\n";
  }

  const NightlyFlags& flags_;
  State state_;
  std::unique_ptr<gpu::Session> session_;
  std::uint64_t counted_calls_ = 0;
  std::uint64_t counted_programs_ = 0;
};

void nightly(const NightlyFlags& flags) {
  std::error_code error;
  std::filesystem::create_directories(flags.out, error);
  State state;
  const bool resumed = load(state_path(flags), state) && state.end > now();
  if (!resumed) {
    state = State{};
    state.seed = flags.seed != 0 ? flags.seed : static_cast<std::uint64_t>(now());
    state.end = now() + duration_of(flags.time).count() / 1000;
    store(state_path(flags), state);
  } else {
    std::printf("resuming: seed %llu, %lld s left\n", static_cast<unsigned long long>(state.seed),
                static_cast<long long>(state.end - now()));
  }
  gpu::watch_interrupts();
  set_exit_code(static_cast<ExitCode>(Night(flags, state).run()));
}

void add_nightly(CLI::App& app) {
  auto flags = std::make_shared<NightlyFlags>();
  flags->device.backend = "cuda";
  CLI::App* command = app.add_subcommand(
      "nightly", "Conformance, corpus and fresh programs on a GPU for a given time");
  add_device_flags(*command, flags->device);
  command->add_option("--time", flags->time, "How long: 8h, 90m")->capture_default_str();
  command->add_option("--out", flags->out, "Folder for reports, failing programs and the state")
      ->capture_default_str();
  command->add_option("--seed", flags->seed, "Seed of the night; 0: from the clock");
  command->add_option("--corpus", flags->corpus, "Folders of programs to replay first")
      ->capture_default_str();
  command
      ->add_option("--conform-share", flags->conform_share,
                   "Share of the time behind the corpus that random driver calls get")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command->footer(
      "A run that was killed goes on where it was when it is started again with the same --out\n"
      "before its time is over. Writes programs.jsonl, junit.xml, summary.txt, failures/ and\n"
      "state.json there.");
  command->callback([flags] { nightly(*flags); });
}

const Command command(70, add_nightly);

}  // namespace
}  // namespace granule::cli
