// Looking for one defect with one engine.
#include "zoo_engines.hpp"

#include <atomic>
#include <utility>

#include <granule/prop/campaign.hpp>
#include <granule/prop/sweep.hpp>

namespace granule::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// What a campaign for one defect alone would use: what the defect needs, and the plain things.
prop::FeatureSet focus_of(const prop::Specimen& specimen) {
  prop::FeatureSet set = specimen.needs;
  for (const prop::Feature plain :
       {prop::Feature::kStreams, prop::Feature::kBytes, prop::Feature::kGrow, prop::Feature::kHold,
        prop::Feature::kDrop, prop::Feature::kTiny})
    set.add(plain);
  return set;
}

ZooFind by_campaign(const prop::Specimen& specimen, Engine engine, const EngineLimits& limits) {
  prop::CampaignOptions options;
  options.seed = limits.seed;
  options.jobs = limits.jobs;
  options.generate.swarm = engine != Engine::kRandom;
  if (engine == Engine::kFocused) options.generate.features = focus_of(specimen);
  prop::plant(specimen, options.run);
  options.time = limits.time;
  const Clock::time_point start = Clock::now();
  const prop::CampaignResult result = prop::run_campaign(options);
  ZooFind find;
  find.programs = result.programs;
  find.seconds = seconds_since(start);
  if (result.failures.empty()) return find;
  const std::uint64_t index = result.failures[0].index;
  find.program = prop::campaign_program(options, index);
  find.run = prop::campaign_run(options, index);
  find.run.cells = false;
  find.found = true;
  return find;
}

/// Programs of a few statements that arm no faults of their own.
prop::Program short_program(std::uint64_t seed, std::uint64_t number) {
  prop::GenerateOptions options;
  options.operations = 8;
  for (const prop::Feature fault :
       {prop::Feature::kFaults, prop::Feature::kFaultsAfter, prop::Feature::kFaultsSticky,
        prop::Feature::kHostFaults, prop::Feature::kSteal})
    options.features.remove(fault);
  return prop::generate(seed, number, options);
}

ZooFind by_sweep(const prop::Specimen& specimen, const prop::SweepSource& source,
                 const EngineLimits& limits) {
  std::atomic<bool> over{false};
  prop::SweepOptions options;
  prop::plant(specimen, options.run);
  options.jobs = limits.jobs;
  options.first_only = true;
  options.each = false;
  options.interrupted = &over;
  const double most = std::chrono::duration<double>(limits.time).count();
  options.progress = [&](const prop::SweepProgress& now) { over.store(now.seconds >= most); };
  const prop::RunOptions run = options.run;
  prop::SweepResult result = prop::run_sweep(source, options);
  ZooFind find;
  find.seconds = result.seconds;  // also of those that end without a find
  find.programs = result.counts.programs + result.counts.runs;
  if (result.violations.empty()) return find;
  find.program = std::move(result.violations[0].faulted);
  find.run = run;
  find.found = true;
  return find;
}

prop::SweepBreadth single_faults(std::uint64_t) {
  prop::SweepBreadth breadth;
  breadth.pairs_up_to = 0;
  return breadth;
}

ZooFind by_generated_sweep(const prop::Specimen& specimen, const EngineLimits& limits) {
  constexpr std::uint64_t kMany = 1'000'000;  // ends by time
  prop::SweepSource source;
  source.programs = kMany;
  source.program = [&](std::uint64_t number) { return short_program(limits.seed, number); };
  source.breadth = single_faults;
  return by_sweep(specimen, source, limits);
}

ZooFind by_enumeration(const prop::Specimen& specimen, const EngineLimits& limits) {
  static const prop::Palette palette(3);
  prop::SweepSource source;
  source.programs = palette.programs();
  source.program = [](std::uint64_t number) { return palette.program(number); };
  source.breadth = single_faults;
  return by_sweep(specimen, source, limits);
}

}  // namespace

std::string_view name_of(Engine engine) {
  switch (engine) {
    case Engine::kSwarm:
      return "swarm";
    case Engine::kRandom:
      return "random";
    case Engine::kSweep:
      return "sweep";
    case Engine::kEnumerate:
      return "enumerate";
    case Engine::kFocused:
      return "focused";
  }
  return "";
}

ZooFind look_for(const prop::Specimen& specimen, Engine engine, const EngineLimits& limits) {
  ZooFind find;
  switch (engine) {
    case Engine::kSweep:
      find = by_generated_sweep(specimen, limits);
      break;
    case Engine::kEnumerate:
      find = by_enumeration(specimen, limits);
      break;
    default:
      find = by_campaign(specimen, engine, limits);
  }
  find.engine = engine;
  return find;
}

}  // namespace granule::cli
