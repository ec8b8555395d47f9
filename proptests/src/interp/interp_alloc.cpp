// Operations on buffers: allocate, grow, resize, shrink, close, drop, suspend, sharing, moving.
#include <algorithm>

#include "../sched/host_order.hpp"
#include "args.hpp"
#include "order.hpp"
#include "promise.hpp"
#include "segments.hpp"

namespace granule::prop {
namespace {

Reply no_buffer(std::string_view name) {
  return Reply::skipped("no buffer `" + std::string(name) + "`");
}

/// The stream named by `on`, null if there is no `on`; `missing` if it names nothing.
StreamObject* optional_stream(World& world, const Statement& s, bool& missing) {
  missing = s.has("on") && !world.stream_of(s);
  return world.stream_of(s);
}

/// Frees the name that a statement is about to make; would_block if that cannot be done now.
Reply clear_name(World& world, std::string_view name) {
  return world.find(name) ? drop_object(world, name, false) : Reply::ok();
}

/// The library knows that a buffer's own stream uses its bytes.
void tell_own_stream(const BufferObject& buffer) {
  for (const Segment& segment : buffer.segments) segment.extent->tell(buffer.lane);
}

/// After an allocation whose bytes are ordered on its stream: others have to wait for it.
void mark_ready(World& world, BufferObject& buffer, const StreamObject& stream) {
  if (world.is_capturing(stream.lane)) return;
  auto marker = record_marker(world, stream);
  if (!marker) return;
  buffer.ready = {marker->first, std::move(marker->second), {buffer.lane}};
}

Reply do_allocate(World& world, const Statement& s) {
  const std::string& from = s.operand<Name>(0)->text;
  const auto* found = world.find_as<std::shared_ptr<ResourceObject>>(from);
  if (!found) return Reply::skipped("no resource `" + from + "`");
  const std::shared_ptr<ResourceObject> resource = *found;
  AllocateOptions options;
  options.capacity = Args(world, s).size("capacity");
  options.zero = s.has("zero");
  if (const Name* at = s.value<Name>("at")) {
    const auto* hole = world.find_as<HoleObject>(at->text);
    if (!hole) return Reply::skipped("no hole `" + at->text + "`");
    options.at = hole->base;
  }
  bool missing = false;
  StreamObject* named = optional_stream(world, s, missing);
  if (missing) return Reply::skipped("no stream `" + s.value<Name>("on")->text + "`");
  Reply cleared = clear_name(world, s.target);
  if (!cleared.success()) return cleared;
  StreamObject legacy = stream_named(world, "", resource->device);
  StreamObject& stream = named ? *named : legacy;
  Result<Stream> bound = bound_stream(world, stream);
  if (!bound) return Reply::of(bound.error());
  const std::uint64_t size = Args(world, s).size(1);
  Result<std::unique_ptr<TargetBuffer>> made = [&] {
    const OriginScope scope(CallOrigin::kLibrary);
    return resource->target->allocate(*bound, size, options);
  }();
  if (!made) return Reply::of(made.error());
  BufferObject buffer;
  buffer.buffer = std::move(*made);
  buffer.resource = resource;
  buffer.stream = named ? world.expand(s.value<Name>("on")->text) : "";
  buffer.lane = stream.lane;
  const std::uint64_t got = buffer.buffer->size();
  buffer.segments = fresh_segments(got, resource->access);
  if (got > 0) begin_chunks(world, buffer, resource->access);
  const bool reused = world.driver().traffic.created_bytes < got;
  if (options.zero && got > 0 && !world.is_capturing(stream.lane)) {
    const Stamp op = world.timeline.enqueue(stream.lane);
    buffer.segments[0].extent->write(0, got, std::uint8_t{0}, op,
                                     world.timeline.settle(stream.lane), world.timeline.host());
  }
  tell_own_stream(buffer);
  if (got > 0 && (options.zero || reused)) mark_ready(world, buffer, stream);
  world.bind(s.target, std::move(buffer));
  return Reply::ok();
}

/// Makes the segments of a grown or shrunk buffer fit its size.
void fit_segments(World& world, BufferObject& buffer, const GrowOptions& options) {
  const std::uint64_t size = buffer.buffer->size();
  const std::uint64_t known = total_of(buffer.segments);
  if (size < known) return cut_segments(buffer.segments, size);
  append_growth(world, buffer, known, size, promised_to_growth(*buffer.resource, options));
}

Reply do_grow(World& world, const Statement& s) {
  const std::string& from = s.operand<Name>(0)->text;
  if (!world.find_as<BufferObject>(from)) return no_buffer(from);
  const bool same = world.expand(s.target) == world.expand(from);
  if (same) return Reply::skipped("a grow of a buffer into its own name");
  Reply cleared = clear_name(world, s.target);
  if (!cleared.success()) return cleared;
  auto* input = world.find_as<BufferObject>(from);
  if (!input) return no_buffer(from);
  const GrowOptions options = grow_options(world, s);
  const std::uint64_t size = Args(world, s).size(1);
  note_chunks(world, *input, input->resource->access);
  Result<TargetGrowth> grown = [&] {
    const OriginScope scope(CallOrigin::kLibrary);
    return input->resource->target->grow(*input->buffer, size, options);
  }();
  if (!grown) return Reply::of(grown.error());
  BufferObject buffer;
  buffer.buffer = std::move(grown->buffer);
  buffer.resource = input->resource;
  buffer.stream = input->stream;
  buffer.lane = input->lane;
  buffer.segments = input->segments;
  buffer.ready = input->ready;
  fit_segments(world, buffer, options);
  tell_own_stream(buffer);
  world.bind(s.target, std::move(buffer));
  return Reply::word_of(name_of(grown->placement));
}

/// Orders unfinished work before something that may unmap the buffer, unless told not to. The only
/// failure is a wait that cannot end.
Reply order_unless(World& world, const Statement& s, const BufferObject& buffer,
                   const StreamObject* stream) {
  if (buffer.buffer->is_closed()) return Reply::ok();
  remember_release(world, *buffer.resource, buffer.segments);
  const StreamObject on =
      stream ? *stream : stream_named(world, buffer.stream, buffer.resource->device);
  if (s.has("unordered")) {
    const Lane replaced = on.lane == buffer.lane ? kHostLane : buffer.lane;
    note_unordered_release(world, buffer.segments, on, replaced);
    return Reply::ok();
  }
  const DriverStatus ordered = order_before_release(
      world, buffer.segments, on, stream ? stream->lane : buffer.lane, buffer.named);
  return ordered == DriverStatus::kWouldBlock ? Reply::of(ordered) : Reply::ok();
}

Reply do_resize(World& world, const Statement& s) {
  const std::string& name = s.operand<Name>(0)->text;
  auto* buffer = world.find_as<BufferObject>(name);
  if (!buffer) return no_buffer(name);
  if (Reply ordered = order_unless(world, s, *buffer, nullptr); !ordered.success()) return ordered;
  const GrowOptions options = grow_options(world, s);
  const std::uint64_t size = Args(world, s).size(1);
  note_chunks(world, *buffer, buffer->resource->access);
  Result<ResizeResult> resized = [&] {
    const OriginScope scope(CallOrigin::kLibrary);
    return buffer->resource->target->resize(*buffer->buffer, size, options);
  }();
  if (!resized) return Reply::of(resized.error());
  fit_segments(world, *buffer, options);
  tell_own_stream(*buffer);
  return Reply::word_of(name_of(resized->placement));
}

Reply do_shrink(World& world, const Statement& s) {
  const std::string& name = s.operand<Name>(0)->text;
  auto* buffer = world.find_as<BufferObject>(name);
  if (!buffer) return no_buffer(name);
  if (Reply ordered = order_unless(world, s, *buffer, nullptr); !ordered.success()) return ordered;
  const std::uint64_t size = Args(world, s).size(1);
  Result<std::uint64_t> left = [&] {
    const OriginScope scope(CallOrigin::kLibrary);
    return buffer->resource->target->shrink(*buffer->buffer, size);
  }();
  if (!left) return Reply::of(left.error());
  fit_segments(world, *buffer, {});
  return Reply::ok();
}

Reply close_buffer(World& world, const Statement& s, BufferObject& buffer) {
  bool missing = false;
  StreamObject* named = optional_stream(world, s, missing);
  if (missing) return Reply::skipped("no stream `" + s.value<Name>("on")->text + "`");
  if (Reply ordered = order_unless(world, s, buffer, named); !ordered.success()) return ordered;
  std::optional<Stream> stream;
  if (named) {
    Result<Stream> bound = bound_stream(world, *named);
    if (!bound) return Reply::of(bound.error());
    stream = *bound;
    // The driver wants the free of a pool's block ordered behind its allocation.
    const bool pool = buffer.resource->options.kind == TargetOptions::Kind::kPool;
    if (pool && !buffer.buffer->is_closed() && !s.has("unordered"))
      order_behind_allocation(world, buffer, *named);
  }
  const OriginScope scope(CallOrigin::kLibrary);
  const Status closed = buffer.resource->target->close(*buffer.buffer, stream ? &*stream : nullptr);
  if (closed.ok() && buffer.buffer->is_closed()) {
    buffer.segments.clear();
    buffer.suspended = false;
  }
  return Reply::of(closed);
}

Reply do_close(World& world, const Statement& s) {
  const std::string& name = s.operand<Name>(0)->text;
  if (name == "null") return Reply::ok();
  Object* object = world.find(name);
  if (!object) return Reply::skipped("no `" + name + "`");
  if (auto* buffer = std::get_if<BufferObject>(object)) return close_buffer(world, s, *buffer);
  if (auto* bundle = std::get_if<BundleObject>(object)) {
    const OriginScope scope(CallOrigin::kLibrary);
    const Status closed = bundle->bundle->close();
    if (closed.ok()) bundle->segments.clear();
    return Reply::of(closed);
  }
  const auto* raw = std::get_if<RawObject>(object);
  if (!raw || raw->kind != RawObject::Kind::kDescriptor)
    return Reply::skipped("`" + name + "` is nothing to close");
  CloseDescriptor close;
  close.descriptor.value = static_cast<std::int32_t>(raw->value);
  const DriverStatus status = world.program_call(close);
  if (status == DriverStatus::kSuccess) std::erase(world.descriptors, close.descriptor);
  return Reply::of(status);
}

Reply do_drop(World& world, const Statement& s) {
  const std::string& name = s.operand<Name>(0)->text;
  if (!world.find(name)) return Reply::skipped("no `" + name + "`");
  return drop_object(world, name, s.has("unordered"));
}

/// The buffers that the operands name; `problem` if one is missing.
std::vector<BufferObject*> buffers_of(World& world, const Statement& s, Reply& problem) {
  std::vector<BufferObject*> buffers;
  for (std::size_t i = 0; i < s.operands.size(); ++i) {
    const std::string& name = s.operand<Name>(i)->text;
    auto* buffer = world.find_as<BufferObject>(name);
    if (!buffer) {
      problem = no_buffer(name);
      return {};
    }
    buffers.push_back(buffer);
  }
  return buffers;
}

std::vector<TargetBuffer*> targets_of(const std::vector<BufferObject*>& buffers) {
  std::vector<TargetBuffer*> targets;
  targets.reserve(buffers.size());
  for (const BufferObject* buffer : buffers) targets.push_back(buffer->buffer.get());
  return targets;
}

Reply do_suspend(World& world, const Statement& s) {
  Reply problem;
  const std::vector<BufferObject*> buffers = buffers_of(world, s, problem);
  if (!problem.success()) return problem;
  for (const BufferObject* buffer : buffers)
    if (Reply ordered = order_unless(world, s, *buffer, nullptr); !ordered.success())
      return ordered;
  const bool backup = s.has("backup");
  const std::vector<TargetBuffer*> targets = targets_of(buffers);
  for (BufferObject* buffer : buffers)
    if (!buffer->suspended) buffer->put_away = facts_of(world, *buffer);
  const Status status = [&] {
    const OriginScope scope(CallOrigin::kLibrary);
    return buffers[0]->resource->target->suspend(targets, backup);
  }();
  if (!status) {
    // An undo that failed as well leaves a buffer suspended, with its memory.
    for (BufferObject* buffer : buffers) buffer->suspended = buffer->buffer->is_suspended();
    return Reply::of(status);
  }
  for (BufferObject* buffer : buffers) {
    if (buffer->suspended) continue;
    buffer->suspended = buffer->buffer->is_suspended();
    buffer->backed_up = backup;
    // Other memory from here on: whoever imported the old one keeps that to himself.
    for (Segment& segment : buffer->segments)
      segment.extent = std::make_shared<Extent>(*segment.extent);
    if (backup) continue;
    for (const Part& part : parts_of(buffer->segments, 0, total_of(buffer->segments)))
      part.extent->forget(part.begin, part.end);
  }
  return Reply::ok();
}

Reply do_resume(World& world, const Statement& s) {
  Reply problem;
  const std::vector<BufferObject*> buffers = buffers_of(world, s, problem);
  if (!problem.success()) return problem;
  const std::vector<TargetBuffer*> targets = targets_of(buffers);
  const OriginScope scope(CallOrigin::kLibrary);
  const Status status = buffers[0]->resource->target->resume(targets);
  if (!status) return Reply::of(status);
  for (BufferObject* buffer : buffers) {
    buffer->suspended = buffer->buffer->is_suspended();
    if (buffer->put_away.empty()) continue;
    const std::vector<model::MappingView> now = mappings_of(world, *buffer);
    for (std::size_t i = 0; i < std::min(now.size(), buffer->put_away.size()); ++i)
      world.chunks.try_emplace(now[i].allocation, buffer->put_away[i]);
  }
  return Reply::ok();
}

Reply do_used(World& world, const Statement& s) {
  const std::string& name = s.operand<Name>(0)->text;
  auto* buffer = world.find_as<BufferObject>(name);
  if (!buffer) return no_buffer(name);
  StreamObject* stream = world.stream_of(s);
  if (!stream) return Reply::skipped("no stream `" + s.value<Name>("on")->text + "`");
  Result<Stream> bound = bound_stream(world, *stream);
  if (!bound) return Reply::of(bound.error());
  const OriginScope scope(CallOrigin::kLibrary);
  const Status told = buffer->resource->target->used_on(*buffer->buffer, *bound);
  if (!told.ok()) return Reply::of(told);
  buffer->named.push_back(stream->lane);
  for (const Segment& segment : buffer->segments) segment.extent->tell(stream->lane);
  return Reply::of(told);
}

Reply do_holder(World& world, const Statement& s) {
  const std::string& name = s.operand<Name>(0)->text;
  const std::string& of = s.operand<Name>(1)->text;
  if (!world.find_as<BufferObject>(of)) return no_buffer(of);
  Reply cleared = clear_name(world, name);
  if (!cleared.success()) return cleared;
  auto* buffer = world.find_as<BufferObject>(of);
  if (!buffer) return no_buffer(of);
  Result<std::unique_ptr<TargetHolder>> made = [&] {
    const OriginScope scope(CallOrigin::kLibrary);
    return buffer->resource->target->hold(*buffer->buffer);
  }();
  if (!made) return Reply::of(made.error());
  HolderObject holder;
  holder.holder = std::move(*made);
  holder.resource = buffer->resource;
  holder.stream = buffer->stream;
  holder.lane = buffer->lane;
  holder.segments = buffer->segments;
  world.bind(name, std::move(holder));
  return Reply::ok();
}

Reply do_export(World& world, const Statement& s) {
  const std::string& of = s.operand<Name>(0)->text;
  if (!world.find_as<BufferObject>(of)) return no_buffer(of);
  Reply cleared = clear_name(world, s.target);
  if (!cleared.success()) return cleared;
  auto* buffer = world.find_as<BufferObject>(of);
  if (!buffer) return no_buffer(of);
  const OriginScope scope(CallOrigin::kLibrary);
  auto made = buffer->resource->target->export_buffer(*buffer->buffer);
  if (!made) return Reply::of(made.error());
  note_chunks(world, *buffer, buffer->resource->access);  // before importers meet them
  world.any_import = true;  // open descriptors hold memory that the budget does not count
  BundleObject bundle;
  bundle.bundle = std::move(*made);
  bundle.segments = buffer->segments;
  bundle.ready = buffer->ready;
  world.bind(s.target, std::move(bundle));
  return Reply::ok();
}

Reply do_import(World& world, const Statement& s) {
  const std::string& into = s.operand<Name>(0)->text;
  const std::string& of = s.operand<Name>(1)->text;
  const auto* found = world.find_as<std::shared_ptr<ResourceObject>>(into);
  if (!found) return Reply::skipped("no resource `" + into + "`");
  if (!world.find_as<BundleObject>(of)) return Reply::skipped("no export `" + of + "`");
  const std::shared_ptr<ResourceObject> resource = *found;
  Reply cleared = clear_name(world, s.target);
  if (!cleared.success()) return cleared;
  auto* bundle = world.find_as<BundleObject>(of);
  if (!bundle) return Reply::skipped("no export `" + of + "`");
  StreamObject legacy = stream_named(world, "", resource->device);
  Result<Stream> bound = bound_stream(world, legacy);
  if (!bound) return Reply::of(bound.error());
  Result<std::unique_ptr<TargetBuffer>> made = [&] {
    const OriginScope scope(CallOrigin::kLibrary);
    return resource->target->import_buffer(*bound, *bundle->bundle);
  }();
  if (!made) return Reply::of(made.error());
  world.any_import = true;
  BufferObject buffer;
  buffer.buffer = std::move(*made);
  buffer.resource = resource;
  buffer.lane = legacy.lane;
  buffer.segments = bundle->segments;
  buffer.ready = bundle->ready;
  // Whole chunks are imported, and with them what was committed ahead of the exporter's size.
  const std::uint64_t known = total_of(buffer.segments);
  if (buffer.buffer->size() > known)
    append_by_chunk(world, buffer, known, buffer.buffer->size(), resource->access, true);
  for (Segment& segment : buffer.segments) segment.access = resource->access;
  tell_own_stream(buffer);
  world.bind(s.target, std::move(buffer));
  return Reply::ok();
}

Reply do_move(World& world, const Statement& s) {
  const std::string& from = s.operand<Name>(0)->text;
  const std::string& to = s.operand<Name>(1)->text;
  if (!world.find_as<BufferObject>(from)) return no_buffer(from);
  if (world.expand(from) == world.expand(to)) return Reply::ok();
  if (world.find(to)) {
    Reply dropped = drop_object(world, to, s.has("unordered"));
    if (!dropped.success()) return dropped;
  }
  BufferObject moved = std::move(*world.find_as<BufferObject>(from));
  world.unbind(from);
  world.bind(to, std::move(moved));
  return Reply::ok();
}

}  // namespace

void add_alloc_handlers(std::vector<Handler>& table) {
  set_handler(table, Verb::kAllocate, do_allocate);
  set_handler(table, Verb::kGrow, do_grow);
  set_handler(table, Verb::kResize, do_resize);
  set_handler(table, Verb::kShrink, do_shrink);
  set_handler(table, Verb::kClose, do_close);
  set_handler(table, Verb::kDrop, do_drop);
  set_handler(table, Verb::kSuspend, do_suspend);
  set_handler(table, Verb::kResume, do_resume);
  set_handler(table, Verb::kUsed, do_used);
  set_handler(table, Verb::kHolder, do_holder);
  set_handler(table, Verb::kExport, do_export);
  set_handler(table, Verb::kImport, do_import);
  set_handler(table, Verb::kMove, do_move);
}

}  // namespace granule::prop
