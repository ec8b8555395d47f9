// Sizes as a program writes them: sums of terms with units, kept as terms so that they can be
// printed, shrunk and evaluated on devices of different granularity.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace granule::prop {

/// The unit of a number; kGranule is the recommended granularity of device 0.
enum class Unit : std::uint8_t { kNone, kByte, kKiB, kMiB, kGiB, kTiB, kGranule };

/// One term of a size. Plain data.
struct Term {
  enum class Kind : std::uint8_t {
    kNumber,      // value, times its unit
    kPowerOfTwo,  // 2^value
    kMax,         // 2^64 - 1
    kPercent,     // that share of the free memory at the program's start, in whole granules
    kCounter,     // the number of a `repeat` in progress, times its unit
  };
  bool negative = false;
  Kind kind = Kind::kNumber;
  bool hex = false;  // written as 0x..., which only the printer looks at
  Unit unit = Unit::kNone;
  std::uint64_t value = 0;
  friend bool operator==(const Term&, const Term&) = default;
};

/// What a size is evaluated against.
struct SizeContext {
  std::uint64_t granule = 2u << 20;
  std::uint64_t free_at_start = 0;
  std::uint64_t counter = 0;
};

/// A sum of terms. An empty sum is 0 and is printed as `0`.
struct Size {
  std::vector<Term> terms;

  static Size bytes(std::uint64_t count);
  /// `count` granules and `extra` bytes more (negative: fewer).
  static Size granules(std::uint64_t count, std::int64_t extra = 0);
  static Size max();

  /// The sum modulo 2^64, so that `-6MiB` is the two's complement of 6 MiB.
  std::uint64_t evaluate(const SizeContext& context) const;
  friend bool operator==(const Size&, const Size&) = default;
};

std::string to_text(const Size& size);

}  // namespace granule::prop
