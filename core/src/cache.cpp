// Idle ranges: whole mapped ranges kept for the next allocation of their size, behind the stream
// that they were closed on. A close does not wait; whoever takes the range is ordered behind it.
// Warm, an allocate and close pair makes no call but capture queries, and no host allocation: the
// record goes from buffer to cache and back.
#include <algorithm>

#include "extend.hpp"

namespace granule::detail {

// With mutex_ held: the idle range is off the list, and may come back: its room stays taken.
void ResourceCore::enter_transit(const Record& record) {
  ++in_transit_;
  leaving_ += record.size;
}

// With mutex_ held.
void ResourceCore::enlist_idle(Record& record) {
  record.state = RecordState::kOpen;
  idle_.push_back(record);
  idle_by_size_.insert(record);
  cached_ += record.size;
}

// With mutex_ held.
void ResourceCore::delist_idle(Record& record) {
  idle_.erase(idle_.iterator_to(record));
  idle_by_size_.erase(idle_by_size_.iterator_to(record));
  cached_ -= record.size;
}

// With mutex_ held, of a range that holds something: only one that nobody shares can be handed to
// somebody else whole.
bool ResourceCore::cacheable(const Record& record) const {
  if (committed(record) > options_.cache || record.copying) return false;
  for (const Mapping* mapping = record.last; mapping; mapping = mapping->prev)
    if (mapping->refs != 1 || mapping->chunk->refs != 1 || mapping->chunk->imported ||
        mapping->chunk->access != access_ || mapping->chunk->exported)
      return false;
  return true;
}

// With mutex_ held: the closed record is idle from here on, if the cache has room for it.
bool ResourceCore::enlist_closed(Record& record) {
  if (cached_ + leaving_ > options_.cache - committed(record)) return false;
  record.size = committed(record);  // all of it is to be had again
  open_.erase(open_.iterator_to(record));
  enlist_idle(record);
  return true;
}

// Keeps the closed record idle. False if it cannot be: then it is released as without a cache.
// Room is made first, so that the bound is never passed; another thread may take it meanwhile.
bool ResourceCore::keep_idle(Record* record) {
  for (;;) {
    {
      const Lock lock(mutex_);
      if (!cacheable(*record)) return false;
      if (enlist_closed(*record)) return true;
    }
    const Result<bool> room = evict_oldest();
    if (!room.ok() || !*room) return false;
  }
}

// A close for which nothing has to be given back, of a range that one stream used: it is idle, with
// the lock taken once. False: it has to go the long way.
bool ResourceCore::keep_warm(Record& record) {
  if (options_.cache == 0 || !record.further.empty() || holds_nothing(record)) return false;
  if (!may_use(record.primary)) return false;
  const Lock lock(mutex_);
  return (options_.worker || pending_.empty()) && cacheable(record) && enlist_closed(record);
}

// Gives the oldest idle range back that no capture holds: after waiting for its streams, or, with
// deferred frees, behind markers. False if there is none; `capturing` if captures hold all there
// are.
Result<bool> ResourceCore::evict_oldest() {
  std::size_t left = 0;
  {
    const Lock lock(mutex_);
    left = idle_.size();
  }
  Status held;
  for (; left != 0; --left) {
    Record* oldest = nullptr;
    {
      const Lock lock(mutex_);
      if (idle_.empty()) break;
      oldest = &idle_.front();
      delist_idle(*oldest);
      oldest->state = RecordState::kReaping;
      pending_.push_back(*oldest);
      enter_transit(*oldest);
    }
    bool skipped = false;
    Status ordered = refuse_if_capturing(*oldest);
    if (ordered.ok()) ordered = order_release(*oldest, &skipped);
    const bool retires = options_.free == FreePolicy::kDeferred && !skipped;
    {
      const Lock lock(mutex_);
      leave_transit(oldest->size);
      if (!ordered.ok()) {
        pending_.erase(pending_.iterator_to(*oldest));
        enlist_idle(*oldest);  // behind the others, which get their turn
      } else if (retires) {
        oldest->state = RecordState::kRetired;
        wake_worker();
      }
      if (!ordered.ok() || retires) changed_.notify_all();
    }
    if (ordered.ok()) {
      if (!retires) finish_reap(oldest);
      return true;
    }
    if (ordered.error().code != ErrorCode::kCapturing) return ordered.error();
    if (held.ok()) held = ordered;
  }
  if (!held.ok()) return held.error();
  return false;
}

// Gives idle ranges back, the oldest first, until at most `keep` bytes are left.
Status ResourceCore::evict_to(std::uint64_t keep) {
  for (;;) {
    {
      const Lock lock(mutex_);
      if (cached_ <= keep) return {};
    }
    Result<bool> evicted = evict_oldest();
    if (!evicted) return evicted.error();
    if (!*evicted) return {};
  }
}

Status ResourceCore::trim(std::uint64_t keep) {
  collect(UINT64_MAX, UINT64_MAX);
  if (Status evicted = evict_to(keep); !evicted) return evicted;
  collect(UINT64_MAX, UINT64_MAX);
  return {};
}

// With mutex_ held: does taking the range on `stream` need no order of its own?
bool ResourceCore::ordered_already(const Record& record, const Stream& stream) const {
  return !record.primary.marker && record.primary.stream == stream && record.further.empty();
}

// Orders `stream` behind everything that the idle range was used for.
Status ResourceCore::order_behind(Record& record, const Stream& stream) {
  if (Status may = refuse_if_capturing(record); !may) return may;
  if (Status set = set_markers(record); !set) return set;
  Status ordered = record.primary.stream == stream && !record.primary.forgotten
                       ? Status()
                       : order_.order_behind(record.primary, stream);
  for (const StreamUse& use : record.further)
    if (ordered.ok()) ordered = order_.order_behind(use, stream);
  return ordered;
}

// With mutex_ held: the idle range that serves best, out of the list; null if none does. Those that
// this search has passed over (`pass`) are not asked again.
Record* ResourceCore::pick_idle(const Stream& stream, std::uint64_t size, std::uint64_t capacity,
                                std::uint32_t pass) {
  const std::uint64_t fit = grown_by(size, options_.fit_percent);
  const std::uint64_t most = std::max(fit, commit_target(0, size));
  Record* best = nullptr;
  for (auto it = idle_by_size_.lower_bound(size); it != idle_by_size_.end() && it->size <= most;
       ++it) {
    if (it->passed == pass || promised(*it) < capacity) continue;
    const bool ordered = ordered_already(*it, stream);
    if (!best || ordered) best = &*it;
    if (ordered) break;
  }
  if (best) delist_idle(*best);
  return best;
}

// Does the stream not capture, nor disturb a capture?
bool ResourceCore::may_use(const StreamUse& use) {
  const Result<CaptureVerdict> verdict = order_.capture_verdict(use);
  return verdict.ok() && *verdict == CaptureVerdict::kClear;
}

// A range from the cache as the record of an open buffer for `stream`, or null. It is never used
// for a stream that captures: the order behind earlier work could not be kept in the graph. Gives a
// few pending ranges back first. Where nothing has to be ordered, the lock is taken once.
Record* ResourceCore::take_idle(const Stream& stream, std::uint64_t size, std::uint64_t capacity) {
  StreamUse asking;
  asking.stream = stream;
  const bool clear = options_.cache != 0 && may_use(asking);
  Lock lock(mutex_);
  if (!pending_.empty()) {
    lock.unlock();
    reap_on_the_way();
    lock.lock();
  }
  if (!clear) return nullptr;
  const std::uint32_t pass = ++passes_;
  for (;;) {
    Record* const record = pick_idle(stream, size, capacity, pass);
    if (!record) return nullptr;
    if (!ordered_already(*record, stream)) {
      enter_transit(*record);
      lock.unlock();
      const Status behind = order_behind(*record, stream);
      if (behind.ok()) {
        settle_on(*record, stream);
      } else {
        drop_new_markers(*record);
      }
      lock.lock();
      leave_transit(record->size);
      if (!behind.ok()) {
        record->passed = pass;
        enlist_idle(*record);
        if (behind.error().code == ErrorCode::kCapturing) continue;
        return nullptr;
      }
    }
    record->has_history = true;
    record->tried_ahead = 0;
    record->at_work = 0;
    set_shown(*record, size);
    enlist_open(*record);
    return record;
  }
}

// The record is ordered behind `stream` alone from here on.
void ResourceCore::settle_on(Record& record, const Stream& stream) noexcept {
  order_.drop_marker(record.primary);
  record.primary = StreamUse();
  record.primary.stream = stream;
  while (!record.further.empty()) {
    end_use(record, record.further.front());
  }
}

}  // namespace granule::detail
