// The library's own figures against the driver's ledger and against what the program knows.
#include "figures.hpp"

#include <algorithm>
#include <set>

#include "invariants.hpp"

namespace granule::prop {
namespace {

/// Sums over all vmm resources that are still reachable.
struct Sums {
  Holdings held;
  std::int64_t charged = 0;
  std::int64_t live = 0;
  std::int64_t buffers = 0;
  std::int64_t doubtful = 0;  // quarantined
  std::int64_t leaks = 0;     // reservations of unknown size
  std::size_t resources = 0;  // reachable ones, of whatever kind
  bool exact = true;          // every vmm resource keeps exact figures
  bool counted = true;        // every vmm resource has figures
  std::string broken;
};

/// What a resource leaked is reported, and out of its figures once it is gone.
void settle_lost(World& world, std::size_t reachable, const Holdings& believed) {
  const std::size_t gone = world.made_resources - reachable;
  if (gone != world.gone_resources && !world.sink.reports.empty())
    world.lost = world.tap->held_by(CallOrigin::kLibrary) - believed;
  world.gone_resources = gone;
}

Sums sum_resources(World& world) {
  Sums sums;
  for (ResourceObject* resource : reachable_resources(world)) {
    ++sums.resources;
    const OriginScope scope(CallOrigin::kHarness);
    const Statistics* now = resource->target->statistics();
    if (sums.broken.empty()) sums.broken = resource->target->check_invariants();
    if (!now) {
      sums.counted = sums.counted && resource->options.kind != TargetOptions::Kind::kVmm;
      continue;
    }
    const auto whole = [](std::uint64_t value) { return static_cast<std::int64_t>(value); };
    sums.held.reservations += whole(now->reservations + now->leaked_reservations);
    sums.held.handles += whole(now->handles + now->leaked_handles);
    sums.held.mappings += whole(now->mappings);
    sums.held.mapped_bytes += whole(now->mapped);
    sums.charged += whole(now->charged);
    sums.exact = sums.exact && resource->target->is_exact();
    sums.live += whole(now->live);
    sums.buffers += whole(now->buffers);
    sums.held.reserved_bytes += whole(now->reserved);
    sums.leaks += whole(now->leaked_reservations);
    sums.doubtful += whole(now->quarantined);
  }
  sums.held.allocated_bytes = sums.charged;
  return sums;
}

std::optional<Failure> check_ledger(World& world, const Sums& sums) {
  if (!sums.broken.empty()) return broken("core", sums.broken);
  const Holdings held = world.tap->held_by(CallOrigin::kLibrary) - world.lost;
  const auto differ = [](std::string_view what, std::int64_t library, std::int64_t driver) {
    return broken("ledger " + std::string(what),
                  "the library counts " + std::to_string(library) + " " + std::string(what) +
                      ", the driver holds " + std::to_string(driver));
  };
  const Holdings& unknown = world.tap->lost_unknown();
  const Holdings& made = world.tap->made_unknown();
  if (!agrees(sums.held.handles, held.handles, unknown.handles))
    return differ("handles", sums.held.handles, held.handles);
  if (!agrees(sums.held.reservations, held.reservations, unknown.reservations))
    return differ("reservations", sums.held.reservations, held.reservations);
  if (sums.leaks == 0 &&
      !agrees(sums.held.reserved_bytes, held.reserved_bytes, unknown.reserved_bytes))
    return differ("bytes of addresses", sums.held.reserved_bytes, held.reserved_bytes);
  // What is quarantined may be there or not.
  const std::int64_t most = sums.doubtful / static_cast<std::int64_t>(world.sizes.granule);
  if (!agrees(sums.held.mappings, held.mappings, unknown.mappings, made.mappings + most))
    return differ("mappings", sums.held.mappings, held.mappings);
  if (!agrees(sums.held.mapped_bytes, held.mapped_bytes, unknown.mapped_bytes,
              made.mapped_bytes + sums.doubtful))
    return differ("mapped bytes", sums.held.mapped_bytes, held.mapped_bytes);
  const bool plain = !world.any_import && !world.any_orphan();
  if (plain && sums.charged != held.allocated_bytes)
    return differ("bytes of chunks", sums.charged, held.allocated_bytes);
  return std::nullopt;
}

/// What holds whoever else is at work.
std::optional<Failure> sum_and_check(World& world, Sums& sums) {
  if (auto failure = check_host_memory(world)) return failure;
  sums = sum_resources(world);
  settle_lost(world, sums.resources, sums.held);
  return check_ledger(world, sums);
}

/// Buffers and holders that are open, by the names of the program.
std::int64_t open_objects(const World& world) {
  std::int64_t open = 0;
  for (const auto& [name, object] : world.objects) {
    if (const auto* buffer = std::get_if<BufferObject>(&object))
      open += buffer->resource->options.kind == TargetOptions::Kind::kVmm && buffer->buffer &&
              !buffer->buffer->is_closed();
    if (const auto* holder = std::get_if<HolderObject>(&object))
      open += holder->resource->options.kind == TargetOptions::Kind::kVmm && holder->holder;
  }
  return open;
}

/// I14 where chunks are shared: each resource pays once for each physical allocation that it maps.
std::optional<Failure> check_budget_of_shared(World& world) {
  for (ResourceObject* resource : reachable_resources(world)) {
    const Statistics* now = resource->target->statistics();
    if (!now || now->leaked_handles != 0 || now->quarantined != 0) continue;
    std::set<std::uint64_t> counted;
    std::uint64_t bytes = 0;
    resource->target->for_each_mapping([&](DevicePtr base) {
      for (const model::MappingView& mapping : world.oracle().mappings_in(base.value, 1))
        if (counted.insert(mapping.allocation).second) bytes += mapping.size;
    });
    if (bytes != now->charged)
      return broken("budget", "a resource is charged " + std::to_string(now->charged) +
                                  " bytes and maps " + std::to_string(bytes));
  }
  return std::nullopt;
}

/// I5: an operation that failed leaves live memory as it was; idle memory may have gone.
std::optional<Failure> check_failed(const World& world, const Figures& before, const Figures& now,
                                    bool fills) {
  if (!world.last_failed || before.resources != now.resources || before.open != now.open ||
      !world.sink.reports.empty())  // what was left over may go later
    return std::nullopt;
  const auto changed = [](std::string_view what, std::int64_t from, std::int64_t to) {
    return broken("failed operation figures", "an operation that failed took " + std::string(what) +
                                                  " from " + std::to_string(from) + " to " +
                                                  std::to_string(to));
  };
  if (now.live != before.live) return changed("live memory", before.live, now.live);
  if (fills) return std::nullopt;  // what a fill may be at work in is not gone yet
  if (now.mapped > before.mapped) return changed("mapped bytes", before.mapped, now.mapped);
  if (now.charged > before.charged) return changed("the budget", before.charged, now.charged);
  return std::nullopt;
}

}  // namespace

bool agrees(std::int64_t believed, std::int64_t told, std::int64_t unknown, std::int64_t made) {
  return believed <= told + made && believed >= told + unknown;
}

Belief library_belief(World& world) {
  const Sums sums = sum_resources(world);
  return {sums.held, sums.doubtful / static_cast<std::int64_t>(world.sizes.granule)};
}

std::optional<Failure> check_holdings(World& world) {
  Sums sums;
  return sum_and_check(world, sums);
}

std::optional<Failure> check_figures(World& world, const Statement* statement) {
  Sums sums;
  if (auto failure = sum_and_check(world, sums)) return failure;
  const std::int64_t open = open_objects(world);
  if (sums.counted && sums.buffers != open)
    return broken("buffers", "the library counts " + std::to_string(sums.buffers) +
                                 " open buffers, the program has " + std::to_string(open));
  if (sums.exact && world.any_import && !world.any_orphan())
    if (auto failure = check_budget_of_shared(world)) return failure;
  const Figures now{sums.live, sums.held.mapped_bytes, sums.charged, open, sums.resources};
  const std::optional<Figures> before = std::exchange(world.figures, now);
  const bool fills = statement && statement->has("zero");
  // A resume keeps the memory of a copy that it began and cannot wait for.
  const bool copies = statement && statement->verb == Verb::kResume;
  return before && sums.exact && !copies ? check_failed(world, *before, now, fills) : std::nullopt;
}

}  // namespace granule::prop
