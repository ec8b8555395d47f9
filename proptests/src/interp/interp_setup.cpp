// Setup statements: needs, devices, streams, contexts.
#include <algorithm>

#include "world.hpp"

namespace granule::prop {
namespace {

Reply do_needs(World&, const Statement&) { return Reply::ok(); }  // met before the run began

Reply do_device(World&, const Statement&) { return Reply::ok(); }  // part of the machine

StreamKind stream_kind(std::string_view word) {
  if (word == "legacy") return StreamKind::kLegacy;
  if (word == "per_thread") return StreamKind::kPerThread;
  return StreamKind::kCreated;
}

Reply do_stream(World& world, const Statement& s) {
  const std::string& name = s.operand<Name>(0)->text;
  const Word* word = s.operand<Word>(1);
  const std::string_view how = word ? std::string_view(word->text) : "nonblocking";
  if (world.find(name)) {
    const Reply dropped = drop_object(world, name, false);
    if (!dropped.success()) return dropped;
  }
  StreamObject stream;
  stream.kind = stream_kind(how);
  if (const Size* device = s.value<Size>("device"))
    stream.device = static_cast<std::int32_t>(world.eval(*device));
  if (stream.device < 0 || static_cast<std::size_t>(stream.device) >= world.free_at_start.size())
    return Reply::skipped("no device " + std::to_string(stream.device));
  const DeviceScope scope(world, stream.device);
  if (stream.kind == StreamKind::kLegacy) {
    stream.handle = kLegacyStream;
    stream.lane = world.legacy_lane(stream.device);
  } else if (stream.kind == StreamKind::kPerThread) {
    stream.handle = kPerThreadStream;
    stream.lane = world.timeline.add_lane(Timeline::Kind::kBlocking, stream.device);
  } else {
    StreamCreate create;
    create.flags = how == "blocking" ? kStreamDefault : kStreamNonBlocking;
    const DriverStatus status = world.harness_call(create);
    if (status != DriverStatus::kSuccess) return Reply::of(status);
    stream.handle = create.stream;
    stream.lane = world.timeline.add_lane(
        how == "blocking" ? Timeline::Kind::kBlocking : Timeline::Kind::kNonBlocking,
        stream.device);
  }
  (void)bound_stream(world, stream);  // a stream cannot be bound while it captures
  world.bind(name, std::move(stream));
  return Reply::ok();
}

Reply do_context(World& world, const Statement& s) {
  const std::string& name = s.operand<Name>(0)->text;
  CtxSetCurrent current;
  if (name == "never" || name == "no_init") return Reply::ok();  // the run began so
  if (name == "primary") {
    current.context = world.primary_of(0);
  } else if (name != "none") {
    const auto* raw = world.find_as<RawObject>(name);
    if (!raw || raw->kind != RawObject::Kind::kContext)
      return Reply::skipped("no context `" + name + "`");
    current.context.value = raw->value;
  } else {
    world.any_bare_thread = true;
  }
  return Reply::of(world.harness_call(current));
}

}  // namespace

void add_setup_handlers(std::vector<Handler>& table) {
  set_handler(table, Verb::kNeeds, do_needs);
  set_handler(table, Verb::kDevice, do_device);
  set_handler(table, Verb::kStream, do_stream);
  set_handler(table, Verb::kContext, do_context);
}

StreamObject stream_named(World& world, std::string_view name, std::int32_t device) {
  if (!name.empty())
    if (const auto* found = world.find_as<StreamObject>(name)) return *found;
  StreamObject stream;
  stream.kind = StreamKind::kLegacy;
  stream.handle = kLegacyStream;
  stream.device = std::max(device, 0);
  stream.lane = world.legacy_lane(stream.device);
  return stream;
}

namespace {

bool captures_nothing(const Program& program) {
  return std::none_of(program.statements.begin(), program.statements.end(),
                      [](const Statement& s) { return s.verb == Verb::kBeginCapture; });
}

}  // namespace

Result<Stream> bound_stream(World& world, StreamObject& stream) {
  if (stream.bound) return *stream.bound;
  const OriginScope scope(CallOrigin::kHarness);
  const DeviceId device{stream.device};
  if (stream.kind == StreamKind::kLegacy) {
    stream.bound = Stream::legacy(device);
    return *stream.bound;
  }
  BindOptions promises;
  promises.never_captures = world.options.promise_no_captures && captures_nothing(world.program);
  Result<Stream> bound = stream.kind == StreamKind::kPerThread
                             ? Stream::per_thread(world.driver(), device)
                             : Stream::bind(world.driver(), stream.handle, promises);
  if (bound) stream.bound = *bound;
  return bound;
}

}  // namespace granule::prop
