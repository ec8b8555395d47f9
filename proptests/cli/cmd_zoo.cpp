// granule zoo: looks for every planted defect with each engine, and says how soon it was found and
// how small its program became.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iterator>
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
#include "zoo_engines.hpp"

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
  std::string compare_time = "2s";
  std::uint64_t compare = 1;
  std::uint64_t seeds = 3;
  std::uint64_t seed = 1;
  std::uint32_t jobs = 0;
  std::string programs;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// One search for one defect, by one engine after the other until it is found.
struct Search {
  bool found = false;
  Engine engine = Engine::kSwarm;
  double seconds = 0;  // of all engines tried
  std::uint64_t programs = 0;
  std::string signature;
  double shrink_seconds = 0;
  std::size_t statements = 0;  // after shrinking
  bool minimal = false;
  prop::Program program;
};

/// What each engine does alone.
struct Alone {
  std::uint64_t tries = 0;
  std::vector<double> seconds;  // of those that found it
};

struct Row {
  const prop::Specimen* specimen = nullptr;
  std::vector<Search> searches;
  std::array<Alone, std::size(kEngines)> alone;  // by engine
  bool by_program = false;                       // its own program fails
};

/// The value below which `share` of the sorted values lie.
template <class T>
T quantile(std::vector<T> values, double share) {
  if (values.empty()) return T{};
  std::sort(values.begin(), values.end());
  const auto last = static_cast<double>(values.size() - 1);
  return values[static_cast<std::size_t>(std::lround(share * last))];
}

template <class F>
auto over_found(const Row& row, F&& get) {
  std::vector<decltype(get(row.searches[0]))> values;
  for (const Search& search : row.searches)
    if (search.found) values.push_back(get(search));
  return values;
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
    for (std::uint64_t i = 0; i < flags_.seeds; ++i)
      row.searches.push_back(search(specimen, flags_.seed + i));
    for (std::uint64_t i = 0; i < flags_.compare; ++i)
      for (const Engine engine : kEngines) {
        const ZooFind find =
            look_for(specimen, engine, {flags_.seed + i, duration_of(flags_.compare_time), jobs_});
        Alone& alone = row.alone[static_cast<std::size_t>(engine)];
        ++alone.tries;
        if (find.found) alone.seconds.push_back(find.seconds);
      }
    return row;
  }

  /// Each engine for a fifth of its time, then each for all of it.
  Search search(const prop::Specimen& specimen, std::uint64_t seed) const {
    Search search;
    const std::chrono::milliseconds whole = duration_of(flags_.time);
    for (const std::chrono::milliseconds time : {whole / 5, whole})
      for (const Engine engine : kEngines) {
        const ZooFind find = look_for(specimen, engine, {seed, time, jobs_});
        search.engine = engine;
        search.programs += find.programs;
        search.seconds += find.seconds;
        search.found = find.found;
        if (!find.found) continue;
        shrink_into(search, find);
        return search;
      }
    return search;
  }

  void shrink_into(Search& search, const ZooFind& find) const {
    const Clock::time_point start = Clock::now();
    const Clock::time_point end = start + duration_of(flags_.shrink_time);
    prop::ShrinkOptions shrinking;
    shrinking.stop = [end] { return Clock::now() >= end; };
    prop::ShrinkResult small = prop::shrink(find.program, prop::judge_by_run(find.run), shrinking);
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

  void print_head() const {
    std::printf("%-26s %-7s %-9s %8s %8s %8s %5s %8s", "defect", "found", "by", "programs",
                "median s", "p95 s", "stmts", "shrink s");
    if (flags_.compare != 0)
      for (const Engine engine : kEngines)
        std::printf(" %9s", std::string(name_of(engine)).c_str());
    std::printf("  %s\n", "signature");
  }

  /// Seconds of each engine alone, or - where it did not find the defect in its time.
  void print_alone(const Row& row) const {
    if (flags_.compare == 0) return;
    for (const Alone& alone : row.alone)
      if (alone.seconds.empty())
        std::printf(" %9s", "-");
      else
        std::printf(" %9.3f", quantile(alone.seconds, 0.5));
  }

  void print_row(const Row& row) const {
    const std::size_t hits = found(row);
    const Search* first = nullptr;
    for (const Search& search : row.searches)
      if (search.found && !first) first = &search;
    const std::string by = first            ? std::string(name_of(first->engine))
                           : row.by_program ? "program"
                                            : "-";
    const auto seconds = over_found(row, [](const Search& s) { return s.seconds; });
    std::printf("%-26s %2zu/%-4zu %-9s %8llu %8.3f %8.3f %5zu %8.3f",
                std::string(row.specimen->name).c_str(), hits, row.searches.size(), by.c_str(),
                static_cast<Count>(
                    quantile(over_found(row, [](const Search& s) { return s.programs; }), 0.5)),
                quantile(seconds, 0.5), quantile(seconds, 0.95),
                quantile(over_found(row, [](const Search& s) { return s.statements; }), 0.5),
                quantile(over_found(row, [](const Search& s) { return s.shrink_seconds; }), 0.5));
    print_alone(row);
    std::printf("  %s\n", first ? first->signature.c_str() : "");
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
                            {"engine", name_of(search.engine)},
                            {"programs", search.programs},
                            {"seconds", search.seconds},
                            {"signature", search.signature},
                            {"statements", search.statements},
                            {"minimal", search.minimal},
                            {"shrink_seconds", search.shrink_seconds},
                            {"program", search.found ? prop::to_text(search.program) : ""}});
      nlohmann::ordered_json engines;
      for (const Engine engine : kEngines) {
        const Alone& alone = row.alone[static_cast<std::size_t>(engine)];
        engines[std::string(name_of(engine))] = {{"tries", alone.tries},
                                                 {"seconds", alone.seconds}};
      }
      all.push_back({{"name", row.specimen->name},
                     {"plants", row.specimen->plants},
                     {"observable", row.specimen->observable},
                     {"own_program_fails", row.by_program},
                     {"engines", engines},
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
  command
      ->add_option("--compare", flags->compare,
                   "For so many seeds each engine also searches alone; 0: no columns of theirs")
      ->capture_default_str();
  command->add_option("--compare-time", flags->compare_time, "Time for each of those searches")
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
      "Each defect is an allocator with one mistake. A search tries one engine after the other,\n"
      "each for a fifth of its time and then for all of it:\n"
      "`swarm`, the programs of `granule check`; `random`, the same with all features evenly;\n"
      "`sweep`, short generated programs with every single fault; `enumerate`, all programs of up\n"
      "to three operations with every fault; `focused`, programs of what the defect needs.\n"
      "`program` in the table: only\n"
      "by the program written for it. Exit code 42 if a defect is missed.\n\nExamples:\n"
      "  granule zoo --programs proptests/tests/zoo\n"
      "  granule zoo --only 2887,R1 --seeds 20 --show");
  command->callback([flags] {
    if (flags->list) return list();
    check_names(flags->only);
    Zoo(*flags).run();
  });
}

const Command kCommand(40, add_zoo);

}  // namespace
}  // namespace granule::cli
