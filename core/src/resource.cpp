// VirtualMemoryResource: making, sharing and ending of the state behind it.
#include <granule/resource.hpp>

#include <algorithm>

#include "context_scope.hpp"
#include "resource_core.hpp"

namespace granule {
namespace detail {

ResourceCore::ResourceCore(Backend& backend, const VmmOptions& options,
                           const Environment& environment)
    : driver_(backend, environment.runtime),
      options_(options),
      sink_(environment.sink ? *environment.sink : stderr_failure_sink()),
      mutex_(environment.runtime),
      order_(driver_, mutex_),
      changed_(environment.runtime),
      worker_wakes_(environment.runtime),
      worker_(environment.runtime) {}

ResourceCore::~ResourceCore() = default;

namespace {

AllocationProperties properties_of(const VmmOptions& options) {
  AllocationProperties properties;
  properties.handle_types = options.handle_type;
  properties.location = options.location;
  return properties;
}

}  // namespace

Result<ResourceCore*> ResourceCore::create(Backend& backend, const VmmOptions& options,
                                           const Environment& environment) {
  Result<SystemCaps> caps = query_caps(backend, options);
  if (!caps) return caps.error();
  const Violations wrong = validate(options, *caps);
  if (!wrong.empty()) return wrong.errors[0];
  VmmOptions settled = options;
  if (settled.location.type == LocationType::kHostNumaCurrent)
    settled.location = {LocationType::kHostNuma, caps->current_numa_node};
  if (caps->device.rdma == Support::kNo) settled.rdma = Wish::kNo;  // refused, if it was required

  MemGetAllocationGranularity query;
  query.properties = properties_of(settled);
  query.properties.rdma = settled.rdma != Wish::kNo ? 1 : 0;
  query.option = settled.granularity;
  const Driver driver(backend, environment.runtime);
  const DriverStatus status = driver.vmm(query);
  if (status != DriverStatus::kSuccess)
    return driver_error(status, kind_of<MemGetAllocationGranularity>);
  if (!is_power_of_two(query.granularity))
    return make_error(ErrorCode::kUnsupported, "the driver's granularity is no power of two");

  const Runtime runtime = environment.runtime;
  void* block = runtime.host_memory().allocate(sizeof(ResourceCore), alignof(ResourceCore));
  if (!block) return host_memory_error(sizeof(ResourceCore));
  auto* core = ::new (block) ResourceCore(backend, settled, environment);
  core->caps_ = *caps;
  core->properties_ = properties_of(settled);
  core->granularity_ = query.granularity;
  core->alignment_ = settled.alignment == 0 ? 0 : std::max(settled.alignment, query.granularity);
  if (settled.max_chunk != 0)
    core->max_chunk_ =
        std::max(settled.max_chunk / query.granularity, std::uint64_t{1}) * query.granularity;
  core->rdma_dropped_ = options.rdma == Wish::kIfPossible && settled.rdma == Wish::kNo;
  {
    const Lock lock(core->mutex_);
    core->access_ = core->intern(access_entries(settled));
  }
  const Status started =
      core->access_ ? core->start_worker() : Status(host_memory_error(sizeof(AccessList)));
  if (started.ok()) return core;
  core->unref();
  return started.error();
}

// Nobody but pending ranges is left: they are waited for. What cannot be waited for is leaked, and
// was reported when it was parked.
void ResourceCore::shut_down() noexcept {
  stop_worker();
  collect(UINT64_MAX, UINT64_MAX);
  while (!idle_.empty()) {
    const Status evicted = evict_to(0);
    if (evicted.ok()) break;
    Record& stuck = idle_.front();
    delist_idle(stuck);
    stuck.state = RecordState::kParked;
    pending_.push_back(stuck);
    report(FailureKind::kParked, evicted.error(), stuck.base, stuck.size);
  }
  for (bool more = true; more;) {
    const Result<bool> waited = wait_oldest();
    more = waited.ok() && *waited;
  }
  for (Record& record : pending_)
    report(FailureKind::kReleaseFailed,
           make_error(ErrorCode::kCapturing, "still parked when its resource ended: leaked"),
           record.base, record.size);
  abandon();
  order_.destroy_events(
      [&](const Error& error) { report(FailureKind::kReleaseFailed, error, 0, 0); });
  drop_access(access_);
}

// Forgets records that describe what is leaked for good, so that only the driver's objects leak.
void ResourceCore::abandon() noexcept {
  while (!pending_.empty()) {
    Record& record = pending_.front();
    pending_.pop_front();
    free_record(&record);
  }
  while (!reservations_.empty()) {
    Reservation& reservation = reservations_.front();
    reservations_.pop_front();
    while (!reservation.mappings.empty()) {
      Mapping& mapping = *reservation.mappings.begin();
      reservation.mappings.erase(reservation.mappings.begin());
      if (--mapping.chunk->refs == 0) {
        drop_access(mapping.chunk->access);
        unmake(driver_.runtime(), mapping.chunk);
      }
      unmake(driver_.runtime(), &mapping);
    }
    unmake(driver_.runtime(), &reservation);
  }
}

void ResourceCore::unref() noexcept {
  if (refs_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  shut_down();
  const Runtime runtime = driver_.runtime();
  this->~ResourceCore();
  runtime.host_memory().deallocate(this, sizeof(ResourceCore), alignof(ResourceCore));
}

Properties ResourceCore::properties() {
  const Lock lock(mutex_);
  return {options_.location, granularity_, options_.rdma != Wish::kNo && !rdma_dropped_,
          rdma_dropped_};
}

}  // namespace detail

Result<VirtualMemoryResource> VirtualMemoryResource::create(Backend& backend,
                                                            const VmmOptions& options,
                                                            const Environment& environment) {
  Result<detail::ResourceCore*> core = detail::ResourceCore::create(backend, options, environment);
  if (!core) return core.error();
  return VirtualMemoryResource(*core);
}

VirtualMemoryResource::VirtualMemoryResource(const VirtualMemoryResource& other) noexcept
    : core_(other.core_) {
  if (core_) core_->ref();
}
VirtualMemoryResource::VirtualMemoryResource(VirtualMemoryResource&& other) noexcept
    : core_(std::exchange(other.core_, nullptr)) {}
VirtualMemoryResource& VirtualMemoryResource::operator=(VirtualMemoryResource other) noexcept {
  std::swap(core_, other.core_);
  return *this;
}
VirtualMemoryResource::~VirtualMemoryResource() {
  if (core_) core_->unref();
}

Result<Buffer> VirtualMemoryResource::allocate(const Stream& stream, std::uint64_t size,
                                               const AllocateOptions& options) {
  return core_->allocate(stream, size, options);
}
Status VirtualMemoryResource::grant(DeviceId device, Access access) {
  return core_->grant(device, access);
}
Status VirtualMemoryResource::trim(std::uint64_t keep) { return core_->trim(keep); }
CollectResult VirtualMemoryResource::collect(std::uint64_t budget_ns) {
  return core_->collect(budget_ns, UINT64_MAX);
}
Status VirtualMemoryResource::forget(const Stream& stream) { return core_->forget(stream); }
Status VirtualMemoryResource::suspend(std::span<Buffer* const> buffers, bool backup) {
  return core_->suspend(buffers, backup);
}
Status VirtualMemoryResource::resume(std::span<Buffer* const> buffers) {
  return core_->resume(buffers);
}
Result<SharedBuffer> VirtualMemoryResource::export_buffer(const Buffer& buffer) {
  if (buffer.is_closed()) return detail::make_error(ErrorCode::kClosed, "the buffer is closed");
  if (buffer.core_ != core_)
    return detail::make_error(ErrorCode::kWrongResource, "the buffer belongs to another resource");
  return core_->export_record(*buffer.record_);
}
Result<Buffer> VirtualMemoryResource::import_buffer(const Stream& stream,
                                                    const SharedBuffer& shared) {
  return core_->import_shared(stream, shared);
}
Properties VirtualMemoryResource::properties() const { return core_->properties(); }
Statistics VirtualMemoryResource::statistics() const { return core_->statistics(); }
std::optional<BufferView> VirtualMemoryResource::buffer_at(DevicePtr address) const {
  return core_->buffer_at(address.value);
}
std::string VirtualMemoryResource::check_invariants() const { return core_->check_invariants(); }
void VirtualMemoryResource::for_each_mapping(
    const std::function<void(const MappingView&)>& visit) const {
  core_->for_each_mapping(visit);
}
void VirtualMemoryResource::for_each_range(
    const std::function<void(const RangeView&)>& visit) const {
  core_->for_each_range(visit);
}
void VirtualMemoryResource::for_each_stream(const Buffer& buffer,
                                            const std::function<void(const Stream&)>& visit) const {
  if (buffer.is_closed()) return;
  if (!buffer.record_->primary.marker) visit(buffer.record_->primary.stream);
  for (const detail::StreamUse& use : buffer.record_->further)
    if (!use.marker) visit(use.stream);
}

}  // namespace granule
