// What both kinds of pools share.
#include "pool_core.hpp"

namespace granule {
namespace detail {

PoolCore::PoolCore(Backend& backend, const Environment& environment)
    : driver_(backend, environment.runtime),
      sink_(environment.sink ? *environment.sink : stderr_failure_sink()),
      mutex_(environment.runtime),
      order_(driver_, mutex_),
      changed_(environment.runtime) {}

void PoolCore::leave_transit() {
  ++transits_;
  if (--in_transit_ == 0) changed_.notify_all();
}

std::uint64_t PoolCore::await_transits(Lock& lock) {
  (void)lock;  // the caller's, of mutex_
  while (in_transit_ != 0) changed_.wait(mutex_);
  return transits_;
}

void PoolCore::unref() noexcept {
  if (refs_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  collect();
  shut_down();
  abandon_parked();
  order_.destroy_events(
      [&](const Error& error) { report(FailureKind::kReleaseFailed, error, {}, 0); });
  destroy();
}

void PoolCore::report(FailureKind kind, const Error& error, DevicePtr ptr,
                      std::uint64_t size) noexcept {
  sink_.report({kind, error, ptr, size});
}

void PoolCore::free_record(PoolRecord* record) noexcept {
  order_.drop_marker(record->use);
  unmake(driver_.runtime(), record);
}

Status PoolCore::refuse_if_capturing(const StreamUse& use) const {
  Result<CaptureVerdict> verdict = order_.capture_verdict(use);
  if (!verdict) return verdict.error();
  if (*verdict == CaptureVerdict::kClear) return {};
  Error error = make_error(ErrorCode::kCapturing,
                           "end the capture first, or order the operation on another stream");
  error.object = use.stream.handle().value;
  return error;
}

Status PoolCore::close(PoolRecord*& record, const Stream* stream) {
  collect();
  StreamUse own = record->use;
  if (stream) {
    const Lock lock(mutex_);  // forget() may be looking
    record->use = StreamUse();
    record->use.stream = *stream;
  }
  Status done = refuse_if_capturing(record->use);
  if (done.ok()) {
    {
      const Lock lock(mutex_);
      open_.erase(open_.iterator_to(*record));
    }
    done = give_back(record);
    if (!done.ok()) {
      const Lock lock(mutex_);
      open_.push_back(*record);
    }
  }
  if (done.ok()) {
    if (stream) order_.drop_marker(own);
    record = nullptr;
  } else {
    const Lock lock(mutex_);
    record->use = own;
  }
  return done;
}

// One event for all blocks of the stream: it stands for the stream from now on.
Status PoolCore::forget(const Stream& stream) {
  StreamUse mark;
  mark.stream = stream;
  const auto visit = [&](auto&& action) {
    Lock lock(mutex_);
    await_transits(lock);
    for (intrusive::list<PoolRecord>* list : {&open_, &parked_, kept()}) {
      if (!list) continue;
      for (PoolRecord& record : *list)
        if (record.use.stream == stream && !record.use.marker) action(record.use);
    }
  };
  bool needed = false;
  visit([&](StreamUse&) { needed = true; });
  if (!needed) return {};
  if (Status may = refuse_if_capturing(mark); !may) return may;
  if (Status set = order_.set_marker(mark); !set.ok() && !is_sticky(set.error().driver)) return set;
  visit([&](StreamUse& use) {
    use.marker = mark.marker;
    use.forgotten = true;
    use.done = !mark.marker;
    order_.share_marker(use);
  });
  order_.drop_marker(mark);
  return {};
}

void PoolCore::drop(PoolRecord*& record) noexcept {
  const Status done = close(record, nullptr);
  if (done.ok()) return;
  PoolRecord* const parked = std::exchange(record, nullptr);
  {
    const Lock lock(mutex_);
    open_.erase(open_.iterator_to(*parked));
    parked_.push_back(*parked);
  }
  report(FailureKind::kParked, done.error(), parked->ptr, parked->size);
}

CollectResult PoolCore::collect() {
  CollectResult result;
  std::size_t left = 0;
  {
    const Lock lock(mutex_);
    left = parked_.size();
  }
  for (; left != 0; --left) {
    PoolRecord* record = nullptr;
    {
      const Lock lock(mutex_);
      if (parked_.empty()) break;
      record = &parked_.front();
      parked_.pop_front();
      enter_transit();
    }
    const bool gone = refuse_if_capturing(record->use).ok() && give_back(record).ok();
    result.ranges += gone ? 1 : 0;
    const Lock lock(mutex_);
    if (!gone) parked_.push_back(*record);  // behind the others, which get their turn
    leave_transit();
  }
  const Lock lock(mutex_);
  result.pending = parked_.size();
  return result;
}

void PoolCore::abandon_parked() noexcept {
  while (!parked_.empty()) {
    PoolRecord& record = parked_.front();
    parked_.pop_front();
    report(FailureKind::kReleaseFailed,
           make_error(ErrorCode::kCapturing, "still parked when its pool ended: leaked"),
           record.ptr, record.size);
    free_record(&record);
  }
}

}  // namespace detail

PoolBuffer& PoolBuffer::operator=(PoolBuffer&& other) noexcept {
  PoolBuffer gone(std::move(*this));
  core_ = std::exchange(other.core_, nullptr);
  record_ = std::exchange(other.record_, nullptr);
  return *this;
}

PoolBuffer::~PoolBuffer() { drop().ignore(); }  // parks instead of failing

DevicePtr PoolBuffer::ptr() const { return record_ ? record_->ptr : DevicePtr{}; }
std::uint64_t PoolBuffer::size() const { return record_ ? record_->size : 0; }
const Stream& PoolBuffer::stream() const { return record_->use.stream; }

Status PoolBuffer::close() {
  if (!record_) return {};
  Status done = core_->close(record_, nullptr);
  if (done.ok()) std::exchange(core_, nullptr)->unref();
  return done;
}
Status PoolBuffer::close(const Stream& stream) {
  if (!record_) return {};
  Status done = core_->close(record_, &stream);
  if (done.ok()) std::exchange(core_, nullptr)->unref();
  return done;
}
Status PoolBuffer::drop() {
  if (!record_) return {};
  core_->drop(record_);
  std::exchange(core_, nullptr)->unref();
  return {};
}

}  // namespace granule
