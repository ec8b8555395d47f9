// The NUMA node of the calling thread.
#include "numa.hpp"

#if defined(__linux__)
#include <sched.h>
#endif

namespace granule::detail {

std::int32_t current_numa_node() noexcept {
#if defined(__linux__)
  unsigned cpu = 0;
  unsigned node = 0;
  if (getcpu(&cpu, &node) == 0) return static_cast<std::int32_t>(node);
#endif
  return 0;
}

}  // namespace granule::detail
