// Running and reporting sweeps.
#include "sweep_work.hpp"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>

#include <nlohmann/json.hpp>

#include <unistd.h>

#include <granule/prop/campaign.hpp>
#include <granule/prop/shrink.hpp>
#include <granule/prop/text.hpp>

#include "check_flags.hpp"
#include "command.hpp"
#include "failure_report.hpp"
#include "supervise.hpp"

namespace granule::cli {
namespace {

std::atomic<bool> sweep_interrupted{false};
extern "C" void on_sweep_interrupt(int) { sweep_interrupted.store(true); }

using Number = unsigned long long;

std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string a_minute(std::uint64_t runs, double seconds) {
  return grouped(seconds > 0 ? static_cast<std::uint64_t>(static_cast<double>(runs) * 60 / seconds)
                             : 0);
}

/// One line that is written over on a terminal, a line each ten seconds elsewhere.
class SweepLine {
 public:
  void show(const prop::SweepProgress& now) {
    constexpr double kPlainEvery = 10;
    if (!terminal_ && now.seconds < last_ + kPlainEvery) return;
    last_ = now.seconds;
    std::fprintf(stderr, "%s%6.1f s  %s runs  %s runs/min  %llu%% of the programs%s%s",
                 terminal_ ? "\r" : "", now.seconds, grouped(now.counts.runs).c_str(),
                 a_minute(now.counts.runs, now.seconds).c_str(),
                 static_cast<Number>(now.parts == 0 ? 0 : now.parts_done * 100 / now.parts),
                 now.counts.violations == 0
                     ? ""
                     : ("  " + grouped(now.counts.violations) + " violations").c_str(),
                 terminal_ ? "   " : "\n");
    std::fflush(stderr);
    shown_ = true;
  }
  void clear() const {
    if (terminal_ && shown_) std::fprintf(stderr, "\r\x1b[K");
  }

 private:
  bool terminal_ = isatty(STDERR_FILENO) != 0;
  bool shown_ = false;
  double last_ = 0;
};

class SweepCommand {
 public:
  SweepCommand(SweepWork& work, const SweepFlags& flags) : work_(work), flags_(flags) {}

  int run() {
    std::signal(SIGINT, on_sweep_interrupt);
    work_.options.interrupted = &sweep_interrupted;
    work_.options.progress = [this](const prop::SweepProgress& now) {
      if (!flags_.json) line_.show(now);
    };
    work_.options.on_hang = [this](std::uint64_t program, std::uint64_t run) {
      hang(program, run);
    };
    const prop::SweepResult result = prop::run_sweep(work_.source, work_.options);
    line_.clear();
    if (work_.list && !flags_.json) list(result);
    for (const prop::SweepViolation& violation : result.violations) report(violation);
    if (!flags_.json) save_unfired(result);
    flags_.json ? print_json(result) : print_totals(result);
    if (result.counts.violations != 0 || result.vacuous) return kViolated;
    return result.interrupted ? kInterrupted : kClean;
  }

 private:
  [[noreturn]] void hang(std::uint64_t program, std::uint64_t run) {
    const std::string path = flags_.out + "/" + failure_file_name("hang", tag(program, run));
    save_program(path, faulted(program, run), "Does not end.");
    std::printf("\nHANG: run %llu of %s has not ended\n  saved: %s\n", static_cast<Number>(run),
                work_.title(program).c_str(), path.c_str());
    std::fflush(nullptr);
    std::_Exit(kHang);
  }

  prop::Program faulted(std::uint64_t program, std::uint64_t run) const {
    return prop::sweep_program(work_.source.program(program), work_.source.breadth(program),
                               work_.options.run, run);
  }

  std::string tag(std::uint64_t program, std::uint64_t run) const {
    return work_.command + "-" + std::to_string(program) + "-" + std::to_string(run);
  }

  prop::Program shrunk(const prop::Program& program) const {
    if (flags_.no_shrink) return program;
    using Steady = std::chrono::steady_clock;
    const Steady::time_point end = Steady::now() + duration_of(flags_.shrink_time);
    prop::ShrinkOptions options;
    options.stop = [end] { return Steady::now() >= end || sweep_interrupted.load(); };
    return prop::shrink(program, prop::judge_by_run(work_.options.run), options).program;
  }

