// Names, operands and the machine of a running program.
#include "world.hpp"

#include <algorithm>

#include <granule/prop/text.hpp>

#include "../sched/host_order.hpp"

namespace granule::prop {
namespace {

model::Config machine_config(const Program& program, const model::Config& base) {
  model::Config config = base;
  if (config.devices.empty()) config.devices.emplace_back();
  const SizeContext sizes;
  for (const Statement& s : program.statements) {
    if (s.verb != Verb::kDevice) continue;
    const Size* number = s.operand<Size>(0);
    const std::uint64_t index = number ? number->evaluate(sizes) : 0;
    if (index >= kMostDevices) continue;
    while (config.devices.size() <= index) config.devices.push_back(model::DeviceConfig{});
    model::DeviceConfig& device = config.devices[index];
    if (const Size* memory = s.value<Size>("memory")) device.memory = memory->evaluate(sizes);
    const Size* unit = s.value<Size>("granularity");
    const std::uint64_t granularity = unit ? unit->evaluate(sizes) : 0;
    if (is_possible_granularity(granularity)) device.granularity = granularity;
    if (const Word* peers = s.value<Word>("peers")) device.peers = peers->text != "none";
  }
  return config;
}

}  // namespace

void SinkCounter::report(const FailureReport& report) noexcept { reports.push_back(report); }

World::World(const Program& wanted, const RunOptions& asked, sched::Scheduler* chooses)
    : program(wanted), options(asked), scheduler(chooses) {
  const model::Config config = machine_config(program, options.machine);
  machine =
      options.make_machine ? options.make_machine(config) : std::make_unique<ModelMachine>(config);
  sizes.granule = config.devices[0].granularity;
  Backend* inner = &machine->driver();
  if (scheduler) {
    threaded = std::make_unique<sched::ThreadedBackend>(*inner, *scheduler);
    crossing_memory = std::make_unique<sched::CrossingMemory>(*scheduler, host_memory);
    inner = threaded.get();
  }
  faults = std::make_unique<fault::FaultBackend>(*inner);
  if (machine->is_model())
    faults->set_lose_contexts(
        [this](DriverStatus status, bool at_once) { oracle().lose_contexts(status, at_once); });
  poison = std::make_unique<check::PoisonCheckBackend>(
      *faults, [this](const Call& call, CallOrigin origin) {
        model::Violation violation;
        violation.kind = model::ViolationKind::kPoisonedUse;
        violation.message = std::string(name_of(kind(call))) + " was given a poisoned value";
        findings.push_back({std::move(violation), origin});
      });
  Backend* outer = poison.get();
  if (options.decorate) {
    decorated = options.decorate(*poison);
    if (decorated) outer = decorated.get();
  }
  tap = std::make_unique<Tap>(*outer, machine->oracle());
}

World::~World() = default;

std::string World::expand(std::string_view name) const {
  std::string text;
  for (const char c : name) {
    if (c == '@') {
      text += std::to_string(sizes.counter);
    } else {
      text += c;
    }
  }
  return text;
}

Object* World::find(std::string_view name) {
  const auto found =
      name.find('@') == std::string_view::npos ? objects.find(name) : objects.find(expand(name));
  return found == objects.end() ? nullptr : &found->second;
}

std::optional<std::uint64_t> World::value_of(std::string_view name) {
  if (name == "null") return 0;
  const Object* object = find(name);
  if (!object) return std::nullopt;
  if (const auto* raw = std::get_if<RawObject>(object)) return raw->value;
  if (const auto* stream = std::get_if<StreamObject>(object)) return stream->handle.value;
  if (const auto* event = std::get_if<EventObject>(object)) return event->handle.value;
  if (const auto* decoy = std::get_if<DecoyObject>(object)) return decoy->base.value;
  if (const auto* hole = std::get_if<HoleObject>(object)) return hole->base.value;
  if (const auto* buffer = std::get_if<BufferObject>(object)) {
    if (!buffer->buffer || buffer->buffer->is_closed()) return std::nullopt;
    return buffer->buffer->ptr().value;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> World::address(const Address& address) {
  if (address.name.empty()) return eval(address.offset);
  const auto base = value_of(address.name);
  if (!base) return std::nullopt;
  return *base + eval(address.offset);
}

std::optional<EventHandle> World::event(const Address& operand) {
  if (!operand.name.empty() && operand.name != "null" && !find_as<EventObject>(operand.name))
    return std::nullopt;
  const auto value = address(operand);
  if (!value) return std::nullopt;
  return EventHandle{*value};
}

StreamObject* World::stream_of(const Statement& s, std::string_view key) {
  const Name* name = s.value<Name>(key);
  return name ? find_as<StreamObject>(name->text) : nullptr;
}

std::optional<Location> World::location(const Place& place) const {
  Location result;
  if (place.kind == "device") {
    result.type = LocationType::kDevice;
  } else if (place.kind == "host") {
    result.type = LocationType::kHost;
  } else if (place.kind == "host_numa") {
    result.type = LocationType::kHostNuma;
  } else if (place.kind == "host_numa_current") {
    result.type = LocationType::kHostNumaCurrent;
  } else {
    return std::nullopt;
  }
  result.id = static_cast<std::int32_t>(place.id.value_or(0));
  return result;
}

void World::bind(std::string_view name, Object object) {
  objects.insert_or_assign(expand(name), std::move(object));
}

void World::unbind(std::string_view name) {
  const auto found = objects.find(expand(name));
  if (found != objects.end()) objects.erase(found);
}

void World::bind_raw(const Statement& s, RawObject::Kind kind, std::uint64_t value) {
  if (!s.target.empty()) bind(s.target, RawObject{kind, value});
}

Lane World::legacy_lane(std::int32_t device) {
  const auto index = static_cast<std::size_t>(std::max(device, 0));
  if (legacy_lanes.size() <= index) legacy_lanes.resize(index + 1, kHostLane);
  if (legacy_lanes[index] == kHostLane)
    legacy_lanes[index] = timeline.add_lane(Timeline::Kind::kLegacy, device);
  return legacy_lanes[index];
}

bool World::is_capturing(Lane lane) const {
  return std::find(capturing_lanes.begin(), capturing_lanes.end(), lane) != capturing_lanes.end();
}

void look_at_captures(World& world) {
  world.capturing_lanes.clear();
  for (const auto& [name, object] : world.objects) {
    const auto* stream = std::get_if<StreamObject>(&object);
    if (!stream || stream->kind == StreamKind::kLegacy) continue;
    const DeviceScope scope(world, stream->device);
    StreamIsCapturing query;
    query.stream = stream->handle;
    if (world.harness_call(query) == DriverStatus::kSuccess && query.status != CaptureStatus::kNone)
      world.capturing_lanes.push_back(stream->lane);
  }
}

ContextHandle World::primary_of(std::int32_t device) {
  const auto index = static_cast<std::size_t>(std::max(device, 0));
  if (primaries_.size() <= index) primaries_.resize(index + 1);
  if (!primaries_[index]) {
    DevicePrimaryCtxRetain retain;
    retain.device.value = device;
    if (harness_call(retain) == DriverStatus::kSuccess) primaries_[index] = retain.context;
  }
  return primaries_[index];
}

EventHandle World::take_event(std::int32_t device) {
  std::vector<EventHandle>& spare = spare_events[device];
  if (!spare.empty()) {
    const EventHandle event = spare.back();
    spare.pop_back();
    return event;
  }
  EventCreate create;
  return harness_call(create) == DriverStatus::kSuccess ? create.event : EventHandle{};
}

DeviceScope::DeviceScope(World& world, std::int32_t device, Bare bare) : world_(world) {
  if (world.without_context) return;
  if (device <= 0) {
    // The main device's context is current, unless the program has taken it away.
    if (!world.any_bare_thread || bare == Bare::kStays) return;
    CtxGetCurrent now;
    if (world.harness_call(now) != DriverStatus::kSuccess || now.context) return;
  }
  CtxPushCurrent push;
  push.context = world.primary_of(device);
  pushed_ = push.context && world.harness_call(push) == DriverStatus::kSuccess;
}

DeviceScope::~DeviceScope() {
  if (!pushed_) return;
  CtxPopCurrent pop;
  world_.harness_call(pop);
}

bool World::any_orphan() const {
  if (tap->any_orphan()) return true;
  if (!has_faulted()) return false;
  const std::vector<fault::Orphan> orphans = faults->orphans();
  return std::any_of(orphans.begin(), orphans.end(), [](const fault::Orphan& orphan) {
    return std::holds_alternative<MemFreeAsync>(orphan.actual);
  });
}

}  // namespace granule::prop
