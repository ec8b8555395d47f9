// Sweeps: a program run once for each way in which one of the library's calls, or one of its host
// allocations, can fail. What a run was given is a `fail` statement in a program, so that whatever
// is found can be replayed, shrunk and kept.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <granule/backends/fault.hpp>
#include <granule/prop/choice.hpp>
#include <granule/prop/program.hpp>
#include <granule/prop/run.hpp>

namespace granule::prop {

/// How much of what could fail is tried.
struct SweepBreadth {
  bool calls = true;       // driver calls
  bool every_code = true;  // each plausible code; off: the first of each call
  bool after = true;       // also done but reported as failed
  bool from_then_on = true;
  bool not_ready = true;  // NOT_READY so many times, then success
  bool contexts = true;   // contexts lost to an error of earlier work, at once or in hiding
  /// Hints that are not honoured, memory that another tenant takes, a property that is refused.
  bool surroundings = true;
  bool host = true;  // host allocations
  /// Two faults on programs of so many statements or fewer; 0: never.
  std::size_t pairs_up_to = 8;
};

/// The programs of a sweep, by number, and how each is swept. Called from several threads.
struct SweepSource {
  std::uint64_t programs = 0;
  std::function<Program(std::uint64_t number)> program;
  std::function<SweepBreadth(std::uint64_t number)> breadth;
};

struct SweepCounts {
  std::uint64_t programs = 0;   // that ran without a fault
  std::uint64_t not_swept = 0;  // of those: what they need is not there, or they misuse on purpose
  std::uint64_t call_points = 0;                               // driver calls of the library
  std::uint64_t host_points = 0;                               // host allocations of the library
  std::uint64_t runs = 0;                                      // with faults
  std::uint64_t pairs = 0;                                     // of those: with two
  std::array<std::uint64_t, fault::kFaultClasses> by_class{};  // those with one, by FaultClass
  std::uint64_t unfired = 0;                                   // of those: whose fault never fired
  std::uint64_t first_unfired = UINT64_MAX;                    // of one program: the first such run
  std::uint64_t violations = 0;
  std::uint64_t points() const { return call_points + host_points; }
  SweepCounts& operator+=(const SweepCounts& other);
};

struct SweepViolation {
  std::uint64_t program = 0;  // number in the source
  std::uint64_t run = 0;      // number of the run of that program; 0: without a fault
  std::string signature;
  std::string message;
  Program faulted;  // fails alone
};

/// What a worker has in hand. Lives outside the sweep, so that a parent process can say what
/// crashed.
struct SweepSlot {
  std::atomic<std::uint64_t> program_plus_one{0};
  std::atomic<std::uint64_t> run{0};
  std::atomic<std::uint64_t> since_ms{0};  // of the steady clock
};

struct SweepProgress {
  SweepCounts counts;
  std::uint64_t parts_done = 0;
  std::uint64_t parts = 0;
  double seconds = 0;
};

struct SweepOptions {
  RunOptions run;  // target and driver; `observer` is the sweep's
  std::uint32_t jobs = 1;
  /// Into how many parts each program is cut, so that several threads share it.
  std::uint32_t parts = 1;
  /// Violations of so many different signatures are kept; all are counted.
  std::size_t kept = 20;
  /// Keep the counts of each program.
  bool each = true;
  /// A sweep without a run that had a fault is vacuous.
  bool needs_faults = true;
  /// So is one without a run of each class of faults.
  bool every_class = false;
  /// Also ends when this becomes true. May be null.
  const std::atomic<bool>* interrupted = nullptr;
  /// Also ends after the first violation: for those who ask only whether there is one.
  bool first_only = false;
  SweepSlot* slots = nullptr;  // one for each job, or null
  std::chrono::milliseconds hang_after = std::chrono::seconds(60);
  /// Called on the calling thread about five times a second; may be empty.
  std::function<void(const SweepProgress&)> progress;
  /// Called with what hangs; must not return. Empty: std::abort.
  std::function<void(std::uint64_t program, std::uint64_t run)> on_hang;
};

struct SweepResult {
  SweepCounts counts;
  std::vector<SweepCounts> each;           // by number of the program
  std::vector<SweepViolation> violations;  // the first of each signature, in order of programs
  double seconds = 0;
  double core_seconds = 0;  // of processor time, over all workers
  bool interrupted = false;
  /// It reached no point where faults were wanted, or some fault did not fire: it shows nothing.
  bool vacuous = false;
};

/// Sweeps all programs. The result does not depend on the number of jobs.
SweepResult run_sweep(const SweepSource& source, const SweepOptions& options);

/// The program that run `run` of `program` ran: with its faults, without its expectations.
Program sweep_program(const Program& program, const SweepBreadth& breadth,
                      const RunOptions& options, std::uint64_t run);

/// The programs of design.md, section 4: allocate, allocate with capacity, grow first or last,
/// resize and shrink last, close first or last, decoy after last, use last. All of one length or
/// shorter, by an odometer; those that are the same up to names are one.
class Palette {
 public:
  /// `options` of the resource, as they stand behind `resource r vmm`.
  explicit Palette(std::uint32_t length, std::vector<Option> options = {});
  std::uint64_t programs() const { return offsets_.size(); }
  Program program(std::uint64_t number) const;
  /// Operations of that program.
  std::uint32_t length_of(std::uint64_t number) const { return lengths_[number]; }

 private:
  std::vector<Option> options_;
  std::vector<std::uint8_t> choices_;   // of all programs, one behind the other
  std::vector<std::uint32_t> offsets_;  // by program
  std::vector<std::uint8_t> lengths_;   // by program
};

}  // namespace granule::prop
