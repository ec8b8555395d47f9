// Stream: a driver stream bound once, so that later waits know its context, device and identity.
#pragma once

#include <granule/backend_api/backend.hpp>
#include <granule/backend_api/export.hpp>
#include <granule/backend_api/result.hpp>

namespace granule {

enum class StreamKind : std::uint8_t {
  kCreated,    // made by cuStreamCreate
  kLegacy,     // the legacy default stream of a device's primary context
  kPerThread,  // the binding thread's default stream in a device's primary context
};

/// What a caller promises of a stream when binding it.
struct BindOptions {
  /// The stream is never captured: no capture query is made for it, ever.
  bool never_captures = false;
};

/// A bound stream. A cheap value (no ownership); const access from any thread.
///
/// A stream outlives the buffers and pending frees ordered on it, or is announced with
/// VirtualMemoryResource::forget before it is destroyed. Two streams are equal if the driver's
/// never-reused ids are (a handle value may come back after a destroy, cuStreamGetId does not).
class GRANULE_EXPORT Stream {
 public:
  /// Binds a stream made by the driver. Calls cuStreamGetCtx, cuStreamGetId and, with the stream's
  /// context pushed for a moment, cuCtxGetDevice. Errors: whatever the driver answers.
  static Result<Stream> bind(Backend& backend, StreamHandle handle, BindOptions options = {});
  /// The legacy default stream of `device`'s primary context. Makes no driver call: the primary
  /// context is only retained while something waits on the stream.
  static Stream legacy(DeviceId device);
  /// The calling thread's default stream in `device`'s primary context. Retains that context for
  /// the query of the id. Waiting for it is possible on the binding thread only.
  static Result<Stream> per_thread(Backend& backend, DeviceId device);

  StreamHandle handle() const { return handle_; }
  StreamKind kind() const { return kind_; }
  /// The context of a created stream; null for default streams.
  ContextHandle context() const { return context_; }
  DeviceId device() const { return device_; }
  StreamId id() const { return id_; }
  bool never_captures() const { return never_captures_; }
  friend bool operator==(const Stream& a, const Stream& b) {
    return a.kind_ == b.kind_ && a.device_ == b.device_ && a.id_ == b.id_;
  }

 private:
  StreamHandle handle_;
  ContextHandle context_;
  StreamId id_;
  DeviceId device_;
  StreamKind kind_ = StreamKind::kLegacy;
  bool never_captures_ = false;
};

}  // namespace granule
