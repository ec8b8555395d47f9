// The workers of a sweep, and what they add up to.
#include <granule/prop/sweep.hpp>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "one.hpp"

namespace granule::prop {
namespace {

using SteadyClock = std::chrono::steady_clock;

std::uint64_t steady_ms() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(SteadyClock::now().time_since_epoch())
          .count());
}

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// One sweep in progress, shared by its workers.
class Sweep {
 public:
  Sweep(const SweepSource& source, const SweepOptions& options)
      : source_(source), options_(options), start_(SteadyClock::now()) {
    if (!options_.slots) own_slots_ = std::vector<SweepSlot>(options_.jobs);
    if (options_.each) result_.each.resize(source_.programs);
  }

  SweepResult run() {
    std::vector<std::thread> workers;
    for (std::uint32_t i = 0; i < options_.jobs; ++i)
      workers.emplace_back([this, i] { work(slot(i)); });
    watch();
    for (std::thread& worker : workers) worker.join();
    result_.seconds = seconds();
    result_.interrupted = is_interrupted();
    const bool none = result_.counts.runs == 0 && options_.needs_faults && !is_over();
    const auto& classes = result_.counts.by_class;
    const bool lacks = options_.every_class && !is_over() &&
                       std::count(classes.begin(), classes.end(), std::uint64_t{0}) != 0;
    result_.vacuous = none || lacks || result_.counts.unfired != 0;
    for (auto& [signature, violation] : violations_)
      result_.violations.push_back(std::move(violation));
    std::sort(result_.violations.begin(), result_.violations.end(),
              [](const SweepViolation& a, const SweepViolation& b) {
                return std::pair(a.program, a.run) < std::pair(b.program, b.run);
              });
    if (result_.violations.size() > options_.kept) result_.violations.resize(options_.kept);
    return std::move(result_);
  }

 private:
  /// Passes on what the sweep of one program says.
  class Worker final : public sweep::Listener {
   public:
    Worker(Sweep& whole, SweepSlot& slot, std::uint64_t program)
        : whole_(whole), slot_(slot), program_(program) {}
    bool begin(std::uint64_t run) override {
      slot_.run.store(run, std::memory_order_relaxed);
      slot_.since_ms.store(steady_ms(), std::memory_order_relaxed);
      ++whole_.begun_;
      return !whole_.is_over();
    }
    void violation(std::uint64_t run, const Failure& failure, Program faulted) override {
      whole_.note({program_, run, failure.signature, failure.message, std::move(faulted)});
    }

   private:
    Sweep& whole_;
    SweepSlot& slot_;
    std::uint64_t program_;
  };

  SweepSlot& slot(std::uint32_t i) { return options_.slots ? options_.slots[i] : own_slots_[i]; }
  double seconds() const {
    return std::chrono::duration<double>(SteadyClock::now() - start_).count();
  }
  bool is_interrupted() const { return options_.interrupted && options_.interrupted->load(); }
  bool is_over() const { return over_.load(std::memory_order_relaxed) || is_interrupted(); }
  std::uint64_t parts() const { return source_.programs * options_.parts; }

  void work(SweepSlot& slot) {
    while (!is_over()) {
      const std::uint64_t number = next_.fetch_add(1);
      if (number >= parts()) break;
      const std::uint64_t index = number / options_.parts;
      slot.since_ms.store(steady_ms());
      slot.run.store(0);
      slot.program_plus_one.store(index + 1);
      const Program program = source_.program(index);
      Worker worker(*this, slot, index);
      sweep::ProgramSweep one(program, source_.breadth(index), options_.run);
      add(index, one.sweep(number % options_.parts, options_.parts, worker));
      slot.program_plus_one.store(0);
    }
    const std::lock_guard lock(mutex_);
    result_.core_seconds += processor_seconds();
    ++finished_;
  }

  void add(std::uint64_t index, const SweepCounts& counts) {
    const std::lock_guard lock(mutex_);
    result_.counts += counts;
    if (options_.each) result_.each[index] += counts;
    ++parts_done_;
  }

  /// The earliest of each signature is kept, whoever was faster.
  void note(SweepViolation violation) {
    const std::lock_guard lock(mutex_);
    if (options_.first_only) over_.store(true);
    const auto found = violations_.find(violation.signature);
    if (found == violations_.end()) {
      violations_.emplace(violation.signature, std::move(violation));
      return;
    }
    SweepViolation& known = found->second;
    if (std::pair(violation.program, violation.run) < std::pair(known.program, known.run))
      known = std::move(violation);
  }

  /// Reports progress and looks for hangs until all workers are done.
  void watch() {
    while (true) {
      std::this_thread::sleep_for(std::chrono::milliseconds(step_ms_));
      step_ms_ = std::min(step_ms_ * 2, 200);
      SweepProgress now;
      {
        const std::lock_guard lock(mutex_);
        if (finished_ == options_.jobs) return;
        now.counts = result_.counts;
        now.parts_done = parts_done_;
      }
      now.counts.runs = begun_.load();  // also of the parts in hand
      now.parts = parts();
      now.seconds = seconds();
      look_for_hangs();
      if (options_.progress) options_.progress(now);
    }
  }

  void look_for_hangs() {
    const std::uint64_t now = steady_ms();
    const auto limit = static_cast<std::uint64_t>(options_.hang_after.count());
    for (std::uint32_t i = 0; i < options_.jobs; ++i) {
      const std::uint64_t program = slot(i).program_plus_one.load();
      const std::uint64_t since = slot(i).since_ms.load();
      if (program == 0 || now < since + limit) continue;
      if (options_.on_hang) options_.on_hang(program - 1, slot(i).run.load());
      std::abort();
    }
  }

  const SweepSource& source_;
  const SweepOptions& options_;
  const SteadyClock::time_point start_;
  std::vector<SweepSlot> own_slots_;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<std::uint64_t> begun_{0};
  std::atomic<bool> over_{false};
  std::mutex mutex_;
  SweepResult result_;                                // guarded by mutex_
  std::map<std::string, SweepViolation> violations_;  // guarded
  std::uint64_t parts_done_ = 0;                      // guarded
  std::uint32_t finished_ = 0;                        // guarded
  int step_ms_ = 2;
};

}  // namespace

SweepCounts& SweepCounts::operator+=(const SweepCounts& other) {
  programs += other.programs;
  not_swept += other.not_swept;
  call_points += other.call_points;
  host_points += other.host_points;
  runs += other.runs;
  pairs += other.pairs;
  for (std::size_t i = 0; i < by_class.size(); ++i) by_class[i] += other.by_class[i];
  unfired += other.unfired;
  first_unfired = std::min(first_unfired, other.first_unfired);
  violations += other.violations;
  return *this;
}

SweepResult run_sweep(const SweepSource& source, const SweepOptions& options) {
  return Sweep(source, options).run();
}

Program sweep_program(const Program& program, const SweepBreadth& breadth,
                      const RunOptions& options, std::uint64_t run) {
  return sweep::ProgramSweep(program, breadth, options).program_of(run);
}

}  // namespace granule::prop
