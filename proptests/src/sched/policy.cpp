// The policies: turns, random, priorities, told.
#include "policy.hpp"

#include <algorithm>
#include <array>

#include <granule/prop/rng.hpp>

namespace granule::prop::sched {
namespace {

/// No pre-emption within statements; between them the seed, or each in turn.
class Statements final : public Policy {
 public:
  explicit Statements(std::uint64_t seed) : in_turn_(seed == 0), rng_(seed, 0x7EAD) {}
  ThreadIndex choose(const Crossing& crossing) override {
    if (crossing.current_ready && !crossing.between_statements) return crossing.current;
    if (!in_turn_) return crossing.ready[rng_.below(crossing.ready.size())];
    for (const ThreadIndex thread : crossing.ready)
      if (thread > crossing.current) return thread;
    return crossing.ready[0];
  }
  bool expires() override { return false; }
  bool rests() override { return true; }

 private:
  bool in_turn_;
  Rng rng_;
};

/// Another thread with a probability that the seed picks.
class Random final : public Policy {
 public:
  explicit Random(std::uint64_t seed) : rng_(seed, 0x7A4D) {
    constexpr std::array<std::uint32_t, 4> kOneIn{2, 4, 8, 16};
    one_in_ = kOneIn[rng_.below(kOneIn.size())];
  }
  ThreadIndex choose(const Crossing& crossing) override {
    if (crossing.current_ready && !rng_.chance(1, one_in_)) return crossing.current;
    return crossing.ready[rng_.below(crossing.ready.size())];
  }
  bool expires() override { return rng_.chance(1, 8); }
  bool rests() override { return rng_.chance(1, 2); }

 private:
  Rng rng_;
  std::uint32_t one_in_ = 2;
};

/// Probabilistic concurrency testing: the thread of the highest priority runs; at a few crossings,
/// which the seed picks, the one that runs falls below all others.
class Priorities final : public Policy {
 public:
  Priorities(std::uint64_t seed, std::uint32_t changes) : rng_(seed, 0x9C7) {
    constexpr std::array<std::uint64_t, 4> kLengths{16, 64, 160, 400};
    const std::uint64_t length = kLengths[rng_.below(kLengths.size())];
    for (std::uint32_t i = 0; i < changes; ++i) changes_.push_back(1 + rng_.below(length));
  }
  ThreadIndex choose(const Crossing& crossing) override {
    ++step_;
    if (std::find(changes_.begin(), changes_.end(), step_) != changes_.end())
      level(crossing.current) = --lowest_;
    ThreadIndex best = crossing.ready[0];
    for (const ThreadIndex thread : crossing.ready)
      if (level(thread) > level(best)) best = thread;
    return best;
  }
  bool expires() override { return rng_.chance(1, 16); }
  bool rests() override { return rng_.chance(1, 2); }

 private:
  std::int64_t& level(ThreadIndex thread) {
    while (levels_.size() <= thread)
      levels_.push_back(1 + static_cast<std::int64_t>(rng_.below(1u << 30)));
    return levels_[thread];
  }
  Rng rng_;
  std::vector<std::int64_t> levels_;  // by thread
  std::vector<std::uint64_t> changes_;
  std::uint64_t step_ = 0;
  std::int64_t lowest_ = 0;
};

/// As told; behind the end of what was told, the current thread as long as it can, then the next.
class Told final : public Policy {
 public:
  explicit Told(const std::vector<std::uint16_t>& taken) : taken_(taken) {}
  ThreadIndex choose(const Crossing& crossing) override {
    const std::size_t number = next_++;
    const std::size_t wanted = number < taken_.size() ? taken_[number] : 0;
    return in_order(crossing, std::min(wanted, crossing.ready.size() - 1));
  }
  bool expires() override { return false; }
  bool rests() override {
    const std::size_t number = next_++;
    return number >= taken_.size() || taken_[number] == 0;
  }

 private:
  /// Number 0 is the thread that goes on without a pre-emption.
  static ThreadIndex in_order(const Crossing& crossing, std::size_t number) {
    if (!crossing.current_ready) return crossing.ready[number];
    if (number == 0) return crossing.current;
    std::size_t seen = 0;
    for (const ThreadIndex thread : crossing.ready)
      if (thread != crossing.current && ++seen == number) return thread;
    return crossing.current;
  }
  const std::vector<std::uint16_t>& taken_;
  std::size_t next_ = 0;
};

/// Writes down what another policy chooses.
class Noted final : public Policy {
 public:
  Noted(std::unique_ptr<Policy> inner, std::vector<ThreadChoice>& choices)
      : inner_(std::move(inner)), choices_(choices) {}
  ThreadIndex choose(const Crossing& crossing) override {
    const ThreadIndex chosen = inner_->choose(crossing);
    ThreadChoice choice;
    choice.options = static_cast<std::uint16_t>(crossing.ready.size());
    choice.preempts = crossing.current_ready;
    for (const ThreadIndex thread : crossing.ready) {
      if (thread == chosen) break;
      if (thread != crossing.current) ++choice.taken;
    }
    if (crossing.current_ready && chosen != crossing.current) ++choice.taken;
    if (chosen == crossing.current) choice.taken = 0;
    choices_.push_back(choice);
    return chosen;
  }
  bool expires() override { return inner_->expires(); }
  bool rests() override {
    const bool rest = inner_->rests();
    choices_.push_back({2, static_cast<std::uint16_t>(rest ? 0 : 1), true});
    return rest;
  }

 private:
  std::unique_ptr<Policy> inner_;
  std::vector<ThreadChoice>& choices_;
};

std::unique_ptr<Policy> plain_policy(const InterleaveOptions& options, std::uint64_t seed) {
  switch (options.how) {
    case Interleave::kStatements:
      return std::make_unique<Statements>(seed);
    case Interleave::kRandom:
      return std::make_unique<Random>(seed);
    case Interleave::kPct:
      return std::make_unique<Priorities>(seed, options.changes);
    case Interleave::kTold:
      return std::make_unique<Told>(options.told);
  }
  return std::make_unique<Statements>(seed);
}

}  // namespace

std::unique_ptr<Policy> make_policy(const InterleaveOptions& options, std::uint64_t seed,
                                    std::vector<ThreadChoice>& choices) {
  std::unique_ptr<Policy> policy = plain_policy(options, seed);
  if (options.how != Interleave::kTold) return policy;
  return std::make_unique<Noted>(std::move(policy), choices);
}

}  // namespace granule::prop::sched
