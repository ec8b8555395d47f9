// Resources: making them, grants, trims, collects, settings.
#include <algorithm>

#include "../sched/scheduler.hpp"
#include "args.hpp"
#include "order.hpp"
#include "promise.hpp"

namespace granule::prop {
namespace {

Access access_of(const Word& word) {
  return trace::spelled<Access>(word.text).value_or(Access::kReadWrite);
}

std::vector<DeviceId> devices_of(const NumberList& list) {
  std::vector<DeviceId> devices;
  for (const std::int64_t value : list.values)
    devices.push_back(DeviceId{static_cast<std::int32_t>(value)});
  return devices;
}

std::uint32_t percent_of(const Size& size) {
  for (const Term& term : size.terms)
    if (term.kind == Term::Kind::kPercent || term.kind == Term::Kind::kNumber)
      return static_cast<std::uint32_t>(std::min<std::uint64_t>(term.value, 10000));
  return 0;
}

TargetOptions vmm_options(World& world, const Statement& s) {
  const Args args(world, s);
  TargetOptions options;
  VmmOptions& vmm = options.vmm;
  if (const Place* place = s.value<Place>("location"))
    vmm.location = world.location(*place).value_or(vmm.location);
  if (const Word* handle = s.value<Word>("handle"))
    vmm.handle_type = trace::spelled<HandleType>(handle->text).value_or(HandleType::kNone);
  if (const Word* unit = s.value<Word>("granularity"))
    vmm.granularity =
        trace::spelled<GranularityKind>(unit->text).value_or(GranularityKind::kRecommended);
  vmm.alignment = args.size("align");
  if (const NumberList* peers = s.value<NumberList>("peers")) vmm.peers = devices_of(*peers);
  if (const Word* access = s.value<Word>("self_access")) vmm.self_access = access_of(*access);
  if (const Word* access = s.value<Word>("peer_access")) vmm.peer_access = access_of(*access);
  if (const Option* rdma = s.option("rdma"))
    vmm.rdma = rdma->value ? Wish::kRequired : Wish::kIfPossible;
  if (s.has("managed")) vmm.type = AllocationType::kManaged;
  if (const Word* free = s.value<Word>("free"))
    vmm.free = free->text == "deferred" ? FreePolicy::kDeferred : FreePolicy::kSynchronize;
  vmm.worker = s.has("worker");
  vmm.cache = args.size("cache");
  vmm.limit = args.size("limit", kNoLimit);
  vmm.commit_ahead = args.size("commit_ahead");
  vmm.max_chunk = args.size("max_chunk");
  if (const Size* slack = s.value<Size>("slack")) vmm.slack_percent = percent_of(*slack);
  if (const Size* fit = s.value<Size>("fit")) vmm.fit_percent = percent_of(*fit);
  return options;
}

/// The device access that the options promise to every chunk.
std::vector<AccessEntry> promised(const VmmOptions& vmm) {
  std::vector<AccessEntry> entries;
  const bool on_device = vmm.location.type == LocationType::kDevice;
  if (on_device && vmm.self_access != Access::kNone)
    entries.push_back({vmm.location, vmm.self_access});
  for (const DeviceId peer : vmm.peers) {
    const Location location = device_location(peer);
    if (on_device && location == vmm.location) continue;
    set_promise(entries, location, vmm.peer_access);
  }
  return entries;
}

Reply make_resource(World& world, const Statement& s, TargetOptions options,
                    std::vector<AccessEntry> access, std::int32_t device) {
  const std::string& name = s.operand<Name>(0)->text;
  if (world.find(name)) {
    const Reply dropped = drop_object(world, name, false);
    if (!dropped.success()) return dropped;
  }
  TargetContext context;
  context.backend = &world.driver();
  context.environment.runtime.memory = &world.host_memory;
  if (world.scheduler) {
    context.environment.runtime.hooks = world.scheduler;
    context.environment.runtime.memory = world.crossing_memory.get();
  }
  context.environment.sink = &world.sink;
  const OriginScope scope(CallOrigin::kLibrary);
  auto made = world.options.target ? world.options.target(context, options)
                                   : make_core_target(context, options);
  if (!made) return Reply::of(made.error());
  auto resource = std::make_shared<ResourceObject>();
  resource->target = std::move(*made);
  resource->options = std::move(options);
  resource->access = std::move(access);
  resource->device = device;
  world.bind(name, std::move(resource));
  ++world.made_resources;
  return Reply::ok();
}

Reply do_resource_vmm(World& world, const Statement& s) {
  // A thread of the library's can be told when to run on the model only.
  if (s.has("worker") && !world.scheduler) return Reply::skipped("a worker needs the model");
  TargetOptions options = vmm_options(world, s);
  std::vector<AccessEntry> access = promised(options.vmm);
  const Location& location = options.vmm.location;
  const std::int32_t device = location.type == LocationType::kDevice ? location.id : 0;
  return make_resource(world, s, std::move(options), std::move(access), device);
}

Reply do_resource_pool(World& world, const Statement& s) {
  const Args args(world, s);
  TargetOptions options;
  options.kind = TargetOptions::Kind::kPool;
  options.device.value = static_cast<std::int32_t>(args.size("device"));
  options.default_pool = s.has("default");
  options.has_threshold = s.has("threshold");
  options.threshold = args.size("threshold");
  options.max_size = args.size("max");
  const std::int32_t device = options.device.value;
  return make_resource(world, s, std::move(options), {}, device);
}

Reply do_resource_recycler(World& world, const Statement& s) {
  const Args args(world, s);
  TargetOptions options;
  options.kind = TargetOptions::Kind::kRecycler;
  options.device.value = static_cast<std::int32_t>(args.size("device"));
  options.limit = args.size("limit", kNoLimit);
  const std::int32_t device = options.device.value;
  return make_resource(world, s, std::move(options), {}, device);
}

/// The resource that operand 0 names, or null.
ResourceObject* resource_of(World& world, const Statement& s) {
  const auto* found = world.find_as<std::shared_ptr<ResourceObject>>(s.operand<Name>(0)->text);
  return found ? found->get() : nullptr;
}

Reply no_resource(const Statement& s) {
  return Reply::skipped("no resource `" + s.operand<Name>(0)->text + "`");
}

Reply do_collect(World& world, const Statement& s) {
  ResourceObject* resource = resource_of(world, s);
  if (!resource) return no_resource(s);
  const OriginScope scope(CallOrigin::kLibrary);
  return Reply::of(resource->target->collect());
}

Reply do_resource_trim(World& world, const Statement& s) {
  ResourceObject* resource = resource_of(world, s);
  if (!resource) return no_resource(s);
  const OriginScope scope(CallOrigin::kLibrary);
  return Reply::of(resource->target->trim(Args(world, s).size(1)));
}

Reply do_set(World& world, const Statement& s) {
  ResourceObject* resource = resource_of(world, s);
  if (!resource) return no_resource(s);
  const OriginScope scope(CallOrigin::kLibrary);
  for (const Option& option : s.options) {
    const Size* size = option.value ? std::get_if<Size>(&*option.value) : nullptr;
    const Word* word = option.value ? std::get_if<Word>(&*option.value) : nullptr;
    const std::uint64_t value = size ? world.eval(*size) : (word && word->text == "on" ? 1 : 0);
    const Status status = resource->target->set(option.key, value);
    if (!status) return Reply::of(status);
  }
  return Reply::ok();
}

Reply do_reset_high(World& world, const Statement& s) {
  ResourceObject* resource = resource_of(world, s);
  if (!resource) return no_resource(s);
  const OriginScope scope(CallOrigin::kLibrary);
  return Reply::of(resource->target->reset_high());
}

/// True if the place has some of that access already, and gets more.
bool changes_access(const std::vector<AccessEntry>& entries, const Location& location,
                    Access access) {
  return std::any_of(entries.begin(), entries.end(), [&](const AccessEntry& entry) {
    return entry.location == location && entry.access != Access::kNone && entry.access != access &&
           access == Access::kReadWrite;
  });
}

/// Work of the device on what the resource has handed out, as far as `changes` picks it, comes
/// before a change of the device's access.
template <class Changes>
DriverStatus settle_work(World& world, const ResourceObject& resource, DeviceId device,
                         Changes&& changes) {
  std::vector<Segment> changed;
  const auto pick = [&](const std::vector<Segment>& segments) {
    std::copy_if(segments.begin(), segments.end(), std::back_inserter(changed), changes);
  };
  for (auto& [name, object] : world.objects) {
    const auto* buffer = std::get_if<BufferObject>(&object);
    if (buffer && buffer->resource.get() == &resource) pick(buffer->segments);
  }
  pick(resource.released);
  return settle_on_host(world, changed, device.value);
}

/// Two resources that hand out memory of the same pool.
bool share_a_pool(const ResourceObject& a, const ResourceObject& b) {
  if (&a == &b) return true;
  return a.options.default_pool && b.options.default_pool && a.device == b.device;
}

/// Access to a pool is that to each block of it: what is taken away goes behind the peer's work.
DriverStatus settle_pool(World& world, const ResourceObject& resource, DeviceId device) {
  std::vector<std::shared_ptr<ResourceObject>> sharing;
  for (auto& [name, object] : world.objects) {
    const auto* held = std::get_if<std::shared_ptr<ResourceObject>>(&object);
    const auto* buffer = std::get_if<BufferObject>(&object);
    const auto& other = held ? *held : buffer ? buffer->resource : nullptr;
    if (other && share_a_pool(*other, resource) &&
        std::find(sharing.begin(), sharing.end(), other) == sharing.end())
      sharing.push_back(other);
  }
  for (const auto& other : sharing)
    if (const DriverStatus status =
            settle_work(world, *other, device, [](const Segment&) { return true; });
        status != DriverStatus::kSuccess)
      return status;
  return DriverStatus::kSuccess;
}

Reply do_peer(World& world, const Statement& s) {
  ResourceObject* resource = resource_of(world, s);
  if (!resource) return no_resource(s);
  const DeviceId device{static_cast<std::int32_t>(Args(world, s).size(1))};
  const Access access = access_of(*s.operand<Word>(2));
  if (access == Access::kNone)
    if (const DriverStatus settled = settle_pool(world, *resource, device);
        settled == DriverStatus::kWouldBlock)
      return Reply::of(settled);
  const OriginScope scope(CallOrigin::kLibrary);
  return Reply::of(resource->target->peer(device, access));
}

Reply do_grant(World& world, const Statement& s) {
  ResourceObject* resource = resource_of(world, s);
  if (!resource) return no_resource(s);
  const DeviceId device{static_cast<std::int32_t>(Args(world, s).size(1))};
  const Access access = access_of(*s.operand<Word>(2));
  const DriverStatus ordered = settle_work(world, *resource, device, [&](const Segment& segment) {
    return changes_access(segment.access, device_location(device), access);
  });
  if (ordered == DriverStatus::kWouldBlock) return Reply::of(ordered);
  const OriginScope scope(CallOrigin::kLibrary);
  const Status status = resource->target->grant(device, access);
  if (!status) return Reply::of(status);
  const Location location = device_location(device);
  widen_promise(resource->access, location, access);
  for (auto& [number, chunk] : world.chunks)
    if (chunk.resource == resource) widen_promise(chunk.access, location, access);
  for (auto& [name, object] : world.objects) {
    auto* buffer = std::get_if<BufferObject>(&object);
    if (!buffer || buffer->resource.get() != resource) continue;
    for (Segment& segment : buffer->segments) widen_promise(segment.access, location, access);
    for (ChunkFacts& chunk : buffer->put_away) widen_promise(chunk.access, location, access);
  }
  return Reply::ok();
}

}  // namespace

void set_promise(std::vector<AccessEntry>& entries, const Location& location, Access access) {
  std::erase_if(entries, [&](const AccessEntry& e) { return e.location == location; });
  if (access != Access::kNone) entries.push_back({location, access});
}

void widen_promise(std::vector<AccessEntry>& entries, const Location& location, Access access) {
  for (AccessEntry& entry : entries) {
    if (!(entry.location == location)) continue;
    if (access == Access::kReadWrite) entry.access = access;
    return;
  }
  if (access != Access::kNone) entries.push_back({location, access});
}

GrowOptions grow_options(World& world, const Statement& s) {
  GrowOptions options;
  const Args args(world, s);
  if (const Word* access = s.value<Word>("self_access")) options.self_access = access_of(*access);
  if (const Word* access = s.value<Word>("peer_access")) options.peer_access = access_of(*access);
  if (const NumberList* peers = s.value<NumberList>("peers")) options.peers = devices_of(*peers);
  if (const Option* rdma = s.option("rdma"))
    options.rdma = rdma->value ? Wish::kRequired : Wish::kIfPossible;
  if (s.has("capacity")) options.capacity = args.size("capacity");
  if (const Word* handle = s.value<Word>("handle"))
    options.handle_type = trace::spelled<HandleType>(handle->text).value_or(HandleType::kNone);
  if (const Place* place = s.value<Place>("location")) options.location = world.location(*place);
  return options;
}

std::vector<AccessEntry> promised_to_growth(const ResourceObject& resource,
                                            const GrowOptions& options) {
  VmmOptions vmm = resource.options.vmm;
  if (!options.self_access && !options.peer_access && !options.peers) return resource.access;
  if (options.self_access) vmm.self_access = *options.self_access;
  if (options.peer_access) vmm.peer_access = *options.peer_access;
  if (options.peers) vmm.peers = *options.peers;
  std::vector<AccessEntry> entries = promised(vmm);
  const std::vector<AccessEntry> asked = promised(resource.options.vmm);
  for (const AccessEntry& entry : resource.access)  // what grant() added holds for all chunks
    if (std::find(asked.begin(), asked.end(), entry) == asked.end())
      widen_promise(entries, entry.location, entry.access);
  return entries;
}

void add_resource_handlers(std::vector<Handler>& table) {
  set_handler(table, Verb::kResourceVmm, do_resource_vmm);
  set_handler(table, Verb::kResourcePool, do_resource_pool);
  set_handler(table, Verb::kResourceRecycler, do_resource_recycler);
  set_handler(table, Verb::kCollect, do_collect);
  set_handler(table, Verb::kTrim, do_resource_trim);
  set_handler(table, Verb::kSet, do_set);
  set_handler(table, Verb::kPeer, do_peer);
  set_handler(table, Verb::kResetHigh, do_reset_high);
  set_handler(table, Verb::kGrant, do_grant);
}

}  // namespace granule::prop
