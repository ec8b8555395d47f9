// Do the shards belong together, and what do they add up to?
#include "merge_campaign.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

namespace granule::cli {
namespace {

std::string name_of_shard(std::uint64_t shard, const CampaignKey& key) {
  return "shard " + std::to_string(shard) + "/" + std::to_string(key.shards);
}

/// Do two parts tell of the same run? Where their programs lie says nothing: a merge renames.
bool same_run(const ShardPart& a, const ShardPart& b) {
  const auto same = [](const SavedFailure& x, const SavedFailure& y) {
    return x.signature == y.signature && x.program == y.program;
  };
  return a.state == b.state && a.counts == b.counts &&
         std::equal(a.failures.begin(), a.failures.end(), b.failures.begin(), b.failures.end(),
                    same);
}

/// One shard's parts, each with the file that it is from.
class Shards {
 public:
  void add(const ShardPart& part, const CampaignKey& key, const std::string& path,
           std::vector<std::string>& notes) {
    const auto [at, is_new] = parts_.try_emplace(part.shard, Entry{part, path});
    if (is_new) return;
    Entry& entry = at->second;
    const std::string name = name_of_shard(part.shard, key);
    const std::string files = entry.path + " and " + path;
    if (same_run(entry.part, part)) {
      notes.push_back(name + " is there twice, the same: counted once (" + files + ")");
    } else if (part.state == ShardState::kRunning) {
      notes.push_back(name + " was begun twice: the run that ended counts (" + entry.path + ")");
    } else if (entry.part.state == ShardState::kRunning) {
      notes.push_back(name + " was begun twice: the run that ended counts (" + path + ")");
      entry = {part, path};
    } else {
      throw std::runtime_error(name + " is there twice, with different results: " + files);
    }
  }

  std::vector<ShardPart> take() const {
    std::vector<ShardPart> all;
    for (const auto& [shard, entry] : parts_) all.push_back(entry.part);
    return all;
  }

 private:
  struct Entry {
    ShardPart part;
    std::string path;
  };
  std::map<std::uint64_t, Entry> parts_;
};

std::string note_on(const ShardPart& part, const CampaignKey& key) {
  const std::string name = name_of_shard(part.shard, key);
  switch (part.state) {
    case ShardState::kComplete:
      return {};
    case ShardState::kInterrupted:
      return name + " was interrupted: what it had counted is in the sum";
    case ShardState::kHang:
      return name + " ended in a hang: it has no counts, and is not in the sum";
    case ShardState::kCrashed:
      return name + " ended in a crash: it has no counts, and is not in the sum";
    case ShardState::kRunning:
      break;
  }
  return name + " began and did not end (it runs, or was killed): it is not in the sum";
}

}  // namespace

JoinedCampaign join_campaign(const std::vector<FoundSummary>& found) {
  JoinedCampaign joined;
  joined.summary.key = found.front().summary.key;
  Shards shards;
  for (const FoundSummary& one : found) {
    const std::string differs = difference(joined.summary.key, one.summary.key);
    if (!differs.empty())
      throw std::runtime_error("not of one campaign: " + differs + " (" + found.front().path +
                               " and " + one.path + ")" +
                               (joined.summary.key.seed != one.summary.key.seed
                                    ? "; --seed picks the campaign of one seed"
                                    : ""));
    for (const ShardPart& part : one.summary.parts)
      shards.add(part, joined.summary.key, one.path, joined.notes);
    joined.summary.cells.add(one.summary.cells);
  }
  joined.summary.parts = shards.take();
  for (const ShardPart& part : joined.summary.parts)
    if (std::string note = note_on(part, joined.summary.key); !note.empty())
      joined.notes.push_back(std::move(note));
  const auto missing = missing_shards(joined.summary);
  if (!missing.empty())
    joined.notes.push_back("missing: shards " + text_of(missing) + " of " +
                           std::to_string(joined.summary.key.shards));
  return joined;
}

ShardCounts total(const CampaignSummary& summary) {
  ShardCounts sum;
  for (const ShardPart& part : summary.parts)
    if (has_counts(part.state)) sum += part.counts;
  return sum;
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> missing_shards(
    const CampaignSummary& summary) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  std::uint64_t next = 0;
  for (const ShardPart& part : summary.parts) {  // in order of shards
    if (part.shard > next) ranges.emplace_back(next, part.shard - 1);
    next = part.shard + 1;
  }
  if (next < summary.key.shards) ranges.emplace_back(next, summary.key.shards - 1);
  return ranges;
}

std::string text_of(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& ranges) {
  std::string text;
  for (const auto& [first, last] : ranges) {
    text += (text.empty() ? "" : ", ") + std::to_string(first);
    if (last != first) text += "-" + std::to_string(last);
  }
  return text;
}

bool is_whole(const CampaignSummary& summary) {
  return missing_shards(summary).empty() &&
         std::all_of(summary.parts.begin(), summary.parts.end(),
                     [](const ShardPart& part) { return part.state == ShardState::kComplete; });
}

}  // namespace granule::cli
