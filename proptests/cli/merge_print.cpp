// The table of a merge, its JSON, and what it comes to.
#include "merge_print.hpp"

#include <cstdarg>
#include <cstdio>
#include <set>

#include <nlohmann/json.hpp>

#include <granule/prop/must_reach.hpp>

#include "merge_campaign.hpp"

namespace granule::cli {
namespace {

using nlohmann::ordered_json;
using Count = unsigned long long;

__attribute__((format(printf, 2, 3))) void append(std::string& text, const char* format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  text += line;
}

void append_row(std::string& text, const std::string& name, const std::string& state,
                const ShardCounts& counts, std::size_t failures) {
  append(text, "%-12s %-12s %12llu %14llu %12llu %10.1f %9zu\n", name.c_str(), state.c_str(),
         static_cast<Count>(counts.programs), static_cast<Count>(counts.operations),
         static_cast<Count>(counts.faults_fired), counts.seconds, failures);
}

void append_campaign(std::string& text, const CampaignSummary& summary) {
  const CampaignKey& key = summary.key;
  append(text, "seed %llu, driver %s, target %s, %llu operations a program, %llu shards\n\n",
         static_cast<Count>(key.seed), key.driver.c_str(), key.target.c_str(),
         static_cast<Count>(key.operations), static_cast<Count>(key.shards));
  append(text, "%-12s %-12s %12s %14s %12s %10s %9s\n", "shard", "state", "programs", "operations",
         "faults", "seconds", "failures");
  std::size_t failures = 0;
  for (const ShardPart& part : summary.parts) {
    const std::string name = std::to_string(part.shard) + "/" + std::to_string(key.shards);
    failures += part.failures.size();
    if (has_counts(part.state)) {
      append_row(text, name, std::string(name_of(part.state)), part.counts, part.failures.size());
    } else {
      append(text, "%-12s %-12s %12s %14s %12s %10s %9zu\n", name.c_str(),
             std::string(name_of(part.state)).c_str(), "-", "-", "-", "-", part.failures.size());
    }
  }
  const auto missing = missing_shards(summary);
  if (!missing.empty()) append(text, "%-12s %s\n", "MISSING", text_of(missing).c_str());
  const ShardCounts sum = total(summary);
  append_row(text, "all", is_whole(summary) ? "whole" : "NOT WHOLE", sum, failures);
  append(text, "\n%llu cells of operation x outcome x state, %llu model calls, %.1f%% skipped\n",
         static_cast<Count>(summary.cells.count()), static_cast<Count>(sum.model_calls),
         sum.operations == 0
             ? 0.0
             : 100.0 * static_cast<double>(sum.skipped) / static_cast<double>(sum.operations));
  if (key.twice)
    append(text, "digest %016llx of %llu programs and all replies\n",
           static_cast<Count>(sum.digest), static_cast<Count>(sum.programs));
}

void append_reports(std::string& text, const MergedReports& reports) {
  if (reports.files != 0) {
    append(text, "reports: %zu files of JSON lines:", reports.files);
    const char* comma = "";
    for (const auto& [outcome, number] : reports.outcomes) {
      append(text, "%s %llu %s", comma, static_cast<Count>(number), outcome.c_str());
      comma = ",";
    }
    text += "\n";
  }
  if (reports.suite_count != 0)
    append(text, "JUnit: %zu suites with %llu failures and errors\n", reports.suite_count,
           static_cast<Count>(reports.suite_failures));
}

/// The exit code that an outcome or the first word of a device run's signature stands for.
ExitCode code_of(const std::string& word) {
  if (word == "failed") return kViolated;
  if (word == "diverged") return kDiverged;
  if (word == "hang") return kHang;
  if (word == "crash") return kChildCrashed;
  if (word == "unfit") return kUnfit;
  return kClean;
}

/// "diverged: ..." of a device run, "hang of ..." and "crash 11" of a campaign; else a property.
ExitCode code_of_signature(const std::string& signature) {
  const ExitCode code = code_of(signature.substr(0, signature.find_first_of(": ")));
  return code == kClean ? kViolated : code;
}

const char* verdict(ExitCode code) {
  switch (code) {
    case kClean:
      return "clean";
    case kInterrupted:
      return "clean as far as it came";
    case kDiverged:
      return "model and driver differ";
    case kHang:
      return "a hang";
    case kChildCrashed:
      return "a crash";
    case kUnfit:
      return "an unfit machine";
    default:
      return "failures";
  }
}

}  // namespace

prop::CampaignResult reached_by(const CampaignSummary& summary) {
  prop::CampaignResult result;
  result.cells = summary.cells;
  result.fired_by_class = total(summary).fired_by_class;
  return result;
}

ExitCode exit_code_of(const Merged& merged) {
  std::set<ExitCode> codes;
  for (const KeptProgram& program : merged.programs.programs)
    codes.insert(code_of_signature(program.signature));
  bool partial = merged.reports.cut_off;
  if (merged.campaign) {
    partial = partial || !is_whole(*merged.campaign);
    for (const ShardPart& part : merged.campaign->parts) {
      if (part.state == ShardState::kHang) codes.insert(kHang);
      if (part.state == ShardState::kCrashed) codes.insert(kChildCrashed);
      for (const SavedFailure& failure : part.failures)
        codes.insert(code_of_signature(failure.signature));
    }
  }
  for (const auto& [outcome, number] : merged.reports.outcomes) codes.insert(code_of(outcome));
  if (merged.reports.files == 0 && merged.reports.suite_failures != 0) codes.insert(kViolated);
  if (!merged.not_reached.empty()) codes.insert(kViolated);
  if (partial) codes.insert(kInterrupted);
  for (const ExitCode code : {kViolated, kDiverged, kHang, kChildCrashed, kUnfit, kInterrupted})
    if (codes.count(code) != 0) return code;
  return kClean;
}

std::string table_of(const Merged& merged, bool cells, ExitCode code) {
  std::string text;
  if (merged.campaign) append_campaign(text, *merged.campaign);
  append_reports(text, merged.reports);
  if (cells && merged.campaign) text += prop::reached_cells(reached_by(*merged.campaign));
  for (const KeptProgram& program : merged.programs.programs)
    text += "\nFAILURE: " + program.signature + "\n  " + std::to_string(program.files) +
            (program.files == 1 ? " program" : " programs, the shortest") + " of " +
            std::to_string(program.statements) + " statements\n  reproduce: " + program.replay +
            " " + program.path + "\n";
  for (const std::string& cell : merged.not_reached) text += "NOT REACHED: " + cell + "\n";
  for (const std::string& note : merged.notes) text += "note: " + note + "\n";
  return text + verdict(code) + "\n";
}

std::string json_of(const Merged& merged, ExitCode code) {
  ordered_json json;
  if (merged.campaign) {
    ordered_json campaign = ordered_json::parse(to_json(*merged.campaign));
    campaign.erase("cells");
    json["campaign"] = campaign;
    const ShardCounts sum = total(*merged.campaign);
    json["total"] = {{"programs", sum.programs},       {"operations", sum.operations},
                     {"skipped", sum.skipped},         {"library_calls", sum.library_calls},
                     {"model_calls", sum.model_calls}, {"faults_fired", sum.faults_fired},
                     {"seconds", sum.seconds},         {"core_seconds", sum.core_seconds}};
    json["cells"] = merged.campaign->cells.count();
    json["missing"] = text_of(missing_shards(*merged.campaign));
    json["whole"] = is_whole(*merged.campaign);
  }
  json["failures"] = ordered_json::array();
  for (const KeptProgram& program : merged.programs.programs)
    json["failures"].push_back({{"signature", program.signature},
                                {"programs", program.files},
                                {"statements", program.statements},
                                {"file", program.path},
                                {"reproduce", program.replay + " " + program.path}});
  json["outcomes"] = merged.reports.outcomes;
  json["suites"] = merged.reports.suite_count;
  json["not_reached"] = merged.not_reached;
  json["notes"] = merged.notes;
  json["exit_code"] = static_cast<int>(code);
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace granule::cli
