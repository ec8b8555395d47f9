// How far the host itself reaches a range of device addresses: what the CPU copies, and dies of.
#pragma once

#include "state.hpp"

namespace granule::model {

/// All of the range is mapped memory of the host.
bool is_all_of_host(const State& state, DevicePtr ptr, std::uint64_t size);

HostReach host_reach(const State& state, DevicePtr ptr, std::uint64_t size, Access need);

/// What a copy says that may not use a range. Measured: memory of the host that no device has
/// access to is copied by the CPU, and the process dies where the host may not do it either.
DriverStatus refuse_copy(State& state, DevicePtr ptr, std::uint64_t size, bool write);

/// Measured: where the host reaches a part of a range, and reaches the other side, the CPU copies
/// it all, and the process dies at the rest; whatever devices may do. True: it dies.
bool dies_of_copy(State& state, DevicePtr ptr, std::uint64_t size, bool write);

}  // namespace granule::model
