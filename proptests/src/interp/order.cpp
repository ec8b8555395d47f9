// The interpreter's own ordering: unfinished work on a buffer's bytes goes before its release, and
// work on further streams behind a stream-ordered allocation. Calls here are never counted.
#include <algorithm>
#include <iterator>

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

/// A call on the null stream while a blocking stream captures would end that capture.
bool would_disturb(World& world, const StreamObject& stream) {
  if (stream.kind != StreamKind::kLegacy) return false;
  return std::any_of(world.capturing_lanes.begin(), world.capturing_lanes.end(),
                     [&](Lane capturing) {
                       return world.timeline.kind(capturing) == Timeline::Kind::kBlocking &&
                              world.timeline.device(capturing) == stream.device;
                     });
}

bool wait_for(World& world, const StreamObject& waiting, EventHandle event, const Clock& clock) {
  if (would_disturb(world, waiting)) return false;
  const DeviceScope scope(world, waiting.kind == StreamKind::kCreated ? 0 : waiting.device);
  StreamWaitEvent wait;
  wait.stream = waiting.handle;
  wait.event = event;
  if (world.harness_call(wait) != DriverStatus::kSuccess) return false;
  world.timeline.wait(waiting.lane, clock);
  return true;
}

/// Calls act(event, clock) with an event behind everything queued on `lane` so far; false if none
/// can be had. The event is only lent.
template <class Act>
bool with_marker(World& world, Lane lane, Act&& act) {
  const auto tail = world.tails.find(lane);
  if (tail != world.tails.end()) {
    act(tail->second.first, tail->second.second);
    return true;
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
  if (!stream) return false;
  const auto marker = record_marker(world, *stream);
  if (!marker) return false;
  act(marker->first, marker->second);
  world.give_event(stream->device, marker->first);
  return true;
}

/// The host waits for the event, legally whatever captures.
DriverStatus host_waits(World& world, EventHandle event, const Clock& clock) {
  ThreadExchangeStreamCaptureMode mode;
  mode.mode = CaptureMode::kRelaxed;
  const bool relaxed = world.harness_call(mode) == DriverStatus::kSuccess;
  EventSynchronize wait;
  wait.event = event;
  const DriverStatus status = world.harness_call(wait);
  if (status == DriverStatus::kSuccess) world.timeline.host_learns(clock);
  if (relaxed) {
    mode.mode = mode.previous;
    world.harness_call(mode);
  }
  return status;
}

}  // namespace

std::optional<std::pair<EventHandle, Clock>> record_marker(World& world,
                                                           const StreamObject& stream) {
  if (would_disturb(world, stream)) return std::nullopt;
  const DeviceScope scope(world, stream.device);
  const EventHandle event = world.take_event(stream.device);
  if (!event) return std::nullopt;
  EventRecord record;
  record.event = event;
  record.stream = stream.handle;
  if (world.harness_call(record) != DriverStatus::kSuccess) {
    world.give_event(stream.device, event);
    return std::nullopt;
  }
  return std::pair{event, world.timeline.settle(stream.lane)};
}

namespace {

/// Calls act(event, clock) with an event behind each piece of work on these bytes that is wanted.
/// The list is taken as it is now: where the host waits, another thread may add to it.
template <class Wanted, class Act>
void with_markers(World& world, const std::vector<Segment>& segments, Wanted&& wanted, Act&& act) {
  for (const Segment& segment : segments) {
    const std::vector<Stamp> uses = segment.extent->uses();
    for (const Stamp& use : uses) {
      if (use.lane == kHostLane || !wanted(use)) continue;
      if (!with_marker(world, use.lane, act))
        world.misused = true;  // nothing can be put in between
    }
  }
}

}  // namespace

void remember_release(World& world, ResourceObject& resource,
                      const std::vector<Segment>& segments) {
  const auto is_open = [&](const Segment& segment) {
    const std::vector<Stamp>& uses = segment.extent->uses();
    return std::any_of(uses.begin(), uses.end(),
                       [&](const Stamp& use) { return !world.timeline.host().covers(use); });
  };
  std::erase_if(resource.released, [&](const Segment& segment) { return !is_open(segment); });
  std::copy_if(segments.begin(), segments.end(), std::back_inserter(resource.released), is_open);
}

DriverStatus order_before_release(World& world, const std::vector<Segment>& segments,
                                  const StreamObject& stream, Lane lane,
                                  const std::vector<Lane>& named) {
  const bool gone = stream.lane != lane || stream.announced;
  // A capturing stream takes no waits of ours: the release is parked, and the host has to wait.
  const bool on_host = gone || world.is_capturing(stream.lane);
  DriverStatus status = DriverStatus::kSuccess;
  std::vector<Lane> done;
  const auto is_the_library_s = [&](Lane used) {
    if (std::find(named.begin(), named.end(), used) == named.end()) return false;
    const StreamObject* const its = stream_of_lane(world, used);
    return its && !its->announced && !world.is_capturing(used);
  };
  const auto is_open = [&](const Stamp& use) {
    if (use.lane == stream.lane && !gone) return false;
    if (is_the_library_s(use.lane)) return false;
    if (std::find(done.begin(), done.end(), use.lane) != done.end()) return false;
    const Clock known = on_host ? world.timeline.host() : world.timeline.queued(stream.lane);
    if (known.covers(use)) return false;
    if (world.is_capturing(use.lane) && world.tails.count(use.lane) == 0) {
      world.misused = true;  // nothing stands for the work before the capture
      return false;
    }
    done.push_back(use.lane);
    return true;
  };
  with_markers(world, segments, is_open, [&](EventHandle event, const Clock& clock) {
    if (!on_host && wait_for(world, stream, event, clock)) return;
    // Nothing can be put in front of that stream: the host waits.
    if (status == DriverStatus::kSuccess) status = host_waits(world, event, clock);
  });
  return status;
}

DriverStatus settle_on_host(World& world, const std::vector<Segment>& segments,
                            std::int32_t device) {
  DriverStatus status = DriverStatus::kSuccess;
  const auto is_open = [&](const Stamp& use) {
    return world.timeline.device(use.lane) == device && !world.timeline.host().covers(use) &&
           status == DriverStatus::kSuccess;
  };
  with_markers(world, segments, is_open, [&](EventHandle event, const Clock& clock) {
    status = host_waits(world, event, clock);
  });
  return status;
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
  Readiness& ready = buffer.ready;
  auto& waited = ready.lanes;
  if (!ready.event || std::find(waited.begin(), waited.end(), stream.lane) != waited.end()) return;
  if (world.is_capturing(stream.lane)) return;
  if (wait_for(world, stream, ready.event, ready.clock)) waited.push_back(stream.lane);
}

}  // namespace granule::prop
