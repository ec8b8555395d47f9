// What one generated program draws from: its features, the weight of each operation, its sizes.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <granule/prop/generate.hpp>

namespace granule::prop::gen {

/// The operations that the generator knows.
enum class Op : std::uint8_t {
  kAllocate,
  kClose,
  kGrow,
  kResize,
  kShrink,
  kDrop,
  kUse,
  kFill,
  kCopy,
  kSync,
  kHold,
  kRelease,
  kBusy,
  kPause,
  kRecord,
  kWait,
  kDecoy,
  kRemove,
  kHole,
  kProbe,
  kSuspend,
  kResume,
  kHolder,
  kDropHolder,
  kUsed,
  kCollect,
  kTrim,
  kGrant,
  kExport,
  kImport,
  kCloseExport,
  kMove,
  kStream,
  kDestroy,
  kBeginCapture,
  kEndCapture,
  kResource,
  kDropResource,
  kPoolSetting,
  kThreads,
  kFail,
  kFailHost,
  kNoFaults,
  kSteal,
  kUnsteal,
  kHints,
  kContext,
};
inline constexpr std::size_t kOpCount = static_cast<std::size_t>(Op::kContext) + 1;

/// Kinds of sizes; a palette gives each a weight.
enum class SizeKind : std::uint8_t {
  kOne,   // 1g
  kFew,   // 2g to 4g
  kEdge,  // a few granules, a byte more or less
  kSome,  // up to the device's memory
  kZero,
  kByte,
  kMemory,  // about all of the device's memory
  kHuge,    // beyond every device
};
inline constexpr std::size_t kSizeKinds = static_cast<std::size_t>(SizeKind::kHuge) + 1;

struct Plan {
  FeatureSet on;
  std::array<std::uint32_t, kOpCount> weights{};
  std::array<std::uint32_t, kSizeKinds> sizes{};
  std::uint64_t memory = 64;       // of device 0, in granules
  bool odd_memory = false;         // ... and half a granule
  std::uint64_t most_buffers = 8;  // open at once, about

  std::uint32_t weight(Op op) const { return weights[static_cast<std::size_t>(op)]; }
  bool has(Feature f) const { return on.has(f); }
};

Plan make_plan(Chooser& chooser, const GenerateOptions& options);

}  // namespace granule::prop::gen
