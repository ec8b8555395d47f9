// What a release is ordered behind: capture queries, waits and markers (I7, I8).
// Facts: driver contract, section 22. Default streams need their primary context current; created
// streams need none. A query or wait on a stream that does not capture is legal in relaxed mode
// whatever else captures; nothing is legal on a stream that itself captures, so that is asked first.
#include <optional>

#include "context_scope.hpp"
#include "resource_core.hpp"

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

bool is_capture_status(DriverStatus status) {
  return status == DriverStatus::kStreamCaptureUnsupported ||
         status == DriverStatus::kStreamCaptureInvalidated ||
         status == DriverStatus::kStreamCaptureImplicit;
}

}  // namespace

Result<ResourceCore::CaptureVerdict> ResourceCore::capture_verdict(const StreamUse& use) {
  if (use.marker || use.stream.never_captures()) return CaptureVerdict::kClear;
  const DefaultStreamScope scope(driver_, use.stream);
  if (!scope.status().ok()) return scope.status().error();
  StreamIsCapturing query{use.stream.handle(), CaptureStatus::kNone};
  const DriverStatus status = driver_.call(query);
  // The null stream while a blocking stream captures: asking did no harm, using it would (S61).
  if (status == DriverStatus::kStreamCaptureImplicit) return CaptureVerdict::kDisturbs;
  if (is_sticky(status)) return CaptureVerdict::kClear;  // the wait will say so
  if (status != DriverStatus::kSuccess)
    return driver_error(status, kind_of<StreamIsCapturing>, use.stream.handle().value);
  return query.status == CaptureStatus::kNone ? CaptureVerdict::kClear : CaptureVerdict::kCaptures;
}

Result<ResourceCore::CaptureVerdict> ResourceCore::capture_verdict(const Record& record) {
  Result<CaptureVerdict> worst = capture_verdict(record.primary);
  if (!worst) return worst;
  for (const StreamUse& use : record.further) {
    Result<CaptureVerdict> verdict = capture_verdict(use);
    if (!verdict) return verdict;
    if (*verdict == CaptureVerdict::kCaptures || *worst == CaptureVerdict::kClear) worst = verdict;
  }
  return worst;
}

Status ResourceCore::refuse_if_capturing(const Record& record) {
  Result<CaptureVerdict> verdict = capture_verdict(record);
  if (!verdict) return verdict.error();
  if (*verdict == CaptureVerdict::kClear) return {};
  Error error = make_error(ErrorCode::kCapturing,
                           "end the capture first, or order the operation on another stream");
  error.object = record.primary.stream.handle().value;
  return error;
}

Status ResourceCore::wait_for(const StreamUse& use) {
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

// Waits for every stream of the record. After a sticky error of the context nothing that was
// queued runs any more and VMM calls still work (S32): then `skipped` is set instead of an error.
Status ResourceCore::wait_for(const Record& record, bool* skipped) {
  const RelaxedScope relaxed(driver_);
  if (!relaxed.status().ok() && !is_sticky(relaxed.status().error().driver))
    return relaxed.status();
  const auto one = [&](const StreamUse& use) -> Status {
    Status waited = wait_for(use);
    if (waited.ok() || !is_sticky(waited.error().driver)) return waited;
    *skipped = true;
    report(FailureKind::kWaitSkipped, waited.error(), record.base, record.size);
    return {};
  };
  if (Status waited = one(record.primary); !waited) return waited;
  for (const StreamUse& use : record.further)
    if (Status waited = one(use); !waited) return waited;
  return {};
}

// An event of the context, from the free list or new.
Result<Marker*> ResourceCore::take_marker(ContextHandle context, const Stream& stream) {
  {
    const Lock lock(mutex_);
    for (Marker& marker : free_markers_)
      if (marker.context == context) {
        free_markers_.erase(free_markers_.iterator_to(marker));
        marker.refs = 1;
        return &marker;
      }
  }
  Fresh<Marker> fresh(driver_.runtime());
  if (!fresh) return host_memory_error(sizeof(Marker));
  std::optional<ContextScope> scope;
  if (stream.kind() == StreamKind::kCreated) {  // else the context is current already
    scope.emplace(driver_, stream);
    if (!scope->status().ok()) return scope->status().error();
  }
  EventCreate create;
  const DriverStatus status = driver_.call(create);
  if (status != DriverStatus::kSuccess) return driver_error(status, kind_of<EventCreate>);
  fresh->event = create.event;
  fresh->context = context;
  fresh->refs = 1;
  return fresh.release();
}

void ResourceCore::drop_marker(StreamUse& use) noexcept {
  if (!use.marker) return;
  const Lock lock(mutex_);
  Marker* const marker = std::exchange(use.marker, nullptr);
  if (--marker->refs == 0) free_markers_.push_back(*marker);
}

// Records an event that stands for all work queued on the stream so far.
Status ResourceCore::set_marker(StreamUse& use) {
  if (use.marker) return {};
  const DefaultStreamScope scope(driver_, use.stream);
  if (!scope.status().ok()) return scope.status();
  const bool created = use.stream.kind() == StreamKind::kCreated;
  const ContextHandle context = created ? use.stream.context() : scope.context();
  Result<Marker*> marker = take_marker(context, use.stream);
  if (!marker) return marker.error();
  EventRecord record{(*marker)->event, use.stream.handle()};
  const DriverStatus status = driver_.call(record);
  use.marker = *marker;
  use.done = false;
  if (status == DriverStatus::kSuccess) return {};
  drop_marker(use);
  Error error = driver_error(status, kind_of<EventRecord>, use.stream.handle().value);
  if (is_capture_status(status)) error.code = ErrorCode::kCapturing;
  return error;
}

// Drops the markers that were set for this release, and keeps those of forgotten streams.
void ResourceCore::drop_new_markers(Record& record) noexcept {
  if (!record.primary.forgotten) drop_marker(record.primary);
  for (StreamUse& use : record.further)
    if (!use.forgotten) drop_marker(use);
}

// All or none.
Status ResourceCore::set_markers(Record& record) {
  Status set = set_marker(record.primary);
  for (StreamUse& use : record.further)
    if (set.ok()) set = set_marker(use);
  if (set.ok()) return set;
  drop_new_markers(record);
  return set;
}

Result<bool> ResourceCore::reached(const Record& record, StreamUse& use) {
  if (use.done || !use.marker) return use.done;
  EventQuery query{use.marker->event};
  const DriverStatus status = driver_.call(query);
  if (status == DriverStatus::kNotReady) return false;
  if (status != DriverStatus::kSuccess) {
    const Error error = driver_error(status, kind_of<EventQuery>, use.marker->event.value);
    if (!is_sticky(status)) return error;
    report(FailureKind::kWaitSkipped, error, record.base, record.size);
  }
  use.done = true;
  return true;
}

}  // namespace granule::detail
