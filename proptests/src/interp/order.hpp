// Ordering calls of the interpreter's own.
#pragma once

#include <optional>
#include <utility>

#include "world.hpp"

namespace granule::prop {

/// Records an event of the interpreter's own on the stream; what it stands for.
std::optional<std::pair<EventHandle, Clock>> record_marker(World& world,
                                                           const StreamObject& stream);

/// A release that the program left unordered: notes whether it has work unfinished on the bytes
/// that the library was never told of. What the model then reports is the program's own misuse.
/// `replaced`: the lane of a buffer's own stream, where the release names another one.
void note_unordered_release(World& world, const std::vector<Segment>& segments,
                            const StreamObject& stream, Lane replaced);

/// Before a release: unfinished work on the bytes may still be under way when the resource hands
/// their memory out again.
void remember_release(World& world, ResourceObject& resource, const std::vector<Segment>& segments);

/// The host waits for unfinished work of a device on these bytes: would_block if that cannot end.
DriverStatus settle_on_host(World& world, const std::vector<Segment>& segments,
                            std::int32_t device);

/// Work that comes on `stream` goes behind the buffer's allocation, where that is itself ordered.
void order_behind_allocation(World& world, BufferObject& buffer, const StreamObject& stream);

}  // namespace granule::prop
