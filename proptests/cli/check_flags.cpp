// Flags and environment to a campaign.
#include "check_flags.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <thread>

#include <granule/prop/zoo.hpp>

namespace granule::cli {
namespace {

std::optional<std::uint64_t> number_in(const char* variable) {
  const char* text = std::getenv(variable);
  if (!text || *text == 0) return std::nullopt;
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text, &end, 10);
  if (*end != 0) return std::nullopt;
  return value;
}

struct Shard {
  std::uint64_t index = 0;
  std::uint64_t count = 1;
};

/// The part of the work that a cluster or a test runner gave this process.
Shard shard_of_environment() {
  const auto slurm = number_in("SLURM_ARRAY_TASK_ID");
  const auto slurm_count = number_in("SLURM_ARRAY_TASK_COUNT");
  if (slurm && slurm_count)
    return {*slurm - number_in("SLURM_ARRAY_TASK_MIN").value_or(0), *slurm_count};
  const auto job = number_in("JOB_COMPLETION_INDEX");
  const auto job_count = number_in("JOB_COMPLETION_COUNT");
  if (job && job_count) return {*job, *job_count};
  const auto gtest = number_in("GTEST_SHARD_INDEX");
  const auto gtest_count = number_in("GTEST_TOTAL_SHARDS");
  if (gtest && gtest_count) return {*gtest, *gtest_count};
  return {};
}

Shard shard_of(const std::string& text) {
  if (text.empty()) return shard_of_environment();
  const std::size_t slash = text.find('/');
  Shard shard;
  char* end = nullptr;
  shard.index = std::strtoull(text.c_str(), &end, 10);
  const bool first = slash != std::string::npos && end == text.c_str() + slash && slash > 0;
  if (first) shard.count = std::strtoull(text.c_str() + slash + 1, &end, 10);
  if (!first || *end != 0 || shard.count == 0 || shard.index >= shard.count)
    throw CLI::ValidationError("--shard", "expected i/n with i < n, found `" + text + "`");
  return shard;
}

prop::Feature feature_of(const std::string& name) {
  const auto feature = prop::feature_named(name);
  if (!feature)
    throw CLI::ValidationError("feature", "`" + name + "` is none; see --list-features");
  return *feature;
}

prop::FeatureSet features_of(const CheckFlags& flags) {
  prop::FeatureSet set = flags.only.empty() ? prop::FeatureSet::all() : prop::FeatureSet();
  for (const std::string& name : flags.only) set.add(feature_of(name));
  for (const std::string& name : flags.exclude) set.remove(feature_of(name));
  return set;
}

}  // namespace

void add_check_flags(CLI::App& command, CheckFlags& flags) {
  command.add_option("--time", flags.time, "Stop after so long: 60s, 5m, 1h (default 60s)");
  command.add_option("--programs", flags.programs, "Stop after so many programs");
  command.add_option("--seed", flags.seed, "Seed of the campaign (default: one of the clock's)");
  command.add_option("--first", flags.first, "Number of the first program")->capture_default_str();
  command.add_option("--jobs", flags.jobs, "Worker threads (default: one a processor)");
  command.add_option("--target", flags.target, "What is checked: core, or zoo:NAME")
      ->capture_default_str();
  command.add_option("--driver", flags.driver, "The simulated driver: how strict it is")
      ->check(CLI::IsMember({"exact", "portable", "adversarial"}))
      ->capture_default_str();
  command.add_option("--checking", flags.checking, "Invariants after each statement")
      ->check(CLI::IsMember({"none", "incremental", "full"}))
      ->capture_default_str();
  command
      .add_option("--interleave", flags.interleave,
                  "Where the threads of a program change: mixed (each program picks), between "
                  "statements, at random or by priorities (pct) at every point of the sync seam")
      ->check(CLI::IsMember({"mixed", "statements", "random", "pct"}))
      ->capture_default_str();
  command.add_option("--shard", flags.shard,
                     "i/n: every n-th program from the i-th (0 to n-1) on; default from "
                     "SLURM_ARRAY_*, JOB_COMPLETION_*, GTEST_*");
  command
      .add_option("--out", flags.out,
                  "Where failing programs are saved, and (if given, or with shards) a summary that "
                  "granule merge reads")
      ->capture_default_str();
  command.add_option("--ops", flags.operations, "Statements a program")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  command.add_option("--only", flags.only, "Use these features only")->delimiter(',');
  command.add_option("--exclude", flags.exclude, "Leave these features out")->delimiter(',');
  command.add_option("--must-reach", flags.must_reach,
                     "A list of cells of coverage; one that is not reached is a failure");
  command.add_flag("--cells", flags.show_cells, "Print the operations and outcomes reached");
  command.add_flag("--list-features", flags.list_features, "List the features and end");
  command.add_option("--failures", flags.failures, "End after so many different failures")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.add_option("--shrink-time", flags.shrink_time, "Time for shrinking one failure")
      ->capture_default_str();
  command.add_flag("--no-shrink", flags.no_shrink, "Save failing programs as they are");
  command.add_option("--hang-after", flags.hang_after, "A program that takes longer is a hang")
      ->capture_default_str();
  command.add_flag("--check-determinism", flags.twice,
                   "Run every program twice, compare all replies, print a digest of the campaign");
  command.add_flag("--json", flags.json, "The summary as JSON on standard output");
  command.add_flag("--in-process", flags.in_process,
                   "No child process: a crash ends the command (for debuggers and profilers)");
  add_device_flags(command, flags.device);
}

std::chrono::milliseconds duration_of(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  const std::string unit = end;
  double scale = 0;
  if (unit == "ms") scale = 1;
  if (unit == "s" || unit.empty()) scale = 1e3;
  if (unit == "m" || unit == "min") scale = 60e3;
  if (unit == "h") scale = 3600e3;
  if (end == text.c_str() || scale == 0 || value < 0 || value > 1e7)
    throw CLI::ValidationError("time", "expected 60s, 5m or 1h, found `" + text + "`");
  return std::chrono::milliseconds(static_cast<std::int64_t>(value * scale));
}

prop::CampaignOptions campaign_of(const CheckFlags& flags) {
  prop::CampaignOptions options;
  options.seed = flags.seed;
  options.first = flags.first;
  if (flags.programs != 0) options.programs = flags.programs;
  if (!flags.time.empty()) {
    options.time = duration_of(flags.time);
  } else if (flags.programs == 0) {
    options.time = std::chrono::seconds(60);
  }
  const unsigned processors = std::max(1u, std::thread::hardware_concurrency());
  options.jobs = std::min(flags.jobs != 0 ? flags.jobs : processors, 1024u);
  const Shard shard = shard_of(flags.shard);
  options.shard = static_cast<std::uint32_t>(shard.index);
  options.shards = static_cast<std::uint32_t>(shard.count);
  options.generate.operations = flags.operations;
  options.generate.features = features_of(flags);
  options.twice = flags.twice;
  options.failures = flags.failures;
  options.hang_after = duration_of(flags.hang_after);
  RunFlags run;
  run.driver = flags.driver;
  run.target = flags.target;
  run.checking = flags.checking;
  run.interleave = flags.interleave;
  options.mixed_interleavings = flags.interleave == "mixed";
  options.run = run_options(run);
  if (flags.target.rfind("zoo:", 0) == 0)
    if (const prop::Specimen* specimen = prop::find_specimen(flags.target.substr(4)))
      options.generate.always = specimen->needs;
  return options;
}

}  // namespace granule::cli
