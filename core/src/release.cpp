// The end of a buffer: close, drop, parking; and the life of records.
#include <cstring>

#include "context_scope.hpp"
#include "resource_core.hpp"

namespace granule::detail {

void ResourceCore::report(FailureKind kind, const Error& error, std::uint64_t base,
                          std::uint64_t size) noexcept {
  sink_.report({kind, error, DevicePtr{base}, size});
}

// A record of its own for the same range and the same release stream. It shares the chain.
Result<Record*> ResourceCore::share(const Record& input) {
  Result<Record*> made = new_record(input.primary.stream);
  if (!made) return made;
  Record* const record = *made;
  record->base = input.base;
  record->size = input.size;
  const Lock lock(mutex_);
  record->primary = input.primary;
  if (record->primary.marker) ++record->primary.marker->refs;
  record->has_history = input.has_history;
  record->last = input.last;
  if (record->last) ++record->last->refs;
  return record;
}

Result<RangeHolder> ResourceCore::hold(const Record& input) {
  if (Status open = usable(input); !open) return open.error();
  Result<Record*> record = share(input);
  if (!record) return record.error();
  return RangeHolder(make_buffer(*record));
}

// Everything that a release of `from` is ordered behind, also for `to`.
Status ResourceCore::copy_uses(const Record& from, Record& to) {
  for (const StreamUse& use : from.further) {
    StreamUse* copy = make<StreamUse>(driver_.runtime());
    if (!copy) return host_memory_error(sizeof(StreamUse));
    const Lock lock(mutex_);
    copy->stream = use.stream;
    copy->marker = use.marker;
    copy->forgotten = use.forgotten;
    copy->done = use.done;
    if (copy->marker) ++copy->marker->refs;
    to.further.push_back(*copy);
  }
  return {};
}

Status ResourceCore::used_on(Record& record, const Stream& stream) {
  if (record.primary.stream == stream && !record.primary.forgotten) {
    record.has_history = true;  // a close on another stream does not forget what was named
    return {};
  }
  for (const StreamUse& use : record.further)
    if (use.stream == stream && !use.forgotten) {
      if (&use == record.copy_use) record.copy_use = nullptr;  // the caller's from now on
      return {};
    }
  StreamUse* use = make<StreamUse>(driver_.runtime());
  if (!use) return host_memory_error(sizeof(StreamUse));
  use->stream = stream;
  const Lock lock(mutex_);
  record.further.push_back(*use);
  return {};
}

void ResourceCore::drop_backup(Record& record) noexcept {
  if (!record.backup) return;
  driver_.runtime().host_memory().deallocate(record.backup, record.backup_size, kBackupAlignment);
  record.backup = nullptr;
}

// Takes a further use off the record.
void ResourceCore::end_use(Record& record, StreamUse& use) noexcept {
  record.further.erase(record.further.iterator_to(use));
  order_.drop_marker(use);
  if (&use != &record.former) unmake(driver_.runtime(), &use);
}

// Gives a record back that is in no list; its chain is dropped already.
void ResourceCore::free_record(Record* record) noexcept {
  order_.drop_marker(record->primary);
  while (!record->further.empty()) {
    end_use(*record, record->further.front());
  }
  drop_backup(*record);
  unmake(driver_.runtime(), record);
}

// Drops the record's share of its range, without any order: that has been seen to.
void ResourceCore::release_record(Record* record) noexcept {
  drop_chain(std::exchange(record->last, nullptr));
  free_record(record);
}

// From the open records to the pending ones.
void ResourceCore::set_aside(Record* record, RecordState state) {
  const Lock lock(mutex_);
  open_.erase(open_.iterator_to(*record));
  record->state = state;
  pending_.push_back(*record);
  wake_worker();
}

void ResourceCore::park(Record* record, const Error& why) noexcept {
  set_aside(record, RecordState::kParked);
  report(FailureKind::kParked, why, record->base, record->size);
}

// By the policy: waits for the record's streams, or sets a marker on each. No change on failure.
Status ResourceCore::order_release(Record& record, bool* skipped) {
  if (options_.free == FreePolicy::kSynchronize) return wait_for(record);
  Status set = set_markers(record);
  if (set.ok() || !is_sticky(set.error().driver)) return set;
  *skipped = true;
  report(FailureKind::kWaitSkipped, set.error(), record.base, record.size);
  return {};
}

// The release is ordered: with markers the range retires, else it goes now.
void ResourceCore::end(Record*& record, bool skipped) noexcept {
  Record* const ended = std::exchange(record, nullptr);
  if (options_.free == FreePolicy::kDeferred && !skipped) {
    set_aside(ended, RecordState::kRetired);
    return;
  }
  {
    const Lock lock(mutex_);
    open_.erase(open_.iterator_to(*ended));
  }
  release_record(ended);
  note_given_back();
}

Status ResourceCore::close(Record*& record, const Stream* stream) {
  begin_work(*record);
  Status closed = close_open(record, stream);
  if (record) end_work(*record);
  return closed;
}

Status ResourceCore::drop(Record*& record, bool may_stay) {
  begin_work(*record);
  Status dropped = drop_open(record, may_stay);
  if (record) end_work(*record);
  return dropped;
}

Status ResourceCore::close_open(Record*& record, const Stream* stream) {
  if (!stream && keep_warm(*record)) {
    record = nullptr;
    return {};
  }
  reap_on_the_way(kReapsPerClose);
  // The stream named here replaces the buffer's own; kept aside until the close is certain.
  StreamUse named;
  if (stream) {
    named.stream = *stream;
    const Lock lock(mutex_);  // forget() may be looking
    std::swap(named, record->primary);
  }
  const bool keep_former =
      stream && (record->has_history || record->copying) && !(named.stream == *stream);
  if (keep_former) {
    std::swap(record->former, named);
    const Lock lock(mutex_);
    record->further.push_back(record->former);
  }
  const auto refuse = [&](const Error& error) -> Status {
    const Lock lock(mutex_);
    if (keep_former) {
      record->further.erase(record->further.iterator_to(record->former));
      std::swap(record->former, named);
    }
    if (stream) std::swap(named, record->primary);
    return error;
  };
  bool skipped = holds_nothing(*record);
  if (!skipped) {
    Result<CaptureVerdict> verdict = capture_verdict(*record);
    if (!verdict) return refuse(verdict.error());
    if (*verdict == CaptureVerdict::kCaptures)
      return refuse(make_error(ErrorCode::kCapturing, "the buffer's stream is being captured"));
    if (*verdict == CaptureVerdict::kDisturbs) {
      if (stream) order_.drop_marker(named);
      park(std::exchange(record, nullptr),
           make_error(ErrorCode::kCapturing, "using the default stream would end a capture"));
      return {};
    }
    if (keep_idle(record)) {
      if (stream) order_.drop_marker(named);
      record = nullptr;
      return {};
    }
    if (Status ordered = order_release(*record, &skipped); !ordered) return refuse(ordered.error());
  }
  if (stream) order_.drop_marker(named);
  end(record, skipped);
  return {};
}

Status ResourceCore::drop_open(Record*& record, bool may_stay) {
  if (keep_warm(*record)) {
    record = nullptr;
    return {};
  }
  reap_on_the_way(kReapsPerClose);
  bool skipped = holds_nothing(*record);
  if (!skipped) {
    Status ordered = refuse_if_capturing(*record);
    if (ordered.ok() && keep_idle(record)) {
      record = nullptr;
      return {};
    }
    if (ordered.ok()) ordered = order_release(*record, &skipped);
    if (!ordered.ok()) {
      if (may_stay && ordered.error().driver == DriverStatus::kWouldBlock) return ordered;
      park(std::exchange(record, nullptr), ordered.error());
      return {};
    }
  }
  end(record, skipped);
  return {};
}

}  // namespace granule::detail
