// The interpreter's own ordering: unfinished work on a buffer's bytes goes before its release, and
// work on further streams behind a stream-ordered allocation. Calls here are never counted.
#include <algorithm>

#include "order.hpp"

namespace granule::prop {
namespace {

/// The stream object of a lane, or null if the stream was destroyed.
const StreamObject* stream_of_lane(World& world, Lane lane) {
  for (const auto& [name, object] : world.objects) {
    const auto* stream = std::get_if<StreamObject>(&object);
    if (stream && stream->lane == lane) return stream;
  }
  return nullptr;
}

bool wait_for(World& world, const StreamObject& waiting, EventHandle event, const Clock& clock) {
  const DeviceScope scope(world, waiting.kind == StreamKind::kCreated ? 0 : waiting.device);
  StreamWaitEvent wait;
  wait.stream = waiting.handle;
  wait.event = event;
  if (world.harness_call(wait) != DriverStatus::kSuccess) return false;
  world.timeline.wait(waiting.lane, clock);
  return true;
}

/// Everything queued on `lane` so far goes before what comes on `waiting`.
void order_lane(World& world, Lane lane, const StreamObject& waiting) {
  const auto tail = world.tails.find(lane);
  if (tail != world.tails.end()) {
    wait_for(world, waiting, tail->second.first, tail->second.second);
    return;
  }
  StreamObject legacy;
  const StreamObject* stream = stream_of_lane(world, lane);
  if (!stream) {
    for (std::size_t device = 0; device < world.legacy_lanes.size(); ++device)
      if (world.legacy_lanes[device] == lane) {
        legacy = stream_named(world, "", static_cast<std::int32_t>(device));
        stream = &legacy;
      }
  }
  if (!stream) return;
  const auto marker = record_marker(world, *stream);
  if (!marker) return;
  wait_for(world, waiting, marker->first, marker->second);
  world.give_event(marker->first);
}

}  // namespace

std::optional<std::pair<EventHandle, Clock>> record_marker(World& world,
                                                           const StreamObject& stream) {
  const DeviceScope scope(world, stream.device);
  const EventHandle event = world.take_event();
  if (!event) return std::nullopt;
  EventRecord record;
  record.event = event;
  record.stream = stream.handle;
  if (world.harness_call(record) != DriverStatus::kSuccess) {
    world.give_event(event);
    return std::nullopt;
  }
  return std::pair{event, world.timeline.settle(stream.lane)};
}

void order_before_release(World& world, const std::vector<Segment>& segments,
                          const StreamObject& stream) {
  if (world.is_capturing(stream.lane)) return;
  std::vector<Lane> done;
  for (const Segment& segment : segments) {
    for (const Stamp& use : segment.extent->uses()) {
      if (use.lane == stream.lane || use.lane == kHostLane) continue;
      if (std::find(done.begin(), done.end(), use.lane) != done.end()) continue;
      if (world.timeline.queued(stream.lane).covers(use)) continue;
      if (world.is_capturing(use.lane) && world.tails.count(use.lane) == 0) continue;
      done.push_back(use.lane);
      order_lane(world, use.lane, stream);
    }
  }
}

void note_unordered_release(World& world, const std::vector<Segment>& segments,
                            const StreamObject& stream, Lane replaced) {
  for (const Segment& segment : segments) {
    for (const Stamp& use : segment.extent->uses()) {
      if (use.lane == stream.lane || world.timeline.settle(stream.lane).covers(use)) continue;
      if (segment.extent->is_told(use.lane) && use.lane != replaced) continue;
      world.misused = true;
    }
  }
}

void order_behind_allocation(World& world, BufferObject& buffer, const StreamObject& stream) {
  if (!buffer.ready || stream.lane == buffer.lane) return;
  auto& waited = buffer.ready_lanes;
  if (std::find(waited.begin(), waited.end(), stream.lane) != waited.end()) return;
  if (world.is_capturing(stream.lane)) return;
  if (wait_for(world, stream, buffer.ready, buffer.ready_clock)) waited.push_back(stream.lane);
}

}  // namespace granule::prop
