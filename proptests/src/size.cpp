// Evaluating and printing sizes.
#include <granule/prop/size.hpp>

#include <array>
#include <cstdio>
#include <string_view>

namespace granule::prop {
namespace {

constexpr std::array<std::string_view, 7> kUnitNames{"", "B", "KiB", "MiB", "GiB", "TiB", "g"};

std::uint64_t unit_bytes(Unit unit, const SizeContext& context) {
  switch (unit) {
    case Unit::kNone:
    case Unit::kByte:
      return 1;
    case Unit::kKiB:
      return std::uint64_t{1} << 10;
    case Unit::kMiB:
      return std::uint64_t{1} << 20;
    case Unit::kGiB:
      return std::uint64_t{1} << 30;
    case Unit::kTiB:
      return std::uint64_t{1} << 40;
    case Unit::kGranule:
      return context.granule;
  }
  return 1;
}

std::uint64_t percent_of_free(std::uint64_t percent, const SizeContext& context) {
  if (context.granule == 0) return 0;
  const std::uint64_t free = context.free_at_start;
  const std::uint64_t share = free / 100 * percent + free % 100 * percent / 100;
  return share / context.granule * context.granule;
}

std::uint64_t magnitude(const Term& term, const SizeContext& context) {
  switch (term.kind) {
    case Term::Kind::kNumber:
      return term.value * unit_bytes(term.unit, context);
    case Term::Kind::kPowerOfTwo:
      return term.value < 64 ? std::uint64_t{1} << term.value : 0;
    case Term::Kind::kMax:
      return UINT64_MAX;
    case Term::Kind::kPercent:
      return percent_of_free(term.value, context);
    case Term::Kind::kCounter:
      return context.counter * unit_bytes(term.unit, context);
  }
  return 0;
}

std::string hexadecimal(std::uint64_t value) {
  std::array<char, 24> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "0x%02llX", static_cast<unsigned long long>(value));
  return buffer.data();
}

std::string term_text(const Term& term) {
  const std::string unit(kUnitNames[static_cast<std::size_t>(term.unit)]);
  switch (term.kind) {
    case Term::Kind::kNumber:
      return (term.hex ? hexadecimal(term.value) : std::to_string(term.value)) + unit;
    case Term::Kind::kPowerOfTwo:
      return "2^" + std::to_string(term.value);
    case Term::Kind::kMax:
      return "max";
    case Term::Kind::kPercent:
      return std::to_string(term.value) + "%";
    case Term::Kind::kCounter:
      return "@" + unit;
  }
  return "0";
}

}  // namespace

Size Size::bytes(std::uint64_t count) {
  Term term;
  term.value = count;
  return Size{{term}};
}

Size Size::granules(std::uint64_t count, std::int64_t extra) {
  Size size;
  if (count != 0 || extra == 0) {
    Term term;
    term.value = count;
    if (count != 0) term.unit = Unit::kGranule;
    size.terms.push_back(term);
  }
  if (extra != 0) {
    Term term;
    term.negative = extra < 0;
    const auto bits = static_cast<std::uint64_t>(extra);
    term.value = extra < 0 ? 0 - bits : bits;
    size.terms.push_back(term);
  }
  return size;
}

Size Size::max() {
  Term term;
  term.kind = Term::Kind::kMax;
  return Size{{term}};
}

std::uint64_t Size::evaluate(const SizeContext& context) const {
  std::uint64_t sum = 0;
  for (const Term& term : terms) {
    const std::uint64_t value = magnitude(term, context);
    sum = term.negative ? sum - value : sum + value;
  }
  return sum;
}

std::string to_text(const Size& size) {
  if (size.terms.empty()) return "0";
  std::string text;
  for (const Term& term : size.terms) {
    if (term.negative) {
      text += '-';
    } else if (!text.empty()) {
      text += '+';
    }
    text += term_text(term);
  }
  return text;
}

}  // namespace granule::prop
