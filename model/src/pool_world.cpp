// How pools see streams, device memory and addresses.
#include "pool_world.hpp"

#include <algorithm>

#include "streams.hpp"

namespace granule::model {

bool StateWorld::has_run(const StreamPoint& point) const {
  return granule::model::has_run(state_, point);
}

bool StateWorld::follows(std::uint64_t stream, const StreamPoint& point) const {
  return is_ordered_behind(state_, stream, point);
}

bool StateWorld::take(const Location& place, std::uint64_t bytes) {
  return take_memory(state_, place, bytes, false);
}

void StateWorld::give(const Location& place, std::uint64_t bytes) {
  give_memory(state_, place, bytes);
}

std::uint64_t StateWorld::window_size() const {
  constexpr std::uint64_t kUnit = 64 * kMiB;
  std::uint64_t largest = kUnit;
  for (const Device& device : state_.devices) largest = std::max(largest, device.total);
  return checked_round_up(2 * largest, kUnit).value_or(kUnit);
}

std::uint64_t StateWorld::first_window() const {
  const std::uint64_t own = state_.config.own_base;
  return own == 0 ? PoolWorld::first_window() : own + AddressSpace::kTop / 2;
}

bool StateWorld::claim(const AddressRange& window) {
  if (!state_.plain_addresses().is_free(window.base, window.size)) return false;
  state_.plain_addresses().take(window.base, window.size);
  return true;
}

void StateWorld::unclaim(const AddressRange& window) {
  state_.plain_addresses().give(window.base, window.size);
  state_.pool_contents.erase(window.base);
}

}  // namespace granule::model
