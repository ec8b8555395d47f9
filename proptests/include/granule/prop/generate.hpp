// Programs by chance: which features a campaign may use, and the generator itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <granule/prop/choice.hpp>
#include <granule/prop/program.hpp>

namespace granule::prop {

// Everything that a campaign can leave out: id, name on the command line, what it is.
#define GRANULE_FEATURES(X)                                                               \
  X(kStreams, "streams", "further streams, nonblocking and blocking")                     \
  X(kDefaultStreams, "default_streams", "legacy and per-thread default streams")          \
  X(kSecondDevice, "second_device", "a second device, streams and peers on it")           \
  X(kTiny, "tiny", "devices of 3 to 64 granules, so that memory runs out")                \
  X(kBytes, "bytes", "fill, copy and use")                                                \
  X(kHold, "hold", "streams held and released")                                           \
  X(kBusy, "busy", "work that lasts, and pauses")                                         \
  X(kEvents, "events", "record and wait")                                                 \
  X(kGrow, "grow", "grow: aliases, kept and moved results")                               \
  X(kResize, "resize", "resize in both directions")                                       \
  X(kShrink, "shrink", "shrink")                                                          \
  X(kCapacity, "capacity", "addresses reserved for growing in place")                     \
  X(kSuspend, "suspend", "suspend and resume")                                            \
  X(kDrop, "drop", "the destructor's path")                                               \
  X(kHolders, "holders", "further holders of a range")                                    \
  X(kMove, "move", "moving buffer objects")                                               \
  X(kShare, "share", "export and import")                                                 \
  X(kDecoys, "decoys", "addresses taken behind a buffer")                                 \
  X(kHoles, "holes", "addresses given back, and allocations at them")                     \
  X(kProbe, "probe", "reserve_probe")                                                     \
  X(kHints, "hints", "drivers that grant address hints elsewhere")                        \
  X(kDeferred, "deferred", "free=deferred and collect")                                   \
  X(kCache, "cache", "idle memory kept, and trim")                                        \
  X(kFit, "fit", "idle ranges that serve smaller requests")                               \
  X(kLimit, "limit", "a budget of physical memory")                                       \
  X(kPolicy, "policy", "commit_ahead, slack, max_chunk")                                  \
  X(kAlign, "align", "alignments above a granule")                                        \
  X(kZero, "zero", "allocations that are cleared")                                        \
  X(kGrant, "grant", "access for a further device, later")                                \
  X(kCallOptions, "call_options", "options of one grow or resize")                        \
  X(kBadOptions, "bad_options", "options that must be refused")                           \
  X(kHuge, "huge", "sizes near 2^64 and beyond every device")                             \
  X(kUsed, "used", "further streams named to a buffer")                                   \
  X(kCaptures, "captures", "stream captures")                                             \
  X(kDestroy, "destroy", "streams destroyed while buffers are ordered on them")           \
  X(kThreads, "threads", "statements of several host threads")                            \
  X(kFaults, "faults", "driver calls that are refused")                                   \
  X(kFaultsAfter, "faults_after", "driver calls that are made but reported as failed")    \
  X(kFaultsSticky, "faults_sticky", "contexts that are lost to an error of earlier work") \
  X(kHostFaults, "host_faults", "host allocations of the library that fail")              \
  X(kSteal, "steal", "another tenant takes device memory")                                \
  X(kHost, "host", "memory on the host")                                                  \
  X(kRdma, "rdma", "memory for GPUDirect RDMA, as a wish or required")                    \
  X(kPools, "pools", "stream-ordered pools")                                              \
  X(kWorker, "worker", "resources with a worker of their own")                            \
  X(kRecycler, "recycler", "the recycling pool")                                          \
  X(kResources, "resources", "several resources, made and dropped on the way")            \
  X(kContexts, "contexts", "a thread that has no current context")

enum class Feature : std::uint8_t {
#define GRANULE_FEATURE(id, name, what) id,
  GRANULE_FEATURES(GRANULE_FEATURE)
#undef GRANULE_FEATURE
};
inline constexpr std::size_t kFeatureCount = 0
#define GRANULE_FEATURE(id, name, what) +1
    GRANULE_FEATURES(GRANULE_FEATURE)
#undef GRANULE_FEATURE
    ;
static_assert(kFeatureCount <= 64);

std::string_view name_of(Feature feature) noexcept;
std::string_view description_of(Feature feature) noexcept;
std::optional<Feature> feature_named(std::string_view name) noexcept;

/// A set of features. A plain value.
class FeatureSet {
 public:
  static constexpr FeatureSet all() {
    FeatureSet set;
    set.bits_ = kFeatureCount == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << kFeatureCount) - 1;
    return set;
  }
  constexpr bool has(Feature f) const { return (bits_ >> static_cast<unsigned>(f) & 1) != 0; }
  constexpr FeatureSet& add(Feature f) {
    bits_ |= std::uint64_t{1} << static_cast<unsigned>(f);
    return *this;
  }
  constexpr FeatureSet& remove(Feature f) {
    bits_ &= ~(std::uint64_t{1} << static_cast<unsigned>(f));
    return *this;
  }
  friend constexpr bool operator==(const FeatureSet&, const FeatureSet&) = default;

 private:
  std::uint64_t bits_ = 0;
};

struct GenerateOptions {
  /// Statements behind the setup, about.
  std::uint32_t operations = 30;
  FeatureSet features = FeatureSet::all();
  /// Features that every program has.
  FeatureSet always = {};
  /// Each program uses a subset of the features, of its own weights and sizes. Off: all of
  /// `features`, evenly, which suits exhaustive generation.
  bool swarm = true;
};

/// One program. A pure function of the decisions that `chooser` makes. The program has no
/// expectations: what it must keep are the standing invariants. It never misuses the library, so
/// that every finding in a run of it is the library's.
Program generate(Chooser& chooser, const GenerateOptions& options = {});

/// Program `index` of campaign `seed`: generate with random decisions.
Program generate(std::uint64_t seed, std::uint64_t index, const GenerateOptions& options = {});

}  // namespace granule::prop
