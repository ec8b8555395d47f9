// Where a generator's decisions come from: random numbers, an odometer that runs through all of
// them, a recorded string of choices, or (choice_rc.hpp) RapidCheck.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <granule/prop/rng.hpp>

namespace granule::prop {

/// A source of decisions. Small numbers stand for the simpler choice, so that whoever shrinks a
/// choice towards 0 shrinks the result. Not thread-safe.
class Chooser {
 public:
  Chooser() = default;
  Chooser(const Chooser&) = delete;
  Chooser& operator=(const Chooser&) = delete;
  virtual ~Chooser() = default;

  /// A number in [0, bound); 0 for a bound of 0 or 1, without asking the source.
  std::uint64_t pick(std::uint64_t bound) { return bound < 2 ? 0 : choose(bound); }
  /// A number in [low, high], both included.
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + pick(high - low + 1);
  }
  /// True in `numerator` of `denominator` cases; the choice 0 is false.
  bool chance(std::uint64_t numerator, std::uint64_t denominator) {
    return pick(denominator) >= denominator - numerator;
  }
  /// An index, each with a share of its weight; the number of weights if all are 0.
  std::size_t weighted(std::span<const std::uint32_t> weights);
  /// One of a few values.
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[pick(values.size())];
  }

 private:
  virtual std::uint64_t choose(std::uint64_t bound) = 0;
};

/// Pseudo-random decisions, a pure function of the generator's seed.
class RandomChooser final : public Chooser {
 public:
  explicit RandomChooser(Rng rng) : rng_(rng) {}

 private:
  std::uint64_t choose(std::uint64_t bound) override { return rng_.below(bound); }
  Rng rng_;
};

/// One recorded decision.
struct Choice {
  std::uint64_t value = 0;
  std::uint64_t bound = 1;
  friend bool operator==(const Choice&, const Choice&) = default;
};

/// Passes decisions through and writes them down.
class RecordingChooser final : public Chooser {
 public:
  explicit RecordingChooser(Chooser& inner) : inner_(inner) {}
  const std::vector<Choice>& choices() const { return choices_; }

 private:
  std::uint64_t choose(std::uint64_t bound) override {
    const std::uint64_t value = inner_.pick(bound);
    choices_.push_back({value, bound});
    return value;
  }
  Chooser& inner_;
  std::vector<Choice> choices_;
};

/// Makes recorded decisions again. A value that is out of bounds is brought inside, and behind the
/// end every choice is 0, so that any string of numbers is a legal one.
class ReplayChooser final : public Chooser {
 public:
  explicit ReplayChooser(std::vector<std::uint64_t> values) : values_(std::move(values)) {}
  explicit ReplayChooser(const std::vector<Choice>& choices);
  /// How many values were used.
  std::size_t used() const { return at_; }

 private:
  std::uint64_t choose(std::uint64_t bound) override {
    return at_ < values_.size() ? values_[at_++] % bound : (++at_, 0);
  }
  std::vector<std::uint64_t> values_;
  std::size_t at_ = 0;
};

/// Runs through all decisions, the last one turning fastest:
///   OdometerChooser all;
///   do { use(make(all)); } while (all.advance());
class OdometerChooser final : public Chooser {
 public:
  /// The next combination; false when all were seen.
  bool advance();
  /// The decisions of the present combination so far.
  const std::vector<Choice>& choices() const { return digits_; }

 private:
  std::uint64_t choose(std::uint64_t bound) override {
    if (at_ == digits_.size()) digits_.push_back({0, bound});
    return digits_[at_++].value;
  }
  std::vector<Choice> digits_;
  std::size_t at_ = 0;
};

/// "3/10 0/2 ..." and back; unreadable parts are left out.
std::string to_text(const std::vector<Choice>& choices);
std::vector<Choice> choices_from_text(std::string_view text);

}  // namespace granule::prop
