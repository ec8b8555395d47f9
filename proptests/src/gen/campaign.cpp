// The workers of a campaign, and what they add up to.
#include <granule/prop/campaign.hpp>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <ctime>
#include <map>
#include <mutex>
#include <thread>

#include <granule/prop/cells.hpp>
#include <granule/prop/rng.hpp>
#include <granule/prop/text.hpp>

namespace granule::prop {
namespace {

using Clock = std::chrono::steady_clock;

std::uint64_t milliseconds_now() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now().time_since_epoch())
          .count());
}

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// FNV-1a, the same everywhere.
class Hash {
 public:
  void add(std::string_view text) {
    for (const char c : text) add_byte(static_cast<unsigned char>(c));
    add_byte(0xFF);
  }
  void add(std::uint64_t number) {
    for (int i = 0; i < 8; ++i) add_byte(static_cast<unsigned char>(number >> (8 * i)));
  }
  std::uint64_t value() const { return value_; }

 private:
  void add_byte(unsigned char byte) { value_ = (value_ ^ byte) * 0x100000001B3ull; }
  std::uint64_t value_ = 0xCBF29CE484222325ull;
};

std::uint64_t digest_of(std::uint64_t index, const Program& program, const RunReport& report) {
  Hash hash;
  hash.add(index);
  hash.add(to_text(program));
  for (const Step& step : report.steps) hash.add(step.reply);
  hash.add(report.failure ? report.failure->signature : std::string());
  hash.add(report.calls);
  hash.add(report.model_calls);
  hash.add(report.host_allocs);
  return hash.value();
}

using ByClass = std::array<std::uint64_t, fault::kFaultClasses>;

void add(ByClass& sum, const ByClass& more) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
}

/// One campaign in progress, shared by its workers.
class Campaign {
 public:
  explicit Campaign(const CampaignOptions& options)
      : options_(options), start_(Clock::now()), deadline_(start_ + options.time) {
    if (!options_.slots) own_slots_ = std::vector<WorkSlot>(options_.jobs);
  }

  CampaignResult run() {
    std::vector<std::thread> workers;
    for (std::uint32_t i = 0; i < options_.jobs; ++i)
      workers.emplace_back([this, i] { work(slot(i)); });
    watch();
    for (std::thread& worker : workers) worker.join();
    result_.seconds = seconds();
    for (const auto& [index, signature] : firsts()) result_.failures.push_back({index, signature});
    return std::move(result_);
  }

 private:
  WorkSlot& slot(std::uint32_t i) { return options_.slots ? options_.slots[i] : own_slots_[i]; }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  void work(WorkSlot& slot) {
    CampaignResult mine;
    while (true) {
      const std::uint64_t k = next_.fetch_add(1);
      const std::uint64_t index = options_.first + options_.shard + k * options_.shards;
      if (k >= options_.programs || index >= end_.load() || Clock::now() >= deadline_ ||
          (options_.interrupted && options_.interrupted->load()))
        break;
      slot.since_ms.store(milliseconds_now());
      slot.index_plus_one.store(index + 1);
      run_one(index, mine);
      slot.index_plus_one.store(0);
      if (mine.programs % 64 == 0) publish(mine);
    }
    mine.core_seconds = thread_seconds();
    publish(mine);
    const std::lock_guard lock(mutex_);
    ++finished_;
  }

  void run_one(std::uint64_t index, CampaignResult& mine) {
    const Program program = campaign_program(options_, index);
    RunOptions run = campaign_run(options_, index);
    run.keep_steps = options_.twice;
    const RunReport report = run_guarded(program, run);
    ++mine.programs;
    mine.operations += report.executed;
    mine.skipped += report.skipped_count;
    mine.calls += report.calls;
    mine.model_calls += report.model_calls;
    mine.faults_fired += report.faults_fired;
    add(mine.fired_by_class, report.fired_by_class);
    for (const std::uint32_t cell : report.cells) mine.cells.add(cell);
    if (report.failure) return note_failure(index, report.failure->signature);
    if (!options_.twice) return;
    const std::uint64_t digest = digest_of(index, program, report);
    mine.digest += digest;
    const Program again = campaign_program(options_, index);
    if (digest_of(index, again, run_guarded(again, run)) != digest)
      note_failure(index, "not deterministic");
  }

  /// Adds what a worker has counted to the whole, and starts it again from nothing.
  void publish(CampaignResult& mine) {
    const std::lock_guard lock(mutex_);
    result_.programs += mine.programs;
    result_.operations += mine.operations;
    result_.skipped += mine.skipped;
    result_.calls += mine.calls;
    result_.model_calls += mine.model_calls;
    result_.faults_fired += mine.faults_fired;
    add(result_.fired_by_class, mine.fired_by_class);
    result_.digest += mine.digest;
    result_.core_seconds += mine.core_seconds;
    result_.cells.add(mine.cells);
    const CellSet cells = std::move(mine.cells);
    mine = CampaignResult();
    mine.cells = cells;
  }

