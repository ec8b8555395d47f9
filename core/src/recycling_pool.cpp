// RecyclingPool: exact-size buckets over cuMemAlloc. Idle blocks stay behind the stream they were
// closed on; their own stream takes them as they are, another one once their work is done.
#include "pool_core.hpp"

namespace granule {
namespace detail {

class RecyclerCore final : public PoolCore {
 public:
  RecyclerCore(Backend& backend, const RecyclerOptions& options, const Environment& environment)
      : PoolCore(backend, environment), options_(options) {}

  Result<PoolBuffer> allocate(const Stream& stream, std::uint64_t size);
  Status trim(std::uint64_t keep);
  std::uint64_t cached() const {
    const Lock lock(mutex_);
    return cached_;
  }
  std::uint64_t held() const {
    const Lock lock(mutex_);
    return held_;
  }

  std::uint64_t total = 0;  // bytes of the device; 0: unknown

 private:
  using BySize = intrusive::multiset<PoolRecord, intrusive::key_of_value<PoolRecordBySize>,
                                     intrusive::constant_time_size<false>>;
  PoolRecord* take(const Stream& stream, std::uint64_t size);
  Result<DevicePtr> fresh(const Stream& stream, std::uint64_t size);
  Status free_block(PoolRecord* record, bool* kept);
  void enlist(PoolRecord& record);
  void delist(PoolRecord& record);
  Status give_back(PoolRecord* record) override;
  intrusive::list<PoolRecord>* kept() override { return &idle_; }
  void shut_down() noexcept override;
  void destroy() noexcept override { destroy_pool_core(this, driver_.runtime()); }

