// From flags of the command to a session on a device.
#pragma once

#include <string>

#include "device.hpp"
#include "session.hpp"

namespace granule::cli {

gpu::SessionOptions session_options(const DeviceFlags& flags);

/// Programs from files as jobs. False: a file does not parse, and stderr says why.
bool jobs_of_files(const std::vector<std::string>& files, const std::string& only,
                   const prop::RunOptions& run, std::vector<gpu::Job>& jobs);

/// Jobs of a conformance campaign, made in the child.
std::vector<gpu::Job> conform_jobs(std::uint64_t seed, std::uint64_t first, std::uint64_t count,
                                   std::uint32_t calls);

}  // namespace granule::cli
