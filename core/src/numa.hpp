// The NUMA node of the calling thread: the one question that the core asks the operating system.
#pragma once

#include <cstdint>

namespace granule::detail {

/// The node that the calling thread runs on just now; 0 where the system cannot tell.
std::int32_t current_numa_node() noexcept;

}  // namespace granule::detail
