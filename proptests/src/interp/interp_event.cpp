// Driver calls of events, streams and contexts.
#include <algorithm>

#include "args.hpp"

namespace granule::prop {
namespace {

Reply do_event_create(World& world, const Statement& s) {
  Args args(world, s);
  EventCreate call;
  call.flags = static_cast<std::uint32_t>(args.size("flags", call.flags));
  const DriverStatus status = world.program_call(call);
  if (status != DriverStatus::kSuccess) return Reply::of(status);
  if (!s.target.empty()) world.bind(s.target, EventObject{call.event, {}, false});
  return Reply::ok();
}

Reply do_event_destroy(World& world, const Statement& s) {
  Args args(world, s);
  EventDestroy call;
  call.event = args.event(0);
  if (args.missing()) return args.skip();
  const DriverStatus status = world.program_call(call);
  if (status == DriverStatus::kSuccess) world.unbind(s.operand<Address>(0)->name);
  return Reply::of(status);
}

/// The event object that operand `index` names, or null.
EventObject* event_object(World& world, const Statement& s, std::size_t index) {
  const Address* operand = s.operand<Address>(index);
  return operand ? world.find_as<EventObject>(operand->name) : nullptr;
}

Reply do_event_record(World& world, const Statement& s) {
  Args args(world, s);
  EventRecord call;
  call.event = args.event(0);
  StreamObject* stream = args.stream();
  if (args.missing()) return args.skip();
  const DriverStatus status = program_call_on(world, *stream, call);
  EventObject* event = event_object(world, s, 0);
  if (status == DriverStatus::kSuccess && event && !world.is_capturing(stream->lane)) {
    event->clock = world.timeline.settle(stream->lane);
    event->recorded = true;
  }
  return Reply::of(status);
}

template <class C>
Reply event_call(World& world, const Statement& s) {
  Args args(world, s);
  C call;
  call.event = args.event(0);
  if (args.missing()) return args.skip();
  const DriverStatus status = world.program_call(call);
  const EventObject* event = event_object(world, s, 0);
  if (status == DriverStatus::kSuccess && event) world.timeline.host_learns(event->clock);
  return Reply::of(status);
}

Reply do_wait_event(World& world, const Statement& s) {
  Args args(world, s);
  StreamWaitEvent call;
  StreamObject* stream = args.stream(0);
  call.event = args.event(1);
  call.flags = static_cast<std::uint32_t>(args.size("flags"));
  if (args.missing()) return args.skip();
  const DriverStatus status = program_call_on(world, *stream, call);
  const EventObject* event = event_object(world, s, 1);
  look_at_captures(world);
  if (status == DriverStatus::kSuccess && event && !world.is_capturing(stream->lane))
    world.timeline.wait(stream->lane, event->clock);
  return Reply::of(status);
}

template <class C>
Reply stream_call(World& world, const Statement& s) {
  Args args(world, s);
  C call;
  StreamObject* stream = args.stream(0);
  if (args.missing()) return args.skip();
  const DriverStatus status = program_call_on(world, *stream, call);
  if (status == DriverStatus::kSuccess)
    world.timeline.host_learns(world.timeline.settle(stream->lane));
  return Reply::of(status);
}

Reply do_is_capturing(World& world, const Statement& s) {
  Args args(world, s);
  StreamIsCapturing call;
  StreamObject* stream = args.stream(0);
  if (args.missing()) return args.skip();
  const DriverStatus status = program_call_on(world, *stream, call);
  if (status != DriverStatus::kSuccess) return Reply::of(status);
  return Reply::word_of(trace::spelling(call.status));
}

Reply do_ctx_synchronize(World& world, const Statement&) {
  CtxSynchronize call;
  const DriverStatus status = world.program_call(call);
  if (status == DriverStatus::kSuccess) world.timeline.host_learns_all();
  return Reply::of(status);
}

Reply do_ctx_create(World& world, const Statement& s) {
  Args args(world, s);
  CtxCreate call;
  call.device.value = static_cast<std::int32_t>(args.size(0));
  call.flags = static_cast<std::uint32_t>(args.size("flags"));
  const DriverStatus status = world.program_call(call);
  if (status != DriverStatus::kSuccess) return Reply::of(status);
  world.contexts.push_back(call.context);
  world.bind_raw(s, RawObject::Kind::kContext, call.context.value);
  return Reply::ok();
}

Reply do_ctx_destroy(World& world, const Statement& s) {
  Args args(world, s);
  CtxDestroy call;
  call.context.value = args.address(0);
  if (args.missing()) return args.skip();
  const DriverStatus status = world.program_call(call);
  if (status == DriverStatus::kSuccess) std::erase(world.contexts, call.context);
  return Reply::of(status);
}

Reply do_primary_retain(World& world, const Statement& s) {
  DevicePrimaryCtxRetain call;
  call.device.value = static_cast<std::int32_t>(Args(world, s).size(0));
  const DriverStatus status = world.program_call(call);
  if (status != DriverStatus::kSuccess) return Reply::of(status);
  world.bind_raw(s, RawObject::Kind::kContext, call.context.value);
  return Reply::ok();
}

template <class C>
Reply primary_call(World& world, const Statement& s) {
  C call;
  call.device.value = static_cast<std::int32_t>(Args(world, s).size(0));
  return Reply::of(world.program_call(call));
}

}  // namespace

void add_event_handlers(std::vector<Handler>& table) {
  set_handler(table, Verb::kCuEventCreate, do_event_create);
  set_handler(table, Verb::kCuEventDestroy, do_event_destroy);
  set_handler(table, Verb::kCuEventRecord, do_event_record);
  set_handler(table, Verb::kCuEventQuery, event_call<EventQuery>);
  set_handler(table, Verb::kCuEventSynchronize, event_call<EventSynchronize>);
  set_handler(table, Verb::kCuStreamWaitEvent, do_wait_event);
  set_handler(table, Verb::kCuStreamQuery, stream_call<StreamQuery>);
  set_handler(table, Verb::kCuStreamSynchronize, stream_call<StreamSynchronize>);
  set_handler(table, Verb::kCuStreamIsCapturing, do_is_capturing);
  set_handler(table, Verb::kCuCtxSynchronize, do_ctx_synchronize);
  set_handler(table, Verb::kCuCtxCreate, do_ctx_create);
  set_handler(table, Verb::kCuCtxDestroy, do_ctx_destroy);
  set_handler(table, Verb::kCuDevicePrimaryCtxRetain, do_primary_retain);
  set_handler(table, Verb::kCuDevicePrimaryCtxRelease, primary_call<DevicePrimaryCtxRelease>);
  set_handler(table, Verb::kCuDevicePrimaryCtxReset, primary_call<DevicePrimaryCtxReset>);
}

}  // namespace granule::prop
