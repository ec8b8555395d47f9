// Which bytes a buffer sees, and the chunks that they lie in where a resource commits ahead.
#pragma once

#include <cstdint>
#include <vector>

#include "world.hpp"

namespace granule::prop {

std::vector<Segment> fresh_segments(std::uint64_t size, std::vector<AccessEntry> access);
/// May the buffer have more memory than it shows?
bool commits_ahead(const BufferObject& buffer);
/// The physical allocations that the buffer maps, and what lies behind without a gap.
std::vector<model::MappingView> mappings_of(World& world, const BufferObject& buffer);
/// Chunks of the buffer that nobody has met yet were made just now, with that access; a worker
/// knows of no options but the resource's.
void note_chunks(World& world, const BufferObject& buffer, const std::vector<AccessEntry>& access);
/// The same of a buffer that was just allocated: what its chunks held for others is not its own.
void begin_chunks(World& world, const BufferObject& buffer, const std::vector<AccessEntry>& access);
/// What is known of the buffer's chunks, for when it has other ones.
std::vector<ChunkFacts> facts_of(World& world, const BufferObject& buffer);
/// Bytes that came into sight, by the chunks that they lie in: others may map the same memory.
void append_by_chunk(World& world, BufferObject& buffer, std::uint64_t from, std::uint64_t to,
                     const std::vector<AccessEntry>& access, bool imported);
/// The extent of bytes that a growth added.
void append_growth(World& world, BufferObject& buffer, std::uint64_t from, std::uint64_t to,
                   std::vector<AccessEntry> access);
/// Cuts what a buffer sees to `size` bytes.
void cut_segments(std::vector<Segment>& segments, std::uint64_t size);
std::uint64_t total_of(const std::vector<Segment>& segments);

}  // namespace granule::prop
