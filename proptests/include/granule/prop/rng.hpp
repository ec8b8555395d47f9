// The harness's own generator of random numbers: counter-based, so that number `n` of seed `s` is
// a pure function of both, the same on every machine, compiler and library.
#pragma once

#include <cstddef>
#include <cstdint>

namespace granule::prop {

/// A stream of numbers named by (seed, stream). A plain value; copying it forks nothing.
class Rng {
 public:
  explicit constexpr Rng(std::uint64_t seed = 0, std::uint64_t stream = 0)
      : key_(mix(seed + 0x9E3779B97F4A7C15ull) ^ mix(stream * 0xD1342543DE82EF95ull + 1)) {}

  /// Number `counter` of this stream, whatever was drawn before.
  constexpr std::uint64_t at(std::uint64_t counter) const {
    return mix(key_ + (counter + 1) * 0x9E3779B97F4A7C15ull);
  }
  constexpr std::uint64_t next() { return at(counter_++); }
  /// A number in [0, bound), each as likely to within 2^-32; 0 for bound 0.
  constexpr std::uint64_t below(std::uint64_t bound) {
    if (bound == 0) return 0;
    const std::uint64_t draw = next();
    if (bound <= 0xFFFFFFFFull) return ((draw >> 32) * bound) >> 32;
    return draw % bound;
  }
  /// A number in [low, high], both included.
  constexpr std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    const std::uint64_t width = high - low + 1;  // 0: all 64 bits
    return width == 0 ? next() : low + below(width);
  }
  /// True in `numerator` of `denominator` draws.
  constexpr bool chance(std::uint64_t numerator, std::uint64_t denominator) {
    return below(denominator) < numerator;
  }
  /// An independent stream for part `number` of this one.
  constexpr Rng fork(std::uint64_t number) const { return Rng(key_, number); }
  constexpr std::uint64_t drawn() const { return counter_; }

 private:
  static constexpr std::uint64_t mix(std::uint64_t z) {  // the finaliser of SplitMix64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  std::uint64_t key_;
  std::uint64_t counter_ = 0;
};

}  // namespace granule::prop
