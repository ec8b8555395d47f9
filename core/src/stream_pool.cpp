// StreamOrderedPool over the driver's pools (driver contract, section 17).
#include <algorithm>
#include <optional>

#include "pool_core.hpp"

namespace granule {
namespace detail {

class StreamPoolCore final : public PoolCore {
 public:
  StreamPoolCore(Backend& backend, const PoolOptions& options, const Environment& environment)
      : PoolCore(backend, environment), options_(options) {}

  Status open();
  Result<DevicePtr> allocate(const Stream& stream, std::uint64_t size);
  Result<PoolBuffer> allocate_buffer(const Stream& stream, std::uint64_t size);
  Status free(const Stream& stream, DevicePtr ptr);
  Result<std::uint64_t> get(PoolAttribute attribute) const;
  Status set(PoolAttribute attribute, std::uint64_t value);
  Status trim(std::uint64_t keep);
  Status set_peer_access(DeviceId peer, Access access);
  PoolHandle handle() const { return pool_; }
  std::uint64_t total = 0;        // memory of the device
  std::int32_t device_count = 0;  // of the machine

 private:
  Status open_default();
  Status give_back(PoolRecord* record) override;
  void shut_down() noexcept override;
  void destroy() noexcept override { destroy_pool_core(this, driver_.runtime()); }
  void report_failed(const Status& status) noexcept {
    if (!status.ok()) report(FailureKind::kReleaseFailed, status.error(), {}, 0);
  }

