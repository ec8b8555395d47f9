// Lines and suites of several reports.
#include "merge_reports.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "whole_file.hpp"

namespace granule::cli {
namespace {

struct File {
  std::string path;
  std::string text;
};

std::vector<File> read_all(const std::vector<std::string>& paths) {
  std::vector<File> files;
  for (const std::string& path : paths) {
    std::optional<std::string> text = read_whole(path);
    if (!text) throw std::runtime_error(path + " cannot be read");
    files.push_back({path, std::move(*text)});
  }
  return files;
}

/// What a line of a report tells: an outcome, or (empty) the head of a run; nothing: neither.
std::optional<std::string> outcome_of(const nlohmann::json& line) {
  if (!line.is_object()) return std::nullopt;
  if (line.contains("run") && line.contains("seed")) return std::string();
  const auto outcome = line.find("outcome");
  if (outcome == line.end() || !line.contains("name")) return std::nullopt;
  if (outcome->is_string()) return outcome->get<std::string>();
  if (!outcome->is_object()) return std::nullopt;
  const auto kind = outcome->find("kind");
  if (kind == outcome->end() || !kind->is_string()) return std::nullopt;
  return kind->get<std::string>();
}

/// Cuts off a last line that was not written to its end. Files of another kind become empty.
void trim_lines(File& file, MergedReports& merged) {
  const std::size_t first_end = std::min(file.text.find('\n'), file.text.size());
  const auto parse = [](std::string_view line) {
    return nlohmann::json::parse(line.begin(), line.end(), nullptr, false);
  };
  if (file.text.empty()) return;
  if (const auto first = parse(std::string_view(file.text).substr(0, first_end));
      !first.is_discarded() && !outcome_of(first)) {
    merged.notes.push_back(file.path + ": no report of programs, left alone");
    file.text.clear();
    return;
  }
  const std::size_t end = file.text.rfind('\n') + 1;  // npos + 1 is 0
  if (end == file.text.size()) return;
  merged.notes.push_back(file.path + ": the last line is cut off and was left out: killed?");
  merged.cut_off = true;
  file.text.resize(end);
}

void count_lines(const File& file, MergedReports& merged) {
  std::size_t number = 0;
  for (std::size_t at = 0; at < file.text.size();) {
    const std::size_t end = file.text.find('\n', at);
    const std::string_view line = std::string_view(file.text).substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.empty()) continue;
    const auto json = nlohmann::json::parse(line.begin(), line.end(), nullptr, false);
    const std::optional<std::string> outcome =
        json.is_discarded() ? std::nullopt : outcome_of(json);
    if (!outcome)
      throw std::runtime_error(file.path + ":" + std::to_string(number) +
                               ":1: expected a JSON line with a run or the outcome of a program");
    if (!outcome->empty()) ++merged.outcomes[*outcome];
  }
}

void merge_lines(std::vector<File> files, MergedReports& merged) {
  for (File& file : files) trim_lines(file, merged);
  const auto is_empty = [](const File& file) { return file.text.empty(); };
  files.erase(std::remove_if(files.begin(), files.end(), is_empty), files.end());
  std::vector<const File*> longest_first;
  longest_first.reserve(files.size());
  for (const File& file : files) longest_first.push_back(&file);
  std::stable_sort(longest_first.begin(), longest_first.end(),
                   [](const File* a, const File* b) { return a->text.size() > b->text.size(); });
  std::set<const File*> kept;
  for (const File* file : longest_first) {
    const auto holds = [&](const File* other) {
      const std::size_t at = other->text.find(file->text);
      return at == 0 || (at != std::string::npos && other->text[at - 1] == '\n');
    };
    const auto other = std::find_if(kept.begin(), kept.end(), holds);
    if (other == kept.end()) {
      kept.insert(file);
    } else {
      merged.notes.push_back(file->path + ": also in " + (*other)->path + ", counted once");
    }
  }
  for (const File& file : files) {
    if (kept.count(&file) == 0) continue;
    count_lines(file, merged);
    merged.lines += file.text;
    ++merged.files;
  }
}

/// The number of attribute `name` in a tag; 0 if it has none.
std::uint64_t attribute(std::string_view tag, const std::string& name) {
  const std::string key = " " + name + "=\"";
  const std::size_t at = tag.find(key);
  if (at == std::string_view::npos) return 0;
  return std::strtoull(std::string(tag.substr(at + key.size(), 20)).c_str(), nullptr, 10);
}

void merge_suites(const std::vector<File>& files, MergedReports& merged) {
  constexpr std::string_view kEnd = "</testsuite>";
  std::set<std::string_view> seen;
  for (const File& file : files) {
    const std::string_view text = file.text;
    if (text.find("<testsuite") == std::string_view::npos) {
      if (!text.empty()) merged.notes.push_back(file.path + ": no JUnit XML, left alone");
      continue;
    }
    if (text.find("</testsuites>") == std::string_view::npos) {
      merged.notes.push_back(file.path + ": is cut off and was left out: killed?");
      merged.cut_off = true;
      continue;
    }
    for (std::size_t at = text.find("<testsuite "); at != std::string_view::npos;
         at = text.find("<testsuite ", at)) {
      const std::size_t end = text.find(kEnd, at);
      if (end == std::string_view::npos)
        throw std::runtime_error(file.path + ": expected </testsuite> behind byte " +
                                 std::to_string(at));
      const std::string_view suite = text.substr(at, end + kEnd.size() - at);
      at = end;
      if (!seen.insert(suite).second) continue;
      const std::string_view tag = suite.substr(0, suite.find('>'));
      merged.suites += std::string(suite) + "\n";
      merged.suite_failures += attribute(tag, "failures") + attribute(tag, "errors");
      ++merged.suite_count;
    }
  }
}

}  // namespace

MergedReports merge_reports(const std::vector<std::string>& json_files,
                            const std::vector<std::string>& junit_files) {
  MergedReports merged;
  merge_lines(read_all(json_files), merged);
  merge_suites(read_all(junit_files), merged);
  return merged;
}

std::string junit_text(const MergedReports& reports) {
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n" + reports.suites +
         "</testsuites>\n";
}

}  // namespace granule::cli
