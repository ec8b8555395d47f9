// What the release of a whole record is ordered behind: its streams, one and all (I7, I8).
#include "context_scope.hpp"
#include "resource_core.hpp"

namespace granule::detail {

Result<CaptureVerdict> ResourceCore::capture_verdict(const Record& record) {
  Result<CaptureVerdict> worst = order_.capture_verdict(record.primary);
  if (!worst) return worst;
  for (const StreamUse& use : record.further) {
    Result<CaptureVerdict> verdict = order_.capture_verdict(use);
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

// Waits for every stream of the record. After a sticky error of the context nothing that was
// queued runs any more and VMM calls still work (S32): that is reported, and no error.
Status ResourceCore::wait_for(const Record& record) {
  const RelaxedScope relaxed(driver_);
  if (!relaxed.status().ok() && !is_sticky(relaxed.status().error().driver))
    return relaxed.status();
  const auto one = [&](const StreamUse& use) -> Status {
    Status waited = order_.wait_for(use);
    if (waited.ok() || !is_sticky(waited.error().driver)) return waited;
    report(FailureKind::kWaitSkipped, waited.error(), record.base, record.size);
    return {};
  };
  if (Status waited = one(record.primary); !waited) return waited;
  for (const StreamUse& use : record.further)
    if (Status waited = one(use); !waited) return waited;
  return {};
}

// Drops the markers that were set for this release, and keeps those of forgotten streams.
void ResourceCore::drop_new_markers(Record& record) noexcept {
  if (!record.primary.forgotten) order_.drop_marker(record.primary);
  for (StreamUse& use : record.further)
    if (!use.forgotten) order_.drop_marker(use);
}

// All or none.
Status ResourceCore::set_markers(Record& record) {
  Status set = order_.set_marker(record.primary);
  for (StreamUse& use : record.further)
    if (set.ok()) set = order_.set_marker(use);
  if (set.ok()) return set;
  drop_new_markers(record);
  return set;
}

// As StreamOrder::reached; after a sticky error nothing that was queued runs any more.
Result<bool> ResourceCore::reached(const Record& record, StreamUse& use) {
  Result<bool> hit = order_.reached(use);
  if (hit.ok() || !is_sticky(hit.error().driver)) return hit;
  report(FailureKind::kWaitSkipped, hit.error(), record.base, record.size);
  use.done = true;
  return true;
}

}  // namespace granule::detail
