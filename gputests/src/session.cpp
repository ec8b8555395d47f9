// A run on a device: machine, jobs, tally, files, exit code.
#include "session.hpp"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

#include <granule/prop/text.hpp>

#include "prepare.hpp"

namespace granule::gpu {
namespace {

/// Where the lists lie in the tree; a run elsewhere does without them.
constexpr const char* kDefaultLists = "gputests/divergences";
constexpr int kUnfit = 3;
constexpr int kViolated = 42;
constexpr int kDiverged = 43;
constexpr int kHang = 44;
constexpr int kCrashed = 45;

std::atomic<bool> interrupt_seen{false};
void on_interrupt(int) { interrupt_seen.store(true); }

using Count = unsigned long long;

std::string file_name(const std::string& signature, const std::string& name) {
  std::string text;
  for (const char c : signature + "-" + name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (plain) {
      text += c;
    } else if (!text.empty() && text.back() != '-') {
      text += '-';
    }
  }
  return text + ".granule";
}

std::string as_comment(const std::string& text) {
  std::string out = "# ";
  for (const char c : text) {
    out += c;
    if (c == '\n') out += "# ";
  }
  return out + "\n";
}

}  // namespace

void watch_interrupts() {
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
}

Session::Session(SessionOptions options)
    : options_(std::move(options)),
      report_(options_.json, options_.junit),
      begin_(std::chrono::steady_clock::now()) {}

bool Session::interrupted() const {
  return interrupt_seen.load() || (options_.stop && options_.stop());
}

void Session::worsen(int code) {
  if (exit_code_ == 0) exit_code_ = code;
}

bool Session::open(const std::string& what, std::uint64_t seed) {
  if (!options_.cuda && !options_.record.empty()) {
    std::fprintf(stderr, "granule: --record keeps what a GPU answered; it needs --backend cuda\n");
    exit_code_ = 2;
    return false;
  }
  profile_ = probe(options_.cuda);
  if (!profile_.unfit.empty()) {
    std::fprintf(stderr, "granule: unfit machine: %s\n", profile_.unfit.c_str());
    exit_code_ = kUnfit;
    return false;
  }
  if (!options_.known.empty() && options_.known != kDefaultLists &&
      !std::filesystem::exists(options_.known)) {
    std::fprintf(stderr, "granule: %s: no such list of divergences\n", options_.known.c_str());
    exit_code_ = 2;
    return false;
  }
  if (!options_.known.empty()) {
    known_ = std::filesystem::is_directory(options_.known)
                 ? divergences_of(options_.known, profile_.driver)
             : std::filesystem::exists(options_.known) ? read_divergences(options_.known)
                                                       : DivergenceList{};
    if (!known_.error.empty()) {
      std::fprintf(stderr, "granule: %s\n", known_.error.c_str());
      exit_code_ = 2;
      return false;
    }
  }
  report_.begin(profile_, what, seed);
  std::printf("%s on %s, driver %s, %s, MIG %s: %zu device%s, %llu bytes free; seed %llu\n",
              what.c_str(), profile_.gpu.c_str(), profile_.driver.c_str(), profile_.kernel.c_str(),
              profile_.mig.empty() ? "unknown" : profile_.mig.c_str(),
              profile_.config.devices.size(), profile_.config.devices.size() == 1 ? "" : "s",
              static_cast<Count>(profile_.config.devices[0].memory), static_cast<Count>(seed));
  std::fflush(stdout);
  return true;
}

bool Session::run(const std::string& suite, std::vector<Job> all, const How& how) {
  const auto on_model =
      prepare(all, how.model_first, [this] { return interrupted() || failed_enough(); });
  std::vector<Job> jobs;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (on_model[i]) {
      note(suite, all[i], *on_model[i]);
    } else {
      jobs.push_back(std::move(all[i]));
    }
  }
  if (jobs.empty() || interrupted() || failed_enough()) return true;
  DeviceRunOptions device;
  device.cuda = options_.cuda;
  device.plant = options_.plant;
  device.record = options_.record;
  device.keep_going = options_.keep_going;
  device.profile = profile_;
  device.shrink_time = how.shrink ? options_.shrink_time : std::chrono::milliseconds(0);
  IsolationOptions isolation;
  isolation.hang_after = options_.hang_after + device.shrink_time;
  isolation.batch = how.batch;
  isolation.all_alone = options_.alone;
  isolation.stop = [this] { return interrupted() || failed_enough(); };
  isolation.done = [&](std::size_t index, const Outcome& outcome) {
    note(suite, jobs[index], outcome);
  };
  std::vector<Outcome> outcomes;
  const bool fit = run_isolated(jobs, make_runner(device), isolation, outcomes);
  if (!fit) {
    for (const Outcome& outcome : outcomes)
      if (outcome.kind == Outcome::Kind::kUnfit)
        std::fprintf(stderr, "granule: unfit machine: %s\n", outcome.message.c_str());
    worsen(kUnfit);
  }
  return fit;
}

