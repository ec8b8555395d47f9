// Work on the bytes of buffers: fill, copy, use, and check.
#include <algorithm>

#include <granule/backends/names.hpp>

#include "order.hpp"

namespace granule::prop {
namespace {

/// A range of a buffer that can be worked on, or why not.
struct Bytes {
  BufferObject* buffer = nullptr;
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  Reply problem;
  std::uint64_t address() const { return buffer->buffer->ptr().value + from; }
  std::uint64_t size() const { return to - from; }
};

Reply library_error(ErrorCode code) {
  Error error;
  error.code = code;
  return Reply::of(error);
}

Bytes bytes_of(World& world, const Range& range) {
  Bytes bytes;
  bytes.buffer = world.find_as<BufferObject>(range.name);
  if (!bytes.buffer) {
    bytes.problem = Reply::skipped("no buffer `" + range.name + "`");
  } else if (bytes.buffer->buffer->is_closed()) {
    bytes.problem = library_error(ErrorCode::kClosed);
  } else if (bytes.buffer->suspended) {
    bytes.problem = library_error(ErrorCode::kSuspended);
  } else {
    const std::uint64_t size = bytes.buffer->buffer->size();
    bytes.from = range.whole ? 0 : world.eval(range.from);
    bytes.to = !range.whole && range.to ? world.eval(*range.to) : size;
    if (bytes.from > bytes.to || bytes.to > size)
      bytes.problem = Reply::skipped("the range ends behind the buffer");
  }
  return bytes;
}

/// The stream that `on` names, or the legacy stream of the buffer's device; nothing if it is gone.
std::optional<StreamObject> work_stream(World& world, const Statement& s,
                                        const BufferObject& buffer) {
  const Name* name = s.value<Name>("on");
  if (!name) return stream_named(world, "", buffer.resource->device);
  const auto* found = world.find_as<StreamObject>(name->text);
  if (!found) return std::nullopt;
  return *found;
}

Reply no_stream(const Statement& s) {
  return Reply::skipped("no stream `" + s.value<Name>("on")->text + "`");
}

template <class C>
DriverStatus work_call(World& world, const StreamObject& stream, C& call) {
  const DeviceScope scope(world, stream.device);
  call.stream = stream.handle;
  return world.harness_call(call);
}

/// What these operations had a part in is unknown, wherever copies have taken it.
void spoil(World& world, const std::vector<Stamp>& operations) {
  const auto in = [](const std::vector<Segment>& segments, const Stamp& op) {
    for (const Segment& segment : segments) segment.extent->spoil(op);
  };
  for (const Stamp& op : operations) {
    for (auto& [name, object] : world.objects) {
      if (const auto* buffer = std::get_if<BufferObject>(&object)) in(buffer->segments, op);
      if (const auto* holder = std::get_if<HolderObject>(&object)) in(holder->segments, op);
      if (const auto* bundle = std::get_if<BundleObject>(&object)) in(bundle->segments, op);
    }
  }
}

Reply do_fill(World& world, const Statement& s) {
  Bytes bytes = bytes_of(world, *s.operand<Range>(0));
  if (!bytes.problem.success()) return bytes.problem;
  const auto stream = work_stream(world, s, *bytes.buffer);
  if (!stream) return no_stream(s);
  if (bytes.size() == 0) return Reply::ok();
  if (!s.has("unordered")) order_behind_allocation(world, *bytes.buffer, *stream);
  MemsetD8Async fill;
  fill.ptr.value = bytes.address();
  fill.value = s.operand<Byte>(1)->value;
  fill.size = bytes.size();
  const DriverStatus status = work_call(world, *stream, fill);
  if (status != DriverStatus::kSuccess || world.is_capturing(stream->lane))
    return Reply::of(status);
  const Stamp op = world.timeline.enqueue(stream->lane);
  const Clock& clock = world.timeline.settle(stream->lane);
  for (const Part& part : parts_of(bytes.buffer->segments, bytes.from, bytes.to))
    spoil(world,
          part.extent->write(part.begin, part.end, fill.value, op, clock, world.timeline.host()));
  return Reply::ok();
}

/// What a copy that knows `clock` reads from a part: runs in the buffer's own offsets.
void shadow_copy(World& world, Bytes& to, Bytes& from, const Stamp& op, const Clock& clock) {
  for (const Part& part : parts_of(from.buffer->segments, from.from, from.to)) {
    std::vector<Extent::Cell> cells;
    for (const Extent::Cell& cell : part.extent->cells()) {
      if (cell.end <= part.begin || cell.begin >= part.end) continue;
      cells.push_back(cell);
      cells.back().begin = std::max(cell.begin, part.begin);
      cells.back().end = std::min(cell.end, part.end);
    }
    part.extent->touch(op);
    for (const Extent::Cell& cell : cells) {
      const bool settled = std::all_of(cell.writers.begin(), cell.writers.end(),
                                       [&](const Stamp& w) { return clock.covers(w); });
      const auto value = settled ? cell.value : std::nullopt;
      const std::uint64_t start = part.offset - from.from + (cell.begin - part.begin) + to.from;
      for (const Part& target :
           parts_of(to.buffer->segments, start, start + (cell.end - cell.begin))) {
        spoil(world, target.extent->write(target.begin, target.end, value, op, clock,
                                          world.timeline.host(), cell.sources));
        part.extent->add_reader({cell.begin, cell.end, op});
      }
    }
  }
}

/// Memory of the host that nobody has access to: the process would die of a copy.
bool is_closed_to_all(const BufferObject& buffer) {
  const TargetOptions& options = buffer.resource->options;
  if (options.kind != TargetOptions::Kind::kVmm ||
      options.vmm.location.type == LocationType::kDevice)
    return false;
  return std::any_of(buffer.segments.begin(), buffer.segments.end(),
                     [](const Segment& segment) { return segment.access.empty(); });
}

/// Both sides are memory of the host that the host reaches in part: the process would die, too.
bool would_die_of_copy(World& world, const Bytes& to, const Bytes& from, std::uint64_t size) {
  const model::DriverState& driver = world.oracle();
  const auto written = driver.host_reach(to.address(), size, Access::kReadWrite);
  const auto read = driver.host_reach(from.address(), size, Access::kRead);
  if (written == model::HostReach::kNone || read == model::HostReach::kNone) return false;
  return written == model::HostReach::kPart || read == model::HostReach::kPart;
}

Reply do_copy(World& world, const Statement& s) {
  Bytes to = bytes_of(world, *s.operand<Range>(0));
  if (!to.problem.success()) return to.problem;
  Bytes from = bytes_of(world, *s.operand<Range>(1));
  if (!from.problem.success()) return from.problem;
  const std::uint64_t size = world.eval(*s.operand<Size>(2));
  if (size > to.size() || size > from.size())
    return Reply::skipped("the copy ends behind a buffer");
  const auto stream = work_stream(world, s, *to.buffer);
  if (!stream) return no_stream(s);
  if (size == 0) return Reply::ok();
  if (is_closed_to_all(*to.buffer) || is_closed_to_all(*from.buffer))
    return Reply::skipped("nobody has access to that memory of the host");
  if (would_die_of_copy(world, to, from, size))
    return Reply::skipped("the CPU copies, and the host may not reach all of it");
  to.to = to.from + size;
  from.to = from.from + size;
  if (!s.has("unordered")) {
    order_behind_allocation(world, *to.buffer, *stream);
    order_behind_allocation(world, *from.buffer, *stream);
  }
  MemcpyDtoDAsync copy;
  copy.dst.value = to.address();
  copy.src.value = from.address();
  copy.size = size;
  const DriverStatus status = work_call(world, *stream, copy);
  if (status != DriverStatus::kSuccess || world.is_capturing(stream->lane))
    return Reply::of(status);
  const Stamp op = world.timeline.enqueue(stream->lane);
  const Clock clock = world.timeline.settle(stream->lane);
  shadow_copy(world, to, from, op, clock);
  return Reply::ok();
}

/// The access that a device was promised for all of a range.
Access promised_access(const BufferObject& buffer, std::uint64_t from, std::uint64_t to,
                       std::int32_t device) {
  Access least = Access::kReadWrite;
  std::uint64_t at = 0;
  for (const Segment& segment : buffer.segments) {
    const std::uint64_t begin = at;
    at += segment.length;
    if (begin >= to || at <= from) continue;
    Access granted = Access::kNone;
    for (const AccessEntry& entry : segment.access)
      if (entry.location == device_location(DeviceId{device})) granted = entry.access;
    if (static_cast<std::uint32_t>(granted) < static_cast<std::uint32_t>(least)) least = granted;
  }
  return least;
}

Reply do_use(World& world, const Statement& s) {
  Bytes bytes = bytes_of(world, *s.operand<Range>(0));
  if (!bytes.problem.success()) return bytes.problem;
  const auto stream = work_stream(world, s, *bytes.buffer);
  if (!stream) return no_stream(s);
  if (bytes.size() == 0) return Reply::ok();
  const Access access = bytes.buffer->resource->options.kind == TargetOptions::Kind::kVmm
                            ? promised_access(*bytes.buffer, bytes.from, bytes.to, stream->device)
                        : stream->device == bytes.buffer->resource->device ? Access::kReadWrite
                                                                           : Access::kNone;
  if (access == Access::kNone) return Reply::skipped("the stream's device has no access");
  if (!s.has("unordered")) order_behind_allocation(world, *bytes.buffer, *stream);
  LaunchKernel kernel;
  kernel.kind = access == Access::kReadWrite ? KernelKind::kTouch : KernelKind::kRead;
  kernel.ptr.value = bytes.address();
  kernel.size = bytes.size();
  const DriverStatus status = work_call(world, *stream, kernel);
  if (status != DriverStatus::kSuccess || world.is_capturing(stream->lane))
    return Reply::of(status);
  const Stamp op = world.timeline.enqueue(stream->lane);
  const Clock& clock = world.timeline.settle(stream->lane);
  for (const Part& part : parts_of(bytes.buffer->segments, bytes.from, bytes.to)) {
    if (access == Access::kReadWrite) {
      spoil(world, part.extent->rewrite(part.begin, part.end, op, clock, world.timeline.host()));
    } else {
      part.extent->touch(op);
    }
  }
  return Reply::ok();
}

/// Waits for every device that has a context of ours; the first failure, or success.
DriverStatus synchronize_devices(World& world) {
  for (std::size_t i = 0; i < world.free_at_start.size(); ++i) {
    const auto device = static_cast<std::int32_t>(i);
    if (device > 0 && !world.used_device(device)) continue;
    const DeviceScope scope(world, device);
    CtxSynchronize all;
    const DriverStatus status = world.harness_call(all);
    if (status != DriverStatus::kSuccess) return status;
  }
  return DriverStatus::kSuccess;
}

/// Waits for the whole device, or, while something captures, for the streams that used the bytes.
DriverStatus settle_device(World& world, const BufferObject& buffer) {
  if (world.capturing_lanes.empty()) {
    const DriverStatus status = synchronize_devices(world);
    if (status == DriverStatus::kSuccess) world.timeline.host_learns_all();
    return status;
  }
  ThreadExchangeStreamCaptureMode mode;
  mode.mode = CaptureMode::kRelaxed;
  if (world.harness_call(mode) != DriverStatus::kSuccess) return DriverStatus::kSuccess;
  DriverStatus status = DriverStatus::kSuccess;
  for (const auto& [name, object] : world.objects) {
    const auto* stream = std::get_if<StreamObject>(&object);
    if (!stream || stream->kind != StreamKind::kCreated || world.is_capturing(stream->lane))
      continue;
    const bool used =
        std::any_of(buffer.segments.begin(), buffer.segments.end(), [&](const Segment& segment) {
          const auto& uses = segment.extent->uses();
          return std::any_of(uses.begin(), uses.end(),
                             [&](const Stamp& use) { return use.lane == stream->lane; });
        });
    if (!used || status != DriverStatus::kSuccess) continue;
    StreamSynchronize sync;
    sync.stream = stream->handle;
    status = world.harness_call(sync);
    if (status == DriverStatus::kSuccess)
      world.timeline.host_learns(world.timeline.settle(stream->lane));
  }
  ThreadExchangeStreamCaptureMode back;
  back.mode = mode.previous;
  world.harness_call(back);
  return status;
}

std::string found_text(const ByteSummary& found) {
  if (found.kind == ByteSummary::Kind::kMixed) return "mixed bytes";
  if (found.kind == ByteSummary::Kind::kUnknown) return "bytes that nobody wrote";
  return "0x" + std::string(1, "0123456789ABCDEF"[found.byte / 16]) +
         std::string(1, "0123456789ABCDEF"[found.byte % 16]);
}

/// Reads one run back and compares it with what was written, and with what the check names.
Reply check_run(World& world, const Bytes& bytes, const Known& known, std::uint8_t wanted) {
  MemcpyDtoH read;
  read.src.value = bytes.buffer->buffer->ptr().value + known.from;
  read.size = known.to - known.from;
  const DriverStatus status = world.harness_call(read);
  if (status != DriverStatus::kSuccess) return Reply::of(status);
  const bool uniform = read.found.kind == ByteSummary::Kind::kUniform;
  const std::string where =
      " at bytes " + std::to_string(known.from) + " to " + std::to_string(known.to);
  if (known.value && !(uniform && read.found.byte == *known.value))
    return Reply::because(Reply::Kind::kContents,
                          found_text(read.found) + where + " instead of what was written there");
  if (!world.options.strict || (uniform && read.found.byte == wanted)) return Reply::ok();
  return Reply::because(Reply::Kind::kContents, found_text(read.found) + where);
}

Reply do_check(World& world, const Statement& s) {
  Bytes bytes = bytes_of(world, *s.operand<Range>(0));
  if (!bytes.problem.success()) return bytes.problem;
  const DriverStatus status = settle_device(world, *bytes.buffer);
  if (status != DriverStatus::kSuccess) return Reply::of(status);
  const DeviceScope scope(world, bytes.buffer->resource->device);
  const std::uint8_t wanted = s.operand<Byte>(1)->value;
  for (const Known& known :
       known_of(bytes.buffer->segments, bytes.from, bytes.to, world.timeline.host())) {
    Reply reply = check_run(world, bytes, known, wanted);
    if (!reply.success()) return reply;
  }
  return Reply::ok();
}

}  // namespace

void add_bytes_handlers(std::vector<Handler>& table) {
  set_handler(table, Verb::kFill, do_fill);
  set_handler(table, Verb::kCopy, do_copy);
  set_handler(table, Verb::kUse, do_use);
  set_handler(table, Verb::kCheck, do_check);
}

}  // namespace granule::prop
