// Recordings: what a device answered, as text that can be held against a model without the device.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <granule/backends/record.hpp>
#include <granule/model/config.hpp>

#include "follow.hpp"

namespace granule::gpu {

struct Recording {
  std::string program;
  model::Config machine;
  std::vector<record::Entry> entries;
};

/// Appends a program's calls to a file. False: it could not be written.
bool append_recording(const std::string& path, const std::string& program,
                      const model::Config& machine, const std::vector<record::Entry>& entries);

/// Reads a file; `error` says which line is malformed.
std::vector<Recording> read_recordings(const std::string& path, std::string& error);

/// What today's model answers differently; empty: it agrees with all of it.
std::vector<Divergence> hold_against_model(const Recording& recording);

}  // namespace granule::gpu
