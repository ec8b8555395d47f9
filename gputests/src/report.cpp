// JSON lines and JUnit XML.
#include "report.hpp"

#include <utility>

#include <granule/prop/xml.hpp>
#include <nlohmann/json.hpp>

namespace granule::gpu {
namespace {

bool is_error(Outcome::Kind kind) {
  return kind == Outcome::Kind::kHang || kind == Outcome::Kind::kCrash ||
         kind == Outcome::Kind::kUnfit;
}

}  // namespace

Report::Report(const std::string& json_file, std::string junit) : junit_(std::move(junit)) {
  if (!json_file.empty()) json_.open(json_file, std::ios::app);
}

void Report::begin(const Profile& profile, const std::string& what, std::uint64_t seed) {
  what_ = what;
  machine_ = profile.gpu + ", driver " + profile.driver;
  if (!json_.is_open()) return;
  json_ << nlohmann::json{{"run", what},        {"driver", profile.driver},
                          {"gpu", profile.gpu}, {"kernel", profile.kernel},
                          {"mig", profile.mig}, {"seed", seed}}
               .dump()
        << "\n";
  json_.flush();
}

void Report::add(const std::string& suite, const std::string& name, const Outcome& outcome) {
  ++counts_[outcome.kind];
  calls_ += outcome.calls;
  followed_ += outcome.followed;
  if (json_.is_open()) {
    json_ << "{\"suite\":" << nlohmann::json(suite).dump()
          << ",\"name\":" << nlohmann::json(name).dump() << ",\"outcome\":" << to_line(outcome)
          << "}\n";
    json_.flush();
  }
  const bool campaign = suite == "conform" || suite == "check";
  if (!junit_.empty() && (!campaign || outcome.kind != Outcome::Kind::kClean))
    cases_.push_back({suite, name, outcome});
}

std::uint64_t Report::count(Outcome::Kind kind) const {
  const auto found = counts_.find(kind);
  return found == counts_.end() ? 0 : found->second;
}

bool Report::finish() {
  if (junit_.empty()) return true;
  std::ofstream out(junit_);
  std::uint64_t failures = 0;
  std::uint64_t errors = 0;
  std::uint64_t skipped = 0;
  for (const Case& one : cases_) {
    failures +=
        one.outcome.kind == Outcome::Kind::kFailed || one.outcome.kind == Outcome::Kind::kDiverged
            ? 1
            : 0;
    errors += is_error(one.outcome.kind) ? 1 : 0;
    skipped += one.outcome.kind == Outcome::Kind::kUnmet ? 1 : 0;
  }
  out << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\""
      << prop::xml_escaped(what_) << "\" hostname=\"" << prop::xml_escaped(machine_)
      << "\" tests=\"" << cases_.size() << "\" failures=\"" << failures << "\" errors=\"" << errors
      << "\" skipped=\"" << skipped << "\">\n";
  for (const Case& one : cases_) {
    out << "  <testcase classname=\"" << prop::xml_escaped(one.suite) << "\" name=\""
        << prop::xml_escaped(one.name) << "\" time=\"" << one.outcome.seconds << "\"";
    if (one.outcome.kind == Outcome::Kind::kClean) {
      out << "/>\n";
      continue;
    }
    const char* tag = one.outcome.kind == Outcome::Kind::kUnmet ? "skipped"
                      : is_error(one.outcome.kind)              ? "error"
                                                                : "failure";
    out << ">\n    <" << tag << " message=\"" << prop::xml_escaped(one.outcome.signature) << "\">"
        << prop::xml_escaped(one.outcome.message) << "</" << tag << ">\n  </testcase>\n";
  }
  out << "</testsuite>\n</testsuites>\n";
  return out.good();
}

}  // namespace granule::gpu
