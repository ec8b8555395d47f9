// The recorded driver calls of a simulated run as a program.
#pragma once

#include <string>
#include <vector>

namespace granule::cli {

/// Reads the calls that the library recorded in `calls` and writes them to `program` as text that
/// `granule replay` runs. `faults` are the faults of the run. With `leaks` the program ends in
/// `expect leak none`, so that it fails as the run did. False, with a reason, if a file cannot be
/// used.
bool write_program(const std::string& calls, const std::string& program,
                   const std::vector<std::string>& faults, bool leaks, std::string& error);

}  // namespace granule::cli
