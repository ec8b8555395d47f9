// One run of a program on one target.
#pragma once

#include <granule/prop/run.hpp>

namespace granule::prop {

/// As run(), without a look at the baseline.
RunReport run_once(const Program& program, const RunOptions& options);

}  // namespace granule::prop
