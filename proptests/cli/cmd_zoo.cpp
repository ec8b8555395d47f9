// granule zoo: looks for every planted defect with the campaign of `granule check`, and says how
// soon it was found and how small its program became.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include <granule/prop/campaign.hpp>
#include <granule/prop/text.hpp>
#include <granule/prop/zoo.hpp>

#include "check_flags.hpp"
#include "command.hpp"
#include "failure_report.hpp"

namespace granule::cli {
namespace {

using Clock = std::chrono::steady_clock;
using Count = unsigned long long;

struct ZooFlags {
  bool list = false;
  bool json = false;
  bool show = false;
  std::vector<std::string> only;
  std::string time = "10s";
  std::string shrink_time = "10s";
  std::uint64_t seeds = 3;
  std::uint64_t seed = 1;
  std::uint32_t jobs = 0;
  std::string programs;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// One search for one defect.
struct Search {
  bool found = false;
  std::string engine;  // "check", "focused"
  double seconds = 0;
  std::uint64_t programs = 0;
  std::string signature;
  double shrink_seconds = 0;
  std::size_t statements = 0;  // after shrinking
  bool minimal = false;
  prop::Program program;
};

struct Row {
  const prop::Specimen* specimen = nullptr;
  std::vector<Search> searches;
  bool by_program = false;  // its own program fails
};

/// The value below which `share` of the sorted values lie.
template <class T>
T quantile(std::vector<T> values, double share) {
  if (values.empty()) return T{};
  std::sort(values.begin(), values.end());
  const auto last = static_cast<double>(values.size() - 1);
  return values[static_cast<std::size_t>(share * last + 0.5)];
}

template <class F>
auto over_found(const Row& row, F&& get) {
  std::vector<decltype(get(row.searches[0]))> values;
  for (const Search& search : row.searches)
    if (search.found) values.push_back(get(search));
  return values;
}

/// What a campaign for one defect alone would use: what the defect needs, and the plain things.
prop::FeatureSet focus_of(const prop::Specimen& specimen) {
  prop::FeatureSet set = specimen.needs;
  for (const prop::Feature plain :
       {prop::Feature::kStreams, prop::Feature::kBytes, prop::Feature::kGrow, prop::Feature::kHold,
        prop::Feature::kDrop, prop::Feature::kTiny})
    set.add(plain);
  return set;
}

class Zoo {
 public:
  explicit Zoo(const ZooFlags& flags) : flags_(flags) {
    jobs_ = flags.jobs != 0 ? flags.jobs : std::max(1u, std::thread::hardware_concurrency());
  }

  void run() {
    std::vector<Row> rows;
    if (!flags_.json) print_head();
    for (const prop::Specimen& specimen : prop::specimens()) {
      if (!is_wanted(specimen.name)) continue;
      rows.push_back(search_for(specimen));
      if (!flags_.json) print_row(rows.back());
    }
    flags_.json ? print_json(rows) : print_total(rows);
    const bool all = std::all_of(rows.begin(), rows.end(),
                                 [](const Row& row) { return row.by_program || found(row) != 0; });
    if (!all) set_exit_code(kViolated);
  }

 private:
  static std::size_t found(const Row& row) {
    return static_cast<std::size_t>(std::count_if(row.searches.begin(), row.searches.end(),
                                                  [](const Search& s) { return s.found; }));
  }

  bool is_wanted(std::string_view name) const {
    return flags_.only.empty() ||
           std::find(flags_.only.begin(), flags_.only.end(), name) != flags_.only.end();
  }

  Row search_for(const prop::Specimen& specimen) const {
    Row row;
    row.specimen = &specimen;
    row.by_program = own_program_fails(specimen);
    for (std::uint64_t i = 0; i < flags_.seeds; ++i) {
      Search search = campaign(specimen, flags_.seed + i, prop::FeatureSet::all(), "check");
      if (!search.found)
        search = campaign(specimen, flags_.seed + i, focus_of(specimen), "focused");
      row.searches.push_back(std::move(search));
    }
    return row;
  }

