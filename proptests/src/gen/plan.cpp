// Swarm: each program gets features, weights and sizes of its own.
#include "plan.hpp"

namespace granule::prop {

namespace {
struct FeatureText {
  std::string_view name;
  std::string_view what;
};
constexpr FeatureText kTexts[] = {
#define GRANULE_FEATURE(id, name, what) {name, what},
    GRANULE_FEATURES(GRANULE_FEATURE)
#undef GRANULE_FEATURE
};
}  // namespace

std::string_view name_of(Feature feature) noexcept {
  return kTexts[static_cast<std::size_t>(feature)].name;
}
std::string_view description_of(Feature feature) noexcept {
  return kTexts[static_cast<std::size_t>(feature)].what;
}
std::optional<Feature> feature_named(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kFeatureCount; ++i)
    if (kTexts[i].name == name) return static_cast<Feature>(i);
  return std::nullopt;
}

namespace gen {
namespace {

struct OpRow {
  Op op;
  std::optional<Feature> needs;
  std::uint32_t weight;
};

constexpr std::optional<Feature> kAlwaysOn;

constexpr OpRow kOps[] = {
    {Op::kAllocate, kAlwaysOn, 12},
    {Op::kClose, kAlwaysOn, 8},
    {Op::kGrow, Feature::kGrow, 12},
    {Op::kResize, Feature::kResize, 8},
    {Op::kShrink, Feature::kShrink, 4},
    {Op::kDrop, Feature::kDrop, 4},
    {Op::kUse, Feature::kBytes, 6},
    {Op::kFill, Feature::kBytes, 6},
    {Op::kCopy, Feature::kBytes, 3},
    {Op::kSync, kAlwaysOn, 2},
    {Op::kHold, Feature::kHold, 3},
    {Op::kRelease, Feature::kHold, 4},
    {Op::kBusy, Feature::kBusy, 2},
    {Op::kPause, Feature::kBusy, 1},
    {Op::kRecord, Feature::kEvents, 2},
    {Op::kWait, Feature::kEvents, 2},
    {Op::kDecoy, Feature::kDecoys, 3},
    {Op::kRemove, Feature::kDecoys, 2},
    {Op::kHole, Feature::kHoles, 2},
    {Op::kProbe, Feature::kProbe, 1},
    {Op::kSuspend, Feature::kSuspend, 3},
    {Op::kResume, Feature::kSuspend, 4},
    {Op::kHolder, Feature::kHolders, 2},
    {Op::kDropHolder, Feature::kHolders, 2},
    {Op::kUsed, Feature::kUsed, 3},
    {Op::kCollect, Feature::kDeferred, 3},
    {Op::kTrim, Feature::kCache, 2},
    {Op::kGrant, Feature::kGrant, 1},
    {Op::kExport, Feature::kShare, 2},
    {Op::kImport, Feature::kShare, 2},
    {Op::kCloseExport, Feature::kShare, 2},
    {Op::kMove, Feature::kMove, 1},
    {Op::kStream, Feature::kStreams, 1},
    {Op::kDestroy, Feature::kDestroy, 2},
    {Op::kBeginCapture, Feature::kCaptures, 2},
    {Op::kEndCapture, Feature::kCaptures, 3},
    {Op::kResource, Feature::kResources, 1},
    {Op::kDropResource, Feature::kResources, 1},
    {Op::kPoolSetting, Feature::kPools, 2},
    {Op::kThreads, Feature::kThreads, 4},
    {Op::kFail, Feature::kFaults, 3},
    {Op::kFailHost, Feature::kHostFaults, 2},
    {Op::kNoFaults, kAlwaysOn, 1},
    {Op::kSteal, Feature::kSteal, 1},
    {Op::kUnsteal, Feature::kSteal, 1},
    {Op::kHints, Feature::kHints, 1},
    {Op::kContext, Feature::kContexts, 2},
};
static_assert(std::size(kOps) == kOpCount);

/// How often a feature is on, of 8 programs. Rare ones change what every other operation gives.
std::uint64_t share_of(Feature feature) {
  switch (feature) {
    case Feature::kGrow:
    case Feature::kBytes:
    case Feature::kTiny:
      return 6;
    case Feature::kStreams:
      return 5;
    case Feature::kCaptures:
    case Feature::kThreads:
    case Feature::kSteal:
    case Feature::kHost:
    case Feature::kPools:
    case Feature::kRecycler:
    case Feature::kWorker:
    case Feature::kHints:
    case Feature::kAlign:
    case Feature::kRdma:
    case Feature::kHostFaults:
    case Feature::kFaultsAfter:
    case Feature::kFaultsSticky:
    case Feature::kBadOptions:
    case Feature::kResources:
    case Feature::kContexts:
      return 1;
    case Feature::kFaults:
    case Feature::kSecondDevice:
    case Feature::kPolicy:
    case Feature::kShare:
    case Feature::kHuge:
      return 2;
    default:
      return 3;
  }
}

void choose_features(Chooser& chooser, const GenerateOptions& options, Plan& plan) {
  if (!options.swarm) {
    plan.on = options.features;
    return;
  }
  for (std::size_t i = 0; i < kFeatureCount; ++i) {
    const auto feature = static_cast<Feature>(i);
    const bool drawn = options.features.has(feature) && chooser.chance(share_of(feature), 8);
    if (drawn || options.always.has(feature)) plan.on.add(feature);
  }
  if (plan.has(Feature::kThreads) && !options.always.has(Feature::kDefaultStreams))
    plan.on.remove(Feature::kDefaultStreams);
}

void choose_weights(Chooser& chooser, bool swarm, Plan& plan) {
  for (const OpRow& row : kOps) {
    if (row.needs && !plan.has(*row.needs)) continue;
    const std::uint32_t factor =
        swarm ? chooser.one_of<std::uint32_t>({2, 1, 1, 0, 4, 8}) : std::uint32_t{2};
    const bool needed = row.op == Op::kAllocate || row.op == Op::kRelease ||
                        row.op == Op::kEndCapture || row.op == Op::kResume;
    plan.weights[static_cast<std::size_t>(row.op)] =
        row.weight * (factor == 0 && needed ? 1 : factor);
  }
}

void choose_sizes(Chooser& chooser, bool swarm, Plan& plan) {
  constexpr std::array<std::uint32_t, kSizeKinds> kBase{8, 8, 4, 6, 1, 1, 1, 0};
  for (std::size_t i = 0; i < kSizeKinds; ++i)
    plan.sizes[i] = swarm ? kBase[i] * chooser.one_of<std::uint32_t>({1, 2, 0, 3}) : kBase[i];
  plan.sizes[static_cast<std::size_t>(SizeKind::kOne)] += 1;
  if (plan.has(Feature::kHuge)) plan.sizes[static_cast<std::size_t>(SizeKind::kHuge)] = 2;
  if (plan.has(Feature::kTiny)) {
    plan.memory = chooser.one_of<std::uint64_t>({16, 8, 4, 3, 12, 24, 32, 64});
    plan.odd_memory = chooser.chance(1, 4);
  }
  plan.most_buffers = swarm ? chooser.between(2, 10) : 4;
}

}  // namespace

Plan make_plan(Chooser& chooser, const GenerateOptions& options) {
  Plan plan;
  choose_features(chooser, options, plan);
  choose_weights(chooser, options.swarm, plan);
  choose_sizes(chooser, options.swarm, plan);
  return plan;
}

}  // namespace gen
}  // namespace granule::prop
