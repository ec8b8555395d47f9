// granule check: a campaign of generated programs, with a minimal program for each failure.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <unistd.h>

#include <granule/prop/campaign.hpp>
#include <granule/prop/must_reach.hpp>
#include <granule/prop/text.hpp>

#include "campaign_summary.hpp"
#include "check_flags.hpp"
#include "command.hpp"
#include "failure_report.hpp"
#include "supervise.hpp"
#include "whole_file.hpp"

namespace granule::cli {
namespace {

std::atomic<bool> interrupted{false};
extern "C" void on_interrupt(int) { interrupted.store(true); }

using Count = unsigned long long;

std::string with_commas(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string rate(double count, double seconds) {
  return with_commas(seconds > 0 ? static_cast<std::uint64_t>(count / seconds) : 0);
}

/// The command that makes exactly this program again.
std::string command_of(const CheckFlags& flags, std::uint64_t index) {
  std::string command = "granule check --seed " + std::to_string(flags.seed) + " --first " +
                        std::to_string(index) + " --programs 1 --jobs 1";
  if (flags.operations != 30) command += " --ops " + std::to_string(flags.operations);
  if (flags.driver != "exact") command += " --driver " + flags.driver;
  if (flags.target != "core") command += " --target " + flags.target;
  if (flags.interleave != "mixed") command += " --interleave " + flags.interleave;
  for (const std::string& name : flags.only) command += " --only " + name;
  for (const std::string& name : flags.exclude) command += " --exclude " + name;
  return command;
}

/// Writes the summary of a campaign into its folder, if it is to have one. False: it could not be.
bool store(const CheckFlags& flags, const CampaignSummary& summary) {
  if (!flags.out_given && summary.key.shards == 1) return true;
  return write_whole(flags.out + "/" + summary_file_name(summary), to_json(summary));
}

/// The same for a shard that a hang or a crash ended: there are no counts.
void store_end(const CheckFlags& flags, const prop::CampaignOptions& options, ShardState state,
               std::vector<SavedFailure> failures) {
  CampaignSummary summary = summary_of(flags, options);
  summary.parts[0].state = state;
  summary.parts[0].failures = std::move(failures);
  store(flags, summary);
}

std::string file_name_in(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// One line that is written over on a terminal, a line each ten seconds elsewhere.
class ProgressLine {
 public:
  ProgressLine() : terminal_(isatty(STDERR_FILENO) != 0) {}
  void show(const prop::CampaignProgress& now) {
    constexpr double kPlainEvery = 10;
    if (!terminal_ && now.seconds < last_ + kPlainEvery) return;
    last_ = now.seconds;
    std::fprintf(
        stderr, "%s%6.1f s  %s programs  %s operations  %s programs/s  %s cells%s%s",
        terminal_ ? "\r" : "", now.seconds, with_commas(now.programs).c_str(),
        with_commas(now.operations).c_str(),
        rate(static_cast<double>(now.programs), now.seconds).c_str(),
        with_commas(now.cells).c_str(),
        now.failures == 0 ? "" : ("  " + std::to_string(now.failures) + " failures").c_str(),
        terminal_ ? "   " : "\n");
    std::fflush(stderr);
    shown_ = true;
  }
  void clear() {
    if (terminal_ && shown_) std::fprintf(stderr, "\r\x1b[K");
  }

 private:
  bool terminal_;
  bool shown_ = false;
  double last_ = 0;
};

class Check {
 public:
  Check(const CheckFlags& flags, prop::CampaignOptions options)
      : flags_(flags), options_(std::move(options)) {}

  int run() {
    const prop::WantedCells wanted = wanted_cells();
    for (const std::string& error : wanted.errors)
      std::fprintf(stderr, "%s: %s\n", flags_.must_reach.c_str(), error.c_str());
    if (!wanted.errors.empty()) return kUsage;
    // A shard that is killed leaves this behind.
    CampaignSummary summary = summary_of(flags_, options_);
    if (!store(flags_, summary)) return kUsage;
    std::signal(SIGINT, on_interrupt);
    options_.interrupted = &interrupted;
    options_.progress = [this](const prop::CampaignProgress& now) {
      if (!flags_.json) line_.show(now);
    };
    options_.on_hang = [this](std::uint64_t index) { hang(index); };
    const prop::CampaignResult result = prop::run_campaign(options_);
    line_.clear();
    for (const prop::CampaignFailure& failure : result.failures) report_failure(failure);
    for (const prop::WantedCell& cell : wanted.cells)
      if (!prop::is_reached(cell, result)) unreached_.push_back(cell.text);
    flags_.json ? print_json(result) : print_summary(result);
    take_result(result, summary);
    summary.parts[0].state = interrupted.load() ? ShardState::kInterrupted : ShardState::kComplete;
    summary.parts[0].failures = failures_;
    const bool stored = store(flags_, summary);
    if (!result.failures.empty() || !unreached_.empty()) return kViolated;
    if (!stored) return kUsage;
    return interrupted.load() ? kInterrupted : kClean;
  }

 private:
  prop::WantedCells wanted_cells() const {
    if (flags_.must_reach.empty()) return {};
    std::ifstream file(flags_.must_reach);
    if (!file) return {{}, {"cannot be read"}};
    std::ostringstream text;
    text << file.rdbuf();
    return prop::parse_wanted_cells(text.str());
  }

  std::string tag(std::uint64_t index) const {
    return std::to_string(flags_.seed) + "-" + std::to_string(index);
  }

  [[noreturn]] void hang(std::uint64_t index) {
    const prop::Program program = prop::campaign_program(options_, index);
    const std::string path = flags_.out + "/" + failure_file_name("hang", tag(index));
    const std::string replay =
        "granule replay" + flags_of(prop::campaign_run(options_, index), flags_.target);
    save_program(path, program,
                 "Does not end.\nReproduce: " + replay + " " + path +
                     "\nFound by: " + command_of(flags_, index));
    std::printf("\nHANG: program %llu has not ended\n  saved:     %s\n  reproduce: %s\n",
                static_cast<Count>(index), path.c_str(), command_of(flags_, index).c_str());
    store_end(flags_, options_, ShardState::kHang,
              {{"hang", index, program.statements.size(), file_name_in(path), replay}});
    std::fflush(nullptr);
    std::_Exit(kHang);
  }

  prop::ShrinkResult shrunk(const prop::Program& program, const prop::RunOptions& run) {
    if (flags_.no_shrink) return {program, "", 1, false};
    using Clock = std::chrono::steady_clock;
    const Clock::time_point end = Clock::now() + duration_of(flags_.shrink_time);
    prop::ShrinkOptions options;
    options.stop = [end] { return Clock::now() >= end; };
    return prop::shrink(program, prop::judge_by_run(run), options);
  }

  void report_failure(const prop::CampaignFailure& failure) {
    const prop::Program program = prop::campaign_program(options_, failure.index);
    prop::RunOptions run = prop::campaign_run(options_, failure.index);
    run.cells = false;
    const prop::ShrinkResult small = shrunk(program, run);
    settle_seed(small, run);
    const Picture picture = picture_of(small.program, run);
    const std::string path =
        flags_.out + "/" + failure_file_name(failure.signature, tag(failure.index));
    const std::string replay = "granule replay" + flags_of(run, flags_.target) + " " + path;
    save_program(path, small.program,
                 failure.signature + "\n" + picture.failure + "\nReproduce: " + replay +
                     "\nFound by: " + command_of(flags_, failure.index));
    failures_.push_back({failure.signature, failure.index, small.program.statements.size(),
                         file_name_in(path), "granule replay" + flags_of(run, flags_.target)});
    saved_.push_back({{"signature", failure.signature},
                      {"program", failure.index},
                      {"statements", small.program.statements.size()},
                      {"minimal", small.minimal},
                      {"file", path},
                      {"reproduce", replay}});
    if (flags_.json) return;
    std::printf("\nFAILURE: %s (program %llu, %zu statements)\n\n%s\n", failure.signature.c_str(),
                static_cast<Count>(failure.index), program.statements.size(),
                picture.failure.c_str());
    std::printf("\n%zu statements%s, after %llu runs:\n%s\n", small.program.statements.size(),
                small.minimal ? ", proven minimal (taking anything away loses the failure)" : "",
                static_cast<Count>(small.runs), indented(small.program).c_str());
    std::printf("%s\n", picture.drawing.c_str());
    std::printf("  saved:     %s\n  reproduce: %s\n  look:      %s\n  found by:  %s\n",
                path.c_str(), replay.c_str(),
                look_command(flags_of(run, flags_.target), path).c_str(),
                command_of(flags_, failure.index).c_str());
  }

  void print_summary(const prop::CampaignResult& result) const {
    std::printf(
        "\n%s programs, %s operations, %.1f s on %u threads: %s programs/s/core, %s operations/s, "
        "%s model calls/s\n",
        with_commas(result.programs).c_str(), with_commas(result.operations).c_str(),
        result.seconds, options_.jobs,
        rate(static_cast<double>(result.programs), result.core_seconds).c_str(),
        rate(static_cast<double>(result.operations), result.seconds).c_str(),
        rate(static_cast<double>(result.model_calls), result.seconds).c_str());
    std::printf(
        "%s cells of operation x outcome x state, %s faults fired, %.1f%% skipped; seed "
        "%llu, driver %s, target %s%s\n",
        with_commas(result.cells.count()).c_str(), with_commas(result.faults_fired).c_str(),
        result.operations == 0
            ? 0.0
            : 100.0 * static_cast<double>(result.skipped) / static_cast<double>(result.operations),
        static_cast<Count>(flags_.seed), flags_.driver.c_str(), flags_.target.c_str(),
        interrupted.load() ? "; interrupted" : "");
    if (flags_.twice)
      std::printf("digest %016llx of %s programs and all replies\n",
                  static_cast<Count>(result.digest), with_commas(result.programs).c_str());
    if (flags_.show_cells) std::printf("%s", prop::reached_cells(result).c_str());
    for (const std::string& cell : unreached_) std::printf("NOT REACHED: %s\n", cell.c_str());
    std::printf("%s\n", result.failures.empty()
                            ? "clean"
                            : (std::to_string(result.failures.size()) + " failures").c_str());
  }

  void print_json(const prop::CampaignResult& result) const {
    char digest[24];
    std::snprintf(digest, sizeof digest, "%016llx", static_cast<Count>(result.digest));
    nlohmann::ordered_json json;
    json["seed"] = flags_.seed;
    json["driver"] = flags_.driver;
    json["target"] = flags_.target;
    json["shard"] = std::to_string(options_.shard) + "/" + std::to_string(options_.shards);
    json["jobs"] = options_.jobs;
    json["programs"] = result.programs;
    json["operations"] = result.operations;
    json["skipped"] = result.skipped;
    json["library_calls"] = result.calls;
    json["model_calls"] = result.model_calls;
    json["faults_fired"] = result.faults_fired;
    json["cells"] = result.cells.count();
    json["seconds"] = result.seconds;
    json["core_seconds"] = result.core_seconds;
    if (flags_.twice) json["digest"] = digest;
    json["interrupted"] = interrupted.load();
    json["failures"] = saved_;
    json["not_reached"] = unreached_;
    std::printf("%s\n", json.dump(2).c_str());
  }

  const CheckFlags& flags_;
  prop::CampaignOptions options_;
  ProgressLine line_;
  std::vector<std::string> unreached_;  // cells
  nlohmann::ordered_json saved_ = nlohmann::ordered_json::array();
  std::vector<SavedFailure> failures_;
};

/// Looks for the program that crashed among those in hand, shrinks it with a child for every run.
int report_crash(const CheckFlags& flags, const prop::CampaignOptions& options, int code) {
  for (std::uint32_t i = 0; i < options.jobs; ++i) {
    const std::uint64_t plus_one = options.slots ? options.slots[i].index_plus_one.load() : 0;
    if (plus_one == 0) continue;
    const std::uint64_t index = plus_one - 1;
    const prop::RunOptions run = prop::campaign_run(options, index);
    const auto crashes = [&](const prop::Program& program) {
      const int seen = in_child([&] {
        prop::run_guarded(program, run);
        return 0;
      });
      return prop::Judgement{is_crash(seen) ? "crash " + std::to_string(seen - 128) : "",
                             program.statements.size()};
    };
    const prop::ShrinkResult small =
        prop::shrink(prop::campaign_program(options, index), crashes, {2000, {}, {}});
    if (small.signature.empty()) continue;
    const std::string path = flags.out + "/" +
                             failure_file_name(small.signature, std::to_string(flags.seed) + "-" +
                                                                    std::to_string(index));
    const std::string replay = "granule replay" + flags_of(run, flags.target) + " " + path;
    save_program(path, small.program, small.signature + "\nReproduce: " + replay);
    std::printf("\nCRASH: signal %d in program %llu\n\n%s\n  saved:     %s\n  reproduce: %s\n",
                code - 128, static_cast<Count>(index), indented(small.program).c_str(),
                path.c_str(), replay.c_str());
    store_end(flags, options, ShardState::kCrashed,
              {{small.signature, index, small.program.statements.size(), file_name_in(path),
                "granule replay" + flags_of(run, flags.target)}});
    return kChildCrashed;
  }
  std::printf("\nCRASH: signal %d, by none of the programs in hand alone\n", code - 128);
  store_end(flags, options, ShardState::kCrashed, {});
  return kChildCrashed;
}

void list_features() {
  for (std::size_t i = 0; i < prop::kFeatureCount; ++i) {
    const auto feature = static_cast<prop::Feature>(i);
    std::printf("%-16s %s\n", std::string(prop::name_of(feature)).c_str(),
                std::string(prop::description_of(feature)).c_str());
  }
}

void check(CheckFlags& flags) {
  if (flags.list_features) return list_features();
  prop::CampaignOptions options = campaign_of(flags);
  if (flags.programs == 0 && !flags.time.empty() && duration_of(flags.time).count() == 0)
    throw CLI::ValidationError("--time", "no time and no --programs: nothing would run");
  if (flags.device.backend != "model") {
    if (!flags.must_reach.empty() || flags.show_cells)
      throw CLI::ValidationError("--must-reach, --cells", "cells are counted on the model only");
    const auto run = device_work().check;
    flags.device.hang_after = flags.hang_after;
    const DeviceCheck work{flags.device, options, flags.out, duration_of(flags.shrink_time),
                           flags.target};
    return set_exit_code(static_cast<ExitCode>(run ? run(work) : no_device_work()));
  }
  refuse_device_flags(flags.device, {});
  const auto work = [&] { return Check(flags, options).run(); };
  if (flags.in_process) return set_exit_code(static_cast<ExitCode>(work()));
  void* memory = shared_memory(options.jobs * sizeof(prop::WorkSlot));
  if (memory) {
    options.slots = static_cast<prop::WorkSlot*>(memory);
    for (std::uint32_t i = 0; i < options.jobs; ++i) new (&options.slots[i]) prop::WorkSlot;
  }
  const int code = in_child(work);
  set_exit_code(static_cast<ExitCode>(is_crash(code) ? report_crash(flags, options, code) : code));
}

void add_check(CLI::App& app) {
  auto flags = std::make_shared<CheckFlags>();
  CLI::App* command = app.add_subcommand("check", "Run a campaign of generated programs");
  add_check_flags(*command, *flags);
  command->footer(
      "Programs are generated from the seed alone: the same seed gives the same programs whatever\n"
      "the number of jobs, the machine or the compiler. A failing program is shrunk, saved, "
      "drawn,\n"
      "and printed with the line that reproduces it.\n"
      "Exit codes: 0 clean, 42 a property does not hold, 44 a program hangs, 45 a crash.\n\n"
      "Examples:\n"
      "  granule check\n"
      "  granule check --time 10m --driver adversarial --exclude faults,captures\n"
      "  granule check --programs 10000 --seed 1 --check-determinism\n"
      "  granule check --target zoo:canary");
  command->callback([flags, command] {
    flags->out_given = command->count("--out") != 0;
    if (command->count("--seed") == 0)
      flags->seed =
          static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()) %
          1000000000;
    check(*flags);
  });
}

const Command command(10, add_check);

}  // namespace
}  // namespace granule::cli
