// What the invariants need to share with the end of a run.
#pragma once

#include "world.hpp"

namespace granule::prop {

/// Every resource that a name, a buffer or a holder keeps alive, in order of names.
std::vector<ResourceObject*> reachable_resources(World& world);
/// What the library's own figures say that it holds.
Holdings library_belief(World& world);

}  // namespace granule::prop
