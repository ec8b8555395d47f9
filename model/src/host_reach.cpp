// Copies of host memory by the CPU.
#include "host_reach.hpp"

#include <algorithm>

#include "vmm.hpp"

namespace granule::model {
namespace {

bool is_host_memory(const State& state, const Mapping& mapping) {
  return is_host(allocation_of(state, mapping).properties.location);
}

}  // namespace

bool is_all_of_host(const State& state, DevicePtr ptr, std::uint64_t size) {
  auto it = mapping_at(state, ptr.value);
  if (it == state.mappings.end()) return false;
  for (; it != state.mappings.end() && it->first < ptr.value + size; ++it)
    if (!is_host_memory(state, it->second)) return false;
  return true;
}

HostReach host_reach(const State& state, DevicePtr ptr, std::uint64_t size, Access need) {
  if (!is_all_of_host(state, ptr, size)) return HostReach::kNone;
  const auto needed = static_cast<std::uint8_t>(need);
  bool any = false;
  bool all = true;
  for (auto it = mapping_at(state, ptr.value);
       it != state.mappings.end() && it->first < ptr.value + size; ++it) {
    const std::uint8_t has = it->second.access[kHostSlot];
    any = any || has != 0;
    all = all && (has & needed) == needed;
  }
  if (!any) return HostReach::kNone;
  return all ? HostReach::kAll : HostReach::kPart;
}

DriverStatus refuse_copy(State& state, DevicePtr ptr, std::uint64_t size, bool write) {
  for (auto it = mapping_at(state, ptr.value); it != state.mappings.end(); ++it) {
    if (it->first >= ptr.value + size) break;
    const Mapping& mapping = it->second;
    const auto& access = mapping.access;
    if (!is_host_memory(state, mapping)) continue;
    const bool device = std::any_of(access.begin(), access.begin() + kHostSlot,
                                    [](std::uint8_t a) { return a != 0; });
    if (device || (access[kHostSlot] & (write ? 2 : 1)) != 0) continue;
    violate(state, ViolationKind::kUnmappedUse,
            "a copy at " + hex(ptr.value) + " of host memory that nobody may " +
                (write ? "write" : "read"));
    return DriverStatus::kUndefined;
  }
  return DriverStatus::kInvalidValue;
}

bool dies_of_copy(State& state, DevicePtr ptr, std::uint64_t size, bool write) {
  const Access need = write ? Access::kReadWrite : Access::kRead;
  if (host_reach(state, ptr, size, need) != HostReach::kPart) return false;
  violate(state, ViolationKind::kUnmappedUse,
          "a copy by the CPU at " + hex(ptr.value) + " of memory of which the host may not " +
              (write ? "write" : "read") + " all");
  return true;
}

}  // namespace granule::model
