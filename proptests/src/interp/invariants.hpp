// What the invariants need to share with the end of a run.
#pragma once

#include "world.hpp"

namespace granule::prop {

/// Every resource that a name, a buffer or a holder keeps alive, in order of names.
std::vector<ResourceObject*> reachable_resources(World& world);
/// An invariant that does not hold.
std::optional<Failure> broken(std::string signature, std::string message);
/// What the library's own figures say that it holds, and how many of the mappings are quarantined
/// at most.
struct Belief {
  Holdings held;
  std::int64_t quarantined = 0;
};
Belief library_belief(World& world);
/// Whether handles, reservations, mappings and budget are those that the driver holds.
std::optional<Failure> check_holdings(World& world);
/// Nothing was freed twice, or with another size than it was allocated with.
std::optional<Failure> check_host_memory(World& world);
/// How often injected errors made the contexts die.
std::uint64_t lost_contexts(const World& world);
/// Whether a count of the library fits what it was told it holds; releases that were reported as
/// failed (`unknown`, not positive) it may have noticed or not, and likewise what was `made`.
bool agrees(std::int64_t believed, std::int64_t told, std::int64_t unknown, std::int64_t made = 0);

}  // namespace granule::prop
