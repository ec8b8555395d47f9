// The list of specimens, and planting one.
#include <granule/prop/zoo.hpp>

#include <vector>

#include "mutants.hpp"
#include "naive_target.hpp"
#include "registry.hpp"

namespace granule::prop {
namespace {

/// A defect so plain that a harness which does not find it is broken itself.
const Specimen kCanary{"canary",
                       "every third release of physical memory is lost",
                       "handles, free memory",
                       {},
                       false,
                       [] { return zoo::with_calls(zoo::every_third_release_lost); },
                       nullptr};

std::vector<Specimen> collect() {
  std::vector<Specimen> all{kCanary};
  for (const auto part : {zoo::naive_specimens(), zoo::core_specimens()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace

std::span<const Specimen> specimens() {
  static const std::vector<Specimen> all = collect();
  return all;
}

const Specimen* find_specimen(std::string_view name) {
  for (const Specimen& specimen : specimens())
    if (specimen.name == name) return &specimen;
  return nullptr;
}

TargetFactory zoo_target(std::string_view name) {
  if (name == "core") return make_core_target;
  if (name == "naive") return zoo::naive_target(zoo::Mistake::kNone);
  const Specimen* specimen = find_specimen(name);
  return specimen ? specimen->make() : TargetFactory();
}

void plant(const Specimen& specimen, RunOptions& options) {
  options.target = specimen.make();
  options.baseline = zoo_target(specimen.naive ? "naive" : "core");
  if (specimen.machine) specimen.machine(options.machine);
}

}  // namespace granule::prop
