// Summaries of campaigns: what is counted, and their JSON.
#include "campaign_summary.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include <granule/prop/cells.hpp>
#include <granule/prop/verbs.hpp>

#include "check_flags.hpp"

namespace granule::cli {
namespace {

using nlohmann::ordered_json;

constexpr std::array<std::string_view, 5> kStates{"running", "complete", "interrupted", "hang",
                                                  "crashed"};
constexpr std::uint64_t kVersion = 1;

[[noreturn]] void expected(const std::string& what) {
  throw std::runtime_error("expected " + what);
}

std::string hex(std::uint64_t number) {
  char text[24];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

std::uint64_t from_hex(const std::string& text, const std::string& what) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, 16);
  if (error != std::errc() || stop != end) expected(what + ": hexadecimal digits");
  return number;
}

/// `resource`, and `resource#1` for the second verb that is spelled so.
std::string name_of_verb(prop::Verb verb) {
  const std::string spelling(prop::spelling_of(verb));
  const std::vector<prop::Verb> same = prop::verbs_spelled(spelling);
  const auto at = std::find(same.begin(), same.end(), verb) - same.begin();
  return at <= 0 ? spelling : spelling + "#" + std::to_string(at);
}

std::string name_of_cell(prop::Verb verb, std::size_t outcome) {
  return name_of_verb(verb) + " => " + std::string(prop::kOutcomeNames[outcome]);
}

ordered_json json_of(const prop::CellSet& cells) {
  ordered_json json = ordered_json::object();
  for (std::size_t verb = 0; verb < prop::kVerbCount; ++verb)
    for (std::uint32_t outcome = 0; outcome < prop::kOutcomeNames.size(); ++outcome) {
      const auto one = static_cast<prop::Verb>(verb);
      const std::uint64_t states = cells.states(one, outcome);
      if (states != 0) json[name_of_cell(one, outcome)] = hex(states);
    }
  return json;
}

ordered_json json_of(const ShardCounts& counts) {
  ordered_json json;
  json["programs"] = counts.programs;
  json["operations"] = counts.operations;
  json["skipped"] = counts.skipped;
  json["library_calls"] = counts.library_calls;
  json["model_calls"] = counts.model_calls;
  json["faults_fired"] = counts.faults_fired;
  ordered_json classes = ordered_json::object();
  for (std::size_t i = 0; i < counts.fired_by_class.size(); ++i)
    classes[std::string(name_of(static_cast<fault::FaultClass>(i)))] = counts.fired_by_class[i];
  json["fired_by_class"] = classes;
  json["digest"] = hex(counts.digest);
  json["seconds"] = counts.seconds;
  json["core_seconds"] = counts.core_seconds;
  return json;
}

/// An object of the file, read field by field; a field that is missing or wrong is an error.
class Fields {
 public:
  Fields(const nlohmann::json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json_.is_object()) expected(where_ + ": an object");
  }
  const nlohmann::json& at(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) expected(where_ + ": `" + key + "`, which is not there");
    return *found;
  }
  void read(const char* key, std::uint64_t& value) const {
    if (!at(key).is_number_unsigned()) expected(where_ + ": `" + key + "`, a number from 0 on");
    value = at(key).get<std::uint64_t>();
  }
  void read(const char* key, double& value) const {
    if (!at(key).is_number()) expected(where_ + ": `" + key + "`, a number");
    value = at(key).get<double>();
  }
  void read(const char* key, bool& value) const {
    if (!at(key).is_boolean()) expected(where_ + ": `" + key + "`, true or false");
    value = at(key).get<bool>();
  }
  void read(const char* key, std::string& value) const {
    if (!at(key).is_string()) expected(where_ + ": `" + key + "`, a text");
    value = at(key).get<std::string>();
  }
  const nlohmann::json& list(const char* key) const {
    if (!at(key).is_array()) expected(where_ + ": `" + key + "`, a list");
    return at(key);
  }

 private:
  const nlohmann::json& json_;
  std::string where_;
};

ShardCounts counts_from(const Fields& fields) {
  ShardCounts counts;
  fields.read("programs", counts.programs);
  fields.read("operations", counts.operations);
  fields.read("skipped", counts.skipped);
  fields.read("library_calls", counts.library_calls);
  fields.read("model_calls", counts.model_calls);
  fields.read("faults_fired", counts.faults_fired);
  const Fields classes(fields.at("fired_by_class"), "fired_by_class");
  for (std::size_t i = 0; i < counts.fired_by_class.size(); ++i)
    classes.read(std::string(name_of(static_cast<fault::FaultClass>(i))).c_str(),
                 counts.fired_by_class[i]);
  std::string digest;
  fields.read("digest", digest);
  counts.digest = from_hex(digest, "digest");
  fields.read("seconds", counts.seconds);
  fields.read("core_seconds", counts.core_seconds);
  return counts;
}

