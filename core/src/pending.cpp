// Pending ranges: retired behind markers or parked behind captures, and how they come back.
#include <algorithm>

#include "context_scope.hpp"
#include "extend.hpp"

namespace granule::detail {

// The record is ours (kReaping). True if it may go; on false its state says how it goes on.
bool ResourceCore::try_reap(Record& record, RecordState was) {
  RecordState next = was;
  bool done = false;
  if (was == RecordState::kParked) {
    // Reported when it was parked; as long as the reason lasts nothing more is said.
    Result<CaptureVerdict> verdict = capture_verdict(record);
    if (verdict.ok() && *verdict == CaptureVerdict::kClear) {
      const Status set = set_markers(record);
      if (set.ok()) next = RecordState::kRetired;
      if (!set.ok() && is_sticky(set.error().driver)) done = true;
    }
  }
  if (next == RecordState::kRetired) {
    done = true;
    const auto look = [&](StreamUse& use) {
      const Result<bool> hit = reached(record, use);
      done = done && hit.ok() && *hit;
    };
    look(record.primary);
    for (StreamUse& use : record.further) look(use);
  }
  const Lock lock(mutex_);
  record.state = next;
  if (done) pending_.erase(pending_.iterator_to(record));
  changed_.notify_all();
  return done;
}

CollectResult ResourceCore::collect(std::uint64_t budget_ns, std::uint64_t most_ranges) {
  CollectResult result;
  std::uint64_t waiting = 0;
  {
    const Lock lock(mutex_);
    waiting = pending_.size();
  }
  if (waiting == 0) return result;
  const std::uint64_t start = budget_ns == UINT64_MAX ? 0 : driver_.runtime().now_ns();
  const RelaxedScope relaxed(driver_);
  if (!relaxed.status().ok()) {
    result.pending = waiting;
    return result;
  }
  for (std::uint64_t i = 0; i < std::min(waiting, most_ranges); ++i) {
    if (budget_ns != UINT64_MAX && i != 0 && driver_.runtime().now_ns() - start >= budget_ns) break;
    Record* record = nullptr;
    RecordState was = RecordState::kRetired;
    {
      const Lock lock(mutex_);
      // The oldest that nobody is at; behind the others afterwards, so that each gets its turn.
      const auto oldest = std::find_if(pending_.begin(), pending_.end(), [](const Record& r) {
        return r.state != RecordState::kReaping;
      });
      if (oldest == pending_.end()) break;
      record = &*oldest;
      was = record->state;
      record->state = RecordState::kReaping;
      pending_.splice(pending_.end(), pending_, oldest);
    }
    if (!try_reap(*record, was)) continue;
    release_record(record);
    ++result.ranges;
  }
  const Lock lock(mutex_);
  result.pending = pending_.size();
  return result;
}

// Waits for the oldest retired range and gives it back. False if there is none to wait for: what
// is parked behind a capture ends with the capture, not by waiting.
Result<bool> ResourceCore::wait_oldest() {
  Record* record = nullptr;
  {
    Lock lock(mutex_);
    for (;;) {
      const auto at = [&](RecordState state) {
        return std::find_if(pending_.begin(), pending_.end(),
                            [&](const Record& r) { return r.state == state; });
      };
      const auto retired = at(RecordState::kRetired);
      if (retired != pending_.end()) {
        record = &*retired;
        break;
      }
      // Another thread may be giving one back just now: that counts as pending.
      if (at(RecordState::kReaping) == pending_.end()) return false;
      changed_.wait(mutex_);
      return true;
    }
    record->state = RecordState::kReaping;
  }
  bool skipped = false;
  const Status waited = wait_for(*record, &skipped);
  {
    const Lock lock(mutex_);
    record->state = RecordState::kRetired;
    if (waited.ok()) pending_.erase(pending_.iterator_to(*record));
    changed_.notify_all();
  }
  if (!waited.ok()) return waited.error();
  release_record(record);
  return true;
}

// What ran out, once nothing more can be had: the pending ranges, if they would have been enough.
Error ResourceCore::explain(Error error) {
  const Lock lock(mutex_);
  std::uint64_t pending = cached_;  // idle still: a capture holds it back
  for (const Record& record : pending_) pending += committed(record);
  const bool enough =
      pending != 0 && error.wanted <= checked_add(error.available, pending).value_or(UINT64_MAX);
  if (enough && error.exhausted != Exhausted::kAddresses) {
    error.exhausted = Exhausted::kPending;
    error.available = pending;
    error.detail = "ranges that wait for a capture to end hold it";
  }
  return error;
}

// One event for all that is ordered on the stream: it stands for the stream from now on.
Status ResourceCore::forget(const Stream& stream) {
  const auto needs = [&](const StreamUse& use) { return use.stream == stream && !use.marker; };
  const auto visit = [&](auto&& action) {
    for (RecordList* list : {&open_, &pending_, &idle_})
      for (Record& record : *list) {
        if (needs(record.primary)) action(record.primary);
        for (StreamUse& use : record.further)
          if (needs(use)) action(use);
      }
  };
  bool needed = false;
  {
    const Lock lock(mutex_);
    visit([&](StreamUse&) { needed = true; });
  }
  if (!needed) return {};
  StreamUse mark;
  mark.stream = stream;
  Result<CaptureVerdict> verdict = order_.capture_verdict(mark);
  if (!verdict) return verdict.error();
  if (*verdict != CaptureVerdict::kClear)
    return make_error(ErrorCode::kCapturing, "end the capture before the stream is destroyed");
  Status set = order_.set_marker(mark);
  if (!set.ok() && !is_sticky(set.error().driver)) return set;
  {
    const Lock lock(mutex_);
    visit([&](StreamUse& use) {
      use.marker = mark.marker;
      use.forgotten = true;
      use.done = !mark.marker;
      if (use.marker) ++use.marker->refs;
    });
  }
  order_.drop_marker(mark);
  return {};
}

}  // namespace granule::detail
