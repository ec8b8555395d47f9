// Host threads of a program under a scheduler: what each statement claims, and what belongs to the
// thread that runs rather than to the run.
#pragma once

#include <vector>

#include "../sched/scheduler.hpp"
#include "world.hpp"

namespace granule::prop {

/// The names that a statement reads and changes, those that it implies included: the streams that a
/// release is ordered behind.
sched::NameClaim claim_of(World& world, const Statement& statement);

/// Holds the claim of a statement while it lives; nothing without a scheduler.
class ClaimScope {
 public:
  ClaimScope(World& world, const Statement& statement);
  ~ClaimScope();
  ClaimScope(const ClaimScope&) = delete;
  ClaimScope& operator=(const ClaimScope&) = delete;

  /// No other statement has been under way since this one began, nor has the library been at work
  /// by itself: what one looked at before still explains what one sees.
  bool is_alone() const;
  /// Another thread has begun a statement since this one began.
  bool has_company() const;
  /// One of the library's own threads has had a turn since this one began.
  bool had_library_turns() const;
  /// Nothing is under way but this, once the library's own threads rest: figures must agree.
  bool is_quiet() const;

 private:
  World& world_;
  std::uint64_t claims_ = 0;
  std::uint64_t turns_ = 0;
  bool alone_at_start_ = true;
};

/// While it lives the thread that runs goes on running.
class PinScope {
 public:
  explicit PinScope(World& world);
  ~PinScope();
  PinScope(const PinScope&) = delete;
  PinScope& operator=(const PinScope&) = delete;

 private:
  World& world_;
};

/// What changes hands with the thread: number, origin of calls, statement, traffic.
class ThreadLuggage {
 public:
  explicit ThreadLuggage(World& world) : world_(world) {}
  void change(sched::ThreadIndex from, sched::ThreadIndex to);

 private:
  struct Piece {
    ThreadMarks marks;
    std::uint32_t number = 0;  // as the machine counts
    std::size_t statement = 0;
    std::uint64_t counter = 0;
    bool in_host_function = false;
    bool last_failed = false;
    Tap::Traffic traffic;
    bool known = false;
  };
  World& world_;
  std::vector<Piece> pieces_;
};

/// True if the program has to run under a scheduler.
bool needs_scheduler(const Program& program, const RunOptions& options);
/// Runs a program on fibres of this thread, which a policy chooses between: run_in(world) on the
/// first of them. Threads that get stuck are a failure of the run.
RunReport run_scheduled(const Program& program, const RunOptions& options,
                        RunReport (*run_in)(World& world));

}  // namespace granule::prop
