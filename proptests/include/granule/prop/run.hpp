// Running a program: options, and the report of what happened.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <granule/backends/fault.hpp>
#include <granule/model/config.hpp>
#include <granule/prop/machine.hpp>
#include <granule/prop/program.hpp>
#include <granule/prop/target.hpp>

namespace granule::prop {

/// How much is checked after each statement; everything is checked at the end.
enum class Checking : std::uint8_t {
  kNone,         // only what the program expects
  kIncremental,  // what the statement may have changed
  kFull,         // everything, after every statement
};

/// How the blocks of threads of a program run, and a worker of the library.
enum class Interleave : std::uint8_t {
  kStatements,  // whole statements, one after the other: in turns, or as thread_seed says
  kRandom,      // another thread with some probability wherever the library passes the sync seam
  kPct,         // by priorities that change at a few points of the seam (PCT)
  kTold,        // as `told`, then without pre-emption: what an enumeration does
};

/// One point where several threads could go on.
struct ThreadChoice {
  std::uint16_t options = 1;
  std::uint16_t taken = 0;  // 0: no pre-emption where that is possible
  bool preempts = false;    // to take another than 0 is a pre-emption
};

struct InterleaveOptions {
  Interleave how = Interleave::kStatements;
  std::uint32_t changes = 3;        // kPct: points at which a priority falls
  std::vector<std::uint16_t> told;  // kTold: what to take at each point
};

class World;
struct Reply;

/// Looks on while a program runs. Called on the thread of the run, for every repeat of a statement.
class RunObserver {
 public:
  RunObserver() = default;
  RunObserver(const RunObserver&) = delete;
  RunObserver& operator=(const RunObserver&) = delete;
  virtual ~RunObserver() = default;
  virtual void before(const World& world, std::size_t statement) = 0;
  virtual void after(const World& world, std::size_t statement, const Reply& reply) = 0;
};

struct RunOptions {
  /// A skipped statement, or a check of bytes that the program never wrote, is a failure.
  bool strict = false;
  Checking checking = Checking::kIncremental;
  /// The checks at the end: give everything back, compare with the start, fill the device.
  bool finish = true;
  /// The machine; the devices come from the program's `device` lines.
  model::Config machine;
  /// Picks the interleaving of thread blocks; 0 takes turns, where statements are whole.
  std::uint64_t thread_seed = 0;
  /// Where threads may change. On a device statements are always whole.
  InterleaveOptions interleave;
  /// The streams of a program that captures nothing are bound as never capturing: the library then
  /// asks none of them, and takes its shortest ways.
  bool promise_no_captures = false;
  /// A call that the driver would crash on is no failure: random driver calls meet such, and a
  /// follower never makes them.
  bool withhold_undefined = false;
  /// Keep the reply of every statement in the report.
  bool keep_steps = false;
  /// Keep the cell of coverage (cells.hpp) of every statement in the report.
  bool cells = false;
  /// The allocator under test; empty: the core.
  TargetFactory target;
  /// The same allocator without the defect that is looked for in `target`: a program that fails
  /// with it as well says nothing of the defect, and its run ends as kUnmet. Empty: no such run.
  TargetFactory baseline;
  /// Makes the machine; empty: the model.
  std::function<std::unique_ptr<Machine>(const model::Config&)> make_machine;
  /// A decorator put around the machine's driver (a recorder, a tracer); may be empty.
  std::function<std::unique_ptr<Backend>(Backend& inner)> decorate;
  /// Called at the end or at the failure, before anything is given back: pictures and dumps.
  std::function<void(const World& world)> inspect;
  /// Told of every statement; may be null.
  RunObserver* observer = nullptr;
};

enum class RunStatus : std::uint8_t {
  kClean,
  kUnmet,  // its `needs`, or on hardware a `require`, could not be met; or fails on the baseline
  kFailed,
};

/// Why a run failed.
struct Failure {
  enum class Kind : std::uint8_t {
    kResult,     // a statement gave something else than its =>
    kExpect,     // an `expect` did not hold
    kSkipped,    // strict: a statement was skipped
    kUndefined,  // the driver would have crashed
    kContents,   // bytes were not what was written
    kInvariant,  // a standing invariant is broken
    kViolation,  // the model reported misuse
    kFinish,     // the checks at the end
    kRequire,    // a `require` did not hold on the model
    kDiverged,   // the driver answered what its model does not allow
    kThreads,    // threads stuck, or something not ordered between them
  };
  Kind kind = Kind::kResult;
  std::size_t statement = 0;  // index; the number of statements: the end of the program
  std::uint32_t line = 0;     // in the source; 0: the end
  std::string signature;      // what stays the same while the program shrinks
  std::string message;        // for a person
};
std::string_view name_of(Failure::Kind kind) noexcept;

/// What one statement gave.
struct Step {
  std::size_t statement = 0;
  std::string reply;  // as it would stand behind =>
  bool skipped = false;
  bool would_block = false;
};

struct RunReport {
  RunStatus status = RunStatus::kClean;
  std::optional<Failure> failure;
  std::string unmet;                 // kUnmet: what was missing
  std::vector<Step> steps;           // keep_steps
  std::vector<std::string> skipped;  // what was skipped and why, at most 100
  std::vector<std::uint32_t> cells;  // `cells`
  std::uint64_t executed = 0;        // statements, repeats counted
  std::uint64_t skipped_count = 0;
  std::uint64_t calls = 0;        // driver calls of the library and the program
  std::uint64_t model_calls = 0;  // driver calls of everybody
  std::uint64_t host_allocs = 0;  // host allocations of the library
  std::uint64_t faults_fired = 0;
  std::array<std::uint64_t, fault::kFaultClasses> fired_by_class{};  // by fault::FaultClass
  std::uint64_t warnings = 0;                                        // reports to the failure sink
  /// On hardware: expectations that depend on what the driver chose, replaced by the ledger's, and
  /// choices that the oracle took over.
  std::uint64_t followed = 0;
  std::vector<ThreadChoice> choices;  // Interleave::kTold
  bool ok() const { return status != RunStatus::kFailed; }
};

/// Runs a program on a fresh machine.
RunReport run(const Program& program, const RunOptions& options = {});
/// As run(), but an exception is a failure ("exception ...") rather than the end of everything.
RunReport run_guarded(const Program& program, const RunOptions& options);

/// "LINE: MESSAGE" with the statement's text.
std::string describe(const Program& program, const Failure& failure);

/// A drawing of the address space in text, as snapshot.hpp makes it.
std::string draw(const World& world);

}  // namespace granule::prop
