// What a model needs that follows a driver: progress and faults that the driver has shown.
#include <granule/model/model.hpp>

#include "streams.hpp"

namespace granule::model {
namespace {

bool advance_to(State& state, const StreamPoint& point) {
  if (has_run(state, point)) return true;
  if (!can_run(state, point)) return false;
  run_to(state, point);
  return has_run(state, point);
}

}  // namespace

void DriverState::force_next_grant(bool granted) { state_->forced_grant = granted; }

void DriverState::clear_forced() {
  state_->forced_grant.reset();
  state_->forced_reserves.clear();
  state_->forced_handles.clear();
  state_->forced_pool_blocks.clear();
}

bool DriverState::advance_event(EventHandle event) {
  const auto it = state_->events.find(event.value);
  if (it == state_->events.end() || !it->second.recorded || it->second.capture != 0) return true;
  return advance_to(*state_, it->second.point);
}

bool DriverState::advance_stream(ThreadId thread, StreamHandle stream) {
  const ResolvedStream found = resolve_stream(*state_, thread, stream);
  if (found.number == kNone) return false;
  return advance_to(*state_, tail(*state_, found.number));
}

bool DriverState::advance_frees(ThreadId thread, StreamHandle stream) {
  const ResolvedStream found = resolve_stream(*state_, thread, stream);
  if (found.number == kNone) return false;
  bool all = true;
  for (const auto& [handle, pool] : state_->pools.pools())
    for (const auto& [begin, extent] : pool.free.extents())
      if (extent.freed && extent.freed->stream == found.number)
        all = advance_to(*state_, *extent.freed) && all;
  return all;
}

void DriverState::lose_contexts(DriverStatus status, bool at_once) {
  for (Device& device : state_->devices) {
    device.lost = true;
    if (device.sticky == DriverStatus::kSuccess && device.pending_fault == DriverStatus::kSuccess)
      device.pending_fault = status;
  }
  if (at_once) reveal_faults();
}

void DriverState::reveal_faults() {
  for (std::size_t i = 0; i < state_->devices.size(); ++i) {
    if (state_->devices[i].pending_fault != DriverStatus::kSuccess) {
      make_sticky(*state_, static_cast<std::int32_t>(i));
    }
  }
}

}  // namespace granule::model
