// Capture queries, waits and markers on one stream (I7, I8).
// Facts: driver contract, section 22. Default streams need their primary context current; created
// streams need none. A query or wait on a stream that does not capture is legal in relaxed mode
// whatever else captures; nothing is legal on a stream that itself captures, so that is asked
// first.
#include <mutex>
#include <optional>

#include "context_scope.hpp"
#include "stream_order.hpp"

namespace granule::detail {

Result<StreamId> stream_id(Backend& backend, StreamHandle handle);

namespace {

/// The context that calls on a default stream need; nothing for a created stream.
class DefaultStreamScope {
 public:
  DefaultStreamScope(const Driver& driver, const Stream& stream) {
    if (stream.kind() == StreamKind::kCreated) return;
    scope_.emplace(driver, stream);
    status_ = scope_->status();
    if (!status_.ok() || stream.kind() != StreamKind::kPerThread) return;
    Result<StreamId> id = stream_id(driver.backend(), kPerThreadStream);
    if (!id) {
      status_ = id.status();
    } else if (*id != stream.id()) {
      status_ = make_error(ErrorCode::kInvalidArgument,
                           "a per-thread default stream can be waited for by its own thread only");
    }
  }
  const Status& status() const { return status_; }
  ContextHandle context() const { return scope_ ? scope_->context() : ContextHandle{}; }

