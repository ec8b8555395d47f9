// The naive resource as a target of programs.
#pragma once

#include <granule/prop/target.hpp>

#include "mistakes.hpp"

namespace granule::prop::zoo {

/// Vmm resources are naive ones with that mistake; the other kinds are the core's.
TargetFactory naive_target(Mistake mistake);

}  // namespace granule::prop::zoo