  void report(const prop::SweepViolation& violation) {
    const std::string path =
        flags_.out + "/" +
        failure_file_name(violation.signature, tag(violation.program, violation.run));
    const std::string replay =
        "granule replay" + flags_of(work_.options.run, flags_.run.target) + " " + path;
    const prop::Program small = shrunk(violation.faulted);
    const Picture picture = picture_of(small, work_.options.run);
    save_program(path, small,
                 violation.signature + "\n" + violation.message + "\nReproduce: " + replay);
    saved_.push_back({{"signature", violation.signature},
                      {"program", work_.title(violation.program)},
                      {"run", violation.run},
                      {"message", violation.message},
                      {"file", path},
                      {"reproduce", replay}});
    if (flags_.json) return;
    std::printf("\nVIOLATION: %s (run %llu of %s)\n  %s\n\n%s\n", violation.signature.c_str(),
                static_cast<Number>(violation.run), work_.title(violation.program).c_str(),
                violation.message.c_str(), indented(small).c_str());
    std::printf("  %s\n  saved:     %s\n  reproduce: %s\n",
                picture.failure.empty() ? "(a replay of it passes: only the sweep sees it)"
                                        : picture.failure.c_str(),
                path.c_str(), replay.c_str());
  }

  void list(const prop::SweepResult& result) const {
    for (std::size_t i = 0; i < result.each.size(); ++i) {
      const prop::SweepCounts& counts = result.each[i];
      if (counts.programs == 0) continue;  // interrupted before it
      if (counts.not_swept != 0) {
        std::printf("%s: not swept\n", work_.title(i).c_str());
        continue;
      }
      std::printf("%s: %llu calls, %llu host allocations, %llu runs%s\n", work_.title(i).c_str(),
                  static_cast<Number>(counts.call_points), static_cast<Number>(counts.host_points),
                  static_cast<Number>(counts.runs),
                  counts.violations == 0
                      ? ""
                      : (", " + std::to_string(counts.violations) + " VIOLATIONS").c_str());
    }
  }

  /// A program with a fault that did not fire, for whoever has to find out why.
  void save_unfired(const prop::SweepResult& result) const {
    for (std::size_t i = 0; i < result.each.size(); ++i) {
      const std::uint64_t run = result.each[i].first_unfired;
      if (run == UINT64_MAX) continue;
      const std::string path = flags_.out + "/" + failure_file_name("unfired", tag(i, run));
      save_program(path, faulted(i, run), "A fault that does not fire.");
      std::printf("\na fault that did not fire: run %llu of %s\n  saved: %s\n",
                  static_cast<Number>(run), work_.title(i).c_str(), path.c_str());
      return;
    }
  }

  static std::string verdict_of(const prop::SweepResult& result) {
    if (result.counts.violations != 0)
      return grouped(result.counts.violations) + " violations, " +
             std::to_string(result.violations.size()) + " kinds shown";
    if (result.counts.unfired != 0)
      return "VACUOUS: " + grouped(result.counts.unfired) + " faults never fired";
    if (result.vacuous && result.counts.runs != 0) return "VACUOUS: a class of faults had no run";
    if (result.vacuous) return "VACUOUS: no fault point was reached";
    return "clean";
  }

  void print_totals(const prop::SweepResult& result) const {
    const prop::SweepCounts& counts = result.counts;
    if (!work_.summary.empty()) std::printf("\n%s\n", work_.summary.c_str());
    std::printf(
        "\n%s programs (%s not swept), %s points (%s driver calls, %s host allocations), %s runs "
        "(%s of them with two faults)\n",
        grouped(counts.programs).c_str(), grouped(counts.not_swept).c_str(),
        grouped(counts.points()).c_str(), grouped(counts.call_points).c_str(),
        grouped(counts.host_points).c_str(), grouped(counts.runs).c_str(),
        grouped(counts.pairs).c_str());
    for (std::size_t i = 0; i < counts.by_class.size(); ++i)
      std::printf("%s%s %s", i == 0 ? "" : ", ", grouped(counts.by_class[i]).c_str(),
                  std::string(name_of(static_cast<fault::FaultClass>(i))).c_str());
    std::printf("\n%.1f s on %u threads: %s runs/min, %s of a processor\n", result.seconds,
                work_.options.jobs, a_minute(counts.runs, result.seconds).c_str(),
                a_minute(counts.runs, result.core_seconds).c_str());
    std::printf("%s%s\n", verdict_of(result).c_str(), result.interrupted ? "; interrupted" : "");
  }

