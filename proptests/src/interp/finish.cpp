// The end of a run: faults are lifted, streams drain, everything still open is dropped, and the
// ledger, the free memory and the failure sink must be as at the start.
#include <algorithm>

#include "aftermath.hpp"
#include "faults.hpp"
#include "invariants.hpp"

namespace granule::prop {
namespace {

std::optional<Failure> unclean(std::string signature, std::string message) {
  Failure failure;
  failure.kind = Failure::Kind::kFinish;
  failure.signature = "finish " + std::move(signature);
  failure.message = std::move(message);
  return failure;
}

template <class T>
std::vector<std::string> names_of(const World& world) {
  std::vector<std::string> names;
  for (const auto& [name, object] : world.objects)
    if (std::holds_alternative<T>(object)) names.push_back(name);
  return names;
}

void end_captures(World& world) {
  for (auto& [name, object] : world.objects) {
    auto* stream = std::get_if<StreamObject>(&object);
    if (!stream || !world.is_capturing(stream->lane)) continue;
    StreamEndCapture end;
    end.stream = stream->handle;
    if (world.harness_call(end) == DriverStatus::kSuccess && end.graph) {
      GraphDestroy destroy;
      destroy.graph = end.graph;
      world.harness_call(destroy);
    }
  }
  world.capturing_lanes.clear();
}

void open_gates(World& world) {
  for (const std::string& name : world.held) {
    const auto* stream = world.find_as<StreamObject>(name);
    if (!stream) continue;
    const DeviceScope scope(world, stream->device);
    OpenGate gate;
    gate.stream = stream->handle;
    world.harness_call(gate);
  }
  world.held.clear();
  if (world.machine->is_model()) world.oracle().open_all_gates();  // of destroyed streams, too
}

/// Resources that only their buffers keep get a name, so that what they report can be asked.
void keep_resources(World& world) {
  std::vector<std::shared_ptr<ResourceObject>> all;
  for (auto& [name, object] : world.objects) {
    if (auto* buffer = std::get_if<BufferObject>(&object)) all.push_back(buffer->resource);
    if (auto* holder = std::get_if<HolderObject>(&object)) all.push_back(holder->resource);
  }
  for (std::size_t i = 0; i < all.size(); ++i)
    world.bind("resource " + std::to_string(i), std::move(all[i]));
}

/// Waits for all devices that have a context of ours.
DriverStatus drain(World& world) {
  if (world.without_context) return DriverStatus::kSuccess;
  DriverStatus first = DriverStatus::kSuccess;
  for (std::size_t i = 0; i < world.free_at_start.size(); ++i) {
    if (i > 0 && !world.used_device(static_cast<std::int32_t>(i))) continue;
    const DeviceScope scope(world, static_cast<std::int32_t>(i));
    CtxSynchronize all;
    const DriverStatus status = world.harness_call(all);
    if (first == DriverStatus::kSuccess) first = status;
  }
  if (world.machine->is_model()) world.oracle().drain();
  if (first == DriverStatus::kSuccess) world.timeline.host_learns_all();
  return first;
}

template <class T>
std::optional<Failure> drop_all(World& world, std::string_view what) {
  for (const std::string& name : names_of<T>(world)) {
    const Reply reply = drop_object(world, name, false);
    if (reply.success()) continue;
    return unclean("drop",
                   std::string(what) + " " + name + " could not be dropped: " + to_text(reply));
  }
  return std::nullopt;
}

/// Idle and pending memory goes back, so that what is left is leaked or quarantined.
std::optional<Failure> empty_resources(World& world) {
  for (ResourceObject* resource : reachable_resources(world)) {
    const OriginScope scope(CallOrigin::kLibrary);
    resource->target->collect().ignore();  // what it cannot reap shows in the ledger
    const Status trimmed = resource->target->trim(0);
    if (!trimmed && trimmed.error().code != ErrorCode::kUnsupported)
      return unclean("trim", "idle memory could not be given back: " + to_string(trimmed.error()));
  }
  return std::nullopt;
}

template <class C>
void free_each(World& world, const std::vector<std::uint64_t>& addresses) {
  for (const std::uint64_t address : addresses) {
    C call;
    if constexpr (requires { call.ptr; }) {
      call.ptr.value = address;
    } else {
      call.host = address;
    }
    world.harness_call(call);
  }
}

/// What the program made with driver calls of its own, and what was made behind its back.
void free_raw_objects(World& world) {
  free_each<MemFree>(world, world.blocks);
  free_each<MemFree>(world, world.plain);
  free_each<MemFreeHost>(world, world.pinned);
  for (const PoolHandle pool : world.pools) {
    MemPoolDestroy destroy;
    destroy.pool = pool;
    world.harness_call(destroy);
  }
  for (const Descriptor descriptor : world.descriptors) {
    CloseDescriptor close;
    close.descriptor = descriptor;
    world.harness_call(close);
  }
  for (const auto& mapping : world.oracle().mappings()) {
    MemUnmap unmap;
    unmap.ptr.value = mapping.base;
    unmap.size = mapping.size;
    world.harness_call(unmap);
  }
  for (const auto& handle : world.oracle().handles()) {
    for (std::uint64_t i = 0; i < handle.references; ++i) {
      MemRelease release;
      release.handle = handle.handle;
      world.harness_call(release);
    }
  }
  for (const auto& reservation : world.oracle().reservations()) {
    MemAddressFree free;
    free.ptr.value = reservation.base;
    free.size = reservation.size;
    world.harness_call(free);
  }
}

/// What a call made although it was reported as failed: nobody else knows of it.
void free_orphan(World& world, const Call& made) {
  const auto free_memory = [&](DevicePtr ptr) {
    MemFree free;
    free.ptr = ptr;
    world.harness_call(free);
  };
  if (const auto* plain = std::get_if<MemAlloc>(&made)) free_memory(plain->ptr);
  if (const auto* block = std::get_if<MemAllocAsync>(&made)) free_memory(block->ptr);
  if (const auto* block = std::get_if<MemAllocFromPoolAsync>(&made)) free_memory(block->ptr);
  if (const auto* pool = std::get_if<MemPoolCreate>(&made)) {
    MemPoolDestroy destroy;
    destroy.pool = pool->pool;
    world.harness_call(destroy);
  }
}

/// Blocks that a pool of the library reported as leaked.
void free_reported_blocks(World& world) {
  for (const FailureReport& report : world.sink.reports) {
    if (report.kind != FailureKind::kReleaseFailed || !report.ptr) continue;  // see leaked_pools
    if (world.oracle().reservation_at(report.ptr.value)) continue;
    MemFree free;
    free.ptr = report.ptr;
    world.harness_call(free);
  }
}

/// Pools that were left because they had blocks: those are gone now.
void destroy_leaked_pools(World& world) {
  for (const FailureReport& report : world.sink.reports) {
    if (report.kind != FailureKind::kReleaseFailed || report.ptr || report.error.object == 0)
      continue;
    MemPoolDestroy destroy;
    destroy.pool.value = report.error.object;
    world.harness_call(destroy);
  }
}

/// The pools of the devices give everything back, whatever threshold they were left with.
void trim_device_pools(World& world) {
  for (std::size_t i = 0; i < world.free_at_start.size(); ++i) {
    if (!world.oracle().config().devices[i].pools) continue;
    if (world.without_context) continue;
    DeviceGetDefaultMemPool get;
    get.device.value = static_cast<std::int32_t>(i);
    if (world.harness_call(get) != DriverStatus::kSuccess) continue;
    MemPoolTrimTo trim;
    trim.pool = get.pool;
    world.harness_call(trim);
  }
}

/// What the library still holds when all its buffers are gone must be what it reported.
std::optional<Failure> check_reported(World& world, const Belief& belief) {
  const Holdings& reported = belief.held;
  const Holdings held = world.tap->held_by(CallOrigin::kLibrary) - world.lost;
  const auto differ = [](std::string_view what, std::int64_t left, std::int64_t told) {
    return unclean("leak of " + std::string(what), std::to_string(left) + " " + std::string(what) +
                                                       " left, " + std::to_string(told) +
                                                       " reported");
  };
  const Holdings& unknown = world.tap->lost_unknown();
  if (!agrees(reported.handles, held.handles, unknown.handles))
    return differ("handles", held.handles, reported.handles);
  if (!agrees(reported.reservations, held.reservations, unknown.reservations))
    return differ("reservations", held.reservations, reported.reservations);
  // What is quarantined may be there or not.
  if (!agrees(reported.mappings, held.mappings, unknown.mappings,
              world.tap->made_unknown().mappings + belief.quarantined))
    return differ("mappings", held.mappings, reported.mappings);
  const bool any = held.handles != 0 || held.reservations != 0 || held.mappings != 0;
  const bool told_of =
      reported.handles != 0 || reported.reservations != 0 || reported.mappings != 0;
  if (told_of && world.sink.reports.empty())
    return unclean("silent leak", "something is left, of which the failure sink was not told");
  if (any && !world.has_faulted())
    return unclean("leak", "the library still holds " + std::to_string(held.handles) +
                               " handles, " + std::to_string(held.reservations) +
                               " reservations and " + std::to_string(held.mappings) + " mappings");
  return std::nullopt;
}

std::optional<Failure> check_free(World& world) {
  for (std::size_t i = 0; i < world.free_at_start.size(); ++i) {
    const std::uint64_t now = world.oracle().free_bytes(static_cast<std::int32_t>(i));
    if (now == world.free_at_start[i]) continue;
    return unclean("free memory",
                   "device " + std::to_string(i) + " has " +
                       std::to_string(static_cast<std::int64_t>(now - world.free_at_start[i])) +
                       " bytes of free memory against the start");
  }
  return std::nullopt;
}

/// The memory of the start, less its last two granules, can be allocated again.
std::optional<Failure> fill_device(World& world) {
  if (!world.machine->is_model()) return std::nullopt;
  const std::uint64_t granule = world.sizes.granule;
  const std::uint64_t whole = world.free_at_start[0] / granule;
  if (whole <= 2 || world.without_context) return std::nullopt;
  MemCreate create;
  create.size = (whole - 2) * granule;
  const DriverStatus status = world.harness_call(create);
  if (status != DriverStatus::kSuccess)
    return unclean("refill", "the free memory of the start cannot be allocated again: " +
                                 std::string(name_of(status)));
  MemRelease release;
  release.handle = create.handle;
  world.harness_call(release);
  return std::nullopt;
}

/// A resource that ended while a capture or a closed gate kept it from freeing says what it leaks.
bool was_hindered(const World& world, const FailureReport& report) {
  if (report.kind != FailureKind::kReleaseFailed) return false;
  const auto hinders = [](const FailureReport& r) {
    return r.error.code == ErrorCode::kCapturing || r.error.driver == DriverStatus::kWouldBlock;
  };
  const bool pool = !report.ptr && report.error.object != 0;  // left because a block of it was
  return hinders(report) ||
         (pool && std::any_of(world.sink.reports.begin(), world.sink.reports.end(), hinders));
}

std::optional<Failure> check_sink(World& world, std::size_t before) {
  if (world.has_faulted() || world.any_orphan()) return std::nullopt;
  for (std::size_t i = 0; i < world.sink.reports.size(); ++i) {
    const FailureReport& report = world.sink.reports[i];
    if (report.kind == FailureKind::kParked && i < before) continue;
    if (was_hindered(world, report)) continue;
    return unclean("sink", "the failure sink has a report: " + to_string(report.error));
  }
  return std::nullopt;
}

void use_primary_context(World& world) {
  world.set_thread(0);
  if (world.without_context) return;
  CtxSetCurrent current;
  current.context = world.primary;
  world.harness_call(current);
}

/// Host memory and driver objects besides memory, when the last resource is gone.
std::optional<Failure> check_nothing_kept(World& world) {
  if (auto failure = check_host_memory(world)) return failure;
  const std::uint64_t blocks = world.host_memory.live_blocks();
  if (blocks != 0)
    return unclean("host memory", std::to_string(blocks) + " blocks of host memory, " +
                                      std::to_string(world.host_memory.live_bytes()) +
                                      " bytes, were not given back");
  const Tap::Objects& kept = world.tap->objects();
  const auto left = [](std::string_view what, std::int64_t count) {
    return unclean("kept " + std::string(what),
                   std::to_string(count) + " " + std::string(what) + " were not given back");
  };
  if (kept.events > 0) return left("events", kept.events);
  if (kept.contexts > 0) return left("primary contexts", kept.contexts);
  const bool told = std::any_of(world.sink.reports.begin(), world.sink.reports.end(),
                                [](const FailureReport& report) {
                                  return report.kind == FailureKind::kReleaseFailed &&
                                         !report.ptr && report.error.object != 0;
                                });
  if (kept.pools > 0 && !told) return left("pools", kept.pools);
  return std::nullopt;
}

std::optional<Failure> give_back(World& world) {
  keep_resources(world);
  if (auto failure = drop_all<HolderObject>(world, "holder")) return failure;
  if (auto failure = drop_all<BufferObject>(world, "buffer")) return failure;
  if (auto failure = drop_all<BundleObject>(world, "export")) return failure;
  if (auto failure = drop_all<DecoyObject>(world, "decoy")) return failure;
  if (auto failure = drop_all<HoleObject>(world, "hole")) return failure;
  drain(world);
  if (auto failure = works_again(world)) return failure;
  constexpr int kRounds = 3;  // a range that was retired is idle after one, and gone after two
  for (int i = 0; i < kRounds; ++i) {
    drain(world);
    if (auto failure = empty_resources(world)) return failure;
  }
  if (auto failure = check_reported(world, library_belief(world))) return failure;
  if (auto failure = drop_all<std::shared_ptr<ResourceObject>>(world, "resource")) return failure;
  return check_nothing_kept(world);
}

template <class T>
void destruct_all(World& world) {
  const OriginScope scope(CallOrigin::kLibrary);
  for (const std::string& name : names_of<T>(world)) world.unbind(name);
}

/// VMM calls work when the contexts are lost (S32): whatever buffers hold comes back, without a
/// wait. Blocks of pools cannot.
std::optional<Failure> finish_after_loss(World& world) {
  if (world.misled || world.context_lost || !world.machine->is_model()) return std::nullopt;
  world.oracle().reveal_faults();  // also on devices that the program itself has nothing on
  keep_resources(world);
  destruct_all<HolderObject>(world);
  destruct_all<BufferObject>(world);
  destruct_all<BundleObject>(world);
  for (ResourceObject* resource : reachable_resources(world)) {
    const OriginScope scope(CallOrigin::kLibrary);
    resource->target->collect().ignore();  // what stays shows in the ledger
    resource->target->trim(0).ignore();
  }
  if (auto failure = check_reported(world, library_belief(world))) return failure;
  destruct_all<std::shared_ptr<ResourceObject>>(world);
  return check_nothing_kept(world);
}

}  // namespace

bool World::used_device(std::int32_t device) const {
  const auto index = static_cast<std::size_t>(device);
  return index < primaries_.size() && primaries_[index];
}

std::optional<Failure> finish(World& world) {
  lift_faults(world);
  use_primary_context(world);
  end_captures(world);
  ThreadExchangeStreamCaptureMode mode;  // a fault may have kept the library from restoring it
  mode.mode = CaptureMode::kGlobal;
  world.harness_call(mode);
  open_gates(world);
  const DriverStatus drained = drain(world);
  if (world.sticky || is_sticky(drained)) {
    world.sticky = true;
    return finish_after_loss(world);
  }
  if (auto failure = check_landings(world, true)) return failure;
  const std::size_t reports = world.sink.reports.size();
  if (auto failure = give_back(world)) return failure;
  const bool orphans = world.driver().any_orphan();
  for (const fault::Orphan& orphan : world.faults->take_orphans())
    free_orphan(world, orphan.actual);
  free_reported_blocks(world);
  free_raw_objects(world);
  drain(world);
  destroy_leaked_pools(world);
  trim_device_pools(world);
  drop_all<EventObject>(world, "event");
  drop_all<StreamObject>(world, "stream");
  for (const ContextHandle context : world.contexts) {
    CtxDestroy destroy;
    destroy.context = context;
    world.harness_call(destroy);
  }
  if (world.context_lost) return std::nullopt;
  if (!orphans) {
    if (auto failure = check_free(world)) return failure;
    if (auto failure = fill_device(world)) return failure;
  }
  return check_sink(world, reports);
}

}  // namespace granule::prop
