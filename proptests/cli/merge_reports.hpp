// Reports of runs on a device (and of replays): JSON lines and JUnit XML, put together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace granule::cli {

struct MergedReports {
  std::string lines;                              // of all .jsonl files, each once
  std::size_t files = 0;                          // that had some
  std::map<std::string, std::uint64_t> outcomes;  // clean, diverged, ...: how many programs
  std::string suites;                             // JUnit: all <testsuite> elements
  std::size_t suite_count = 0;
  std::uint64_t suite_failures = 0;  // failures and errors that the suites tell
  std::vector<std::string> notes;
  bool cut_off = false;  // a file ends in the middle: its run was killed
};

/// Reads .jsonl files of --jsonl and .xml files of --junit. A file whose contents are part of
/// another (of an earlier merge, say) counts once. Throws std::runtime_error: cannot be read, or is
/// wrong elsewhere than at its end.
MergedReports merge_reports(const std::vector<std::string>& json_files,
                            const std::vector<std::string>& junit_files);

/// The JUnit file of all suites.
std::string junit_text(const MergedReports& reports);

}  // namespace granule::cli