SavedFailure failure_from(const nlohmann::json& json) {
  const Fields fields(json, "failures");
  SavedFailure failure;
  fields.read("signature", failure.signature);
  fields.read("program", failure.program);
  fields.read("statements", failure.statements);
  fields.read("file", failure.file);
  fields.read("replay", failure.replay);
  if (failure.file.find('/') != std::string::npos) expected("failures: `file` without a folder");
  return failure;
}

ShardPart part_from(const nlohmann::json& json, std::uint64_t shards) {
  const Fields fields(json, "parts");
  ShardPart part;
  fields.read("shard", part.shard);
  if (part.shard >= shards) expected("parts: `shard` below " + std::to_string(shards));
  std::string state;
  fields.read("state", state);
  const auto* const found = std::find(kStates.begin(), kStates.end(), state);
  if (found == kStates.end())
    expected("parts: `state` running, complete, interrupted, hang or crashed");
  part.state = static_cast<ShardState>(found - kStates.begin());
  if (has_counts(part.state)) part.counts = counts_from(fields);
  for (const nlohmann::json& one : fields.list("failures"))
    part.failures.push_back(failure_from(one));
  return part;
}

CampaignKey key_from(const Fields& fields) {
  CampaignKey key;
  fields.read("seed", key.seed);
  fields.read("driver", key.driver);
  fields.read("target", key.target);
  fields.read("checking", key.checking);
  fields.read("interleave", key.interleave);
  fields.read("operations", key.operations);
  fields.read("first", key.first);
  for (const nlohmann::json& name : fields.list("features")) {
    if (!name.is_string()) expected("features: names");
    key.features.push_back(name.get<std::string>());
  }
  fields.read("twice", key.twice);
  fields.read("shards", key.shards);
  constexpr std::uint64_t kMostShards = std::uint64_t{1} << 32;
  if (key.shards == 0 || key.shards > kMostShards) expected("`shards` from 1 to 2^32");
  return key;
}

void add_cells(const nlohmann::json& json, prop::CellSet& cells) {
  if (!json.is_object()) expected("cells: an object");
  std::size_t known = 0;
  for (std::size_t verb = 0; verb < prop::kVerbCount; ++verb)
    for (std::uint32_t outcome = 0; outcome < prop::kOutcomeNames.size(); ++outcome) {
      const auto one = static_cast<prop::Verb>(verb);
      const auto found = json.find(name_of_cell(one, outcome));
      if (found == json.end()) continue;
      ++known;
      if (!found->is_string()) expected("cells: hexadecimal digits");
      const std::uint64_t states = from_hex(found->get<std::string>(), "cells");
      for (std::uint32_t state = 0; state < 64; ++state)
        if ((states >> state & 1) != 0) cells.add(prop::pack_cell(one, outcome, state));
    }
  if (known != json.size()) expected("cells of this version's operations and outcomes");
}

}  // namespace

std::string_view name_of(ShardState state) { return kStates[static_cast<std::size_t>(state)]; }

std::string difference(const CampaignKey& a, const CampaignKey& b) {
  const auto two = [](const char* what, const std::string& x, const std::string& y) {
    return std::string(what) + " " + x + " and " + what + " " + y;
  };
  const auto numbers = [&](const char* what, std::uint64_t x, std::uint64_t y) {
    return two(what, std::to_string(x), std::to_string(y));
  };
  if (a.seed != b.seed) return numbers("seed", a.seed, b.seed);
  if (a.shards != b.shards) return numbers("shards", a.shards, b.shards);
  if (a.driver != b.driver) return two("driver", a.driver, b.driver);
  if (a.target != b.target) return two("target", a.target, b.target);
  if (a.operations != b.operations) return numbers("ops", a.operations, b.operations);
  if (a.first != b.first) return numbers("first", a.first, b.first);
  if (a.checking != b.checking) return two("checking", a.checking, b.checking);
  if (a.interleave != b.interleave) return two("interleave", a.interleave, b.interleave);
  if (a.twice != b.twice) return "--check-determinism and none";
  if (a.features != b.features) return "different features (--only, --exclude)";
  return {};
}

