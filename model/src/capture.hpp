// What captures do to stream, event and context calls.
#pragma once

#include "state.hpp"

namespace granule::model {

/// The capture will end as invalidated.
void kill_capture(State& state, std::uint64_t number);
/// The capture is over, its streams are free.
void end_capture(State& state, std::uint64_t number);
/// cuCtxSynchronize is refused, and kills, beside any capture of the device.
DriverStatus check_context_wait(State& state, std::int32_t device);
/// A stream waits for an event that was recorded into a capture: it joins, or is joined.
DriverStatus wait_for_captured_event(State& state, std::uint64_t stream, const Event& event);

}  // namespace granule::model
