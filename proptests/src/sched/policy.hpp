// Which host thread runs next: turns, random, priorities with change points, or as told.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <granule/prop/run.hpp>

namespace granule::prop::sched {

using ThreadIndex = std::uint32_t;

/// A point at which another thread may be made to run.
struct Crossing {
  ThreadIndex current = 0;
  /// Threads that can go on, ascending. Not empty.
  std::span<const ThreadIndex> ready;
  /// `current` is one of them: to choose another is a pre-emption.
  bool current_ready = false;
  /// The current thread has ended a statement of its program.
  bool between_statements = false;
};

class Policy {
 public:
  Policy() = default;
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;
  virtual ~Policy() = default;
  /// One of `crossing.ready`. Deterministic: depends on the seed and on earlier crossings only.
  virtual ThreadIndex choose(const Crossing& crossing) = 0;
  /// Whether a wait that has a deadline ends now although other threads could run.
  virtual bool expires() = 0;
  /// Whether the library's own threads are let come to rest before a statement counts as ended.
  virtual bool rests() = 0;
};

/// What was chosen at the crossings so far is added to `choices`, which outlives the policy.
std::unique_ptr<Policy> make_policy(const InterleaveOptions& options, std::uint64_t seed,
                                    std::vector<ThreadChoice>& choices);

}  // namespace granule::prop::sched
