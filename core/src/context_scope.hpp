// ContextScope: makes a stream's context current for a few calls and puts the caller's back (I12).
#pragma once

#include <granule/stream.hpp>

#include "driver.hpp"

namespace granule::detail {

/// Pushes the context of a created stream, or the retained primary context of a default stream's
/// device. The destructor pops and releases; those calls only fail if the context is gone, when
/// there is nothing left to restore.
class ContextScope {
 public:
  ContextScope(const Driver& driver, const Stream& stream)
      : ContextScope(driver, stream.context(), stream.device(),
                     stream.kind() != StreamKind::kCreated) {}
  ContextScope(const Driver& driver, ContextHandle context, DeviceId device, bool primary);
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  ~ContextScope();

  /// Ok, or why the context could not be made current.
  const Status& status() const { return status_; }
  ContextHandle context() const { return context_; }

 private:
  Driver driver_;
  ContextHandle context_;
  DeviceId device_;
  Status status_;
  bool retained_ = false;
  bool pushed_ = false;
};

/// Sets the calling thread's capture mode to relaxed, so that queries and waits on streams that do
/// not capture are legal while others do (driver contract, section 22: 41 ns each way).
class RelaxedScope {
 public:
  explicit RelaxedScope(const Driver& driver);
  RelaxedScope(const RelaxedScope&) = delete;
  RelaxedScope& operator=(const RelaxedScope&) = delete;
  ~RelaxedScope();
  const Status& status() const { return status_; }

 private:
  Driver driver_;
  CaptureMode previous_ = CaptureMode::kGlobal;
  Status status_;
};

}  // namespace granule::detail