  void print_json(const prop::SweepResult& result) const {
    const prop::SweepCounts& counts = result.counts;
    nlohmann::ordered_json json;
    json["command"] = work_.command;
    json["driver"] = flags_.run.driver;
    json["target"] = flags_.run.target;
    json["jobs"] = work_.options.jobs;
    json["programs"] = counts.programs;
    json["not_swept"] = counts.not_swept;
    json["call_points"] = counts.call_points;
    json["host_points"] = counts.host_points;
    json["runs"] = counts.runs;
    json["pairs"] = counts.pairs;
    for (std::size_t i = 0; i < counts.by_class.size(); ++i)
      json["classes"][std::string(name_of(static_cast<fault::FaultClass>(i)))] = counts.by_class[i];
    json["unfired"] = counts.unfired;
    json["violations"] = counts.violations;
    json["vacuous"] = result.vacuous;
    json["seconds"] = result.seconds;
    json["core_seconds"] = result.core_seconds;
    json["interrupted"] = result.interrupted;
    json["failures"] = saved_;
    std::printf("%s\n", json.dump(2).c_str());
  }

  SweepWork& work_;
  const SweepFlags& flags_;
  SweepLine line_;
  nlohmann::ordered_json saved_ = nlohmann::ordered_json::array();
};

/// Looks for the run that crashed among those in hand, and saves its program.
int report_sweep_crash(const SweepWork& work, const SweepFlags& flags, int code) {
  for (std::uint32_t i = 0; i < work.options.jobs; ++i) {
    const std::uint64_t plus_one =
        work.options.slots ? work.options.slots[i].program_plus_one.load() : 0;
    if (plus_one == 0) continue;
    const std::uint64_t run = work.options.slots[i].run.load();
    const prop::Program program =
        prop::sweep_program(work.source.program(plus_one - 1), work.source.breadth(plus_one - 1),
                            work.options.run, run);
    const int seen = in_child([&] {
      prop::run_guarded(program, work.options.run);
      return 0;
    });
    if (!is_crash(seen)) continue;
    const std::string path = flags.out + "/" +
                             failure_file_name("crash " + std::to_string(seen - 128),
                                               work.command + "-" + std::to_string(plus_one - 1) +
                                                   "-" + std::to_string(run));
    const std::string replay =
        "granule replay" + flags_of(work.options.run, flags.run.target) + " " + path;
    save_program(path, program, "crash\nReproduce: " + replay);
    std::printf("\nCRASH: signal %d in run %llu of %s\n\n%s\n  saved:     %s\n  reproduce: %s\n",
                seen - 128, static_cast<Number>(run), work.title(plus_one - 1).c_str(),
                indented(program).c_str(), path.c_str(), replay.c_str());
    return kChildCrashed;
  }
  std::printf("\nCRASH: signal %d, by none of the runs in hand alone\n", code - 128);
  return kChildCrashed;
}

}  // namespace

void add_sweep_flags(CLI::App& command, SweepFlags& flags) {
  add_run_flags(command, flags.run);
  command.remove_option(command.get_option("--strict"));
  command.add_option("--jobs", flags.jobs, "Worker threads (default: one a processor)");
  command.add_option("--failures", flags.kept, "Show so many different violations")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.add_option("--out", flags.out, "Where failing programs are saved")->capture_default_str();
  command.add_option("--shrink-time", flags.shrink_time, "Time for shrinking one violation")
      ->capture_default_str();
  command.add_flag("--no-shrink", flags.no_shrink, "Save failing programs as they are");
  command.add_flag("--first", flags.first_only, "End at the first violation");
  command.add_option("--hang-after", flags.hang_after, "A run that takes longer is a hang")
      ->capture_default_str();
  command.add_flag("--json", flags.json, "The totals as JSON on standard output");
  command.add_flag("--in-process", flags.in_process,
                   "No child process: a crash ends the command (for debuggers and profilers)");
}

prop::SweepOptions sweep_options(const SweepFlags& flags) {
  prop::SweepOptions options;
  options.run = run_options(flags.run);
  const unsigned processors = std::max(1u, std::thread::hardware_concurrency());
  options.jobs = std::min(flags.jobs != 0 ? flags.jobs : processors, 1024u);
  options.kept = flags.kept;
  options.first_only = flags.first_only;
  options.hang_after = duration_of(flags.hang_after);
  return options;
}

int run_sweep_work(SweepWork& work, const SweepFlags& flags) {
  const auto sweep = [&] { return SweepCommand(work, flags).run(); };
  if (flags.in_process) return sweep();
  void* memory = shared_memory(work.options.jobs * sizeof(prop::SweepSlot));
  if (memory) {
    work.options.slots = static_cast<prop::SweepSlot*>(memory);
    for (std::uint32_t i = 0; i < work.options.jobs; ++i)
      new (&work.options.slots[i]) prop::SweepSlot;
  }
  const int code = in_child(sweep);
  return is_crash(code) ? report_sweep_crash(work, flags, code) : code;
}

}  // namespace granule::cli
