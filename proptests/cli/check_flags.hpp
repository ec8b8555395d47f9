// Flags of `granule check`: times, shards, features, targets.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <granule/prop/campaign.hpp>

#include "run_flags.hpp"

namespace granule::cli {

struct CheckFlags {
  std::string time;
  std::uint64_t programs = 0;
  std::uint64_t seed = 0;
  bool seed_given = false;
  std::uint64_t first = 0;
  std::uint32_t jobs = 0;
  std::string target = "core";
  std::string driver = "exact";
  std::string checking = "incremental";
  std::string shard;
  std::string interleave = "mixed";
  std::string out = "granule-failures";
  bool out_given = false;  // a summary is written there, as it is for each shard
  std::uint32_t operations = 30;
  std::vector<std::string> only;
  std::vector<std::string> exclude;
  std::uint64_t failures = 1;
  std::string shrink_time = "20s";
  std::string hang_after = "60s";
  bool twice = false;
  bool json = false;
  bool no_shrink = false;
  bool in_process = false;
  bool list_features = false;
  std::string must_reach;
  bool show_cells = false;
  DeviceFlags device;
};

void add_check_flags(CLI::App& command, CheckFlags& flags);

/// "60s", "5m", "1h", "250ms", "90" (seconds). Throws CLI::ValidationError.
std::chrono::milliseconds duration_of(const std::string& text);

/// The campaign that the flags and the environment (shards) ask for. Throws CLI::ValidationError.
prop::CampaignOptions campaign_of(const CheckFlags& flags);

}  // namespace granule::cli