  Search campaign(const prop::Specimen& specimen, std::uint64_t seed,
                  const prop::FeatureSet& features, std::string engine) const {
    prop::CampaignOptions options;
    options.seed = seed;
    options.time = duration_of(flags_.time);
    options.jobs = jobs_;
    options.generate.features = features;
    prop::plant(specimen, options.run);
    const Clock::time_point start = Clock::now();
    const Clock::time_point end = start + options.time;
    Search search;
    search.engine = std::move(engine);
    for (Clock::time_point now = start; now < end && !search.found; now = Clock::now()) {
      options.time = std::chrono::duration_cast<std::chrono::milliseconds>(end - now);
      const prop::CampaignResult result = prop::run_campaign(options);
      search.programs += result.programs;
      if (result.failures.empty()) break;
      const std::uint64_t index = result.failures[0].index;
      search.seconds = seconds_since(start);
      search.found = is_clean(prop::campaign_program(options, index), specimen,
                              prop::campaign_run(options, index));
      if (search.found) shrink_into(search, specimen, options, index);
      options.first = index + 1;  // what fails without the defect as well is no find
    }
    return search;
  }

  /// Whether the program is clean without the defect.
  static bool is_clean(const prop::Program& program, const prop::Specimen& specimen,
                       prop::RunOptions run) {
    run.cells = false;
    run.target = specimen.naive ? prop::zoo_target("naive") : prop::TargetFactory();
    return prop::run_guarded(program, run).status != prop::RunStatus::kFailed;
  }

  void shrink_into(Search& search, const prop::Specimen& specimen,
                   const prop::CampaignOptions& options, std::uint64_t index) const {
    const Clock::time_point start = Clock::now();
    const Clock::time_point end = start + duration_of(flags_.shrink_time);
    prop::RunOptions run = prop::campaign_run(options, index);
    run.cells = false;
    prop::ShrinkOptions shrinking;
    shrinking.stop = [end] { return Clock::now() >= end; };
    const prop::Judge on_specimen = prop::judge_by_run(run);
    const prop::Judge judge = [&](const prop::Program& program) {
      prop::Judgement judgement = on_specimen(program);
      if (!judgement.signature.empty() && !is_clean(program, specimen, run))
        judgement.signature.clear();
      return judgement;
    };
    prop::ShrinkResult small =
        prop::shrink(prop::campaign_program(options, index), judge, shrinking);
    search.shrink_seconds = seconds_since(start);
    search.signature = small.signature;
    search.statements = small.program.statements.size();
    search.minimal = small.minimal;
    search.program = std::move(small.program);
  }

  /// True if the program written for the defect is there and fails.
  bool own_program_fails(const prop::Specimen& specimen) const {
    if (flags_.programs.empty()) return false;
    const std::string file = flags_.programs + "/" + std::string(specimen.name) + ".granule";
    const prop::ParseResult parsed = prop::parse_file(file);
    if (!parsed.ok() || parsed.document.programs.empty()) return false;
    prop::RunOptions options;
    prop::plant(specimen, options);
    return prop::run(parsed.document.programs[0], options).status == prop::RunStatus::kFailed;
  }

  static void print_head() {
    std::printf("%-26s %-7s %-8s %9s %9s %9s %6s %9s  %s\n", "defect", "found", "by", "programs",
                "median s", "p95 s", "stmts", "shrink s", "signature");
  }

  void print_row(const Row& row) const {
    const std::size_t hits = found(row);
    const Search* first = nullptr;
    for (const Search& search : row.searches)
      if (search.found && !first) first = &search;
    const std::string by = first ? first->engine : row.by_program ? "program" : "-";
    const auto seconds = over_found(row, [](const Search& s) { return s.seconds; });
    std::printf("%-26s %2zu/%-4zu %-8s %9llu %9.3f %9.3f %6zu %9.3f  %s\n",
                std::string(row.specimen->name).c_str(), hits, row.searches.size(), by.c_str(),
                static_cast<Count>(
                    quantile(over_found(row, [](const Search& s) { return s.programs; }), 0.5)),
                quantile(seconds, 0.5), quantile(seconds, 0.95),
                quantile(over_found(row, [](const Search& s) { return s.statements; }), 0.5),
                quantile(over_found(row, [](const Search& s) { return s.shrink_seconds; }), 0.5),
                first ? first->signature.c_str() : "");
    if (flags_.show && first) std::printf("%s\n", indented(first->program).c_str());
    std::fflush(stdout);
  }

