// Errors of queries, settings of pools, optional properties.
#include "asked.hpp"

namespace granule::prop {
namespace {

std::optional<Failure> wrong(std::string signature, std::string message) {
  Failure failure;
  failure.kind = Failure::Kind::kInvariant;
  failure.signature = "asked " + std::move(signature);
  failure.message = std::move(message);
  return failure;
}

std::optional<Failure> check_query(const Asked& asked) {
  if (asked.granularity == DriverStatus::kSuccess) return std::nullopt;
  return wrong("granularity", "a resource was made although the query for its granularity gave " +
                                  std::string(name_of(asked.granularity)));
}

std::optional<Failure> check_threshold(const Asked& asked, const TargetOptions& options) {
  if (!options.has_threshold || asked.threshold == options.threshold) return std::nullopt;
  return wrong("threshold", "a pool was made and its release threshold of " +
                                std::to_string(options.threshold) + " bytes was " +
                                (asked.threshold ? "set to " + std::to_string(*asked.threshold)
                                                 : std::string("not set")));
}

/// Memory without the property is for those to whom it was refused, and then for good.
std::optional<Failure> check_wish(const Asked& asked, const Statement& s,
                                  ResourceObject& resource) {
  if (!asked.wish) return std::nullopt;
  if (asked.plain && !asked.refused)
    return wrong("wish", "an optional property was given up for want of memory");
  if (resource.gave_a_wish_up && !s.has("rdma"))
    return wrong("wish again", "an optional property that had been refused was asked for again");
  resource.gave_a_wish_up = resource.gave_a_wish_up || asked.plain;
  return std::nullopt;
}

}  // namespace

std::optional<Failure> check_asked(World& world, const Statement& s, const Reply& reply,
                                   ResourceObject* resource) {
  // Interleaved statements share what is known of the calls.
  if (!reply.success() || !resource || world.scheduler) return std::nullopt;
  const Asked& asked = world.driver().traffic.asked;
  switch (s.verb) {
    case Verb::kResourceVmm:
      return check_query(asked);
    case Verb::kResourcePool:
      return check_threshold(asked, resource->options);
    case Verb::kAllocate:
    case Verb::kGrow:
    case Verb::kResize:
      return check_wish(asked, s, *resource);
    default:
      return std::nullopt;
  }
}

}  // namespace granule::prop
