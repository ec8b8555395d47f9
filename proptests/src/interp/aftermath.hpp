// After faults: what a resource must still be able to do once they are lifted.
#pragma once

#include "world.hpp"

namespace granule::prop {

/// Allocates, grows and closes on every resource, with no fault armed. Nothing, or what failed
/// although there was room for it.
std::optional<Failure> works_again(World& world);

}  // namespace granule::prop
