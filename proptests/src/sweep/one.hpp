// The sweep of one program.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <granule/prop/sweep.hpp>

#include "faults.hpp"
#include "verdict.hpp"
#include "watch.hpp"

namespace granule::prop::sweep {

/// Whoever is told of the runs of a program's sweep.
class Listener {
 public:
  Listener() = default;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  virtual ~Listener() = default;
  /// Before each run; false ends the sweep of the program.
  virtual bool begin(std::uint64_t run) = 0;
  /// `faulted` fails alone.
  virtual void violation(std::uint64_t run, const Failure& failure, Program faulted) = 0;
};

/// Runs have numbers: 0 is the one without faults, single faults follow from 1 on, and a pair is
/// the number of its first fault in the upper half, that of its second in the lower.
class ProgramSweep {
 public:
  /// `program` outlives the sweep.
  ProgramSweep(const Program& program, const SweepBreadth& breadth, RunOptions options);

  /// Runs part `part` of `parts`; the counts are those of that part.
  SweepCounts sweep(std::uint64_t part, std::uint64_t parts, Listener& listener);

  /// The program of that run; without faults if there is no such run.
  Program program_of(std::uint64_t run);

 private:
  struct Seconds {
    std::vector<Fault> faults;
    std::vector<Answer> alone;  // with the first fault only
  };

  bool count(Listener& listener, SweepCounts& counts);
  void run_single(std::size_t index, Listener& listener, SweepCounts& counts);
  bool run_pairs(std::size_t index, Listener& listener, SweepCounts& counts);
  void run_pair(std::uint64_t run, const Fault& first, const Fault& second, const Seconds& seconds,
                Listener& listener, SweepCounts& counts);
  /// Runs with the first fault alone and looks where a second one could strike behind it.
  Seconds seconds_of(const Fault& first);
  RunReport run_watched(const Program& program);
  void judge(std::uint64_t run, const RunReport& report, const Program& faulted,
             const std::optional<WrongAnswer>& wrong, Listener& listener, SweepCounts& counts);

  const Program& program_;
  const SweepBreadth breadth_;
  RunOptions options_;
  Watch watch_;
  Program bare_;
  FaultedProgram faulted_;
  const bool own_faults_;
  std::vector<Answer> base_;
  std::vector<Fault> faults_;
  std::vector<std::size_t> firsts_;  // of pairs: indices into faults_
};

}  // namespace granule::prop::sweep
