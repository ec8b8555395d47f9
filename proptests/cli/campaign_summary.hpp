// What a campaign, or one shard of it, leaves in its --out folder: a JSON file that `granule merge`
// reads and writes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <granule/prop/campaign.hpp>

namespace granule::cli {

/// What all shards of a campaign have in common. Shards with different keys do not belong together.
struct CampaignKey {
  std::uint64_t seed = 0;
  std::string driver;
  std::string target;
  std::string checking;
  std::string interleave;
  std::uint64_t operations = 0;
  std::uint64_t first = 0;
  std::vector<std::string> features;
  bool twice = false;
  std::uint64_t shards = 1;
  friend bool operator==(const CampaignKey&, const CampaignKey&) = default;
};

/// The first field in which the two differ, "driver exact and driver portable"; empty: they do not.
std::string difference(const CampaignKey& a, const CampaignKey& b);

/// How a shard ended. Those that did not reach their end (kRunning, kHang, kCrashed) have no
/// counts.
enum class ShardState : std::uint8_t { kRunning, kComplete, kInterrupted, kHang, kCrashed };
std::string_view name_of(ShardState state);
constexpr bool has_counts(ShardState state) {
  return state == ShardState::kComplete || state == ShardState::kInterrupted;
}

struct SavedFailure {
  std::string signature;
  std::uint64_t program = 0;  // its number in the campaign
  std::uint64_t statements = 0;
  std::string file;    // without folder; it lies beside the summary
  std::string replay;  // the command that runs it, without the file
};

struct ShardCounts {
  std::uint64_t programs = 0;
  std::uint64_t operations = 0;
  std::uint64_t skipped = 0;
  std::uint64_t library_calls = 0;
  std::uint64_t model_calls = 0;
  std::uint64_t faults_fired = 0;
  std::array<std::uint64_t, fault::kFaultClasses> fired_by_class{};
  std::uint64_t digest = 0;
  double seconds = 0;
  double core_seconds = 0;
  ShardCounts& operator+=(const ShardCounts& more);
  friend bool operator==(const ShardCounts&, const ShardCounts&) = default;
};

struct ShardPart {
  std::uint64_t shard = 0;
  ShardState state = ShardState::kRunning;
  ShardCounts counts;
  std::vector<SavedFailure> failures;
};

/// One shard as it wrote it, or several that were merged.
struct CampaignSummary {
  CampaignKey key;
  std::vector<ShardPart> parts;  // by shard
  prop::CellSet cells;           // of all of them
};

struct CheckFlags;
/// The summary of a campaign that is about to begin: one part, running.
CampaignSummary summary_of(const CheckFlags& flags, const prop::CampaignOptions& options);
/// Takes over what the campaign counted.
void take_result(const prop::CampaignResult& result, CampaignSummary& summary);

/// "campaign-SEED-I-of-N.json"; of several shards "campaign-SEED-of-N.json".
std::string summary_file_name(const CampaignSummary& summary);
bool is_summary_file_name(std::string_view name);

std::string to_json(const CampaignSummary& summary);
/// Reads what to_json wrote. Throws std::runtime_error: what was expected, without the file's name.
CampaignSummary summary_from_json(std::string_view text);

}  // namespace granule::cli
