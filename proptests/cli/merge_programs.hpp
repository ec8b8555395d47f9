// Failing programs of several folders: the shortest of each signature.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace granule::cli {

/// A failing program that stands for all of its signature.
struct KeptProgram {
  std::string signature;
  std::string path;    // where it lies
  std::string text;    // the file
  std::string replay;  // the command that runs it, without the file
  std::uint64_t statements = 0;
  std::uint64_t files = 0;  // that were found with that signature
};

struct KeptPrograms {
  std::vector<KeptProgram> programs;           // by signature
  std::map<std::string, std::size_t> by_path;  // of every file found: which program stands for it
};

/// Reads failing programs as campaigns and device runs save them: their signature is the first
/// comment. Hangs are told apart by their files. Throws std::runtime_error: cannot be read.
KeptPrograms keep_shortest(const std::vector<std::string>& paths);

/// Copies them into the folder, and changes `path`. A file of that name with other contents stays:
/// the copy gets a name of its own. False: one could not be written, and stderr says why.
bool copy_into(const std::string& folder, KeptPrograms& kept);

}  // namespace granule::cli