 private:
  std::optional<ContextScope> scope_;
  Status status_;
};

}  // namespace

using Lock = std::unique_lock<SeamMutex>;

bool is_capture_status(DriverStatus status) {
  return status == DriverStatus::kStreamCaptureUnsupported ||
         status == DriverStatus::kStreamCaptureInvalidated ||
         status == DriverStatus::kStreamCaptureImplicit;
}

Result<CaptureVerdict> StreamOrder::capture_verdict(const StreamUse& use) const {
  if (use.marker || use.forgotten || use.stream.never_captures()) return CaptureVerdict::kClear;
  const DefaultStreamScope scope(driver_, use.stream);
  if (!scope.status().ok()) {
    const Error error = scope.status().error();
    if (is_sticky(error.driver)) return CaptureVerdict::kClear;  // the wait will say so
    return error;
  }
  StreamIsCapturing query{use.stream.handle(), CaptureStatus::kNone};
  const DriverStatus status = driver_.call(query);
  // The null stream while a blocking stream captures: asking did no harm, using it would (S61).
  if (status == DriverStatus::kStreamCaptureImplicit) return CaptureVerdict::kDisturbs;
  if (is_sticky(status)) return CaptureVerdict::kClear;
  if (status != DriverStatus::kSuccess)
    return driver_error(status, kind_of<StreamIsCapturing>, use.stream.handle().value);
  return query.status == CaptureStatus::kNone ? CaptureVerdict::kClear : CaptureVerdict::kCaptures;
}

Status StreamOrder::wait_for(const StreamUse& use) const {
  if (use.done) return {};
  DriverStatus status = DriverStatus::kSuccess;
  if (use.marker) {
    EventSynchronize wait{use.marker->event};
    status = driver_.call(wait);
    if (status == DriverStatus::kSuccess) return {};
    return driver_error(status, kind_of<EventSynchronize>, use.marker->event.value);
  }
  const DefaultStreamScope scope(driver_, use.stream);
  if (!scope.status().ok()) return scope.status();
  StreamSynchronize wait{use.stream.handle()};
  status = driver_.call(wait);
  if (status == DriverStatus::kSuccess) return {};
  Error error = driver_error(status, kind_of<StreamSynchronize>, use.stream.handle().value);
  if (is_capture_status(status)) error.code = ErrorCode::kCapturing;
  return error;
}

// An event of the context, from the free list or new.
Result<Marker*> StreamOrder::take_marker(ContextHandle context, const Stream& stream) {
  {
    const Lock lock(mutex_);
    for (Marker& marker : free_)
      if (marker.context == context) {
        free_.erase(free_.iterator_to(marker));
        marker.refs = 1;
        return &marker;
      }
  }
  Fresh<Marker> fresh(driver_.runtime());
  if (!fresh) return host_memory_error(sizeof(Marker));
  std::optional<ContextScope> scope;
  if (stream.kind() == StreamKind::kCreated) {
    scope.emplace(driver_, stream);
    if (!scope->status().ok()) return scope->status().error();
  } else {
    // The context is current already, but only for this call: an event dies with its context.
    DevicePrimaryCtxRetain retain{stream.device(), {}};
    const DriverStatus status = driver_.call(retain);
    if (status != DriverStatus::kSuccess)
      return driver_error(status, kind_of<DevicePrimaryCtxRetain>);
    fresh->device = stream.device();
    fresh->retained = true;
  }
  EventCreate create;
  const DriverStatus status = driver_.call(create);
  if (status != DriverStatus::kSuccess) {
    release_context(*fresh.get());
    return driver_error(status, kind_of<EventCreate>);
  }
  fresh->event = create.event;
  fresh->context = context;
  fresh->refs = 1;
  return fresh.release();
}

void StreamOrder::release_context(const Marker& marker) const noexcept {
  if (!marker.retained) return;
  DevicePrimaryCtxRelease release{marker.device};
  (void)driver_.call(release);  // fails only for a context that was reset: nothing is held then
}

void StreamOrder::drop_marker(StreamUse& use) noexcept {
  if (!use.marker) return;
  const Lock lock(mutex_);
  Marker* const marker = std::exchange(use.marker, nullptr);
  if (--marker->refs == 0) free_.push_back(*marker);
}

// Records an event that stands for all work queued on the stream so far.
Status StreamOrder::set_marker(StreamUse& use) {
  if (use.marker || use.forgotten) return {};
  const DefaultStreamScope scope(driver_, use.stream);
  if (!scope.status().ok()) return scope.status();
  const bool created = use.stream.kind() == StreamKind::kCreated;
  const ContextHandle context = created ? use.stream.context() : scope.context();
  Result<Marker*> marker = take_marker(context, use.stream);
  if (!marker) return marker.error();
  EventRecord record{(*marker)->event, use.stream.handle()};
  const DriverStatus status = driver_.call(record);
  {
    const Lock lock(mutex_);  // forget() may be looking at the record that this is part of
    use.marker = *marker;
    use.done = false;
  }
  if (status == DriverStatus::kSuccess) return {};
  drop_marker(use);
  Error error = driver_error(status, kind_of<EventRecord>, use.stream.handle().value);
  if (is_capture_status(status)) error.code = ErrorCode::kCapturing;
  return error;
}

Result<bool> StreamOrder::reached(StreamUse& use) const {
  if (use.done) return true;
  EventQuery query{use.marker->event};
  const DriverStatus status = driver_.call(query);
  if (status == DriverStatus::kNotReady) return false;
  if (status != DriverStatus::kSuccess)
    return driver_error(status, kind_of<EventQuery>, use.marker->event.value);
  use.done = true;
  return true;
}

// Work on a default stream dies with the primary context if nobody holds that; a marker does, for
// as long as the resource lives.
Status StreamOrder::keep_context(const Stream& stream) {
  if (stream.kind() == StreamKind::kCreated) return {};
  const auto device = static_cast<std::uint32_t>(stream.device().value);
  const std::uint64_t bit = device < 64 ? std::uint64_t{1} << device : 0;  // 0: not remembered
  if ((kept_contexts_.load(std::memory_order_acquire) & bit) != 0) return {};
  StreamUse keep;
  keep.stream = stream;
  if (Status kept = set_marker(keep); !kept) return kept;
  drop_marker(keep);
  kept_contexts_.fetch_or(bit, std::memory_order_release);
  return {};
}

Status StreamOrder::order_behind(const StreamUse& use, const Stream& stream) {
  if (!use.marker) return {};
  if (Status kept = keep_context(stream); !kept) return kept;
  const DefaultStreamScope scope(driver_, stream);
  if (!scope.status().ok()) return scope.status();
  StreamWaitEvent call{stream.handle(), use.marker->event, 0};
  const DriverStatus status = driver_.call(call);
  if (status == DriverStatus::kSuccess) return {};
  return driver_error(status, kind_of<StreamWaitEvent>, use.marker->event.value);
}

}  // namespace granule::detail
