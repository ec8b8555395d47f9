// Errors of queries, settings of pools, optional properties, answers that ask for another try.
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

/// A VMM call that is not ready is made again eight times.
std::optional<Failure> check_tries(const Asked& asked, const Reply& reply) {
  constexpr std::uint32_t kTries = 9;
  if (reply.kind != Reply::Kind::kError || reply.detail != name_of(DriverStatus::kNotReady) ||
      asked.not_ready == 0 || asked.not_ready >= kTries || asked.not_ready_elsewhere)
    return std::nullopt;
  return wrong("tries", "a call that was not ready was made " + std::to_string(asked.not_ready) +
                            " times, of " + std::to_string(kTries));
}

}  // namespace

std::optional<Failure> check_asked(World& world, const Statement& s, const Reply& reply,
                                   ResourceObject* resource) {
  if (world.scheduler) return std::nullopt;  // interleaved statements share what is known of calls
  const Asked& asked = world.driver().traffic.asked;
  if (auto failure = check_tries(asked, reply)) return failure;
  if (!reply.success() || !resource) return std::nullopt;
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
