// A program's driver calls as plain C over cuda.h, for a bug report that depends on nothing of
// ours.
#pragma once

#include <string>
#include <vector>

#include <granule/backends/record.hpp>

namespace granule::gpu {

/// C source that makes the recorded calls again and prints each answer beside the recorded one.
/// Held streams wait on a word of pinned memory there; a landing becomes a comment.
std::string c_source(const std::string& program, const std::vector<record::Entry>& entries);

}  // namespace granule::gpu
