// Known divergences of a driver version from the model: signature, reason, and a program that
// shows it, in gputests/divergences/DRIVER.txt.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <granule/prop/program.hpp>

namespace granule::gpu {

struct KnownDivergence {
  std::string signature;  // as Divergence::signature
  std::string reason;
  std::string text;  // the program that shows it
  prop::Program program;
};

struct DivergenceList {
  std::string file;  // empty: there is none for this driver
  std::vector<KnownDivergence> entries;
  std::string error;  // of the file

  /// The entry of that signature, with or without "diverged " in front; null: unknown.
  const KnownDivergence* find(std::string_view signature) const;
};

/// Reads a list. Lines: `entry SIGNATURE`, `reason TEXT`, then the program's lines, `end`.
DivergenceList read_divergences(const std::string& path);
/// The list in `folder` whose name is the longest prefix of the driver's release.
DivergenceList divergences_of(const std::string& folder, const std::string& driver);

}  // namespace granule::gpu