ShardCounts& ShardCounts::operator+=(const ShardCounts& more) {
  programs += more.programs;
  operations += more.operations;
  skipped += more.skipped;
  library_calls += more.library_calls;
  model_calls += more.model_calls;
  faults_fired += more.faults_fired;
  for (std::size_t i = 0; i < fired_by_class.size(); ++i)
    fired_by_class[i] += more.fired_by_class[i];
  digest += more.digest;
  seconds += more.seconds;
  core_seconds += more.core_seconds;
  return *this;
}

CampaignSummary summary_of(const CheckFlags& flags, const prop::CampaignOptions& options) {
  CampaignSummary summary;
  CampaignKey& key = summary.key;
  key.seed = flags.seed;
  key.driver = flags.driver;
  key.target = flags.target;
  key.checking = flags.checking;
  key.interleave = flags.interleave;
  key.operations = flags.operations;
  key.first = flags.first;
  for (std::size_t i = 0; i < prop::kFeatureCount; ++i) {
    const auto feature = static_cast<prop::Feature>(i);
    if (options.generate.features.has(feature)) key.features.emplace_back(name_of(feature));
  }
  key.twice = flags.twice;
  key.shards = options.shards;
  summary.parts.emplace_back();
  summary.parts[0].shard = options.shard;
  return summary;
}

void take_result(const prop::CampaignResult& result, CampaignSummary& summary) {
  ShardCounts& counts = summary.parts[0].counts;
  counts.programs = result.programs;
  counts.operations = result.operations;
  counts.skipped = result.skipped;
  counts.library_calls = result.calls;
  counts.model_calls = result.model_calls;
  counts.faults_fired = result.faults_fired;
  counts.fired_by_class = result.fired_by_class;
  counts.digest = result.digest;
  counts.seconds = result.seconds;
  counts.core_seconds = result.core_seconds;
  summary.cells = result.cells;
}

std::string summary_file_name(const CampaignSummary& summary) {
  std::string name = "campaign-" + std::to_string(summary.key.seed);
  if (summary.parts.size() == 1) name += "-" + std::to_string(summary.parts[0].shard);
  return name + "-of-" + std::to_string(summary.key.shards) + ".json";
}

bool is_summary_file_name(std::string_view name) {
  constexpr std::string_view kFront = "campaign-";
  constexpr std::string_view kBack = ".json";
  return name.size() > kFront.size() + kBack.size() && name.substr(0, kFront.size()) == kFront &&
         name.substr(name.size() - kBack.size()) == kBack;
}

std::string to_json(const CampaignSummary& summary) {
  const CampaignKey& key = summary.key;
  ordered_json json;
  json["granule_campaign"] = kVersion;
  json["seed"] = key.seed;
  json["driver"] = key.driver;
  json["target"] = key.target;
  json["checking"] = key.checking;
  json["interleave"] = key.interleave;
  json["operations"] = key.operations;
  json["first"] = key.first;
  json["features"] = key.features;
  json["twice"] = key.twice;
  json["shards"] = key.shards;
  json["parts"] = ordered_json::array();
  for (const ShardPart& part : summary.parts) {
    ordered_json one;
    one["shard"] = part.shard;
    one["state"] = name_of(part.state);
    if (has_counts(part.state)) one.update(json_of(part.counts));
    one["failures"] = ordered_json::array();
    for (const SavedFailure& failure : part.failures)
      one["failures"].push_back({{"signature", failure.signature},
                                 {"program", failure.program},
                                 {"statements", failure.statements},
                                 {"file", failure.file},
                                 {"replay", failure.replay}});
    json["parts"].push_back(one);
  }
  json["cells"] = json_of(summary.cells);
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

CampaignSummary summary_from_json(std::string_view text) {
  nlohmann::json json;
  try {
    json = nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    expected("JSON: byte " + std::to_string(error.byte) + " of " + std::to_string(text.size()) +
             " is wrong, or the file is cut off");
  }
  const Fields fields(json, "the file");
  std::uint64_t version = 0;
  fields.read("granule_campaign", version);
  if (version != kVersion) expected("`granule_campaign` 1");
  CampaignSummary summary;
  summary.key = key_from(fields);
  for (const nlohmann::json& one : fields.list("parts"))
    summary.parts.push_back(part_from(one, summary.key.shards));
  if (summary.parts.empty()) expected("`parts`: at least one");
  add_cells(fields.at("cells"), summary.cells);
  return summary;
}

}  // namespace granule::cli
