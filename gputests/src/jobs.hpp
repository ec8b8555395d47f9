// Programs as jobs of child processes: what each needs for itself, what came of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <granule/prop/program.hpp>
#include <granule/prop/run.hpp>

namespace granule::gpu {

/// One program to be run in some child process.
struct Job {
  std::string file;
  prop::Program program;
  /// Makes the program when it is needed; then `program` is only a name.
  std::function<prop::Program()> make;
  prop::RunOptions options;  // make_machine is the child's
  bool alone = false;        // in a process of its own
};

/// What came of a job.
struct Outcome {
  enum class Kind : std::uint8_t { kClean, kUnmet, kFailed, kDiverged, kHang, kCrash, kUnfit };
  Kind kind = Kind::kClean;
  std::string signature;
  std::string message;
  std::string name;     // of the program, where the job had none
  std::string program;  // the shrunk program, if it was shrunk
  std::uint64_t calls = 0;
  std::uint64_t followed = 0;
  std::uint64_t skipped = 0;
  std::uint64_t statements = 0;
  double seconds = 0;
};
std::string_view name_of(Outcome::Kind kind) noexcept;
std::string to_line(const Outcome& outcome);
bool from_line(std::string_view line, Outcome& outcome);

/// Whether the program touches what outlives it in a process: contexts, which pool is current,
/// faults of kernels, calls inside host functions.
bool needs_process(const prop::Program& program);
/// Divides pauses and busy streams of a generated program: their length is real time on a device.
void shorten_waits(prop::Program& program, std::uint64_t times);
/// "never" or "no_init" if the program begins without a context; empty otherwise.
std::string leading_context(const prop::Program& program);

/// Runs one job in the child. Returns false if the process must not be used for another.
using RunJob = std::function<bool(const Job& job, Outcome& outcome)>;
/// Made once in each child, before its first job; nothing: the machine is unfit, `why` says so.
using MakeRunner = std::function<RunJob(const Job& first, std::string& why)>;

struct IsolationOptions {
  /// Without an end, and without a further driver call; ten times as long with them.
  std::chrono::milliseconds hang_after = std::chrono::seconds(60);
  /// For finding which jobs before it a dying one needs; a run in progress is let end.
  std::chrono::milliseconds search_time = std::chrono::seconds(30);
  std::size_t batch = 200;  // jobs of a process, at most
  bool all_alone = false;
  /// Asked now and then: true ends after the job in progress.
  std::function<bool()> stop;
  /// Called as each outcome is there, in order of completion.
  std::function<void(std::size_t index, const Outcome& outcome)> done;
};

/// Runs jobs in child processes forked from this one, which must not have opened the driver. A
/// child that crashes or hangs costs the job that it had in hand; if that job is clean in a process
/// of its own, those of the jobs before it that it needs for that are searched. False: the machine
/// is unfit; outcomes that are there stand.
bool run_isolated(const std::vector<Job>& jobs, const MakeRunner& make,
                  const IsolationOptions& options, std::vector<Outcome>& outcomes);

}  // namespace granule::gpu
