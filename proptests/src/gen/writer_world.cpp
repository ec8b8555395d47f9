// Generated operations around buffers: work, streams, addresses, resources, captures.
#include <algorithm>
#include <array>

#include "writer.hpp"

namespace granule::prop::gen {

bool Writer::use() {
  BufferFact* buffer = pick_buffer([](const BufferFact& b) { return !b.suspended; });
  if (!buffer) return false;
  add(Line(Verb::kUse).operand(range_of(*buffer)).on(stream_name()));
  return true;
}

bool Writer::fill() {
  BufferFact* buffer = pick_buffer([](const BufferFact& b) { return !b.suspended; });
  if (!buffer) return false;
  const auto byte = static_cast<std::uint8_t>(c_.one_of<std::uint32_t>({0x11, 0x22, 0xA5, 0x5A}));
  add(Line(Verb::kFill).operand(range_of(*buffer)).operand(Byte{byte}).on(stream_name()));
  return true;
}

bool Writer::copy() {
  const auto fits = [&](const BufferFact& b) {
    return !b.suspended && b.granules > 0 && resources_[b.resource].kind == ResourceKind::kVmm;
  };
  BufferFact* to = pick_buffer(fits);
  BufferFact* from = pick_buffer(fits);
  if (!to || !from || to == from) return false;
  const std::uint64_t most = std::min(to->granules, from->granules);
  Range target;
  target.name = to->name;
  Range source;
  source.name = from->name;
  if (c_.chance(1, 3) && from->granules > 1) {
    source.whole = false;
    source.from = Size::granules(1);
  }
  add(Line(Verb::kCopy)
          .operand(target)
          .operand(source)
          .size(Size::granules(c_.between(1, std::max<std::uint64_t>(1, most))))
          .on(stream_name()));
  return true;
}

bool Writer::sync() {
  StreamFact* stream = c_.chance(1, 2) ? pick_stream() : nullptr;
  Line line(Verb::kSync);
  if (stream) line.name(stream->name);
  add(line);
  return true;
}

bool Writer::hold() {
  StreamFact* stream = pick_stream();
  if (!stream || stream->held || stream->capturing) return false;
  add(Line(Verb::kHold).name(stream->name));
  stream->held = true;
  return true;
}

bool Writer::release() {
  for (StreamFact& stream : streams_) {
    if (!stream.held) continue;
    add(Line(Verb::kRelease).name(stream.name));
    stream.held = false;
    return true;
  }
  return false;
}

bool Writer::busy() {
  StreamFact* stream = pick_stream();
  if (!stream) return false;
  add(Line(Verb::kBusy).name(stream->name).operand(Duration{10'000'000}));
  return true;
}

bool Writer::pause() {
  add(Line(Verb::kPause).operand(Duration{30'000'000}));
  return true;
}

bool Writer::record() {
  StreamFact* stream = pick_stream();
  if (!stream) return false;
  std::string name;
  if (!events_.empty() && c_.chance(1, 3)) {
    name = events_[c_.pick(events_.size())];
  } else {
    name = fresh(NameKind::kEvent);
    events_.push_back(name);
  }
  add(Line(Verb::kRecord).name(name).on(stream->name));
  return true;
}

bool Writer::wait() {
  StreamFact* stream = pick_stream();
  if (!stream || events_.empty()) return false;
  add(Line(Verb::kWait).name(events_[c_.pick(events_.size())]).on(stream->name));
  return true;
}

bool Writer::decoy() {
  BufferFact* after = pick_vmm(false);
  if (!after) return false;
  const std::string name = fresh(NameKind::kDecoy);
  add(Line(Verb::kDecoy).name(name).name(after->name).size(Size::granules(c_.between(1, 2))));
  decoys_.push_back(name);
  return true;
}

bool Writer::remove() {
  if (decoys_.empty()) return false;
  const std::size_t index = c_.pick(decoys_.size());
  add(Line(Verb::kRemove).name(decoys_[index]));
  decoys_.erase(decoys_.begin() + static_cast<std::ptrdiff_t>(index));
  return true;
}

bool Writer::hole() {
  const std::string name = fresh(NameKind::kHole);
  const std::uint64_t granules = c_.chance(1, 4) ? c_.between(16, 40) : c_.between(1, 8);
  add(Line(Verb::kHole).name(name).size(Size::granules(granules)));
  holes_.push_back(name);
  return true;
}

bool Writer::probe() {
  BufferFact* buffer = pick_vmm();
  if (!buffer) return false;
  add(Line(Verb::kReserveProbe).name(buffer->name));
  return true;
}

bool Writer::collect() {
  ResourceFact* resource = pick_resource(ResourceKind::kVmm);
  if (!resource) return false;
  add(Line(Verb::kCollect).name(resource->name));
  return true;
}

bool Writer::trim() {
  if (resources_.empty()) return false;
  const ResourceFact& resource = resources_[c_.pick(resources_.size())];
  if (resource.name.empty()) return false;
  add(Line(Verb::kTrim)
          .name(resource.name)
          .size(Size::granules(c_.one_of<std::uint64_t>({0, 1, 2}))));
  return true;
}

bool Writer::grant() {
  ResourceFact* resource = pick_resource(ResourceKind::kVmm);
  if (!resource || !(has(Feature::kSecondDevice) || c_.chance(1, 4))) return false;
  add(Line(Verb::kGrant)
          .name(resource->name)
          .number(c_.chance(1, 10) ? 0 : 1)
          .word(c_.chance(1, 3) ? "r" : "rw"));
  return true;
}

bool Writer::destroy() {
  StreamFact* stream = pick_stream();
  if (!stream || !stream->created || streams_.size() < 2) return false;
  add(Line(Verb::kDestroy).name(stream->name));
  streams_.erase(streams_.begin() + (stream - streams_.data()));
  return true;
}

bool Writer::begin_capture() {
  StreamFact* stream = pick_stream();
  if (!stream || stream->capturing || stream->held || !stream->created) return false;
  Line line = Line(Verb::kBeginCapture).name(stream->name);
  const auto mode = c_.pick(4);
  if (mode == 1) line.word("relaxed");
  if (mode == 2) line.word("thread_local");
  if (mode == 3) line.word("global");
  add(line);
  stream->capturing = true;
  return true;
}

bool Writer::end_capture() {
  for (StreamFact& stream : streams_) {
    if (!stream.capturing) continue;
    add(Line(Verb::kEndCapture).name(stream.name));
    stream.capturing = false;
    return true;
  }
  return false;
}

bool Writer::resource() {
  constexpr std::size_t kMost = 3;
  if (resources_.size() >= kMost) return false;
  write_resource(ResourceKind::kVmm, has(Feature::kBadOptions) && c_.chance(1, 2));
  return true;
}

bool Writer::drop_resource() {
  for (ResourceFact& resource : resources_) {
    if (resource.name.empty() || !c_.chance(1, 2)) continue;
    if (std::count_if(resources_.begin(), resources_.end(),
                      [](const ResourceFact& r) { return !r.name.empty(); }) < 2)
      return false;
    add(Line(Verb::kDrop).name(resource.name));
    resource.name.clear();
    return true;
  }
  return false;
}

bool Writer::pool_setting() {
  ResourceFact* pool = pick_resource(ResourceKind::kPool);
  if (!pool) return false;
  switch (c_.pick(has(Feature::kSecondDevice) ? 6 : 5)) {
    case 0:
      add(Line(Verb::kTrim).name(pool->name).size(Size::granules(c_.pick(3) * 16)));
      break;
    case 1:
      add(Line(Verb::kSet).name(pool->name).option("threshold", Size::max()));
      break;
    case 2:
      add(Line(Verb::kSet).name(pool->name).option("threshold", Size::granules(c_.pick(2) * 16)));
      break;
    case 3:
      add(Line(Verb::kResetHigh).name(pool->name));
      break;
    case 4:
      add(Line(Verb::kSet)
              .name(pool->name)
              .option(c_.one_of({"reuse_follow_events", "reuse_opportunistic", "reuse_internal"}),
                      Word{c_.chance(1, 2) ? "on" : "off"}));
      break;
    default:
      add(Line(Verb::kPeer).name(pool->name).number(1).word(c_.chance(1, 2) ? "rw" : "none"));
  }
  return true;
}

/// The library needs no current context, and puts none there.
bool Writer::context() {
  add(Line(Verb::kContext).name(c_.chance(2, 3) ? "none" : "primary"));
  return true;
}

bool Writer::threads() {
  static constexpr std::array<Op, 22> kOps{
      Op::kGrow,   Op::kAllocate, Op::kClose,   Op::kUse,   Op::kDrop,       Op::kFill,
      Op::kShrink, Op::kResize,   Op::kCollect, Op::kTrim,  Op::kHolder,     Op::kUsed,
      Op::kSync,   Op::kDestroy,  Op::kSuspend, Op::kProbe, Op::kDropHolder, Op::kResume,
      Op::kExport, Op::kImport,   Op::kMove,    Op::kGrow};
  if (!thread_.empty()) return false;
  const std::uint64_t count = c_.between(2, 8);
  const std::uint64_t names = c_.chance(1, 4) ? 3 : 2;
  for (std::uint64_t i = 0; i < count; ++i) {
    thread_ = "t" + std::to_string(names - c_.pick(names));
    const Op op = kOps[c_.pick(kOps.size())];
    if (plan_.weight(op) > 0) (this->*emit_of(op))();
  }
  thread_.clear();
  return true;
}

}  // namespace granule::prop::gen
