// What a run found: leaks and misuse with stable ids, faults delivered, calls that are not
// simulated; as text for people and as JSON for `granule sim`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "session.hpp"

namespace granule::libcuda {

/// One line of the report, for all objects or misuses of one kind and site.
struct Finding {
  std::string id;    // "leak.handle@leak.py:7", what a suppression names
  std::string type;  // leak, misuse
  std::string kind;  // handle, mapping, ..., double_release, ...
  std::string call;  // that made the object or showed the misuse
  std::string message;
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  Site site;
  bool suppressed = false;
};

struct Report {
  std::vector<Finding> findings;
  Session::Books books;
  std::uint64_t open_findings() const;  // those not suppressed
};

/// Gathers what the session knows now. `leaks_after`, `misuse_after`: only what is younger.
Report make_report(Session& session, std::uint64_t leaks_after = 0, std::uint64_t misuse_after = 0);

/// A finding over several lines, with its call site.
std::string to_text(const Finding& finding);
std::string to_text(const Report& report);
std::string to_json(const Report& report);

/// Writes what the options ask for: a report file, or text on stderr; and the recording. Once, at
/// the end of the process that initialised the driver.
void write_final_report() noexcept;

}  // namespace granule::libcuda
