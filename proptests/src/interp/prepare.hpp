// Before the first statement: what a program needs, and the context that it starts with.
#pragma once

#include <string>

#include "world.hpp"

namespace granule::prop {

/// What the program needs and the machine lacks; empty if nothing.
std::string unmet_needs(World& world);
/// Initialises the driver, unless the program wants to, and makes the context that it starts with.
void start(World& world);

}  // namespace granule::prop
