// A campaign: many generated programs on many threads, each on a machine of its own.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <granule/prop/generate.hpp>
#include <granule/prop/run.hpp>
#include <granule/prop/shrink.hpp>

namespace granule::prop {

/// What a worker has in hand; zero: nothing. Lives outside the campaign, so that whoever watches it
/// (a parent process, too) can say which program hung or crashed.
struct WorkSlot {
  std::atomic<std::uint64_t> index_plus_one{0};
  std::atomic<std::uint64_t> since_ms{0};  // of the steady clock
};

struct CampaignProgress {
  std::uint64_t programs = 0;
  std::uint64_t operations = 0;
  std::uint64_t cells = 0;  // of operation x outcome x state
  double seconds = 0;
  std::size_t failures = 0;
};

struct CampaignOptions {
  std::uint64_t seed = 1;
  std::uint64_t first = 0;              // number of the first program
  std::uint64_t programs = UINT64_MAX;  // at most, of this shard
  std::chrono::milliseconds time = std::chrono::hours(24 * 365);
  std::uint32_t jobs = 1;
  std::uint32_t shard = 0;  // of `shards`; takes every shards-th program
  std::uint32_t shards = 1;
  GenerateOptions generate;
  /// Target and driver; the schedule and the seeds of each program are the campaign's.
  RunOptions run;
  /// Each program picks how its threads interleave; false: as `run` says.
  bool mixed_interleavings = true;
  /// Runs each program twice and compares every reply; makes the digest.
  bool twice = false;
  /// Ends after failures of so many different signatures.
  std::size_t failures = 1;
  /// Also ends when this becomes true. May be null.
  const std::atomic<bool>* interrupted = nullptr;
  /// One for each job, or null.
  WorkSlot* slots = nullptr;
  /// A program that takes longer is a hang.
  std::chrono::milliseconds hang_after = std::chrono::seconds(60);
  /// Called on the calling thread about five times a second; may be empty.
  std::function<void(const CampaignProgress&)> progress;
  /// Called with the number of a program that hangs; must not return (its thread cannot be
  /// stopped). Empty: std::abort.
  std::function<void(std::uint64_t index)> on_hang;
};

/// A program that failed.
struct CampaignFailure {
  std::uint64_t index = 0;
  std::string signature;
};

/// Set of reached cells: which operation gave which outcome in which state.
class CellSet {
 public:
  static constexpr std::uint32_t kCells = 1u << 19;
  CellSet() : bits_(kCells / 64, 0) {}
  void add(std::uint32_t cell) { bits_[cell / 64] |= std::uint64_t{1} << (cell % 64); }
  bool has(std::uint32_t cell) const { return (bits_[cell / 64] >> (cell % 64) & 1) != 0; }
  void add(const CellSet& other);
  std::uint64_t count() const;
  /// The states in which `verb` gave `outcome` (an index of outcome_names): bit n is state n.
  std::uint64_t states(Verb verb, std::uint32_t outcome) const;

 private:
  std::vector<std::uint64_t> bits_;
};

struct CampaignResult {
  std::uint64_t programs = 0;
  std::uint64_t operations = 0;
  std::uint64_t skipped = 0;  // statements
  std::uint64_t calls = 0;    // of the library
  std::uint64_t model_calls = 0;
  std::uint64_t faults_fired = 0;
  std::array<std::uint64_t, fault::kFaultClasses> fired_by_class{};  // by fault::FaultClass
  std::uint64_t digest = 0;  // `twice`: of all programs and replies
  double seconds = 0;
  double core_seconds = 0;  // of processor time, over all workers
  CellSet cells;
  /// In order of program numbers: the first of each signature. Which they are does not depend on
  /// the number of jobs.
  std::vector<CampaignFailure> failures;
};

/// Program `index` of the campaign.
Program campaign_program(const CampaignOptions& options, std::uint64_t index);
/// How program `index` runs: schedule, seeds.
RunOptions campaign_run(const CampaignOptions& options, std::uint64_t index);

/// Runs programs until time, number, failures or the user say stop.
CampaignResult run_campaign(const CampaignOptions& options);

}  // namespace granule::prop
