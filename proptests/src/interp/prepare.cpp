// Before the first statement: what a program needs, and the context that it starts with.
#include "prepare.hpp"

#include <algorithm>

#include <granule/prop/text.hpp>

namespace granule::prop {
namespace {

bool feature_is_met(const model::Config& config, std::string_view feature) {
  const auto all = [&](auto member) {
    return std::all_of(config.devices.begin(), config.devices.end(),
                       [&](const model::DeviceConfig& d) { return d.*member; });
  };
  if (feature == "host_numa") return config.numa_nodes > 0;
  if (feature == "posix_fd") return all(&model::DeviceConfig::posix_fd);
  if (feature == "fabric") return all(&model::DeviceConfig::fabric);
  if (feature == "pools") return all(&model::DeviceConfig::pools);
  if (feature == "rdma") return all(&model::DeviceConfig::rdma);
  if (feature == "peer") return config.devices.size() > 1 && all(&model::DeviceConfig::peers);
  return false;
}

/// The word of a leading `context never` or `context no_init`; empty otherwise.
std::string_view leading_context(const Program& program) {
  for (const Statement& s : program.statements) {
    if (s.verb == Verb::kNeeds || s.verb == Verb::kDevice) continue;
    if (s.verb != Verb::kContext) return {};
    const Name* name = s.operand<Name>(0);
    if (name && (name->text == "never" || name->text == "no_init")) return name->text;
    return {};
  }
  return {};
}

}  // namespace

// What of the program's needs cannot be met; empty: nothing.
std::string unmet_needs(World& world) {
  const model::Config& config = world.oracle().config();
  for (const Statement& s : world.program.statements) {
    if (s.verb == Verb::kDevice && world.options.strict) {
      const Size* ordinal = s.operand<Size>(0);  // hardware has the devices that it has
      if (ordinal && world.eval(*ordinal) >= config.devices.size())
        return "device " + to_text(*ordinal);
    }
    if (s.verb != Verb::kNeeds) continue;
    if (const Size* memory = s.value<Size>("memory"))
      if (world.eval(*memory) > config.devices[0].memory) return "memory=" + to_text(*memory);
    if (const Size* devices = s.value<Size>("devices"))
      if (world.eval(*devices) > config.devices.size()) return "devices=" + to_text(*devices);
    if (const Word* feature = s.value<Word>("feature"))
      if (!feature_is_met(config, feature->text)) return "feature=" + feature->text;
    if (const Word* backend = s.value<Word>("backend"))
      if ((backend->text == "model") != world.machine->is_model())
        return "backend=" + backend->text;
  }
  return {};
}

void start(World& world) {
  const std::string_view context = leading_context(world.program);
  world.without_context = !context.empty();
  if (context != "no_init") {
    Init init;
    world.harness_call(init);
  }
  if (!world.without_context) {
    world.primary = world.primary_of(0);
    CtxSetCurrent current;
    current.context = world.primary;
    world.harness_call(current);
  }
  const std::size_t devices = world.oracle().config().devices.size();
  for (std::size_t i = 0; i < devices; ++i)
    world.free_at_start.push_back(world.oracle().free_bytes(static_cast<std::int32_t>(i)));
  world.sizes.free_at_start = world.free_at_start[0];
}

}  // namespace granule::prop
