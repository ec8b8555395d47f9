// Lifting what `fail`, `steal` and `ignore_hints` did.
#pragma once

#include "world.hpp"

namespace granule::prop {

void give_ballast_back(World& world);
/// Lifts all faults, those of host memory and stolen memory included.
void lift_faults(World& world);

}  // namespace granule::prop
