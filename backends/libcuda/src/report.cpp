// Grouping what was found, naming it, writing it down.
#include "report.hpp"

#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <tuple>

#include "descriptors.hpp"

namespace granule::libcuda {
namespace {

std::vector<std::string> suppressions(const std::string& path) {
  std::vector<std::string> patterns;
  if (path.empty()) return patterns;
  std::ifstream file(path);
  if (!file) std::fprintf(stderr, "granule sim: %s cannot be read\n", path.c_str());
  for (std::string line; std::getline(file, line);) {
    line = line.substr(0, line.find(" #"));
    while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.pop_back();
    if (!line.empty() && line[0] != '#') patterns.push_back(line);
  }
  return patterns;
}

void add_leaks(Session& session, const std::vector<Object>& leaks, std::vector<Finding>& out) {
  // Objects of one kind from one site are one finding, in order of the first of them.
  std::map<std::tuple<std::string, SiteId, CallKind>, std::size_t> places;
  for (const Object& object : leaks) {
    const std::string kind = leak_name(object.kind);
    const auto [it, fresh] = places.try_emplace({kind, object.site, object.call}, out.size());
    if (fresh) {
      Finding finding;
      finding.type = "leak";
      finding.kind = kind;
      finding.call = name_of(object.call);
      finding.site = session.sites().site(object.site);
      finding.id = "leak." + kind + "@" + short_name(finding.site);
      out.push_back(std::move(finding));
    }
    out[it->second].count += 1;
    out[it->second].bytes += object.size;
  }
}

void add_misuse(Session& session, const std::vector<FoundMisuse>& misuse, std::uint64_t after,
                std::vector<Finding>& out) {
  std::map<std::pair<std::string, SiteId>, std::size_t> places;
  for (const FoundMisuse& one : misuse) {
    if (one.number <= after) continue;
    const auto [it, fresh] = places.try_emplace({one.kind, one.site}, out.size());
    if (fresh) {
      Finding finding;
      finding.type = "misuse";
      finding.kind = one.kind;
      finding.call = one.call;
      finding.message = one.message;
      finding.site = session.sites().site(one.site);
      finding.id = "misuse." + one.kind + "@" + short_name(finding.site);
      out.push_back(std::move(finding));
    }
    out[it->second].count += 1;
  }
}

}  // namespace

std::uint64_t Report::open_findings() const {
  return static_cast<std::uint64_t>(
      std::count_if(findings.begin(), findings.end(),
                    [](const Finding& finding) { return !finding.suppressed; }));
}

Report make_report(Session& session, std::uint64_t leaks_after, std::uint64_t misuse_after) {
  Report report;
  report.books = session.books(leaks_after);
  add_leaks(session, report.books.leaks, report.findings);
  add_misuse(session, report.books.misuse, misuse_after, report.findings);
  const std::vector<std::string> patterns = suppressions(session.options().suppress);
  for (Finding& finding : report.findings)
    finding.suppressed =
        std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
          return fnmatch(pattern.c_str(), finding.id.c_str(), 0) == 0;
        });
  return report;
}

void write_final_report() noexcept {
  try {
    Session& session = Session::get();
    if (!session.initialized() || session.options().silent) return;
    look_for_closed_descriptors();
    session.settle();
    const Report report = make_report(session);
    const Options& options = session.options();
    if (options.report.empty()) {
      if (report.open_findings() != 0) std::fputs(to_text(report).c_str(), stderr);
      return;
    }
    // Under a name of its own first, so that a reader never sees half a report.
    const std::string path = options.report + "/report." + std::to_string(getpid()) + ".json";
    {
      std::ofstream out(path + ".part");
      out << to_json(report);
    }
    std::rename((path + ".part").c_str(), path.c_str());
  } catch (...) {
    std::fputs("granule sim: the report could not be written\n", stderr);
  }
}

namespace {
struct AtEnd {
  ~AtEnd() { write_final_report(); }
};
const AtEnd at_end;
}  // namespace

}  // namespace granule::libcuda
