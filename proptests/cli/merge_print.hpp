// What a merge says: a table, a JSON object, an exit code.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "campaign_summary.hpp"
#include "command.hpp"
#include "merge_programs.hpp"
#include "merge_reports.hpp"

namespace granule::cli {

struct Merged {
  std::optional<CampaignSummary> campaign;
  KeptPrograms programs;
  MergedReports reports;
  std::vector<std::string> not_reached;
  std::vector<std::string> notes;
};

/// The merged cells and faults, as what asks for coverage takes them.
prop::CampaignResult reached_by(const CampaignSummary& summary);

ExitCode exit_code_of(const Merged& merged);
std::string table_of(const Merged& merged, bool cells, ExitCode code);
std::string json_of(const Merged& merged, ExitCode code);

}  // namespace granule::cli
