// The relation between two drivers' values.
#include "rename.hpp"

#include <iterator>

namespace granule::gpu {
namespace {

/// Values that mean the same to every driver.
bool is_universal(IdKind kind, std::uint64_t value) {
  if (kind == IdKind::kStream) return value <= kPerThreadStream.value;
  if (kind == IdKind::kDescriptor) return static_cast<std::int32_t>(value) < 0;
  return value == 0;
}

constexpr std::uint64_t kStrange = 1'000'000;  // far from any descriptor and handle in use

}  // namespace

void Renamer::learn(IdKind kind, std::uint64_t device, std::uint64_t oracle) {
  if (is_universal(kind, device)) return;
  forget(kind, device);
  const int number = static_cast<int>(kind);
  const auto other = to_device_.find({number, oracle});
  if (other != to_device_.end()) {
    to_oracle_.erase({number, other->second});
    to_device_.erase(other);
  }
  to_oracle_[{number, device}] = oracle;
  to_device_[{number, oracle}] = device;
}

void Renamer::forget(IdKind kind, std::uint64_t device) {
  const auto found = to_oracle_.find({static_cast<int>(kind), device});
  if (found == to_oracle_.end()) return;
  to_device_.erase({static_cast<int>(kind), found->second});
  to_oracle_.erase(found);
}

bool Renamer::knows(IdKind kind, std::uint64_t device) const {
  return is_universal(kind, device) || to_oracle_.count({static_cast<int>(kind), device}) != 0;
}

std::uint64_t Renamer::id(IdKind kind, std::uint64_t device) const {
  if (is_universal(kind, device)) return device;
  const int number = static_cast<int>(kind);
  const auto found = to_oracle_.find({number, device});
  if (found != to_oracle_.end()) return found->second;
  std::uint64_t value = device;
  while (to_device_.count({number, value}) != 0) value += kStrange;
  return value;
}

void Renamer::learn_range(std::uint64_t device, std::uint64_t size, std::uint64_t oracle) {
  if (device != 0) ranges_[device] = {size, oracle};
}

void Renamer::forget_range(std::uint64_t device) { ranges_.erase(device); }

bool Renamer::in_range(std::uint64_t device) const {
  const auto after = ranges_.upper_bound(device);
  if (after == ranges_.begin()) return false;
  const auto& [base, range] = *std::prev(after);
  return device - base < range.size;
}

std::uint64_t Renamer::address(std::uint64_t device) const {
  const auto after = ranges_.upper_bound(device);
  if (after == ranges_.begin()) return device;
  const auto& [base, range] = *std::prev(after);
  return device - base < range.size ? range.oracle + (device - base) : device;
}

}  // namespace granule::gpu
