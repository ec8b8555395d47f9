// Names of recorded objects.
#include "sim_names.hpp"

#include <utility>

namespace granule::cli {

std::string program_size(std::uint64_t bytes) {
  static constexpr std::pair<const char*, int> kUnits[] = {
      {"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}};
  if (bytes == UINT64_MAX) return "max";
  for (const auto& [unit, shift] : kUnits)
    if (bytes >> shift != 0 && bytes % (std::uint64_t{1} << shift) == 0)
      return std::to_string(bytes >> shift) + unit;
  return std::to_string(bytes);
}

const std::string& HandleNames::make(std::uint64_t value) {
  auto& all = names_[value];
  all.push_back(prefix_ + std::to_string(++made_));
  return all.back();
}

std::string HandleNames::name(std::uint64_t value) const {
  const auto it = names_.find(value);
  if (it != names_.end()) return it->second.back();
  const auto dead = dead_.find(value);
  return dead != dead_.end() ? dead->second : std::to_string(value);
}

std::string HandleNames::drop(std::uint64_t value) {
  const auto it = names_.find(value);
  if (it == names_.end()) return name(value);
  std::string last = std::move(it->second.back());
  it->second.pop_back();
  if (it->second.empty()) names_.erase(it);
  dead_[value] = last;
  return last;
}

const std::string& RangeNames::make(std::uint64_t base, std::uint64_t size) {
  Range& range = live_[base];
  range = {size, prefix_ + std::to_string(++made_)};
  return range.name;
}

void RangeNames::drop(std::uint64_t base) {
  const auto it = live_.find(base);
  if (it == live_.end()) return;
  dead_[base] = it->second;
  live_.erase(it);
}

std::optional<std::string> RangeNames::find_in(const std::map<std::uint64_t, Range>& ranges,
                                               std::uint64_t address) {
  auto it = ranges.upper_bound(address);
  if (it == ranges.begin()) return std::nullopt;
  --it;
  const std::uint64_t offset = address - it->first;
  if (offset > it->second.size) return std::nullopt;
  return offset == 0 ? it->second.name : it->second.name + "+" + program_size(offset);
}

std::optional<std::string> RangeNames::find(std::uint64_t address, bool dead) const {
  return find_in(dead ? dead_ : live_, address);
}

}  // namespace granule::cli
