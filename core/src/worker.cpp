// The optional background worker: gives pending ranges back and commits memory ahead, so that the
// threads of the program need not. Mapping work on one thread leaves launches on others as they are
// (driver contract, section 18). It does what any other thread may do, by the same functions.
#include <algorithm>

#include "extend.hpp"

namespace granule::detail {

Status ResourceCore::start_worker() {
  if (!options_.worker) return {};
  if (worker_.start(&ResourceCore::run_worker, this)) return {};
  Error error = make_error(ErrorCode::kOutOfMemory, "no thread to be had for the worker");
  error.exhausted = Exhausted::kHost;
  return error;
}

// No lock is held while it is joined: it may be in the middle of a driver call.
void ResourceCore::stop_worker() noexcept {
  if (!worker_.is_started()) return;
  {
    const Lock lock(mutex_);
    worker_stops_ = true;
    worker_wakes_.notify_all();
  }
  worker_.join();
}

void ResourceCore::begin_work(const Record& record) {
  if (!options_.worker) return;
  Lock lock(mutex_);
  // The addresses that it has claimed are those that the operation may want.
  while (worker_extends_ && worker_extends_ == record.last) changed_.wait(mutex_);
  ++record.at_work;
}

void ResourceCore::end_work(const Record& record) {
  if (!options_.worker) return;
  const Lock lock(mutex_);
  --record.at_work;
  if (options_.commit_ahead != 0) wake_worker();
}

void ResourceCore::run_worker(void* core) { static_cast<ResourceCore*>(core)->work(); }

// With mutex_ held. Something may have become the worker's to do.
void ResourceCore::wake_worker() {
  if (!options_.worker) return;
  worker_has_news_ = true;
  worker_wakes_.notify_all();
}

// Rests while there is nothing to do; while ranges are pending it looks at them from time to time,
// less and less often as long as none of them is done.
void ResourceCore::work() noexcept {
  constexpr std::uint64_t kLongestRest = 64;  // intervals
  std::uint64_t rest = 1;
  Lock lock(mutex_);
  while (!worker_stops_) {
    worker_has_news_ = false;
    const bool pending = !pending_.empty();
    lock.unlock();
    std::uint64_t done = 0;
    if (pending) {
      const CollectResult collected = collect(UINT64_MAX, kReapsPerOperation);
      done += collected.ranges;
      const Lock counted(mutex_);
      worker_ranges_ += collected.ranges;
    }
    if (options_.commit_ahead != 0) done += commit_ahead();
    lock.lock();
    if (worker_stops_ || worker_has_news_) continue;
    rest = done != 0 ? 1 : std::min(rest * 2, kLongestRest);
    if (pending_.empty()) {
      worker_wakes_.wait(mutex_);
      rest = 1;
    } else {
      worker_wakes_.wait_for(mutex_, rest * options_.worker_interval_ns);
    }
  }
}

// With mutex_ held: an open range whose memory ahead is used up, that nobody is working on and for
// which it was not tried yet; null if there is none.
Record* ResourceCore::next_to_extend() {
  for (Record& record : open_) {
    if (record.at_work != 0 || !record.last || record.suspended || record.copying) continue;
    if (record.tried_ahead == record.size) continue;
    if (committed(record) - record.size >= options_.commit_ahead) continue;
    return &record;
  }
  return nullptr;
}

// Extends every open range that needs it in place. How many it extended.
std::uint64_t ResourceCore::commit_ahead() noexcept {
  std::uint64_t extended = 0;
  for (;;) {
    ExtendRequest request;
    ChainRef pinned;
    {
      const Lock lock(mutex_);
      if (worker_stops_) return extended;
      Record* const record = next_to_extend();
      if (!record) return extended;
      record->tried_ahead = record->size;
      const auto wanted = checked_round_up(
          checked_add(record->size, options_.commit_ahead).value_or(record->size), granularity_);
      if (!wanted || *wanted <= committed(*record) || !check_size(*wanted).ok()) continue;
      request.last = record->last;
      request.base = record->base;
      request.size = committed(*record);
      request.add = request.least = *wanted - request.size;
      request.access = access_;
      ++access_->refs;
      ++request.last->refs;
      pinned = ChainRef(*this, request.last);
      worker_extends_ = request.last;
    }
    const AccessHold hold(*this, request.access);
    if (extend_ahead(request)) ++extended;
    const Lock lock(mutex_);
    worker_extends_ = nullptr;
    changed_.notify_all();
  }
}

// Memory ahead is taken only where it is to be had at once, so want of it is no failure. A driver's
// error is: nobody else is told.
bool ResourceCore::extend_ahead(const ExtendRequest& request) noexcept {
  bool rdma = options_.rdma != Wish::kNo;
  {
    const Lock lock(mutex_);
    if (rdma_dropped_) rdma = false;
  }
  bool refused = false;
  {
    // In the range's own addresses only: others are for those who need them.
    const Lock lock(mutex_);
    if (!room_behind(*request.last, request.add, &refused)) return false;
  }
  refused = false;
  Result<ChainRef> top =
      add_chunks(*request.last->reservation, request.last->end(), request, rdma, &refused);
  if (!top) {
    const Error& error = top.error();
    if (!refused && error.code == ErrorCode::kDriver)
      report(FailureKind::kWorkerFailed, error, request.base, request.size);
    return false;
  }
  // The buffer may have been closed, grown or moved meanwhile: then the memory goes back. Its chain
  // is pinned, so no other can have the same last mapping.
  const Lock lock(mutex_);
  for (Record& record : open_) {
    if (record.at_work != 0 || record.last != request.last || record.suspended) continue;
    if (record.base + record.size != request.last->used) continue;  // another one reaches further
    top->get()->used = record.base + record.size;
    --record.last->refs;  // the mapping above holds it now
    record.last = top->release();
    worker_bytes_ += request.add;
    return true;
  }
  return false;
}

}  // namespace granule::detail
