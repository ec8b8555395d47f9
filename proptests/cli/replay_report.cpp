// JSON lines and JUnit XML of a replay on the model.
#include "replay_report.hpp"

#include <algorithm>
#include <utility>

#include <granule/prop/xml.hpp>
#include <nlohmann/json.hpp>

namespace granule::cli {
namespace {

const char* name_of(prop::RunStatus status) {
  switch (status) {
    case prop::RunStatus::kClean:
      return "clean";
    case prop::RunStatus::kUnmet:
      return "unmet";
    case prop::RunStatus::kFailed:
      break;
  }
  return "failed";
}

}  // namespace

ReplayReport::ReplayReport(const std::string& json, std::string junit) : junit_(std::move(junit)) {
  if (json.empty()) return;
  json_.open(json, std::ios::app);
  good_ = json_.is_open();
}

void ReplayReport::add(const std::string& file, const prop::Program& program,
                       const prop::RunReport& report) {
  Case one{file, program.name, report.status, {}, report.unmet};
  if (report.failure) {
    one.signature = report.failure->signature;
    one.message = prop::describe(program, *report.failure);
  }
  if (json_.is_open()) {
    nlohmann::ordered_json line;
    line["file"] = file;
    line["name"] = program.name;
    line["outcome"] = name_of(report.status);
    line["skipped"] = report.skipped_count;
    if (!one.signature.empty()) line["signature"] = one.signature;
    if (!one.message.empty()) line["message"] = one.message;
    json_ << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    json_.flush();
  }
  if (!junit_.empty()) cases_.push_back(std::move(one));
}

bool ReplayReport::finish() {
  if (json_.is_open()) good_ = json_.good();
  if (junit_.empty()) return good_;
  const auto count = [&](prop::RunStatus status) {
    return std::count_if(cases_.begin(), cases_.end(),
                         [&](const Case& one) { return one.status == status; });
  };
  std::ofstream out(junit_);
  out << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
      << R"(<testsuite name="granule replay" tests=")" << cases_.size() << "\" failures=\""
      << count(prop::RunStatus::kFailed) << "\" skipped=\"" << count(prop::RunStatus::kUnmet)
      << "\">\n";
  for (const Case& one : cases_) {
    out << "  <testcase classname=\"" << prop::xml_escaped(one.file) << "\" name=\""
        << prop::xml_escaped(one.name) << "\"";
    if (one.status == prop::RunStatus::kClean) {
      out << "/>\n";
      continue;
    }
    const char* tag = one.status == prop::RunStatus::kUnmet ? "skipped" : "failure";
    out << ">\n    <" << tag << " message=\"" << prop::xml_escaped(one.signature) << "\">"
        << prop::xml_escaped(one.message) << "</" << tag << ">\n  </testcase>\n";
  }
  out << "</testsuite>\n</testsuites>\n";
  return good_ && out.good();
}

}  // namespace granule::cli
