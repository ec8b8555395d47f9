// The zoo: allocators with one planted defect each. The harness must find every one of them.
#pragma once

#include <span>
#include <string_view>

#include <granule/prop/generate.hpp>
#include <granule/prop/run.hpp>
#include <granule/prop/target.hpp>

namespace granule::prop {

/// One planted defect.
struct Specimen {
  std::string_view name;
  std::string_view plants;      // what it does wrong
  std::string_view observable;  // by what it must be noticed
  /// What generated programs must contain to reach the defect at all.
  FeatureSet needs;
  /// False: a mutation of the core from outside; true: the resource written the naive way.
  bool naive = false;
  /// The allocator with the defect. The factory may be used from several threads.
  TargetFactory (*make)() = nullptr;
  /// A machine on which the defect shows, where the usual one hides it; may be null.
  void (*machine)(model::Config& config) = nullptr;
};

/// All specimens, `canary` first, in an order that stays.
std::span<const Specimen> specimens();
/// The specimen of that name, or null.
const Specimen* find_specimen(std::string_view name);
/// The target of that specimen; empty if there is none of that name. "naive" is the naive resource
/// without any mistake, "core" the core.
TargetFactory zoo_target(std::string_view name);
/// Puts the specimen into the options of a run: its target, its machine, and as the baseline the
/// same allocator without the defect.
void plant(const Specimen& specimen, RunOptions& options);

}  // namespace granule::prop
