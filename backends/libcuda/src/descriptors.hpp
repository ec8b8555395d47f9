// Exported descriptors are real ones, so that a client can pass them on and close them. close(2) is
// not intercepted: that a descriptor was closed is noticed before the next call that cares.
#pragma once

#include <granule/backend_api/types.hpp>

namespace granule::libcuda {

/// A new descriptor of the process that stands for the driver's; -1 if there is none to be had.
int open_descriptor(Descriptor driver);
/// The driver's descriptor that one of the process stands for, a duplicate included; one that the
/// driver does not know if it stands for none.
Descriptor model_descriptor(int descriptor);
/// Tells the driver of descriptors that were closed.
void look_for_closed_descriptors();

}  // namespace granule::libcuda
