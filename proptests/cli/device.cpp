// The table of device work, and its flags.
#include "device.hpp"

#include <cstdio>

#include "command.hpp"

namespace granule::cli {

DeviceWork& device_work() {
  static DeviceWork work;
  return work;
}

int no_device_work() {
  std::fprintf(stderr,
               "granule: this build has no driver backend (configure with -DGRANULE_CUDA=ON and "
               "-DGRANULE_BUILD_GPU_TESTS=ON)\n");
  return kUnfit;
}

}  // namespace granule::cli
