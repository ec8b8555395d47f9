// Where failures go that no caller can be told of: those of destructors and of late clean-up.
#pragma once

#include <cstdint>

#include <granule/backend_api/export.hpp>
#include <granule/backend_api/result.hpp>
#include <granule/backend_api/types.hpp>

namespace granule {

/// What happened to the memory concerned.
enum class FailureKind : std::uint8_t {
  kReleaseFailed,  // a driver call that gives something back failed: it is leaked, once
  kQuarantined,    // an unmap failed, or nobody can tell what a failed map has left: mapping,
                   // addresses and memory are kept for good (I13)
  kParked,         // a release would have disturbed a capture, or could not wait: kept mapped
  kWaitSkipped,    // the context has a sticky error: released without waiting (S32)
  kUndoFailed,     // undoing a failed operation failed in turn
  kWorkerFailed,   // the worker could not commit memory ahead; nothing was changed
};

/// One report. Plain values; valid after the call.
struct FailureReport {
  FailureKind kind = FailureKind::kReleaseFailed;
  Error error;
  DevicePtr ptr;           // the range concerned, if any
  std::uint64_t size = 0;  // bytes
};

/// Receives reports. Called from whichever thread found the failure, never under a lock of the
/// library; must be thread-safe and must not throw.
class GRANULE_EXPORT FailureSink {
 public:
  virtual ~FailureSink() = default;
  virtual void report(const FailureReport& report) noexcept = 0;
};

/// Writes one line a report to standard error. The default.
GRANULE_EXPORT FailureSink& stderr_failure_sink() noexcept;

}  // namespace granule
