// A short life after the faults, on each resource that saw them.
#include "aftermath.hpp"

#include "invariants.hpp"

namespace granule::prop {
namespace {

std::optional<Failure> does_not_work(std::string_view what, const Error& error) {
  Failure failure;
  failure.kind = Failure::Kind::kFinish;
  failure.signature = "finish " + std::string(what) + " after faults";
  failure.message = "with all faults lifted, " + std::string(what) +
                    " on the same resource failed: " + to_string(error);
  return failure;
}

/// What the faults left behind, quarantined memory for one, may leave no room for more; and some
/// devices never give what some options ask for.
bool is_for_want(World& world, ResourceObject& resource, const Error& error) {
  if (error.driver == DriverStatus::kNotPermitted || error.driver == DriverStatus::kNotSupported)
    return true;
  if (error.code != ErrorCode::kOutOfMemory) return false;
  const TargetOptions& options = resource.options;
  if (options.vmm.commit_ahead != 0 || options.vmm.slack_percent != 0) return true;
  constexpr std::uint64_t kPoolBlock = std::uint64_t{32} << 20;  // pools grow by so much
  const bool vmm = options.kind == TargetOptions::Kind::kVmm;
  const std::uint64_t enough = 6 * world.sizes.granule + (vmm ? 0 : kPoolBlock);
  if (world.oracle().free_bytes(resource.device) < enough) return true;
  if (!vmm) return options.limit != kNoLimit || options.max_size != 0;
  const Statistics* now = resource.target->statistics();
  if (!now) return false;
  return options.vmm.limit < enough || now->charged > options.vmm.limit - enough;
}

std::optional<Failure> live_on(World& world, ResourceObject& resource, const Stream& stream) {
  const bool vmm = resource.options.kind == TargetOptions::Kind::kVmm;
  const std::uint64_t size = vmm ? world.sizes.granule : 4096;
  TargetResource& target = *resource.target;
  const OriginScope scope(CallOrigin::kLibrary);
  Result<std::unique_ptr<TargetBuffer>> made = target.allocate(stream, size, {});
  if (!made && is_for_want(world, resource, made.error())) return std::nullopt;
  if (!made) return does_not_work("allocate", made.error());
  Result<TargetGrowth> grown =
      vmm ? target.grow(**made, 2 * size, {}) : Result<TargetGrowth>(TargetGrowth{});
  const bool may_fail = !grown.ok() && (is_for_want(world, resource, grown.error()) ||
                                        grown.error().code == ErrorCode::kUnsupported);
  if (!grown && !may_fail) return does_not_work("grow", grown.error());
  if (grown && grown->buffer)
    if (Status closed = target.close(*grown->buffer, nullptr); !closed)
      return does_not_work("close", closed.error());
  Status closed = target.close(**made, nullptr);
  // A free that was done but reported as failed, and tried again, frees whoever has the address
  // now.
  const bool freed = !vmm && !closed.ok() && closed.error().driver == DriverStatus::kInvalidValue;
  if (!closed.ok() && !freed) return does_not_work("close", closed.error());
  return std::nullopt;
}

}  // namespace

std::optional<Failure> works_again(World& world) {
  const bool asked = world.any_fault && world.machine->is_model();
  if (!asked || world.context_lost || world.without_context) return std::nullopt;
  for (ResourceObject* resource : reachable_resources(world)) {
    StreamObject legacy = stream_named(world, "", resource->device);
    Result<Stream> bound = bound_stream(world, legacy);
    if (!bound) continue;
    if (auto failure = live_on(world, *resource, *bound)) return failure;
  }
  return std::nullopt;
}

}  // namespace granule::prop
