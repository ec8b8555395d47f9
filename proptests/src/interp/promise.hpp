// The access that a resource promises to devices, and the options of a grow.
#pragma once

#include "world.hpp"

namespace granule::prop {

void set_promise(std::vector<AccessEntry>& entries, const Location& location, Access access);
/// As set_promise, but never takes access away.
void widen_promise(std::vector<AccessEntry>& entries, const Location& location, Access access);

GrowOptions grow_options(World& world, const Statement& statement);
/// What a chunk that is added by such a grow is promised.
std::vector<AccessEntry> promised_to_growth(const ResourceObject& resource,
                                            const GrowOptions& options);

}  // namespace granule::prop
