// Making a state, device memory, violations, and the state's own generator.
#include "state.hpp"

#include <algorithm>
#include <cstdio>

#include "calls.hpp"

namespace granule::model {

State::State(Config machine)
    : config(std::move(machine)), addresses(config.devices.at(0).granularity) {
  random = config.seed;
  next_stream_handle = 0x560000001000;
  next_event = 0x570000001000;
  next_graph = 0x580000001000;
  next_context = 0x590000001000;
  next_pinned = 0x7f0000000000;
  if (config.own_base != 0) {
    next_pinned = config.own_base / 2;
    own_addresses.emplace(config.devices[0].granularity, config.own_base);
  }
  for (const DeviceConfig& device : config.devices) {
    if (devices.size() == kMaxDevices) break;
    Device made;
    made.config = device;
    made.free = device.memory;
    made.total = device.memory;
    made.primary = next_context;
    Context context;
    context.device = static_cast<std::int32_t>(devices.size());
    context.primary = true;
    contexts[next_context] = context;
    next_context += 0x100;
    devices.push_back(made);
  }
}

void violate(State& state, ViolationKind kind, std::string message) {
  constexpr std::size_t kMost = 10000;  // a long run of one finding does not fill the memory
  if (state.violations.size() >= kMost) return;
  state.violations.push_back({kind, state.calls, std::move(message)});
}

std::string hex(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::uint64_t next_random(State& state) {
  state.random += 0x9e3779b97f4a7c15ull;
  std::uint64_t z = state.random;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

std::uint64_t usable_memory(const State& state, std::int32_t device) {
  const Device& from = state.devices[static_cast<std::size_t>(device)];
  const std::uint64_t granule = from.config.granularity;
  const std::uint64_t whole = from.free / granule * granule;
  return whole > granule ? whole - granule : 0;
}

namespace {
constexpr std::uint64_t kHostLimit = std::uint64_t{1} << 44;
}

bool take_memory(State& state, const Location& place, std::uint64_t bytes, bool empty) {
  if (place.type != LocationType::kDevice) return bytes <= kHostLimit;
  if (state.forced_grant) {
    const bool granted = *state.forced_grant;
    Device& from = state.devices[static_cast<std::size_t>(place.id)];
    if (empty && (!granted || bytes > from.free)) empty_pools(state, place);
    if (!granted || bytes > from.free) return false;
    from.free -= bytes;
    return true;
  }
  if (bytes > usable_memory(state, place.id)) {
    if (!empty) return false;
    empty_pools(state, place);
    if (bytes > usable_memory(state, place.id)) return false;
  }
  state.devices[static_cast<std::size_t>(place.id)].free -= bytes;
  return true;
}

void give_memory(State& state, const Location& place, std::uint64_t bytes) {
  if (place.type != LocationType::kDevice) return;
  state.devices[static_cast<std::size_t>(place.id)].free += bytes;
}

}  // namespace granule::model
