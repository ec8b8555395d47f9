// Pending ranges: retired behind markers or parked behind captures, and how they come back.
#include <algorithm>

#include "context_scope.hpp"
#include "extend.hpp"

namespace granule::detail {

// The record is ours (kReaping). True if it may go: then it stays in the list, and ours, until
// finish_reap() has given it back, so that whoever needs the memory can wait for that. On false its
// state says how it goes on.
bool ResourceCore::try_reap(Record& record, RecordState was) {
  RecordState next = was;
  bool done = false;
  if (was == RecordState::kParked) {
    // Reported when it was parked; as long as the reason lasts nothing more is said.
    Result<CaptureVerdict> verdict = capture_verdict(record);
    if (verdict.ok() && *verdict == CaptureVerdict::kClear) {
      const Status set = set_markers(record);
      if (set.ok()) {
        next = RecordState::kRetired;
      } else {
        done = is_sticky(set.error().driver);
      }
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
  if (was == RecordState::kParked) leave_transit(0);
  if (!done) record.state = next;
  if (!done) changed_.notify_all();
  return done;
}

// Gives back a pending record that is ours. It is pending until its memory is back.
void ResourceCore::finish_reap(Record* record) noexcept {
  Mapping* last = nullptr;
  {
    const Lock lock(mutex_);
    last = std::exchange(record->last, nullptr);
  }
  drop_chain(last);
  {
    const Lock lock(mutex_);
    pending_.erase(pending_.iterator_to(*record));
    ++given_back_;
    changed_.notify_all();
  }
  free_record(record);
}

// Operations give a few pending ranges back on their way, where no worker does.
void ResourceCore::reap_on_the_way(std::uint64_t most) {
  if (!options_.worker) collect(UINT64_MAX, most);
}

void ResourceCore::note_given_back() {
  const Lock lock(mutex_);
  ++given_back_;
}

std::uint64_t ResourceCore::given_back() {
  const Lock lock(mutex_);
  return given_back_;
}

// With mutex_ held. `idle_bytes`: of the cache's room.
void ResourceCore::leave_transit(std::uint64_t idle_bytes) {
  leaving_ -= idle_bytes;
  if (--in_transit_ == 0) changed_.notify_all();
}

// Looks at `tries` pending ranges that are `wanted` (asked with mutex_ held) and gives back what is
// done of them.
template <class Wanted>
CollectResult ResourceCore::reap_wanted(std::uint64_t budget_ns, std::uint64_t tries,
                                        Wanted&& wanted) {
  CollectResult result;
  if (tries == 0) return result;
  const std::uint64_t start = budget_ns == UINT64_MAX ? 0 : driver_.runtime().now_ns();
  const RelaxedScope relaxed(driver_);
  if (!relaxed.status().ok()) {
    const Lock lock(mutex_);
    result.pending = pending_.size();
    return result;
  }
  for (std::uint64_t i = 0; i < tries; ++i) {
    if (budget_ns != UINT64_MAX && i != 0 && driver_.runtime().now_ns() - start >= budget_ns) break;
    Record* record = nullptr;
    RecordState was = RecordState::kRetired;
    {
      const Lock lock(mutex_);
      // The oldest that nobody is at; behind the others afterwards, so that each gets its turn.
      const auto oldest = std::find_if(pending_.begin(), pending_.end(), [&](const Record& r) {
        return r.state != RecordState::kReaping && wanted(r);
      });
      if (oldest == pending_.end()) break;
      record = &*oldest;
      was = record->state;
      record->state = RecordState::kReaping;
      if (was == RecordState::kParked) ++in_transit_;
      pending_.splice(pending_.end(), pending_, oldest);
    }
    if (!try_reap(*record, was)) continue;
    finish_reap(record);
    ++result.ranges;
  }
  const Lock lock(mutex_);
  result.pending = pending_.size();
  return result;
}

CollectResult ResourceCore::collect(std::uint64_t budget_ns, std::uint64_t most_ranges) {
  std::uint64_t tries = 0;
  {
    const Lock lock(mutex_);
    tries = std::min<std::uint64_t>(pending_.size(), most_ranges);
  }
  return reap_wanted(budget_ns, tries, [](const Record&) { return true; });
}

// Pending ranges that lie in the `size` bytes behind `last` go, if they are done. True if any did.
bool ResourceCore::reap_in_the_way(const Mapping& last, std::uint64_t size) {
  const auto in_the_way = [&](const Record& record) {
    return record.last && record.last->end() > last.end() &&
           record.base < checked_add(last.end(), size).value_or(UINT64_MAX);
  };
  std::uint64_t tries = 0;
  {
    const Lock lock(mutex_);
    tries = static_cast<std::uint64_t>(std::count_if(pending_.begin(), pending_.end(), in_the_way));
  }
  return reap_wanted(UINT64_MAX, tries, in_the_way).ranges != 0;
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
  const Status waited = wait_for(*record);
  if (!waited.ok()) {
    const Lock lock(mutex_);
    record->state = RecordState::kRetired;
    changed_.notify_all();
    return waited.error();
  }
  finish_reap(record);
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
    Lock lock(mutex_);
    while (in_transit_ != 0) changed_.wait(mutex_);
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
    Lock lock(mutex_);
    while (in_transit_ != 0) changed_.wait(mutex_);
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