  static void print_total(const std::vector<Row>& rows) {
    std::vector<double> seconds;
    std::vector<double> shrink_seconds;
    std::vector<std::size_t> statements;
    std::size_t by_search = 0;
    std::size_t by_program = 0;
    std::string missed;
    for (const Row& row : rows) {
      if (found(row) != 0) {
        ++by_search;
      } else if (row.by_program) {
        ++by_program;
      } else {
        missed += " " + std::string(row.specimen->name);
      }
      for (const Search& search : row.searches) {
        if (!search.found) continue;
        seconds.push_back(search.seconds);
        shrink_seconds.push_back(search.shrink_seconds);
        statements.push_back(search.statements);
      }
    }
    std::printf(
        "\n%zu defects: %zu found by generated programs, %zu by their own program only, %zu "
        "missed%s%s\n",
        rows.size(), by_search, by_program, rows.size() - by_search - by_program,
        missed.empty() ? "" : ":", missed.c_str());
    std::printf(
        "found in %.3f s (median), %.3f s (p95); shrunk to %zu statements (median), in %.3f s\n",
        quantile(seconds, 0.5), quantile(seconds, 0.95), quantile(statements, 0.5),
        quantile(shrink_seconds, 0.5));
  }

  static void print_json(const std::vector<Row>& rows) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const Row& row : rows) {
      nlohmann::ordered_json searches = nlohmann::ordered_json::array();
      for (const Search& search : row.searches)
        searches.push_back({{"found", search.found},
                            {"engine", search.engine},
                            {"programs", search.programs},
                            {"seconds", search.seconds},
                            {"signature", search.signature},
                            {"statements", search.statements},
                            {"minimal", search.minimal},
                            {"shrink_seconds", search.shrink_seconds},
                            {"program", search.found ? prop::to_text(search.program) : ""}});
      all.push_back({{"name", row.specimen->name},
                     {"plants", row.specimen->plants},
                     {"observable", row.specimen->observable},
                     {"own_program_fails", row.by_program},
                     {"searches", searches}});
    }
    std::printf("%s\n", all.dump(2).c_str());
  }

  const ZooFlags& flags_;
  std::uint32_t jobs_ = 1;
};

void list() {
  for (const prop::Specimen& specimen : prop::specimens())
    std::printf("%-26s %s\n%-26s shown by: %s\n", std::string(specimen.name).c_str(),
                std::string(specimen.plants).c_str(), "", std::string(specimen.observable).c_str());
}

void check_names(const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (!prop::find_specimen(name))
      throw CLI::ValidationError("--only", "`" + name + "` is no defect; see --list");
}

void add_zoo(CLI::App& app) {
  auto flags = std::make_shared<ZooFlags>();
  CLI::App* command = app.add_subcommand("zoo", "Look for each of the planted defects");
  command->add_flag("--list", flags->list, "Print the defects and stop");
  command->add_option("--only", flags->only, "Names of defects, separated by commas")
      ->delimiter(',');
  command->add_option("--time-per", flags->time, "Time for one search of one defect")
      ->capture_default_str();
  command->add_option("--shrink-time", flags->shrink_time, "Time for shrinking what was found")
      ->capture_default_str();
  command->add_option("--seeds", flags->seeds, "Searches for each defect, with a seed each")
      ->capture_default_str();
  command->add_option("--seed", flags->seed, "The first seed")->capture_default_str();
  command->add_option("--jobs", flags->jobs, "Threads; 0: as many as there are processors")
      ->capture_default_str();
  command->add_option("--programs", flags->programs,
                      "Directory with a program for each defect, NAME.granule");
  command->add_flag("--show", flags->show, "Print the shrunk programs");
  command->add_flag("--json", flags->json, "Print one JSON array");
  command->footer(
      "Each defect is an allocator with one mistake. `check` in the table: found by the programs "
      "of\n"
      "`granule check`; `focused`: by programs of the features that the defect needs; `program`: "
      "only\n"
      "by the program written for it. Exit code 42 if a defect is missed.\n\nExamples:\n"
      "  granule zoo --programs proptests/tests/zoo\n"
      "  granule zoo --only 2887,R1 --seeds 20 --show");
  command->callback([flags] {
    if (flags->list) return list();
    check_names(flags->only);
    Zoo(*flags).run();
  });
}

const Command command(40, add_zoo);

}  // namespace
}  // namespace granule::cli
