// Attribution of each call's effect to who made it.
#include "tap.hpp"

#include <algorithm>
#include <utility>

namespace granule::prop {
namespace {

std::int64_t whole(std::uint64_t value) { return static_cast<std::int64_t>(value); }

bool is_counted(const CallInfo& info) {
  return info.family != CallFamily::kHarness && info.since != 0;
}

}  // namespace

Holdings& Holdings::operator+=(const Holdings& other) {
  reservations += other.reservations;
  reserved_bytes += other.reserved_bytes;
  handles += other.handles;
  mappings += other.mappings;
  mapped_bytes += other.mapped_bytes;
  allocated_bytes += other.allocated_bytes;
  descriptors += other.descriptors;
  return *this;
}

Holdings Holdings::operator-(const Holdings& other) const {
  Holdings result = *this;
  result.reservations -= other.reservations;
  result.reserved_bytes -= other.reserved_bytes;
  result.handles -= other.handles;
  result.mappings -= other.mappings;
  result.mapped_bytes -= other.mapped_bytes;
  result.allocated_bytes -= other.allocated_bytes;
  result.descriptors -= other.descriptors;
  return result;
}

Holdings Holdings::negative() const {
  Holdings result = *this;
  for (std::int64_t* field :
       {&result.reservations, &result.reserved_bytes, &result.handles, &result.mappings,
        &result.mapped_bytes, &result.allocated_bytes, &result.descriptors})
    *field = std::min<std::int64_t>(*field, 0);
  return result;
}

Holdings holdings_of(const model::Ledger& ledger) {
  Holdings held;
  held.reservations = whole(ledger.reservations);
  held.reserved_bytes = whole(ledger.reserved_bytes);
  held.handles = whole(ledger.handle_references);
  held.mappings = whole(ledger.mappings);
  held.mapped_bytes = whole(ledger.mapped_bytes);
  held.allocated_bytes = whole(ledger.allocated_bytes);
  held.descriptors = whole(ledger.descriptors);
  return held;
}

Tap::Tap(Backend& inner, model::DriverState& oracle)
    : inner_(inner), oracle_(oracle), last_(holdings_of(oracle.ledger())) {}

DriverStatus Tap::execute(Call& call) noexcept {
  const CallOrigin origin = current_origin();
  const DriverStatus status = inner_.execute(call);
  learn(origin, call, status);
  return status;
}

void Tap::learn_orphan(const Call& call, const Holdings& change) {
  orphaned_ += change;
  lost_unknown_ += change.negative();
  any_orphan_ = true;
  const auto* map = std::get_if<MemMap>(&call);
  if (!map) return;
  orphan_maps_.push_back(map->ptr.value);
  made_unknown_ += change;
}

bool Tap::ends_orphan(const Call& call) {
  const auto* unmap = std::get_if<MemUnmap>(&call);
  return unmap && std::erase(orphan_maps_, unmap->ptr.value) != 0;
}

void Tap::count_objects(const Call& call, DriverStatus status) {
  const std::int64_t made = status == DriverStatus::kSuccess ? 1 : 0;
  const std::int64_t tried = status == DriverStatus::kWouldBlock ? 0 : 1;
  if (std::holds_alternative<EventCreate>(call)) objects_.events += made;
  if (std::holds_alternative<EventDestroy>(call)) objects_.events -= tried;
  if (std::holds_alternative<DevicePrimaryCtxRetain>(call)) objects_.contexts += made;
  if (std::holds_alternative<DevicePrimaryCtxRelease>(call)) objects_.contexts -= tried;
  if (std::holds_alternative<MemPoolCreate>(call)) objects_.pools += made;
  if (std::holds_alternative<MemPoolDestroy>(call)) objects_.pools -= tried;
}

void Tap::learn_asked(const Call& call, DriverStatus status) {
  Asked& asked = traffic.asked;
  const bool done = status == DriverStatus::kSuccess;
  asked.refused = asked.refused || !(done || status == DriverStatus::kOutOfMemory);
  if (status == DriverStatus::kNotReady) {
    const bool vmm = info_of(kind(call)).family == CallFamily::kVmm;
    asked.not_ready += vmm ? 1 : 0;
    asked.not_ready_elsewhere = asked.not_ready_elsewhere || !vmm;
  }
  if (const auto* create = std::get_if<MemCreate>(&call)) {
    const bool wish = create->properties.rdma != 0;
    asked.wish = asked.wish || wish;
    if (done) asked.plain = !wish;
  }
  if (std::holds_alternative<MemGetAllocationGranularity>(call)) asked.granularity = status;
  const auto* set = std::get_if<MemPoolSetAttribute>(&call);
  if (set && done && set->attribute == PoolAttribute::kReleaseThreshold)
    asked.threshold = set->value;
}

void Tap::learn(CallOrigin origin, const Call& call, DriverStatus status) {
  if (origin != CallOrigin::kHarness && status != DriverStatus::kWouldBlock &&
      is_counted(info_of(kind(call)))) {
    ++counts_[call.index()];
    ++total_;
    if (origin == CallOrigin::kLibrary) ++traffic.calls;
  }
  if (is_sticky(status)) traffic.sticky = status;
  if (origin == CallOrigin::kLibrary) {
    count_objects(call, status);
    learn_asked(call, status);
  }
  if (origin == CallOrigin::kLibrary && status == DriverStatus::kSuccess) {
    if (std::holds_alternative<CtxPushCurrent>(call)) ++traffic.contexts;
    if (std::holds_alternative<CtxPopCurrent>(call)) --traffic.contexts;
  }
  const Holdings now = holdings_of(oracle_.ledger());
  if (!(now == last_)) {
    const Holdings change = now - std::exchange(last_, now);
    if (status != DriverStatus::kSuccess) {
      learn_orphan(call, change);
    } else if (ends_orphan(call)) {
      orphaned_ += change;
      made_unknown_ += change;
    } else {
      held_[static_cast<std::size_t>(origin)] += change;
    }
    if (origin == CallOrigin::kLibrary && std::holds_alternative<MemCreate>(call) &&
        status == DriverStatus::kSuccess)
      traffic.created_bytes += std::get<MemCreate>(call).size;
  }
  if (!oracle_.violations().empty())
    for (model::Violation& violation : oracle_.take_violations())
      findings_.push_back({std::move(violation), origin});
}

std::vector<Finding> Tap::take_findings() { return std::exchange(findings_, {}); }

}  // namespace granule::prop
