// Which codes a driver could give for which call, and what kind of call it is to a sweep.
#pragma once

#include <span>

#include <granule/backend_api/call.hpp>

namespace granule::prop::sweep {

/// Plausible codes, the likeliest first, from the driver contract and the driver's own
/// documentation; never NOT_READY, which asks for another try. Not empty.
std::span<const DriverStatus> plausible_codes(CallKind kind);

/// Whether it is also done but reported as failed. False for queries, to which that is the same,
/// and for frees of plain blocks.
bool has_effect(CallKind kind);

/// A call that may answer NOT_READY and is then to be made again by the library.
bool is_retried(CallKind kind);

/// A query whose NOT_READY is an ordinary answer.
bool is_query_of_work(CallKind kind);

/// False for close(2) and what only the harness calls.
bool is_driver_call(CallKind kind);

}  // namespace granule::prop::sweep
