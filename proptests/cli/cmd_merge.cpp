// granule merge: the folders of a campaign's shards, and reports of device runs, as one.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <granule/prop/must_reach.hpp>

#include "campaign_summary.hpp"
#include "command.hpp"
#include "merge_campaign.hpp"
#include "merge_print.hpp"
#include "merge_programs.hpp"
#include "merge_reports.hpp"
#include "whole_file.hpp"

namespace granule::cli {
namespace {

namespace fs = std::filesystem;

struct MergeFlags {
  std::vector<std::string> folders;
  std::string out;
  std::string must_reach;
  std::optional<std::uint64_t> seed;
  bool json = false;
  bool show_cells = false;
};

/// The files of the folders that a merge reads, sorted, each once.
struct Inputs {
  std::vector<std::string> summaries;
  std::vector<std::string> programs;
  std::vector<std::string> lines;
  std::vector<std::string> suites;
  bool empty() const {
    return summaries.empty() && programs.empty() && lines.empty() && suites.empty();
  }
};

fs::path whole(const std::string& path) {
  std::error_code error;
  fs::path canonical = fs::weakly_canonical(path, error);
  return error ? fs::path(path) : canonical;
}

bool lies_in(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first ==
         folder.end();
}

void add_file(const fs::path& path, Inputs& inputs) {
  const std::string name = path.filename().string();
  const std::string extension = path.extension().string();
  if (is_summary_file_name(name)) inputs.summaries.push_back(path.string());
  if (extension == ".granule") inputs.programs.push_back(path.string());
  if (extension == ".jsonl") inputs.lines.push_back(path.string());
  if (extension == ".xml") inputs.suites.push_back(path.string());
}

Inputs inputs_of(const MergeFlags& flags) {
  Inputs all;
  const fs::path out = flags.out.empty() ? fs::path() : whole(flags.out);
  for (const std::string& folder : flags.folders) {
    std::error_code error;
    if (!fs::is_directory(folder, error)) throw std::runtime_error(folder + ": no such folder");
    if (!out.empty() && lies_in(out, whole(folder)) && fs::exists(out, error) &&
        !fs::is_empty(out, error))
      throw std::runtime_error("--out " + flags.out +
                               " lies in a folder to be merged and is not empty: take another");
    Inputs here;
    fs::recursive_directory_iterator at(folder, error);
    for (; !error && at != fs::recursive_directory_iterator(); at.increment(error))
      add_file(at->path(), here);
    if (error) throw std::runtime_error(folder + ": " + error.message());
    if (here.empty())
      throw std::runtime_error(folder + ": nothing of a campaign or a device run lies there");
    for (const auto& [from, to] :
         {std::pair(&here.summaries, &all.summaries), std::pair(&here.programs, &all.programs),
          std::pair(&here.lines, &all.lines), std::pair(&here.suites, &all.suites)})
      to->insert(to->end(), from->begin(), from->end());
  }
  for (std::vector<std::string>* list : {&all.summaries, &all.programs, &all.lines, &all.suites}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  return all;
}

std::vector<FoundSummary> read_summaries(const std::vector<std::string>& paths,
                                         const std::optional<std::uint64_t>& seed) {
  std::vector<FoundSummary> found;
  for (const std::string& path : paths) {
    const std::optional<std::string> text = read_whole(path);
    if (!text) throw std::runtime_error(path + " cannot be read");
    try {
      CampaignSummary summary = summary_from_json(*text);
      if (!seed || summary.key.seed == *seed) found.push_back({path, std::move(summary)});
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(path + ": " + error.what());
    }
  }
  if (seed && found.empty() && !paths.empty())
    throw std::runtime_error("no summary of seed " + std::to_string(*seed));
  return found;
}

std::string path_of(const FoundSummary& found, const SavedFailure& failure) {
  return (fs::path(found.path).parent_path() / failure.file).string();
}

/// The programs that one of the summaries names.
std::vector<std::string> only_named(const std::vector<std::string>& programs,
                                    const std::vector<FoundSummary>& found) {
  std::set<std::string> named;
  for (const FoundSummary& one : found)
    for (const ShardPart& part : one.summary.parts)
      for (const SavedFailure& failure : part.failures) named.insert(path_of(one, failure));
  std::vector<std::string> kept;
  for (const std::string& path : programs)
    if (named.count(path) != 0) kept.push_back(path);
  return kept;
}

/// A failure's program is from now on the one that stands for its signature.
void point_at_kept(std::vector<FoundSummary>& found, const KeptPrograms& kept,
                   std::vector<std::string>& notes) {
  for (FoundSummary& one : found)
    for (ShardPart& part : one.summary.parts)
      for (SavedFailure& failure : part.failures) {
        const std::string path = path_of(one, failure);
        const auto at = kept.by_path.find(path);
        if (at == kept.by_path.end()) {
          notes.push_back(path + ", a failing program, is not there any more");
          continue;
        }
        const KeptProgram& program = kept.programs[at->second];
        failure.file = fs::path(program.path).filename().string();
        failure.statements = program.statements;
        failure.replay = program.replay;
      }
}

std::vector<std::string> not_reached(const std::string& list, const CampaignSummary& summary) {
  const std::optional<std::string> text = read_whole(list);
  if (!text) throw std::runtime_error(list + " cannot be read");
  const prop::WantedCells wanted = prop::parse_wanted_cells(*text);
  if (!wanted.errors.empty()) throw std::runtime_error(list + ": " + wanted.errors.front());
  const prop::CampaignResult result = reached_by(summary);
  std::vector<std::string> missed;
  for (const prop::WantedCell& cell : wanted.cells)
    if (!prop::is_reached(cell, result)) missed.push_back(cell.text);
  return missed;
}

bool write_out(const std::string& out, const Merged& merged) {
  if (merged.campaign &&
      !write_whole(out + "/" + summary_file_name(*merged.campaign), to_json(*merged.campaign)))
    return false;
  if (!merged.reports.lines.empty() && !write_whole(out + "/programs.jsonl", merged.reports.lines))
    return false;
  return merged.reports.suite_count == 0 ||
         write_whole(out + "/junit.xml", junit_text(merged.reports));
}

ExitCode merge(const MergeFlags& flags) {
  Merged merged;
  const Inputs inputs = inputs_of(flags);
  std::vector<FoundSummary> found = read_summaries(inputs.summaries, flags.seed);
  if (found.empty() && (!flags.must_reach.empty() || flags.show_cells))
    throw std::runtime_error("--must-reach, --cells: no campaign in these folders");
  // Everything is read and held together before the first file is written.
  if (!found.empty()) join_campaign(found);
  merged.programs =
      keep_shortest(flags.seed ? only_named(inputs.programs, found) : inputs.programs);
  merged.reports = merge_reports(inputs.lines, inputs.suites);
  if (!flags.out.empty() && !copy_into(flags.out, merged.programs)) return kUsage;
  point_at_kept(found, merged.programs, merged.notes);
  if (!found.empty()) {
    JoinedCampaign joined = join_campaign(found);
    merged.campaign = std::move(joined.summary);
    merged.notes.insert(merged.notes.end(), joined.notes.begin(), joined.notes.end());
  }
  merged.notes.insert(merged.notes.end(), merged.reports.notes.begin(), merged.reports.notes.end());
  if (!flags.must_reach.empty())
    merged.not_reached = not_reached(flags.must_reach, *merged.campaign);
  if (!flags.out.empty() && !write_out(flags.out, merged)) return kUsage;
  const ExitCode code = exit_code_of(merged);
  std::printf("%s", flags.json ? json_of(merged, code).c_str()
                               : table_of(merged, flags.show_cells, code).c_str());
  return code;
}

void add_merge(CLI::App& app) {
  auto flags = std::make_shared<MergeFlags>();
  CLI::App* command =
      app.add_subcommand("merge", "Put the folders of a campaign's shards together");
  command->add_option("DIR", flags->folders, "Folders, with those below them")->required();
  command->add_option("--out", flags->out,
                      "Where the merged summary, failing programs and reports are written "
                      "(default: nothing is written)");
  command->add_option("--must-reach", flags->must_reach,
                      "A list of cells of coverage, held against all shards together");
  command->add_option("--seed", flags->seed, "Only the campaign of that seed, and programs of its");
  command->add_flag("--cells", flags->show_cells, "Print the operations and outcomes reached");
  command->add_flag("--json", flags->json, "One JSON object instead of the table");
  command->footer(
      "A shard of `granule check --shard i/n --out DIR` leaves a summary "
      "(campaign-SEED-I-of-N.json)"
      "\nand its failing programs. A merge adds the counts, unites the cells, keeps the shortest\n"
      "program of each failure's signature, and says which shards are missing, are there twice or\n"
      "did not end: those are never in the sums. Shards with another seed, driver, target or "
      "other\n"
      "features are refused. What a merge writes can be merged again. Reports of device runs\n"
      "(*.jsonl of --jsonl, *.xml of --junit, a nightly's folder) are put together, too.\n"
      "Exit codes: 0 clean and whole, 2 unreadable or of different campaigns, 42 a failure or a\n"
      "cell that is not reached, 43 a device diverged, 44 a hang, 45 a crash, 46 clean, but "
      "shards\n"
      "are missing or did not end.\n\n"
      "Examples:\n"
      "  granule check --seed 7 --shard 0/2 --out run/0; granule check --seed 7 --shard 1/2 --out "
      "run/1\n"
      "  granule merge run --out merged --must-reach proptests/must_reach.txt");
  command->callback([flags] {
    try {
      set_exit_code(merge(*flags));
    } catch (const std::runtime_error& error) {
      std::fprintf(stderr, "granule merge: %s\n", error.what());
      set_exit_code(kUsage);
    }
  });
}

const Command command(15, add_merge);

}  // namespace
}  // namespace granule::cli
