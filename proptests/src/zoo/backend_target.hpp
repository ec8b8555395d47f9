// The core over a backend of the zoo's own: what a defect below the core needs. Buffers, holders
// and bundles keep that backend alive, whatever is destroyed first.
#pragma once

#include <functional>
#include <memory>

#include <granule/prop/target.hpp>

namespace granule::prop {

/// Makes the backend that stands between the core and `inner`.
using BackendMaker = std::function<std::shared_ptr<Backend>(Backend& inner)>;

/// The core's targets, each resource over a backend made for it.
TargetFactory core_over(BackendMaker make);

}  // namespace granule::prop
