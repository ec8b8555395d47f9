// Answers that no correct allocator gives: driver errors that nothing explains, too little memory,
// a move although there was room, a want of memory that there was not, an ended capture.
#include "outcome.hpp"

#include <algorithm>

#include <granule/backend_api/checked.hpp>

#include "args.hpp"
#include "asked.hpp"

namespace granule::prop {
namespace {

std::optional<Failure> wrong(std::string signature, std::string message) {
  Failure failure;
  failure.kind = Failure::Kind::kInvariant;
  failure.signature = "outcome " + std::move(signature);
  failure.message = std::move(message);
  return failure;
}

bool is_of_allocator(Verb verb) {
  switch (verb) {
    case Verb::kResourceVmm:
    case Verb::kAllocate:
    case Verb::kGrow:
    case Verb::kResize:
    case Verb::kShrink:
    case Verb::kSuspend:
    case Verb::kResume:
    case Verb::kClose:
    case Verb::kCollect:
    case Verb::kDrop:
    case Verb::kTrim:
    case Verb::kReserveProbe:
    case Verb::kGrant:
    case Verb::kUsed:
    case Verb::kHolder:
    case Verb::kExport:
    case Verb::kImport:
      return true;
    default:
      return false;
  }
}

/// The resource that a statement is about, or null.
ResourceObject* resource_of_in_outcome(World& world, const Statement& s) {
  const Name* name = s.operand<Name>(0);
  if (!name) return nullptr;
  if (auto* buffer = world.find_as<BufferObject>(name->text)) return buffer->resource.get();
  if (auto* resource = world.find_as<std::shared_ptr<ResourceObject>>(name->text))
    return resource->get();
  return nullptr;
}

bool is_vmm(const ResourceObject* resource) {
  return resource && resource->options.kind == TargetOptions::Kind::kVmm;
}

/// The library may think those addresses taken: a call on them was made although it was reported as
/// failed, or it was told nothing of what a failed one has left, and said so.
bool is_doubtful(const World& world, std::uint64_t base, std::uint64_t size) {
  const auto meets = [&](DevicePtr ptr, std::uint64_t length) {
    return ptr.value < base + size && base < ptr.value + length;
  };
  const auto& reports = world.sink.reports;
  if (std::any_of(reports.begin(), reports.end(), [&](const FailureReport& report) {
        return report.kind == FailureKind::kQuarantined && meets(report.ptr, report.size);
      }))
    return true;
  if (!world.tap->any_orphan()) return false;
  const std::vector<fault::Orphan> orphans = world.faults->orphans();
  return std::any_of(orphans.begin(), orphans.end(), [&](const fault::Orphan& orphan) {
    if (const auto* map = std::get_if<MemMap>(&orphan.actual)) return meets(map->ptr, map->size);
    const auto* unmap = std::get_if<MemUnmap>(&orphan.actual);
    return unmap && meets(unmap->ptr, unmap->size);
  });
}

/// Free addresses of the buffer's own reservation right behind it.
bool has_room_behind(World& world, const BufferObject& buffer, std::uint64_t need) {
  const std::uint64_t end = buffer.buffer->ptr().value + buffer.buffer->size();
  if (is_doubtful(world, end, need)) return false;
  const auto reservation = world.oracle().reservation_at(end - 1);
  if (!reservation || reservation->base + reservation->size < end + need) return false;
  if (!world.oracle().mappings_in(end, need).empty()) return false;
  for (const auto& [name, object] : world.objects) {  // suspended ones keep their addresses
    const auto* other = std::get_if<BufferObject>(&object);
    if (!other || !other->buffer || other->buffer->is_closed()) continue;
    const std::uint64_t base = other->buffer->ptr().value;
    if (base < end + need && base + other->buffer->size() > end) return false;
  }
  return true;
}

bool is_named_by_a_fault(const World& world, std::string_view status) {
  for (const Statement& s : world.program.statements) {
    if (s.verb != Verb::kFail) continue;
    const Word* with = s.value<Word>("with");
    if (with && with->text == status) return true;
  }
  return false;
}

/// Statuses that a capture, a lost context or a kernel fault explains.
bool is_explained(const World& world, DriverStatus status) {
  const auto number = static_cast<std::int32_t>(status);
  const auto first = static_cast<std::int32_t>(DriverStatus::kStreamCaptureUnsupported);
  const auto last = static_cast<std::int32_t>(DriverStatus::kStreamCaptureWrongThread);
  if (number >= first && number <= last) return true;
  if (is_sticky(status)) return true;
  const bool contexts = world.context_lost || !world.contexts.empty();
  return contexts &&
         (status == DriverStatus::kInvalidContext || status == DriverStatus::kContextIsDestroyed ||
          status == DriverStatus::kInvalidHandle);
}

/// Memory of a device that the resource's own cannot reach.
bool is_import_out_of_reach(const World& world, const Statement& s, DriverStatus status) {
  if (s.verb != Verb::kImport || status != DriverStatus::kNotSupported) return false;
  const auto& devices = world.machine->oracle().config().devices;
  return std::any_of(devices.begin(), devices.end(), [](const auto& d) { return !d.peers; });
}

bool can_write(const std::vector<AccessEntry>& access, std::int32_t device) {
  return std::any_of(access.begin(), access.end(), [&](const AccessEntry& entry) {
    return entry.location == device_location(DeviceId{device}) &&
           entry.access == Access::kReadWrite;
  });
}

/// A copy or fill of the library's by a device that may not write: the program's own doing. Memory
/// of the host is copied by whoever may.
bool is_copy_without_access(World& world, const Statement& s) {
  if (s.has("zero")) {
    const ResourceObject* resource = resource_of_in_outcome(world, s);
    const Name* on = s.value<Name>("on");
    const auto* stream = on ? world.find_as<StreamObject>(on->text) : nullptr;
    return !resource || !can_write(resource->access, stream ? stream->device : resource->device);
  }
  if (s.verb != Verb::kSuspend && s.verb != Verb::kResume) return false;
  for (std::size_t i = 0; i < s.operands.size(); ++i) {
    const Name* name = s.operand<Name>(i);
    const auto* buffer = name ? world.find_as<BufferObject>(name->text) : nullptr;
    if (!buffer || !is_vmm(buffer->resource.get())) continue;
    if (buffer->resource->options.vmm.location.type != LocationType::kDevice) return true;
    const std::int32_t device =
        buffer->lane == kHostLane ? buffer->resource->device : world.timeline.device(buffer->lane);
    const auto lacks = [&](const auto& part) { return !can_write(part.access, device); };
    if (std::any_of(buffer->segments.begin(), buffer->segments.end(), lacks) ||
        std::any_of(buffer->put_away.begin(), buffer->put_away.end(), lacks))
      return true;
  }
  return false;
}

std::optional<Failure> check_error(World& world, const Statement& s, const Reply& reply) {
  if (reply.kind != Reply::Kind::kError || reply.word != name_of(ErrorCode::kDriver))
    return std::nullopt;
  const auto status = status_named(reply.detail);
  if (!status || world.any_orphan()) return std::nullopt;
  if (is_named_by_a_fault(world, reply.detail) || is_explained(world, *status) ||
      is_import_out_of_reach(world, s, *status) || is_copy_without_access(world, s))
    return std::nullopt;
  return wrong("unexplained " + std::string(reply.detail),
               "no fault and no capture explains the driver's error: " + reply.why);
}

/// Device memory and budget that a request of `need` bytes could have had.
std::optional<Failure> check_want(World& world, const Statement& s, const Reply& reply,
                                  const Foreseen& before) {
  const bool adds = s.verb == Verb::kAllocate || s.verb == Verb::kGrow || s.verb == Verb::kResize;
  if (!adds || before.need == 0 || world.has_faulted()) return std::nullopt;
  const bool device = reply.detail == name_of(Exhausted::kDevice);
  if (reply.kind != Reply::Kind::kError || reply.word != name_of(ErrorCode::kOutOfMemory) ||
      (!device && reply.detail != name_of(Exhausted::kBudget)))
    return std::nullopt;
  ResourceObject* resource = resource_of_in_outcome(world, s);
  if (!is_vmm(resource) || resource->options.vmm.location.type != LocationType::kDevice)
    return std::nullopt;
  const TargetOptions& options = resource->options;
  if (options.vmm.commit_ahead != 0 || options.vmm.slack_percent != 0) return std::nullopt;
  const Statistics* now = resource->target->statistics();
  if (!now) return std::nullopt;
  const std::uint64_t whole = before.need + before.input_size;
  const auto& device_config =
      world.oracle().config().devices[static_cast<std::size_t>(resource->device)];
  const bool hopeless =
      whole < before.need || whole > options.vmm.limit || whole > device_config.memory;
  if (now->retired != 0 && world.capturing_lanes.empty() && !hopeless)
    return wrong("pending frees", std::to_string(now->retired) +
                                      " bytes of closed buffers were not waited for: " + reply.why);
  // Idle ranges go for those who want more, but where a capture forbids to wait for them.
  const std::uint64_t idle = world.capturing_lanes.empty() ? now->cached : 0;
  const std::uint64_t held = now->charged - std::min(now->charged, idle);
  const bool in_budget = held <= options.vmm.limit && before.need <= options.vmm.limit - held;
  const std::uint64_t free = world.oracle().free_bytes(resource->device) + idle;
  const std::uint64_t slack = 4 * world.sizes.granule;
  if (!in_budget || free < slack || free - slack < before.need) return std::nullopt;
  return wrong("out of memory", "there is room for " + std::to_string(before.need) +
                                    " bytes in the budget and on the device: " + reply.why);
}

std::optional<Failure> check_size(World& world, const Statement& s, const Reply& reply,
                                  const Foreseen& before) {
  const bool makes = s.verb == Verb::kAllocate || s.verb == Verb::kGrow;
  const bool shrinks = s.verb == Verb::kShrink;
  if (!reply.success() || (!makes && !shrinks && s.verb != Verb::kResize)) return std::nullopt;
  const std::string& name = makes ? s.target : s.operand<Name>(0)->text;
  const auto* buffer = world.find_as<BufferObject>(name);
  if (!buffer || !is_vmm(buffer->resource.get())) return std::nullopt;
  const std::uint64_t size = buffer->buffer->size();
  std::uint64_t asked = Args(world, s).size(1);
  const bool unknown = before.input_size == UINT64_MAX;  // others were at work meanwhile
  if (shrinks) asked = unknown ? 0 : std::min(asked, before.input_size);  // more is no shrink
  if (size < asked)
    return wrong("size",
                 "asked for " + std::to_string(asked) + " bytes, got " + std::to_string(size));
  if (world.free_at_start.size() == 1 && size % world.sizes.granule != 0)
    return wrong("size", std::to_string(size) + " bytes are no whole granules");
  const TargetOptions& options = buffer->resource->options;
  const bool exact = options.vmm.commit_ahead == 0 && options.vmm.slack_percent == 0;
  if (reply.word == name_of(Placement::kAlias) && exact && size > before.input_size)
    return wrong("alias", "an alias of " + std::to_string(before.input_size) + " bytes has " +
                              std::to_string(size));
  if (reply.word == name_of(Placement::kMoved) && before.room_behind && !before.hindered)
    return wrong("moved", "moved although there was reserved room behind it");
  return std::nullopt;
}

CaptureStatus capture_status(World& world, StreamHandle stream) {
  StreamIsCapturing query;
  query.stream = stream;
  return world.harness_call(query) == DriverStatus::kSuccess ? query.status
                                                             : CaptureStatus::kInvalidated;
}

}  // namespace

Foreseen foresee(World& world, const Statement& s) {
  Foreseen before;
  before.relevant = is_of_allocator(s.verb) || s.verb == Verb::kResourcePool ||
                    s.verb == Verb::kResourceRecycler || s.verb == Verb::kDestroy;
  if (!before.relevant) return before;
  before.faults_fired = world.faults->fired_in_all();
  if (!world.capturing_lanes.empty())
    for (const auto& [name, object] : world.objects) {
      const auto* stream = std::get_if<StreamObject>(&object);
      if (!stream || stream->kind != StreamKind::kCreated || !world.is_capturing(stream->lane))
        continue;
      if (!s.target.empty() && name == world.expand(s.target)) continue;  // ends for its name
      if (capture_status(world, stream->handle) == CaptureStatus::kActive)
        before.capturing.push_back(stream->handle);
    }
  if (s.verb == Verb::kShrink) {
    const auto* buffer = world.find_as<BufferObject>(s.operand<Name>(0)->text);
    if (buffer && buffer->buffer) before.input_size = buffer->buffer->size();
    return before;
  }
  if (s.verb != Verb::kAllocate && s.verb != Verb::kGrow && s.verb != Verb::kResize) return before;
  const std::uint64_t size = Args(world, s).size(1);
  const auto rounded = checked_round_up(size, world.sizes.granule);
  if (!rounded) return before;
  before.need = *rounded;
  if (s.verb == Verb::kAllocate) return before;
  const auto* buffer = world.find_as<BufferObject>(s.operand<Name>(0)->text);
  if (!buffer || !buffer->buffer || buffer->buffer->is_closed()) return before;
  before.input_size = buffer->buffer->size();
  before.need = *rounded > before.input_size ? *rounded - before.input_size : 0;
  if (before.need != 0 && before.input_size != 0 && is_vmm(buffer->resource.get()) &&
      before.need < UINT64_MAX / 4)
    before.room_behind = has_room_behind(world, *buffer, before.need);
  return before;
}

std::optional<Failure> check_outcome(World& world, const Statement& s, const Reply& reply,
                                     const Foreseen& before) {
  if (!before.relevant || reply.kind == Reply::Kind::kSkipped) return std::nullopt;
  constexpr std::uint64_t kMostCalls = 100'000;
  if (world.driver().traffic.calls > kMostCalls)
    return wrong("calls",
                 std::to_string(world.driver().traffic.calls) + " driver calls for one statement");
  if (world.driver().traffic.contexts != 0 && !world.context_lost && !before.hindered)
    return wrong("context", "the library left another context current");
  for (const StreamHandle stream : before.capturing)
    if (s.verb != Verb::kDestroy && capture_status(world, stream) != CaptureStatus::kActive)
      return wrong("capture", "a capture was ended by an operation of the allocator");
  if (auto failure = check_error(world, s, reply)) return failure;
  if (auto failure = check_size(world, s, reply, before)) return failure;
  if (auto failure = check_asked(world, s, reply, resource_of_in_outcome(world, s))) return failure;
  return check_want(world, s, reply, before);
}

}  // namespace granule::prop
