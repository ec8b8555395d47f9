// The core's three resources as targets.
#pragma once

#include <granule/prop/target.hpp>

namespace granule::prop {

Result<std::unique_ptr<TargetResource>> make_vmm_target(const TargetContext& context,
                                                        const TargetOptions& options);
Result<std::unique_ptr<TargetResource>> make_pool_target(const TargetContext& context,
                                                         const TargetOptions& options);
Result<std::unique_ptr<TargetResource>> make_recycler_target(const TargetContext& context,
                                                             const TargetOptions& options);

}  // namespace granule::prop
