// The standing invariants, checked after statements of the allocator without being asked.
#include <algorithm>
#include <set>

#include "figures.hpp"
#include "invariants.hpp"

namespace granule::prop {
namespace {

bool is_allocator_verb(Verb verb) {
  switch (verb) {
    case Verb::kResourceVmm:
    case Verb::kResourcePool:
    case Verb::kResourceRecycler:
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
    case Verb::kSet:
    case Verb::kReserveProbe:
    case Verb::kGrant:
    case Verb::kUsed:
    case Verb::kHolder:
    case Verb::kExport:
    case Verb::kImport:
    case Verb::kMove:
    case Verb::kDestroy:
      return true;
    default:
      return false;
  }
}

struct Live {
  std::string_view name;
  const BufferObject* object = nullptr;
  std::uint64_t base = 0;
  std::uint64_t size = 0;
};

std::vector<Live> live_buffers(const World& world) {
  std::vector<Live> live;
  for (const auto& [name, object] : world.objects) {
    const auto* buffer = std::get_if<BufferObject>(&object);
    if (!buffer || !buffer->buffer || buffer->buffer->is_closed()) continue;
    live.push_back({name, buffer, buffer->buffer->ptr().value, buffer->buffer->size()});
  }
  return live;
}

/// True if wherever the two lie over each other they are known to be the same bytes.
bool are_same_bytes(const Live& a, const Live& b) {
  std::uint64_t left_base = a.base;
  std::uint64_t covered = 0;
  for (const Segment& left : a.object->segments) {
    std::uint64_t right_base = b.base;
    for (const Segment& right : b.object->segments) {
      const std::uint64_t from = std::max(left_base, right_base);
      const std::uint64_t to = std::min(left_base + left.length, right_base + right.length);
      if (from < to) {
        covered += to - from;
        if (left.extent != right.extent ||
            left.offset + (from - left_base) != right.offset + (from - right_base))
          return false;
      }
      right_base += right.length;
    }
    left_base += left.length;
  }
  return covered == std::min(a.base + a.size, b.base + b.size) - std::max(a.base, b.base);
}

/// A block in there was freed although the free was reported as failed: it is still open, and its
/// place may be handed out again.
bool is_freed_unseen(const World& world, const Live& live) {
  if (!world.any_orphan()) return false;
  const std::vector<fault::Orphan> orphans = world.faults->orphans();
  return std::any_of(orphans.begin(), orphans.end(), [&](const fault::Orphan& orphan) {
    DevicePtr freed;
    if (const auto* free = std::get_if<MemFree>(&orphan.actual)) freed = free->ptr;
    if (const auto* free = std::get_if<MemFreeAsync>(&orphan.actual)) freed = free->ptr;
    return freed && live.base <= freed.value && freed.value < live.base + live.size;
  });
}

std::optional<Failure> check_overlap(const World& world, std::vector<Live> live) {
  std::sort(live.begin(), live.end(), [](const Live& a, const Live& b) {
    return a.base != b.base ? a.base < b.base : a.name < b.name;
  });
  for (std::size_t i = 0; i < live.size(); ++i) {
    for (std::size_t k = i + 1; k < live.size() && live[k].base < live[i].base + live[i].size;
         ++k) {
      if (live[k].size == 0 || are_same_bytes(live[i], live[k])) continue;
      if (is_freed_unseen(world, live[i]) || is_freed_unseen(world, live[k])) continue;
      return broken("overlap", "buffers " + std::string(live[i].name) + " and " +
                                   std::string(live[k].name) + " overlap");
    }
  }
  return std::nullopt;
}

/// The host, if the promise has an entry for it.
std::optional<Location> host_of(const Segment& segment) {
  for (const AccessEntry& entry : segment.access)
    if (entry.location.type != LocationType::kDevice) return entry.location;
  return std::nullopt;
}

std::string who(const Location& location) {
  return location.type == LocationType::kDevice ? "device " + std::to_string(location.id)
                                                : std::string("the host");
}

Access promised_to(const Segment& segment, const Location& location) {
  for (const AccessEntry& entry : segment.access)
    if (entry.location == location) return entry.access;
  return Access::kNone;
}

/// Where an undo failed as well, and was reported, access and contents may be anything.
bool undo_failed_in(const World& world, std::uint64_t base, std::uint64_t size) {
  return std::any_of(
      world.sink.reports.begin(), world.sink.reports.end(), [&](const FailureReport& report) {
        return report.kind == FailureKind::kUndoFailed && base < report.ptr.value + report.size &&
               report.ptr.value < base + size;
      });
}

/// An unmap there was done although it was reported as failed: nobody can tell.
bool is_unmapped_unseen(const World& world, const Live& live) {
  if (!world.tap->any_orphan()) return false;
  const std::vector<fault::Orphan> orphans = world.faults->orphans();
  return std::any_of(orphans.begin(), orphans.end(), [&](const fault::Orphan& orphan) {
    const auto* unmap = std::get_if<MemUnmap>(&orphan.actual);
    return unmap && unmap->ptr.value < live.base + live.size &&
           live.base < unmap->ptr.value + unmap->size;
  });
}

std::optional<Failure> check_mapped(World& world, const Live& live) {
  if (live.object->suspended) return std::nullopt;
  const auto devices = static_cast<std::int32_t>(world.free_at_start.size());
  std::uint64_t at = live.base;
  for (const Segment& segment : live.object->segments) {
    const bool doubtful = undo_failed_in(world, at, segment.length);
    for (std::int32_t device = 0; device <= devices && !doubtful; ++device) {
      // Behind the devices, the host: it has what its entry says, if there is one.
      const std::optional<Location> host = host_of(segment);
      if (device == devices && !host) continue;
      const Location location = device == devices ? *host : device_location(DeviceId{device});
      const Access promise = promised_to(segment, location);
      const auto where = "buffer " + std::string(live.name) + ", bytes " +
                         std::to_string(at - live.base) + " to " +
                         std::to_string(at - live.base + segment.length);
      for (const std::uint64_t byte : {at, at + segment.length - 1}) {
        const auto found = world.oracle().access_at(byte, location);
        if (!found) return broken("mapped", where + ": not mapped");
        if (*found != promise)
          return broken("access", where + ": " + who(location) + " has access " +
                                      std::to_string(static_cast<int>(*found)) + " instead of " +
                                      std::to_string(static_cast<int>(promise)));
      }
      if (promise != Access::kNone &&
          !world.oracle().range_has_access(at, segment.length, location, promise))
        return broken("mapped", where + ": there is a hole, or less access inside");
    }
    at += segment.length;
  }
  if (at - live.base != live.size)
    return broken("size", "buffer " + std::string(live.name) + " has " + std::to_string(live.size) +
                              " bytes instead of " + std::to_string(at - live.base));
  return std::nullopt;
}

std::optional<Failure> check_contents(World& world, const Live& live, bool gates) {
  if (live.object->suspended || world.misused || undo_failed_in(world, live.base, live.size))
    return std::nullopt;
  for (const Known& known : known_of(live.object->segments, 0, live.size, world.timeline.host())) {
    if (!known.value || (gates && !known.settled)) continue;
    const ByteSummary found =
        world.oracle().bytes_now(live.base + known.from, known.to - known.from);
    if (found.kind == ByteSummary::Kind::kUniform && found.byte == *known.value) continue;
    return broken("contents", "buffer " + std::string(live.name) + ", bytes " +
                                  std::to_string(known.from) + " to " + std::to_string(known.to) +
                                  ": not what was written (" + std::to_string(*known.value) + ")");
  }
  return std::nullopt;
}

std::vector<Visible> visible_now(const World& world) {
  std::vector<Visible> seen;
  for (const auto& [name, object] : world.objects) {
    const auto* buffer = std::get_if<BufferObject>(&object);
    if (!buffer || !buffer->buffer) continue;
    const bool closed = buffer->buffer->is_closed();
    seen.push_back({name, closed ? 0 : buffer->buffer->ptr().value,
                    closed ? 0 : buffer->buffer->size(), closed, buffer->buffer->is_suspended()});
  }
  return seen;
}

/// A failed operation changed nothing: every buffer that was there is as it was.
std::optional<Failure> check_unchanged(World& world, const Statement& s,
                                       const std::vector<Visible>& now) {
  for (const Visible& before : world.visible) {
    if (before.name == world.expand(s.target)) continue;
    const auto same = std::find(now.begin(), now.end(), before);
    if (same != now.end()) continue;
    if (s.verb == Verb::kMove || s.verb == Verb::kHolder || s.verb == Verb::kDecoy) continue;
    if (undo_failed_in(world, before.base, before.size)) continue;  // and was reported
    return broken("failed operation", "an operation that failed changed buffer " + before.name);
  }
  return std::nullopt;
}

/// Buffers that a statement may change: a grow, a holder or an export leaves its input alone.
bool may_change(const World& world, const Statement& s, std::string_view name) {
  switch (s.verb) {
    case Verb::kGrow:
    case Verb::kHolder:
    case Verb::kExport:
    case Verb::kUsed:
    case Verb::kReserveProbe:
      return world.expand(s.target) == name ||
             (s.verb == Verb::kHolder && world.expand(s.operand<Name>(0)->text) == name);
    default:
      break;
  }
  bool named = false;
  for_each_name(s, [&](const std::string& text) { named = named || world.expand(text) == name; });
  return named;
}

/// An operation leaves all buffers alone that are not its own.
std::optional<Failure> check_untouched(World& world, const Statement& s,
                                       const std::vector<Visible>& now) {
  const bool in_place = s.verb == Verb::kSuspend || s.verb == Verb::kResume;
  for (const Visible& before : world.visible) {
    if (!in_place && may_change(world, s, before.name)) continue;
    const auto found = std::find_if(now.begin(), now.end(),
                                    [&](const Visible& v) { return v.name == before.name; });
    if (found == now.end() || *found == before) continue;
    const bool same_place =
        found->base == before.base && found->size == before.size && found->closed == before.closed;
    if (in_place && same_place && may_change(world, s, before.name)) continue;
    return broken("other buffer", "an operation changed buffer " + before.name);
  }
  return std::nullopt;
}

std::string_view in_words(count::HostMisuse misuse) {
  switch (misuse) {
    case count::HostMisuse::kDoubleFree:
      return "twice";
    case count::HostMisuse::kWrongSize:
      return "with another size";
    case count::HostMisuse::kWrongAlignment:
      return "with another alignment";
    case count::HostMisuse::kForeign:
      return "without having been taken";
  }
  return "";
}

}  // namespace

std::optional<Failure> broken(std::string signature, std::string message) {
  Failure failure;
  failure.kind = Failure::Kind::kInvariant;
  failure.signature = "invariant " + std::move(signature);
  failure.message = std::move(message);
  return failure;
}

std::vector<ResourceObject*> reachable_resources(World& world) {
  std::vector<ResourceObject*> found;
  const auto add = [&](const std::shared_ptr<ResourceObject>& resource) {
    if (resource && std::find(found.begin(), found.end(), resource.get()) == found.end())
      found.push_back(resource.get());
  };
  for (auto& [name, object] : world.objects) {
    if (auto* resource = std::get_if<std::shared_ptr<ResourceObject>>(&object)) add(*resource);
    if (auto* buffer = std::get_if<BufferObject>(&object)) add(buffer->resource);
    if (auto* holder = std::get_if<HolderObject>(&object)) add(holder->resource);
  }
  return found;
}

std::optional<Failure> check_invariants(World& world, const Statement* statement, bool full) {
  const bool allocator = !statement || is_allocator_verb(statement->verb);
  if (!allocator && !full && world.driver().traffic.calls == 0) return std::nullopt;
  const std::vector<Live> live = live_buffers(world);
  std::vector<Visible> now = visible_now(world);
  if (statement && !world.visible.empty())
    if (auto failure = world.last_failed ? check_unchanged(world, *statement, now)
                                         : check_untouched(world, *statement, now))
      return failure;
  world.visible = std::move(now);
  if (auto failure = check_overlap(world, live)) return failure;
  const bool gates = world.oracle().any_gate();
  for (const Live& buffer : live) {
    if (buffer.object->resource->options.kind != TargetOptions::Kind::kVmm) continue;
    if (is_unmapped_unseen(world, buffer)) continue;
    if (auto failure = check_mapped(world, buffer)) return failure;
    if (auto failure = check_contents(world, buffer, gates)) return failure;
  }
  return check_figures(world, statement);
}

std::optional<Failure> check_host_memory(World& world) {
  const std::vector<count::HostMisuse> misuses = world.host_memory.take_misuses();
  if (misuses.empty()) return std::nullopt;
  return broken("host memory",
                "host memory was given back wrongly: " + std::string(in_words(misuses[0])));
}

std::uint64_t lost_contexts(const World& world) {
  const auto fired = world.faults->fired_by_class();
  return fired[static_cast<std::size_t>(fault::FaultClass::kSticky)] +
         fired[static_cast<std::size_t>(fault::FaultClass::kSurfacing)];
}

}  // namespace granule::prop
