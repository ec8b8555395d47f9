// Checked arithmetic on sizes and addresses. Every sum that ends a range goes through here.
#pragma once

#include <cstdint>
#include <optional>

#include <granule/backend_api/types.hpp>

namespace granule {

/// a + b, or nothing if it does not fit into 64 bits.
constexpr std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) {
  if (a > UINT64_MAX - b) return std::nullopt;
  return a + b;
}

/// a * b, or nothing if it does not fit into 64 bits.
constexpr std::optional<std::uint64_t> checked_mul(std::uint64_t a, std::uint64_t b) {
  if (b != 0 && a > UINT64_MAX / b) return std::nullopt;
  return a * b;
}

/// The smallest multiple of `unit` (not 0) that is not below `size`, or nothing if that wraps.
constexpr std::optional<std::uint64_t> checked_round_up(std::uint64_t size, std::uint64_t unit) {
  const std::uint64_t rest = size % unit;
  if (rest == 0) return size;
  return checked_add(size, unit - rest);
}

constexpr bool is_power_of_two(std::uint64_t value) {
  return value != 0 && (value & (value - 1)) == 0;
}

/// A half-open range of addresses [base, base + size). `end` saturates instead of wrapping.
struct AddressRange {
  std::uint64_t base = 0;
  std::uint64_t size = 0;
  constexpr std::uint64_t end() const { return checked_add(base, size).value_or(UINT64_MAX); }
  constexpr bool contains(std::uint64_t address) const {
    return address >= base && address < end();
  }
  constexpr bool contains(const AddressRange& other) const {
    return other.base >= base && other.end() <= end();
  }
  constexpr bool overlaps(const AddressRange& other) const {
    return base < other.end() && other.base < end();
  }
  friend constexpr bool operator==(const AddressRange&, const AddressRange&) = default;
};

}  // namespace granule