  const PoolOptions options_;
  PoolHandle pool_;
  std::uint64_t found_threshold_ = 0;  // default pool: what it was
  std::uint64_t found_reserved_ = 0;
  static constexpr std::int32_t kMostPeers = 32;
  std::uint32_t peers_ = 0;  // bit n: device n was given access
};

namespace {

// A pool call in relaxed capture mode: in any other, a capture would refuse it and be invalidated,
// reads of a pool's figures included.
template <class C>
Status pool_call(const Driver& driver, C& call) {
  const RelaxedScope relaxed(driver);
  if (!relaxed.status().ok()) return relaxed.status();
  const DriverStatus status = driver.call(call);
  if (status == DriverStatus::kSuccess) return {};
  return driver_error(status, kind_of<C>);
}

// One on a stream, with the context that a default stream needs.
template <class C>
Status on_stream_call(const Driver& driver, const Stream& stream, C& call) {
  if (stream.kind() == StreamKind::kCreated) return pool_call(driver, call);
  const ContextScope scope(driver, stream);
  return scope.status().ok() ? pool_call(driver, call) : scope.status();
}

// A free whose refusal says that it was not even tried may be tried again. After any other one the
// block may be gone, and its address somebody else's.
bool was_not_tried(const Error& error) {
  return error.call != name_of(kind_of<MemFreeAsync>) || is_capture_status(error.driver) ||
         error.driver == DriverStatus::kWouldBlock ||
         error.driver == DriverStatus::kInvalidHandle ||
         error.driver == DriverStatus::kInvalidContext;
}

}  // namespace

Result<std::uint64_t> StreamPoolCore::get(PoolAttribute attribute) const {
  MemPoolGetAttribute call{pool_, attribute, 0};
  if (Status got = pool_call(driver_, call); !got) return got.error();
  return call.value;
}

Status StreamPoolCore::set(PoolAttribute attribute, std::uint64_t value) {
  MemPoolSetAttribute call{pool_, attribute, value};
  return pool_call(driver_, call);
}

Status StreamPoolCore::trim(std::uint64_t keep) {
  MemPoolTrimTo call{pool_, keep};
  return pool_call(driver_, call);
}

Status StreamPoolCore::open_default() {
  DeviceGetDefaultMemPool call{options_.device, {}};
  const DriverStatus status = driver_.call(call);
  if (status != DriverStatus::kSuccess)
    return driver_error(status, kind_of<DeviceGetDefaultMemPool>);
  pool_ = call.pool;
  Result<std::uint64_t> threshold = get(PoolAttribute::kReleaseThreshold);
  Result<std::uint64_t> reserved = get(PoolAttribute::kReservedMemCurrent);
  Status done = threshold.ok() ? reserved.status() : threshold.status();
  if (done.ok()) {
    found_threshold_ = *threshold;
    found_reserved_ = *reserved;
    done = set(PoolAttribute::kReleaseThreshold, options_.threshold);
  }
  if (!done.ok()) pool_ = {};  // not bound: nothing to put back
  return done;
}

Status StreamPoolCore::open() {
  if (options_.bind_default) return open_default();
  MemPoolCreate call;
  call.properties.location = device_location(options_.device);
  call.max_size = options_.max_size;
  if (Status made = pool_call(driver_, call); !made) return made;
  pool_ = call.pool;
  // A failure leaves a pool that the destructor gives back.
  return set(PoolAttribute::kReleaseThreshold, options_.threshold);
}

void StreamPoolCore::shut_down() noexcept {
  if (!pool_) return;
  if (options_.bind_default) {
    report_failed(set(PoolAttribute::kReleaseThreshold, found_threshold_));
    report_failed(trim(found_reserved_));
    return;
  }
  // A pool made after a destroyed one with a grant was seen to be at risk of inheriting it: peers
  // are taken away first, one at a time.
  for (std::int32_t id = 0; id < kMostPeers; ++id)
    if ((peers_ >> id & 1u) != 0) report_failed(set_peer_access({id}, Access::kNone));
  // A pool that is destroyed under live blocks was seen to kill the process later, when the last of
  // them goes: then it stays.
  const Result<std::uint64_t> used = get(PoolAttribute::kUsedMemCurrent);
  if (!used.ok() || *used != 0) {
    Error error = make_error(ErrorCode::kInvalidArgument, "blocks are left: the pool is leaked");
    error.object = pool_.value;
    report(FailureKind::kReleaseFailed, error, {}, used.ok() ? *used : 0);
    return;
  }
  MemPoolDestroy call{pool_};
  const RelaxedScope relaxed(driver_);  // where it cannot be had, the destroy is tried all the same
  const DriverStatus status = driver_.call(call);
  if (status != DriverStatus::kSuccess)
    report_failed(driver_error(status, kind_of<MemPoolDestroy>, pool_.value));
}

Result<DevicePtr> StreamPoolCore::allocate(const Stream& stream, std::uint64_t size) {
  if (size == 0) return make_error(ErrorCode::kInvalidArgument, "a block has at least one byte");
  Error hopeless = make_error(ErrorCode::kOutOfMemory, "more than the device has in all");
  hopeless.exhausted = Exhausted::kDevice;
  hopeless.wanted = size;
  hopeless.available = total;
  if (total != 0 && size > total) return hopeless;
  StreamUse use;
  use.stream = stream;
  if (Status may = refuse_if_capturing(use); !may) return may.error();
  collect();
  MemAllocFromPoolAsync call{size, pool_, stream.handle(), {}};
  Status done = on_stream_call(driver_, stream, call);
  if (done.ok()) return call.ptr;
  Error error = done.error();
  if (error.code == ErrorCode::kOutOfMemory) {
    error.wanted = size;
    report_failed(trim(0));
  }
  return error;
}

Result<PoolBuffer> StreamPoolCore::allocate_buffer(const Stream& stream, std::uint64_t size) {
  Fresh<PoolRecord> record(driver_.runtime());
  if (!record) return host_memory_error(sizeof(PoolRecord));
  Result<DevicePtr> ptr = allocate(stream, size);
  if (!ptr) return ptr.error();
  record->ptr = *ptr;
  record->size = size;
  record->use.stream = stream;
  return make_buffer(record.release());
}

Status StreamPoolCore::free(const Stream& stream, DevicePtr ptr) {
  if (!ptr) return {};
  StreamUse use;
  use.stream = stream;
  if (Status may = refuse_if_capturing(use); !may) return may;
  MemFreeAsync call{ptr, stream.handle()};
  return on_stream_call(driver_, stream, call);
}

Status StreamPoolCore::give_back(PoolRecord* record) {
  Stream stream = record->use.stream;
  if (record->use.forgotten) {
    // The stream is gone; the device's legacy stream frees behind the event that stands for it.
    stream = Stream::legacy(options_.device);
    StreamUse legacy;
    legacy.stream = stream;
    if (Status may = refuse_if_capturing(legacy); !may) return may;
    if (Status ordered = order_.order_behind(record->use, stream); !ordered) return ordered;
  }
  MemFreeAsync call{record->ptr, stream.handle()};
  const Status done = on_stream_call(driver_, stream, call);
  if (!done.ok()) {
    if (was_not_tried(done.error())) return done;
    report(FailureKind::kReleaseFailed, done.error(), record->ptr, record->size);
  }
  free_record(record);
  return {};
}

Status StreamPoolCore::set_peer_access(DeviceId peer, Access access) {
  if (peer == options_.device)
    return make_error(ErrorCode::kInvalidArgument, "a pool's own device keeps its access");
  if (peer.value < 0 || peer.value >= std::min(device_count, kMostPeers))
    return make_error(ErrorCode::kInvalidArgument, "no such device");
  if (access != Access::kNone) {
    DeviceCanAccessPeer can{peer, options_.device, 0};
    const DriverStatus asked = driver_.call(can);
    if (asked != DriverStatus::kSuccess) return driver_error(asked, kind_of<DeviceCanAccessPeer>);
    if (can.can == 0)
      return make_error(ErrorCode::kInvalidArgument, "the peer cannot reach the pool's device");
  }
  MemPoolSetAccess call{pool_, {}};
  call.access.push({device_location(peer), access});
  if (Status granted = pool_call(driver_, call); !granted) return granted;
  const Lock lock(mutex_);
  const std::uint32_t bit = 1u << peer.value;
  peers_ = access == Access::kNone ? peers_ & ~bit : peers_ | bit;
  return {};
}

namespace {

StreamPoolCore& pool_of(PoolCore* core) { return *static_cast<StreamPoolCore*>(core); }

// How many devices there are, if the one asked for has pools.
Result<std::int32_t> check_device(Backend& backend, const PoolOptions& options) {
  DeviceGetCount count;
  DriverStatus status = backend.run(count);
  if (status != DriverStatus::kSuccess) return driver_error(status, kind_of<DeviceGetCount>);
  if (options.device.value < 0 || options.device.value >= count.count)
    return make_error(ErrorCode::kInvalidArgument, "no such device");
  DeviceGetAttribute pools{DeviceAttribute::kMemoryPoolsSupported, options.device, 0};
  status = backend.run(pools);
  if (status == DriverStatus::kSuccess && pools.value == 0)
    return make_error(ErrorCode::kUnsupported, "the device has no memory pools (attribute 115)");
  return count.count;
}

}  // namespace
}  // namespace detail

using detail::pool_of;

Result<StreamOrderedPool> StreamOrderedPool::create(Backend& backend, const PoolOptions& options,
                                                    const Environment& environment) {
  const Result<std::int32_t> devices = detail::check_device(backend, options);
  if (!devices) return devices.error();
  auto* core =
      detail::make_pool_core<detail::StreamPoolCore>(environment, backend, options, environment);
  if (!core) return detail::host_memory_error(sizeof(detail::StreamPoolCore));
  StreamOrderedPool pool(core);
  core->device_count = *devices;
  DeviceTotalMem total{options.device, 0};
  if (backend.run(total) == DriverStatus::kSuccess) core->total = total.total;
  if (Status opened = core->open(); !opened) return opened.error();
  return pool;
}

StreamOrderedPool::StreamOrderedPool(const StreamOrderedPool& other) noexcept : core_(other.core_) {
  if (core_) core_->ref();
}
StreamOrderedPool::StreamOrderedPool(StreamOrderedPool&& other) noexcept
    : core_(std::exchange(other.core_, nullptr)) {}
StreamOrderedPool& StreamOrderedPool::operator=(StreamOrderedPool other) noexcept {
  std::swap(core_, other.core_);
  return *this;
}
StreamOrderedPool::~StreamOrderedPool() {
  if (core_) core_->unref();
}

Result<PoolBuffer> StreamOrderedPool::allocate(const Stream& stream, std::uint64_t size) {
  return pool_of(core_).allocate_buffer(stream, size);
}
Result<DevicePtr> StreamOrderedPool::allocate_raw(const Stream& stream, std::uint64_t size) {
  return pool_of(core_).allocate(stream, size);
}
Status StreamOrderedPool::free(const Stream& stream, DevicePtr ptr) {
  return pool_of(core_).free(stream, ptr);
}

Result<PoolUsage> StreamOrderedPool::usage() const {
  PoolUsage usage;
  const std::pair<PoolAttribute, std::uint64_t*> fields[] = {
      {PoolAttribute::kReservedMemCurrent, &usage.reserved},
      {PoolAttribute::kReservedMemHigh, &usage.reserved_high},
      {PoolAttribute::kUsedMemCurrent, &usage.used},
      {PoolAttribute::kUsedMemHigh, &usage.used_high}};
  for (const auto& [attribute, value] : fields) {
    Result<std::uint64_t> got = pool_of(core_).get(attribute);
    if (!got) return got.error();
    *value = *got;
  }
  return usage;
}

Status StreamOrderedPool::reset_high() {
  Status done = pool_of(core_).set(PoolAttribute::kReservedMemHigh, 0);
  if (!done.ok()) return done;
  return pool_of(core_).set(PoolAttribute::kUsedMemHigh, 0);
}
Status StreamOrderedPool::trim(std::uint64_t keep) {
  core_->collect();
  return pool_of(core_).trim(keep);
}
Status StreamOrderedPool::set_threshold(std::uint64_t bytes) {
  return pool_of(core_).set(PoolAttribute::kReleaseThreshold, bytes);
}
Status StreamOrderedPool::set_reuse(ReusePolicy policy, bool on) {
  PoolAttribute attribute = PoolAttribute::kReuseFollowEventDependencies;
  if (policy == ReusePolicy::kOpportunistic) attribute = PoolAttribute::kReuseAllowOpportunistic;
  if (policy == ReusePolicy::kInternalDependencies)
    attribute = PoolAttribute::kReuseAllowInternalDependencies;
  return pool_of(core_).set(attribute, on ? 1 : 0);
}
Status StreamOrderedPool::set_peer_access(DeviceId peer, Access access) {
  return pool_of(core_).set_peer_access(peer, access);
}
Status StreamOrderedPool::forget(const Stream& stream) { return core_->forget(stream); }
CollectResult StreamOrderedPool::collect() { return core_->collect(); }
PoolHandle StreamOrderedPool::handle() const { return pool_of(core_).handle(); }

}  // namespace granule
