// Ordering calls of the interpreter's own.
#pragma once

#include <optional>
#include <utility>

#include "world.hpp"

namespace granule::prop {

/// Records an event of the interpreter's own on the stream; what it stands for.
std::optional<std::pair<EventHandle, Clock>> record_marker(World& world,
                                                           const StreamObject& stream);

/// Work that comes on `stream` goes behind the buffer's allocation, where that is itself ordered.
void order_behind_allocation(World& world, BufferObject& buffer, const StreamObject& stream);

}  // namespace granule::prop
