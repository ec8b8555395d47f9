// From flags of the command to a session on a device.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device.hpp"
#include "session.hpp"

namespace granule::cli {

gpu::SessionOptions session_options(const DeviceFlags& flags);

/// Programs from files as jobs. False: a file does not parse, and stderr says why.
bool jobs_of_files(const std::vector<std::string>& files, const std::string& only,
                   const prop::RunOptions& run, std::vector<gpu::Job>& jobs);

/// Jobs of a campaign of generated programs, from number `first` on. Their pauses are shortened.
std::vector<gpu::Job> check_jobs(std::shared_ptr<const prop::CampaignOptions> campaign,
                                 std::uint64_t first, std::uint64_t count);
/// Jobs of a conformance campaign.
std::vector<gpu::Job> conform_jobs(std::uint64_t seed, std::uint64_t first, std::uint64_t count,
                                   std::uint32_t calls);

}  // namespace granule::cli
