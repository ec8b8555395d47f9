// Streams and events of the program: hold, release, busy, record, wait, sync, captures, pauses.
#include <algorithm>

#include <granule/prop/text.hpp>

#include "invariants.hpp"
#include "order.hpp"

namespace granule::prop {
namespace {

/// The stream that operand `index` names, or null.
StreamObject* stream_operand(World& world, const Statement& s, std::size_t index) {
  const Name* name = s.operand<Name>(index);
  return name ? world.find_as<StreamObject>(name->text) : nullptr;
}

Reply no_stream_in_stream(const Statement& s) {
  return Reply::skipped("no such stream in " + to_text(s));
}

template <class C>
DriverStatus on_stream(World& world, const StreamObject& stream, C& call) {
  const DeviceScope scope(world, stream.device);
  call.stream = stream.handle;
  return world.harness_call(call);
}

Reply do_busy(World& world, const Statement& s) {
  StreamObject* stream = stream_operand(world, s, 0);
  if (!stream) return no_stream_in_stream(s);
  LaunchKernel launch;
  launch.kind = KernelKind::kSpin;
  launch.duration_ns = s.operand<Duration>(1)->nanoseconds;
  const DriverStatus status = on_stream(world, *stream, launch);
  if (status == DriverStatus::kSuccess && !world.is_capturing(stream->lane))
    world.timeline.enqueue(stream->lane);
  return Reply::of(status);
}

Reply do_hold(World& world, const Statement& s) {
  StreamObject* stream = stream_operand(world, s, 0);
  if (!stream) return no_stream_in_stream(s);
  const std::string name = world.expand(s.operand<Name>(0)->text);
  if (std::find(world.held.begin(), world.held.end(), name) != world.held.end()) return Reply::ok();
  if (world.is_capturing(stream->lane)) return Reply::skipped("the stream captures");
  CloseGate gate;
  const DriverStatus status = on_stream(world, *stream, gate);
  if (status == DriverStatus::kSuccess) world.held.push_back(name);
  return Reply::of(status);
}

Reply do_release(World& world, const Statement& s) {
  StreamObject* stream = stream_operand(world, s, 0);
  if (!stream) return no_stream_in_stream(s);
  const std::string name = world.expand(s.operand<Name>(0)->text);
  const auto held = std::find(world.held.begin(), world.held.end(), name);
  if (held == world.held.end()) return Reply::ok();
  OpenGate gate;
  const DriverStatus status = on_stream(world, *stream, gate);
  if (status == DriverStatus::kSuccess) world.held.erase(held);
  return Reply::of(status);
}

Reply do_record(World& world, const Statement& s) {
  StreamObject* stream = world.stream_of(s);
  if (!stream) return no_stream_in_stream(s);
  const DeviceScope scope(world, stream->device);
  const std::string& name = s.operand<Name>(0)->text;
  auto* event = world.find_as<EventObject>(name);
  if (!event) {
    if (world.find(name)) {
      const Reply dropped = drop_object(world, name, false);
      if (!dropped.success()) return dropped;
    }
    EventCreate create;
    const DriverStatus made = world.harness_call(create);
    if (made != DriverStatus::kSuccess) return Reply::of(made);
    world.bind(name, EventObject{create.event, {}, false});
    event = world.find_as<EventObject>(name);
  }
  EventRecord record;
  record.event = event->handle;
  const DriverStatus status = on_stream(world, *stream, record);
  if (status == DriverStatus::kSuccess && !world.is_capturing(stream->lane)) {
    event->clock = world.timeline.settle(stream->lane);
    event->recorded = true;
  }
  return Reply::of(status);
}

Reply do_wait(World& world, const Statement& s) {
  StreamObject* stream = world.stream_of(s);
  const Name* name = s.operand<Name>(0);
  auto* event = world.find_as<EventObject>(name->text);
  if (!stream) return no_stream_in_stream(s);
  if (!event) return Reply::skipped("no event `" + name->text + "`");
  StreamWaitEvent wait;
  wait.event = event->handle;
  const DriverStatus status = on_stream(world, *stream, wait);
  look_at_captures(world);  // a wait can take the stream into a capture
  if (status == DriverStatus::kSuccess && !world.is_capturing(stream->lane))
    world.timeline.wait(stream->lane, event->clock);
  return Reply::of(status);
}

/// The whole machine: the library may have used any device.
DriverStatus synchronize_all(World& world) {
  CtxSynchronize all;
  DriverStatus status = world.harness_call(all);
  const auto devices = static_cast<std::int32_t>(world.machine->oracle().config().devices.size());
  for (std::int32_t device = 1; device < devices && status == DriverStatus::kSuccess; ++device) {
    const DeviceScope scope(world, device);
    status = world.harness_call(all);
  }
  return status;
}

Reply do_sync(World& world, const Statement& s) {
  if (s.operands.empty()) {
    const DriverStatus status = synchronize_all(world);
    if (status == DriverStatus::kSuccess) world.timeline.host_learns_all();
    return Reply::of(status);
  }
  StreamObject* stream = stream_operand(world, s, 0);
  if (!stream) return no_stream_in_stream(s);
  StreamSynchronize sync;
  const DriverStatus status = on_stream(world, *stream, sync);
  if (status == DriverStatus::kSuccess)
    world.timeline.host_learns(stream->kind == StreamKind::kLegacy
                                   ? world.timeline.settle(stream->lane)
                                   : world.timeline.queued(stream->lane));
  return Reply::of(status);
}

/// Announces a stream to every resource, as its owner must before destroying it.
Reply announce(World& world, StreamObject& stream) {
  for (ResourceObject* resource : reachable_resources(world)) {
    if (!resource->target) continue;
    Result<Stream> bound = bound_stream(world, stream);
    if (!bound) return Reply::of(bound.error());
    const Status told = resource->target->forget(*bound);
    if (!told && told.error().code != ErrorCode::kUnsupported) return Reply::of(told);
  }
  return Reply::ok();
}

Reply do_stream_destroy(World& world, const Statement& s) {
  StreamObject* found = stream_operand(world, s, 0);
  if (!found) return no_stream_in_stream(s);
  StreamObject stream = *found;
  if (stream.kind != StreamKind::kCreated) return Reply::skipped("a default stream stays");
  found->announced = true;
  const Reply told = announce(world, stream);
  if (!told.success()) return told;
  // What a capture is destroyed with never runs; a marker of the work before it was set when it
  // began.
  if (!world.is_capturing(stream.lane))
    if (auto marker = record_marker(world, stream)) world.tails[stream.lane] = std::move(*marker);
  const auto gate =
      std::find(world.held.begin(), world.held.end(), world.expand(s.operand<Name>(0)->text));
  if (gate != world.held.end() && !world.machine->is_model()) {
    OpenGate open;  // nobody could open it later
    on_stream(world, stream, open);
  }
  StreamDestroy destroy;
  const DriverStatus status = on_stream(world, stream, destroy);
  if (status != DriverStatus::kSuccess) return Reply::of(status);
  std::erase(world.capturing_lanes, stream.lane);
  std::erase(world.held, world.expand(s.operand<Name>(0)->text));
  // The name stays for driver calls, which a program may make on a dead stream.
  world.bind(s.operand<Name>(0)->text,
             RawObject{RawObject::Kind::kDeadStream, stream.handle.value});
  return Reply::ok();
}

Reply do_pause(World& world, const Statement& s) {
  Pause pause;
  pause.duration_ns = s.operand<Duration>(0)->nanoseconds;
  return Reply::of(world.harness_call(pause));
}

/// Capture statements fail in the library's words.
Reply capture_reply(DriverStatus status) {
  Reply reply = Reply::of(status);
  if (reply.kind != Reply::Kind::kDriverError) return reply;
  reply.kind = Reply::Kind::kError;
  reply.detail = reply.word;
  reply.word = "driver";
  return reply;
}

Reply do_begin_capture(World& world, const Statement& s) {
  StreamObject* stream = stream_operand(world, s, 0);
  if (!stream) return no_stream_in_stream(s);
  const Word* mode = s.operand<Word>(1);
  StreamBeginCapture begin;
  if (mode && mode->text == "thread_local") begin.mode = CaptureMode::kThreadLocal;
  if (mode && mode->text == "relaxed") begin.mode = CaptureMode::kRelaxed;
  const auto marker = record_marker(world, *stream);  // of the work that is no part of the capture
  const DriverStatus status = on_stream(world, *stream, begin);
  if (status == DriverStatus::kSuccess && marker) world.tails[stream->lane] = *marker;
  look_at_captures(world);
  return capture_reply(status);
}

Reply do_end_capture(World& world, const Statement& s) {
  StreamObject* stream = stream_operand(world, s, 0);
  if (!stream) return no_stream_in_stream(s);
  StreamEndCapture end;
  const DriverStatus status = on_stream(world, *stream, end);
  look_at_captures(world);
  if (!world.is_capturing(stream->lane)) world.tails.erase(stream->lane);
  if (status == DriverStatus::kSuccess && end.graph) {
    GraphDestroy destroy;
    destroy.graph = end.graph;
    world.harness_call(destroy);
  }
  return capture_reply(status);
}

}  // namespace

void add_stream_handlers(std::vector<Handler>& table) {
  set_handler(table, Verb::kBusy, do_busy);
  set_handler(table, Verb::kHold, do_hold);
  set_handler(table, Verb::kRelease, do_release);
  set_handler(table, Verb::kRecord, do_record);
  set_handler(table, Verb::kWait, do_wait);
  set_handler(table, Verb::kSync, do_sync);
  set_handler(table, Verb::kDestroy, do_stream_destroy);
  set_handler(table, Verb::kPause, do_pause);
  set_handler(table, Verb::kBeginCapture, do_begin_capture);
  set_handler(table, Verb::kEndCapture, do_end_capture);
}

}  // namespace granule::prop
