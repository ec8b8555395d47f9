// What a simulated device says of itself, where the model does not care: its name, its numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "options.hpp"

namespace granule::libcuda {

struct Profile {
  std::string_view key;  // what --profile takes
  std::string_view name;
  std::uint64_t memory = 0;  // bytes free when nothing was made
  int major = 0;             // compute capability
  int minor = 0;
  bool rdma = true;
};

/// The profile of that key; h200 for an unknown one.
const Profile& profile_named(std::string_view key);

/// Bytes free on each device.
std::uint64_t memory_of(const Options& options);

/// A CUdevice_attribute that the model has no say in; nothing for an unknown number.
std::optional<int> profile_attribute(const Profile& profile, int attribute);

}  // namespace granule::libcuda