  const RecyclerOptions options_;
  intrusive::list<PoolRecord> idle_;  // oldest first
  BySize by_size_;
  std::uint64_t cached_ = 0;
  std::uint64_t held_ = 0;
};

// With mutex_ held.
void RecyclerCore::enlist(PoolRecord& record) {
  idle_.push_back(record);
  by_size_.insert(record);
  cached_ += record.size;
}

// With mutex_ held.
void RecyclerCore::delist(PoolRecord& record) {
  idle_.erase(idle_.iterator_to(record));
  by_size_.erase(by_size_.iterator_to(record));
  cached_ -= record.size;
}

// An idle block of that very size that `stream` may use now, or null.
PoolRecord* RecyclerCore::take(const Stream& stream, std::uint64_t size) {
  PoolRecord* other = nullptr;
  {
    const Lock lock(mutex_);
    const auto range = by_size_.equal_range(size);
    for (auto it = range.first; it != range.second; ++it) {
      if (!it->use.marker && it->use.stream == stream) {
        PoolRecord& own = *it;
        delist(own);
        return &own;
      }
      other = &*it;
    }
    if (!other) return nullptr;
    delist(*other);
    enter_transit();
  }
  // Another stream's: only once its work is done, which is asked with a marker.
  bool done = other->use.done;
  if (!done && refuse_if_capturing(other->use).ok()) {
    const RelaxedScope relaxed(driver_);
    if (relaxed.status().ok() && order_.set_marker(other->use).ok()) {
      const Result<bool> reached = order_.reached(other->use);
      done = reached.ok() && *reached;
    }
  }
  const Lock lock(mutex_);
  if (!done) enlist(*other);
  leave_transit();
  return done ? other : nullptr;
}

// A request that cannot succeed is not made: the driver may wait for every stream on its way to the
// refusal, held ones included.
Result<DevicePtr> RecyclerCore::fresh(const Stream&, std::uint64_t size) {
  if (total != 0 && size > total) {
    Error error = make_error(ErrorCode::kOutOfMemory, "more than the device has");
    error.exhausted = Exhausted::kDevice;
    error.wanted = size;
    error.available = total;
    return error;
  }
  {
    const Lock lock(mutex_);
    if (size > options_.limit - held_) {
      Error error = make_error(ErrorCode::kOutOfMemory, "the pool's limit is reached");
      error.exhausted = Exhausted::kBudget;
      error.wanted = size;
      error.available = options_.limit - held_;
      return error;
    }
    held_ += size;
  }
  const ContextScope scope(driver_, Stream::legacy(options_.device));
  const RelaxedScope relaxed(driver_);
  const Status ready = scope.status().ok() ? relaxed.status() : scope.status();
  MemAlloc call{size, {}};
  const DriverStatus status = ready.ok() ? driver_.call(call) : DriverStatus::kUnknown;
  if (status == DriverStatus::kSuccess) return call.ptr;
  const Lock lock(mutex_);
  held_ -= size;
  if (!ready.ok()) return ready.error();
  Error error = driver_error(status, kind_of<MemAlloc>);
  error.wanted = size;
  return error;
}

Result<PoolBuffer> RecyclerCore::allocate(const Stream& stream, std::uint64_t size) {
  if (size == 0) return make_error(ErrorCode::kInvalidArgument, "a block has at least one byte");
  collect();
  StreamUse asking;
  asking.stream = stream;
  Result<CaptureVerdict> verdict = order_.capture_verdict(asking);
  if (!verdict) return verdict.error();
  // What a capture uses later cannot be ordered behind what an idle block was used for.
  if (*verdict == CaptureVerdict::kClear) {
    if (PoolRecord* idle = take(stream, size)) {
      order_.drop_marker(idle->use);
      idle->use = asking;
      return make_buffer(idle);
    }
  }
  Fresh<PoolRecord> record(driver_.runtime());
  if (!record) return host_memory_error(sizeof(PoolRecord));
  Result<DevicePtr> ptr = fresh(stream, size);
  const auto is_short = [&] { return !ptr.ok() && ptr.error().code == ErrorCode::kOutOfMemory; };
  while (is_short()) {
    if (Status trimmed = trim(0); !trimmed) return trimmed.error();
    const std::uint64_t before = transits();
    ptr = fresh(stream, size);
    // What another thread has freed or put back meanwhile is there now.
    if (is_short() && transits() == before) break;
  }
  if (!ptr) return ptr.error();
  record->ptr = *ptr;
  record->size = size;
  record->use = asking;
  return make_buffer(record.release());
}

Status RecyclerCore::give_back(PoolRecord* record) {
  const Lock lock(mutex_);
  enlist(*record);
  return {};
}

// cuMemFree waits for all work of the device, so the block's own is done afterwards; that of
// another device's stream is waited for first. A block whose free was refused is never freed again,
// since its address may be somebody else's by then: it is reported, and stays charged. `*kept`
// tells that the free was not tried.
Status RecyclerCore::free_block(PoolRecord* record, bool* kept) {
  *kept = true;
  const ContextScope scope(driver_, Stream::legacy(options_.device));
  if (!scope.status().ok()) return scope.status();
  const RelaxedScope relaxed(driver_);
  if (!relaxed.status().ok()) return relaxed.status();
  if (record->use.stream.device() != options_.device) {
    if (Status may = refuse_if_capturing(record->use); !may) return may;
    Status waited = order_.wait_for(record->use);
    if (!waited.ok() && !is_sticky(waited.error().driver)) return waited;
  }
  MemFree call{record->ptr};
  const DriverStatus status = driver_.call(call);
  const Error error = driver_error(status, kind_of<MemFree>, record->ptr.value);
  if (status == DriverStatus::kWouldBlock) return error;
  *kept = false;
  if (status == DriverStatus::kSuccess) {
    const Lock lock(mutex_);
    held_ -= record->size;
  } else {
    report(FailureKind::kReleaseFailed, error, record->ptr, record->size);
  }
  free_record(record);
  if (status != DriverStatus::kSuccess) return error;
  return {};
}

Status RecyclerCore::trim(std::uint64_t keep) {
  for (;;) {
    PoolRecord* oldest = nullptr;
    {
      const Lock lock(mutex_);
      if (cached_ <= keep) return {};
      oldest = &idle_.front();
      delist(*oldest);
      enter_transit();
    }
    bool kept = false;
    Status freed = free_block(oldest, &kept);
    {
      const Lock lock(mutex_);
      if (kept) enlist(*oldest);
      leave_transit();
    }
    if (!freed.ok()) return freed;
  }
}

void RecyclerCore::shut_down() noexcept {
  while (!idle_.empty()) {
    const std::uint64_t before = cached_;
    const Status trimmed = trim(0);
    if (cached_ < before) continue;
    PoolRecord& stuck = idle_.back();
    delist(stuck);
    report(FailureKind::kReleaseFailed, trimmed.error(), stuck.ptr, stuck.size);
    free_record(&stuck);
  }
}

namespace {
RecyclerCore& recycler_of(PoolCore* core) { return *static_cast<RecyclerCore*>(core); }
}  // namespace
}  // namespace detail

using detail::recycler_of;

Result<RecyclingPool> RecyclingPool::create(Backend& backend, const RecyclerOptions& options,
                                            const Environment& environment) {
  DeviceGetCount count;
  const DriverStatus status = backend.run(count);
  if (status != DriverStatus::kSuccess)
    return detail::driver_error(status, kind_of<DeviceGetCount>);
  if (options.device.value < 0 || options.device.value >= count.count)
    return detail::make_error(ErrorCode::kInvalidArgument, "no such device");
  auto* core =
      detail::make_pool_core<detail::RecyclerCore>(environment, backend, options, environment);
  if (!core) return detail::host_memory_error(sizeof(detail::RecyclerCore));
  DeviceTotalMem total{options.device, 0};
  if (backend.run(total) == DriverStatus::kSuccess) core->total = total.total;
  return RecyclingPool(core);
}

RecyclingPool::RecyclingPool(const RecyclingPool& other) noexcept : core_(other.core_) {
  if (core_) core_->ref();
}
RecyclingPool::RecyclingPool(RecyclingPool&& other) noexcept
    : core_(std::exchange(other.core_, nullptr)) {}
RecyclingPool& RecyclingPool::operator=(RecyclingPool other) noexcept {
  std::swap(core_, other.core_);
  return *this;
}
RecyclingPool::~RecyclingPool() {
  if (core_) core_->unref();
}
Result<PoolBuffer> RecyclingPool::allocate(const Stream& stream, std::uint64_t size) {
  return recycler_of(core_).allocate(stream, size);
}
Status RecyclingPool::trim(std::uint64_t keep) { return recycler_of(core_).trim(keep); }
Status RecyclingPool::forget(const Stream& stream) { return core_->forget(stream); }
std::uint64_t RecyclingPool::cached() const { return recycler_of(core_).cached(); }
std::uint64_t RecyclingPool::held() const { return recycler_of(core_).held(); }

}  // namespace granule
