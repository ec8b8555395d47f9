// What the library has to ask the driver for, whatever its answer looks like.
#pragma once

#include <optional>

#include "reply.hpp"
#include "world.hpp"

namespace granule::prop {

/// The first call that a correct allocator would not have made, or would have, for that answer; or
/// nothing. `resource` is what the statement is about, and learns of it; it may be null.
std::optional<Failure> check_asked(World& world, const Statement& s, const Reply& reply,
                                   ResourceObject* resource);

}  // namespace granule::prop
