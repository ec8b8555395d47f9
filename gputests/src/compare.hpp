// Whether two answers to one call agree: status, and outputs up to the renaming.
#pragma once

#include <string>
#include <string_view>

#include <granule/backend_api/call.hpp>

#include "rename.hpp"

namespace granule::gpu {

/// The oracle's form of a call's inputs. Host memory that a copy would write is left out.
Call renamed_inputs(const Renamer& names, const Call& call);

/// The name of the first output that differs; empty: they agree. Both calls succeeded. Outputs
/// that are the driver's own (new handles and addresses, versions, totals) are not looked at.
/// May learn names that an answer shows for the first time.
std::string first_difference(Renamer& names, const Call& device, const Call& oracle);

/// Notes what a call that succeeded on both sides made and dropped.
void learn_effects(Renamer& names, const Call& device, const Call& oracle);

/// True if what the oracle says of bytes allows what the device found.
bool bytes_agree(const ByteSummary& device, const ByteSummary& oracle, bool sampled);

}  // namespace granule::gpu
