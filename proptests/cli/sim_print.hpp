// The report of a simulated run, for people and as JSON.
#pragma once

#include <string>

#include "sim_run.hpp"

namespace granule::cli {

/// Text to stderr; JSON to `json_file` if that is named ("-": stdout).
void print_report(const SimOutcome& outcome, const std::string& json_file);
/// A finding's text, with file and line where addr2line knows them.
std::string with_lines(const std::string& text);

}  // namespace granule::cli
