// Files read and written whole.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace granule::cli {

/// The bytes of a file; nothing if it cannot be read, which stderr then says.
std::optional<std::string> read_whole(const std::string& path);

/// Writes a file in one step: whoever reads it sees the old one or the new one, never a part. Makes
/// the folder. False: it could not be written, and stderr says why.
bool write_whole(const std::string& path, std::string_view text);

}  // namespace granule::cli
