// Idle ranges: whole mapped ranges kept for the next allocation of their size, behind the stream
// that they were closed on. A close does not wait; whoever takes the range is ordered behind it.
// Warm, an allocate and close pair makes no call but capture queries, and no host allocation: the
// record goes from buffer to cache and back.
#include <algorithm>

#include "extend.hpp"

namespace granule::detail {

// With mutex_ held.
void ResourceCore::enlist_idle(Record& record) {
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

// With mutex_ held: only a range that nobody shares can be handed to somebody else whole.
bool ResourceCore::cacheable(const Record& record) const {
  if (options_.cache == 0 || committed(record) > options_.cache || record.suspended || !record.last)
    return false;
  for (const Mapping* mapping = record.last; mapping; mapping = mapping->prev)
    if (mapping->refs != 1 || mapping->chunk->refs != 1 || mapping->chunk->imported ||
        mapping->chunk->access != access_ || mapping->chunk->exported)
      return false;
  return true;
}

// Keeps the closed record idle. False if it cannot be: then it is released as without a cache.
// Room is made first, so that the bound is never passed.
bool ResourceCore::keep_idle(Record* record) {
  {
    const Lock lock(mutex_);
    if (!cacheable(*record)) return false;
  }
  if (Status room = evict_to(options_.cache - committed(*record)); !room) return false;
  const Lock lock(mutex_);
  record->size = committed(*record);  // all of it is to be had again
  open_.erase(open_.iterator_to(*record));
  enlist_idle(*record);
  return true;
}

// Gives the oldest idle ranges back until at most `keep` bytes are left: after waiting for their
// streams, or, with deferred frees, behind markers.
Status ResourceCore::evict_to(std::uint64_t keep) {
  for (;;) {
    Record* oldest = nullptr;
    {
      const Lock lock(mutex_);
      if (cached_ <= keep || idle_.empty()) return {};
      oldest = &idle_.front();
      delist_idle(*oldest);
      open_.push_back(*oldest);  // where end() expects a record
    }
    bool skipped = false;
    Status ordered = refuse_if_capturing(*oldest);
    if (ordered.ok()) ordered = order_release(*oldest, &skipped);
    if (!ordered.ok()) {
      const Lock lock(mutex_);
      open_.erase(open_.iterator_to(*oldest));
      enlist_idle(*oldest);
      return ordered;
    }
    end(oldest, skipped);
  }
}

// The oldest idle range, waited for, under memory pressure. False if there is none.
Result<bool> ResourceCore::evict_oldest() {
  std::uint64_t before = 0;
  std::uint64_t oldest = 0;
  {
    const Lock lock(mutex_);
    if (idle_.empty()) return false;
    before = cached_;
    oldest = idle_.front().size;
  }
  if (Status evicted = evict_to(before - oldest); !evicted) return evicted.error();
  return true;
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

// With mutex_ held: the idle range that serves best, out of the list; null if none does.
Record* ResourceCore::pick_idle(const Stream& stream, std::uint64_t size, std::uint64_t capacity) {
  const std::uint64_t fit = checked_add(size, size / 100 * options_.fit_percent).value_or(size);
  const std::uint64_t most = std::max(fit, commit_target(0, size));
  Record* best = nullptr;
  for (auto it = idle_by_size_.lower_bound(size); it != idle_by_size_.end() && it->size <= most;
       ++it) {
    if (capacity > it->size && promised(*it) < capacity) continue;
    const bool ordered = ordered_already(*it, stream);
    if (!best || ordered) best = &*it;
    if (ordered) break;
  }
  if (best) delist_idle(*best);
  return best;
}

// A range from the cache for `stream`, or null. It is never used for a stream that captures: the
// order behind earlier work could not be kept in the graph.
Record* ResourceCore::take_idle(const Stream& stream, std::uint64_t size, std::uint64_t capacity) {
  Record* record = nullptr;
  bool ordered = false;
  {
    const Lock lock(mutex_);
    record = pick_idle(stream, size, capacity);
    if (!record) return nullptr;
    ordered = ordered_already(*record, stream);
  }
  StreamUse asking;
  asking.stream = stream;
  const Result<CaptureVerdict> verdict = order_.capture_verdict(asking);
  bool usable_now = verdict.ok() && *verdict == CaptureVerdict::kClear;
  if (usable_now && !ordered) usable_now = order_behind(*record, stream).ok();
  if (!usable_now) {
    drop_new_markers(*record);
    const Lock lock(mutex_);
    enlist_idle(*record);
    return nullptr;
  }
  if (!ordered) settle_on(*record, stream);
  show(*record, size);
  record->has_history = true;
  return record;
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