  /// Programs behind the last failure that counts need not run; earlier ones still do, so that the
  /// result does not depend on who was faster.
  void note_failure(std::uint64_t index, const std::string& signature) {
    const std::lock_guard lock(mutex_);
    const auto [found, is_new] = failures_.try_emplace(signature, index);
    if (!is_new) found->second = std::min(found->second, index);
    if (failures_.size() < options_.failures) return;
    end_.store(firsts().back().first);
  }

  /// The failures that count: the earliest of each signature, the earliest signatures.
  std::vector<std::pair<std::uint64_t, std::string>> firsts() const {
    std::vector<std::pair<std::uint64_t, std::string>> sorted;
    for (const auto& [signature, index] : failures_) sorted.emplace_back(index, signature);
    std::sort(sorted.begin(), sorted.end());
    if (sorted.size() > options_.failures) sorted.resize(options_.failures);
    return sorted;
  }

  /// Reports progress and looks for hangs until all workers are done.
  void watch() {
    while (true) {
      std::this_thread::sleep_for(std::chrono::milliseconds(step_ms_));
      step_ms_ = std::min(step_ms_ * 2, 200);
      CampaignProgress now;
      {
        const std::lock_guard lock(mutex_);
        if (finished_ == options_.jobs) return;
        now.programs = result_.programs;
        now.operations = result_.operations;
        now.cells = result_.cells.count();
        now.failures = failures_.size();
      }
      now.seconds = seconds();
      look_for_hangs();
      if (options_.progress) options_.progress(now);
    }
  }

  void look_for_hangs() {
    const std::uint64_t now = milliseconds_now();
    const auto limit = static_cast<std::uint64_t>(options_.hang_after.count());
    for (std::uint32_t i = 0; i < options_.jobs; ++i) {
      const std::uint64_t index = slot(i).index_plus_one.load();
      const std::uint64_t since = slot(i).since_ms.load();
      if (index == 0 || now < since + limit) continue;
      if (options_.on_hang) options_.on_hang(index - 1);
      std::abort();
    }
  }

  const CampaignOptions& options_;
  const Clock::time_point start_;
  const Clock::time_point deadline_;
  std::vector<WorkSlot> own_slots_;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<std::uint64_t> end_{UINT64_MAX};
  std::mutex mutex_;
  CampaignResult result_;                          // guarded by mutex_
  std::map<std::string, std::uint64_t> failures_;  // guarded; earliest program by signature
  std::uint32_t finished_ = 0;                     // guarded
  int step_ms_ = 2;
};

}  // namespace

void CellSet::add(const CellSet& other) {
  for (std::size_t i = 0; i < bits_.size(); ++i) bits_[i] |= other.bits_[i];
}

std::uint64_t CellSet::count() const {
  std::uint64_t sum = 0;
  for (const std::uint64_t word : bits_) sum += static_cast<std::uint64_t>(std::popcount(word));
  return sum;
}

std::uint64_t CellSet::states(Verb verb, std::uint32_t outcome) const {
  return bits_[pack_cell(verb, outcome, 0) / 64];  // a word holds all 64 states
}

Program campaign_program(const CampaignOptions& options, std::uint64_t index) {
  return generate(options.seed, index, options.generate);
}

RunOptions campaign_run(const CampaignOptions& options, std::uint64_t index) {
  Rng rng = Rng(options.seed, index).fork(0x5EED);
  RunOptions run = options.run;
  run.cells = true;
  run.machine.seed = 1 + rng.below(1u << 20);
  run.thread_seed = rng.below(1u << 20);
  const std::uint64_t interleave = rng.below(4);
  const auto changes = static_cast<std::uint32_t>(1 + rng.below(4));
  if (options.mixed_interleavings) {
    run.interleave.changes = changes;
    run.interleave.how = interleave == 0   ? Interleave::kStatements
                         : interleave == 1 ? Interleave::kPct
                                           : Interleave::kRandom;
  }
  switch (rng.below(4)) {
    case 0:
      run.machine.schedule = model::Schedule::kEager;
      break;
    case 1:
      run.machine.schedule = model::Schedule::kSeeded;
      break;
    default:
      run.machine.schedule = model::Schedule::kLazy;
  }
  run.promise_no_captures = rng.below(3) == 0;
  return run;
}

CampaignResult run_campaign(const CampaignOptions& options) { return Campaign(options).run(); }

}  // namespace granule::prop
