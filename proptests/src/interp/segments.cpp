// Which bytes a buffer sees, and the chunks that they lie in where a resource commits ahead.
#include "segments.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "../sched/host_order.hpp"

namespace granule::prop {

std::vector<Segment> fresh_segments(std::uint64_t size, std::vector<AccessEntry> access) {
  if (size == 0) return {};
  return {{std::make_shared<Extent>(size), 0, size, std::move(access)}};
}

// May the buffer have more memory than it shows?
bool commits_ahead(const BufferObject& buffer) {
  const VmmOptions& policy = buffer.resource->options.vmm;
  return policy.commit_ahead != 0 || policy.slack_percent != 0 || policy.fit_percent != 0;
}

// The physical allocations that the buffer maps, and what lies behind without a gap.
std::vector<model::MappingView> mappings_of(World& world, const BufferObject& buffer) {
  constexpr std::uint64_t kFar = std::uint64_t{1} << 48;  // beyond all addresses
  std::vector<model::MappingView> found;
  std::uint64_t end = buffer.buffer->ptr().value;
  for (const auto& mapping : world.oracle().mappings_in(end, kFar)) {
    if (mapping.base > end) break;
    end = mapping.base + mapping.size;
    found.push_back(mapping);
  }
  return found;
}

// Chunks of the buffer that nobody has met yet were made just now, with that access; a worker
// knows of no options but the resource's.
void note_chunks(World& world, const BufferObject& buffer, const std::vector<AccessEntry>& access) {
  if (!commits_ahead(buffer)) return;
  const std::uint64_t end = buffer.buffer->ptr().value + buffer.buffer->size();
  const auto last = world.oracle().reservation_at(end - 1);
  for (const model::MappingView& mapping : mappings_of(world, buffer)) {
    // Of a neighbour in the address space, whose own statement is still under way.
    if (world.threaded && world.threaded->is_of_another(mapping.handle)) continue;
    const bool by_worker = world.threaded && world.threaded->is_of_worker(mapping.handle);
    // A worker's that nobody sees yet, in other addresses: it may be a neighbour's worker.
    if (by_worker && mapping.base >= end && last && mapping.base >= last->base + last->size)
      continue;
    world.chunks.try_emplace(
        mapping.allocation,
        ChunkFacts{{}, by_worker ? buffer.resource->access : access, buffer.resource.get()});
  }
}

namespace {

/// Somebody's name stands for those bytes.
bool is_seen(World& world, const std::shared_ptr<Extent>& extent) {
  const auto among = [&](const std::vector<Segment>& segments) {
    return std::any_of(segments.begin(), segments.end(),
                       [&](const Segment& segment) { return segment.extent == extent; });
  };
  return std::any_of(world.objects.begin(), world.objects.end(), [&](const auto& entry) {
    const auto* buffer = std::get_if<BufferObject>(&entry.second);
    if (buffer)
      return among(buffer->segments) ||
             std::any_of(buffer->put_away.begin(), buffer->put_away.end(),
                         [&](const ChunkFacts& chunk) { return chunk.extent.lock() == extent; });
    const auto* holder = std::get_if<HolderObject>(&entry.second);
    const auto* bundle = std::get_if<BundleObject>(&entry.second);
    return (holder && among(holder->segments)) || (bundle && among(bundle->segments));
  });
}

}  // namespace

// The buffer is new: whatever its chunks held for others is nothing of its own, also where it
// reaches further than it shows, or into another reservation. What others see there is theirs.
void begin_chunks(World& world, const BufferObject& buffer,
                  const std::vector<AccessEntry>& access) {
  note_chunks(world, buffer, access);
  if (!commits_ahead(buffer)) return;
  const auto own = world.oracle().reservation_at(buffer.buffer->ptr().value);
  for (const model::MappingView& mapping : mappings_of(world, buffer)) {
    const auto found = world.chunks.find(mapping.allocation);
    if (found == world.chunks.end()) continue;
    const std::shared_ptr<Extent> extent = found->second.extent.lock();
    const bool behind = !own || mapping.base >= own->base + own->size;
    if (behind && extent && is_seen(world, extent)) break;
    found->second.extent.reset();
  }
}

// What is known of the buffer's chunks, for when it has other ones.
std::vector<ChunkFacts> facts_of(World& world, const BufferObject& buffer) {
  std::vector<ChunkFacts> facts;
  if (!commits_ahead(buffer)) return facts;
  for (const model::MappingView& mapping : mappings_of(world, buffer)) {
    const auto found = world.chunks.find(mapping.allocation);
    if (found == world.chunks.end()) break;
    facts.push_back({{}, found->second.access, found->second.resource});
  }
  return facts;
}

// Bytes that came into sight, by the chunks that they lie in: others may map the same memory.
void append_by_chunk(World& world, BufferObject& buffer, std::uint64_t from, std::uint64_t to,
                     const std::vector<AccessEntry>& access, bool imported) {
  const std::uint64_t base = buffer.buffer->ptr().value;
  for (const auto& mapping : world.oracle().mappings_in(base + from, to - from)) {
    const std::uint64_t begin = std::max(mapping.base, base + from);
    const std::uint64_t end = std::min(mapping.base + mapping.size, base + to);
    ChunkFacts& chunk = world.chunks[mapping.allocation];
    std::shared_ptr<Extent> extent = chunk.extent.lock();
    if (!extent) chunk.extent = extent = std::make_shared<Extent>(mapping.size);
    if (imported) chunk.shared = extent;
    const bool own = chunk.resource == buffer.resource.get();
    buffer.segments.push_back(
        {extent, begin - mapping.base, end - begin, own ? chunk.access : access});
  }
}

// The extent of bytes that a growth added.
void append_growth(World& world, BufferObject& buffer, std::uint64_t from, std::uint64_t to,
                   std::vector<AccessEntry> access) {
  if (from >= to) return;
  note_chunks(world, buffer, access);
  if (commits_ahead(buffer)) return append_by_chunk(world, buffer, from, to, access, false);
  buffer.segments.push_back({std::make_shared<Extent>(to - from), 0, to - from, std::move(access)});
}

// Cuts what a buffer sees to `size` bytes.
void cut_segments(std::vector<Segment>& segments, std::uint64_t size) {
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (at + segments[i].length <= size) {
      at += segments[i].length;
      continue;
    }
    segments[i].length = size - at;
    segments.resize(segments[i].length > 0 ? i + 1 : i);
    return;
  }
}

std::uint64_t total_of(const std::vector<Segment>& segments) {
  std::uint64_t total = 0;
  for (const Segment& segment : segments) total += segment.length;
  return total;
}

}  // namespace granule::prop
