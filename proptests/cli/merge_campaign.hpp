// Shards of a campaign put together.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "campaign_summary.hpp"

namespace granule::cli {

struct FoundSummary {
  std::string path;
  CampaignSummary summary;
};

struct JoinedCampaign {
  CampaignSummary summary;
  std::vector<std::string> notes;  // what was there twice, what did not end
};

/// Puts summaries of one campaign together; there is at least one. Throws std::runtime_error where
/// they are not of one campaign, or tell different things of one shard.
JoinedCampaign join_campaign(const std::vector<FoundSummary>& found);

/// The sum over all parts that have counts.
ShardCounts total(const CampaignSummary& summary);

/// Shards that no part tells of, as ranges with both ends.
std::vector<std::pair<std::uint64_t, std::uint64_t>> missing_shards(const CampaignSummary& summary);
/// "2, 5-7"; empty if none is missing.
std::string text_of(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& ranges);

/// Are all shards there, and did all come to their end?
bool is_whole(const CampaignSummary& summary);

}  // namespace granule::cli
