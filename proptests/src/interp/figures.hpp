// The library's own figures against the driver's ledger and against what the program knows.
#pragma once

#include "world.hpp"

namespace granule::prop {

/// What check_holdings does, and what holds only behind a statement that nobody else was at work
/// in: the count of buffers, the budget of shared memory, and that a failure cost nothing.
std::optional<Failure> check_figures(World& world, const Statement* statement);

}  // namespace granule::prop
