// The naive resource: making one, checks of what is asked for, figures.
#include "naive_core.hpp"

#include <algorithm>
#include <set>

#include <granule/backend_api/checked.hpp>
#include <granule/failure_sink.hpp>

namespace granule::prop::zoo {
namespace {

constexpr std::size_t kRecordSize = 64;
constexpr std::size_t kRecordAlignment = 16;

bool on_host(const Location& location) { return location.type != LocationType::kDevice; }

}  // namespace

NaiveCore::NaiveCore(const TargetContext& context, const VmmOptions& options, Mistake mistake)
    : driver_(*context.backend, context.environment.runtime, mistake),
      sink_(context.environment.sink ? context.environment.sink : &stderr_failure_sink()),
      options_(options) {}

NaiveCore::~NaiveCore() = default;

Result<std::shared_ptr<NaiveCore>> NaiveCore::create(const TargetContext& context,
                                                     const VmmOptions& options, Mistake mistake) {
  std::shared_ptr<NaiveCore> core(new NaiveCore(context, options, mistake));
  if (Status ready = core->set_up(); !ready) return ready.error();
  return core;
}

Status NaiveCore::set_up() {
  VmmOptions checked = options_;
  if (is(Mistake::kManagedAccepted)) checked.type = AllocationType::kPinned;
  Result<SystemCaps> caps = query_caps(driver_.backend(), options_);
  if (!caps) return caps.error();
  caps_ = *caps;
  if (is(Mistake::kRdmaAttribute116) && !on_host(options_.location)) {
    // Devices that have the other feature alone say yes here; the model's have both or none.
    DeviceGetAttribute ask{DeviceAttribute::kGpuDirectRdma, DeviceId{options_.location.id}, 0};
    if (driver_.call(ask) == DriverStatus::kSuccess) caps_.device.rdma = Support::kYes;
  }
  const Violations wrong = validate(checked, caps_);
  if (!wrong.empty()) return wrong.errors[0];
  if (options_.rdma == Wish::kIfPossible && caps_.device.rdma == Support::kNo)
    options_.rdma = Wish::kNo;
  if (options_.location.type == LocationType::kHostNumaCurrent && !is(Mistake::kNumaCurrentSent))
    options_.location = {LocationType::kHostNuma, caps_.current_numa_node};
  if (on_host(options_.location)) {
    if (is(Mistake::kNodeMinusOne)) options_.location.id = -1;
    if (is(Mistake::kHandleTypeForHost)) options_.handle_type = HandleType::kPosixFd;
  }
  MemGetAllocationGranularity ask;
  ask.properties = properties_of({0, {}, options_.handle_type, options_.rdma != Wish::kNo, false});
  ask.option = options_.granularity;
  const DriverStatus status = driver_.vmm(ask);
  const bool lenient = is(Mistake::kQueryErrorIgnored) || is(Mistake::kManagedAccepted) ||
                       is(Mistake::kHandleTypeForHost) || is(Mistake::kNodeMinusOne) ||
                       is(Mistake::kNumaCurrentSent);
  constexpr std::uint64_t kUsual = std::uint64_t{2} << 20;
  if (status != DriverStatus::kSuccess && !lenient)
    return driver_error(status, kind_of<MemGetAllocationGranularity>);
  granularity_ = status == DriverStatus::kSuccess ? ask.granularity : kUsual;
  alignment_ = std::max(options_.alignment, granularity_);
  return {};
}

VmmOptions NaiveCore::merged(const GrowOptions& call) const {
  VmmOptions options = options_;
  if (call.self_access) options.self_access = *call.self_access;
  if (call.peer_access) options.peer_access = *call.peer_access;
  if (call.peers) options.peers = *call.peers;
  if (call.rdma) options.rdma = *call.rdma;
  if (call.handle_type) options.handle_type = *call.handle_type;
  return options;
}

AccessEntries NaiveCore::entries_of(const VmmOptions& options) const {
  AccessEntries entries;
  if (options.self_access != Access::kNone) entries.push({options_.location, options.self_access});
  if (is(Mistake::kAccessibilityByLocation) && on_host(options.location)) return entries;
  if (is(Mistake::kOwnerListedAsPeer)) {
    for (const DeviceId& peer : options.peers)
      entries.push({device_location(peer), options.peer_access});
  } else if (options.peer_access != Access::kNone && !peers_walked_) {
    std::set<std::int32_t> peers;
    for (const DeviceId& peer : options.peers) peers.insert(peer.value);
    for (const std::int32_t peer : peers)
      if (!(device_location(DeviceId{peer}) == options.location))
        entries.push({device_location(DeviceId{peer}), options.peer_access});
  }
  for (const AccessEntry& granted : grants_) {
    bool known = false;
    for (std::uint32_t i = 0; i < entries.count; ++i) {
      if (!(entries.entries[i].location == granted.location)) continue;
      known = true;
      entries.entries[i].access = std::max(entries.entries[i].access, granted.access);
    }
    if (!known) entries.push(granted);
  }
  return entries;
}

std::optional<std::uint64_t> NaiveCore::round_up(std::uint64_t size) const {
  if (is(Mistake::kRoundingWraps)) return (size + granularity_ - 1) / granularity_ * granularity_;
  return checked_round_up(size, granularity_);
}

Status NaiveCore::check_size(std::uint64_t size) const {
  const std::uint64_t total = on_host(options_.location) ? 0 : caps_.device.total_memory;
  if (total != 0 && size > total) return exhausted_error(Exhausted::kDevice, size);
  if (size > options_.limit) return exhausted_error(Exhausted::kBudget, size);
  return {};
}

Status NaiveCore::usable(const NaiveState& state) const {
  if (state.closed) return error_of(ErrorCode::kClosed, "the buffer is closed");
  if (state.suspended) return error_of(ErrorCode::kSuspended, "resume the buffer first");
  return {};
}

Result<NaiveStatePtr> NaiveCore::new_state(const Stream& stream) {
  auto state = std::make_shared<NaiveState>();
  state->record = driver_.host_memory().allocate(kRecordSize, kRecordAlignment);
  if (!state->record) return exhausted_error(Exhausted::kHost, kRecordSize);
  state->primary = stream;
  return state;
}

void NaiveCore::free_record(NaiveState& state) {
  std::erase(open_, &state);
  if (state.record) driver_.host_memory().deallocate(state.record, kRecordSize, kRecordAlignment);
  state.record = nullptr;
  drop_backup(state);
}

void NaiveCore::report(FailureKind kind, const Error& error, std::uint64_t base,
                       std::uint64_t size) {
  ++failures_;
  if (is(Mistake::kFailureSwallowed) && in_drop_) return;
  sink_->report({kind, error, DevicePtr{base}, size});
}

Statistics NaiveCore::statistics() const {
  Statistics now;
  now.charged = charged_;
  for (const auto& [base, space] : spaces_) {
    if (space.freed) continue;
    ++now.reservations;
    now.reserved += space.size;
  }
  for (const auto& [number, chunk] : chunks_)
    if (chunk.handle) {
      ++now.handles;
      now.live += chunk.size;
    }
  for (const auto& [base, mapping] : mappings_) {
    if (!mapping.mapped) continue;
    ++now.mappings;
    now.mapped += mapping.size;
    if (mapping.quarantined) now.quarantined += mapping.size;
  }
  for (const NaiveStatePtr& parked : parked_) now.parked += parked->size;
  now.buffers = open_.size();
  now.leaked_reservations = leaked_spaces_;
  now.leaked_handles = leaked_handles_;
  now.leaked_handle_bytes = leaked_handle_bytes_;
  return now;
}

}  // namespace granule::prop::zoo