bool Session::run_known() {
  std::vector<Job> jobs;
  for (const KnownDivergence& entry : known_.entries) {
    Job job;
    job.file = known_.file;
    job.program = entry.program;
    job.program.name = entry.signature;
    job.alone = needs_process(entry.program);
    jobs.push_back(std::move(job));
  }
  return run("known divergences", std::move(jobs));
}

void Session::note(const std::string& suite, const Job& job, const Outcome& outcome) {
  ++programs_;
  const bool listed = suite == "known divergences";
  const std::string& name = outcome.name.empty() ? job.program.name : outcome.name;
  Outcome judged = outcome;
  if (listed) {
    const bool still = outcome.kind == Outcome::Kind::kDiverged && known_.find(outcome.signature);
    if (still) {
      judged.kind = Outcome::Kind::kClean;
      ++known_seen_;
    } else if (outcome.kind != Outcome::Kind::kUnmet) {
      judged.kind = Outcome::Kind::kFailed;
      judged.signature = "known divergence is gone";
      judged.message = "the list says that this program diverges with `" + name +
                       "`; it ended as " + std::string(name_of(outcome.kind)) + " " +
                       outcome.signature;
      worsen(kDiverged);
    }
  } else if (outcome.kind == Outcome::Kind::kDiverged && known_.find(outcome.signature)) {
    judged.kind = Outcome::Kind::kClean;
    ++known_seen_;
  }
  report_.add(suite, name, judged);
  switch (judged.kind) {
    case Outcome::Kind::kClean:
      return;
    case Outcome::Kind::kUnmet:
      if (!options_.quiet)
        std::printf("%s: %s: skipped, it needs %s\n", suite.c_str(), name.c_str(),
                    judged.message.c_str());
      return;
    case Outcome::Kind::kUnfit:
      return;
    case Outcome::Kind::kFailed:
      worsen(kViolated);
      break;
    case Outcome::Kind::kDiverged:
      worsen(kDiverged);
      break;
    case Outcome::Kind::kHang:
      worsen(kHang);
      break;
    case Outcome::Kind::kCrash:
      worsen(kCrashed);
      break;
  }
  ++failed_;
  std::printf("%s: %s: %s: %s\n  %s\n", suite.c_str(), name.c_str(),
              std::string(name_of(judged.kind)).c_str(), judged.signature.c_str(),
              judged.message.c_str());
  if (!judged.program.empty()) std::printf("%s", judged.program.c_str());
  std::fflush(stdout);
  save(suite, job, judged);
}

void Session::save(const std::string& suite, const Job& job, const Outcome& outcome) {
  if (options_.out.empty() || suite == "known divergences") return;
  if (!saved_.insert(outcome.signature).second) return;
  std::error_code error;
  std::filesystem::create_directories(options_.out, error);
  const std::string& name = outcome.name.empty() ? job.program.name : outcome.name;
  const std::string path = options_.out + "/" + file_name(outcome.signature, name);
  const std::string text = !outcome.program.empty() ? outcome.program
                           : job.make               ? prop::to_text(job.make())
                                                    : prop::to_text(job.program);
  std::ofstream out(path);
  out << as_comment(std::string(name_of(outcome.kind)) + ": " + outcome.signature + "\n" +
                    outcome.message + "\n" + profile_.gpu + ", driver " + profile_.driver)
      << text;
  if (out)
    std::printf("  saved:     %s\n  reproduce: granule replay --backend %s%s%s %s\n", path.c_str(),
                options_.cuda ? "cuda" : "second-model", options_.replay_flags.c_str(),
                job.options.promise_no_captures ? " --promise-no-captures" : "", path.c_str());
}

void Session::close() {
  using Kind = Outcome::Kind;
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  std::printf(
      "%llu programs in %.1f s: %llu clean, %llu unmet, %llu failed, %llu diverged, %llu hung, "
      "%llu crashed; %llu driver calls, %llu followed, %llu known divergences%s\n",
      static_cast<Count>(programs_), seconds, static_cast<Count>(report_.count(Kind::kClean)),
      static_cast<Count>(report_.count(Kind::kUnmet)),
      static_cast<Count>(report_.count(Kind::kFailed)),
      static_cast<Count>(report_.count(Kind::kDiverged)),
      static_cast<Count>(report_.count(Kind::kHang)),
      static_cast<Count>(report_.count(Kind::kCrash)), static_cast<Count>(report_.calls()),
      static_cast<Count>(report_.followed()), static_cast<Count>(known_seen_),
      interrupted() ? "; interrupted" : "");
  if (!report_.finish()) std::fprintf(stderr, "granule: the JUnit file could not be written\n");
  std::fflush(stdout);
}

}  // namespace granule::gpu
