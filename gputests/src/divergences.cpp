// Lists of known divergences.
#include "divergences.hpp"

#include <filesystem>
#include <fstream>

#include <granule/prop/text.hpp>

namespace granule::gpu {
namespace {

constexpr std::string_view kPrefix = "diverged ";

bool begins(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}

}  // namespace

const KnownDivergence* DivergenceList::find(std::string_view signature) const {
  if (begins(signature, kPrefix)) signature.remove_prefix(kPrefix.size());
  for (const KnownDivergence& entry : entries)
    if (entry.signature == signature) return &entry;
  return nullptr;
}

DivergenceList read_divergences(const std::string& path) {
  DivergenceList list;
  list.file = path;
  std::ifstream in(path);
  if (!in) {
    list.error = path + ": cannot be read";
    return list;
  }
  std::string line;
  bool inside = false;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    if (!inside) {
      if (line.empty() || line[0] == '#') continue;
      if (!begins(line, "entry ")) {
        list.error = path + ":" + std::to_string(number) + ": expected `entry SIGNATURE`";
        return list;
      }
      list.entries.push_back({line.substr(6), {}, {}, {}});
      inside = true;
    } else if (line == "end") {
      KnownDivergence& entry = list.entries.back();
      const prop::ParseResult parsed = prop::parse(entry.text, path);
      if (!parsed.ok() || parsed.document.programs.empty() || entry.reason.empty()) {
        list.error = path + ":" + std::to_string(number) + ": the entry of `" + entry.signature +
                     "` needs a reason and a program that parses";
        return list;
      }
      entry.program = parsed.document.programs.front();
      inside = false;
    } else if (begins(line, "reason ")) {
      list.entries.back().reason = line.substr(7);
    } else {
      list.entries.back().text += line + "\n";
    }
  }
  if (inside) list.error = path + ": the last entry has no `end`";
  return list;
}

DivergenceList divergences_of(const std::string& folder, const std::string& driver) {
  namespace fs = std::filesystem;
  std::string best;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string stem = entry.path().stem().string();
    const bool fits = entry.path().extension() == ".txt" && begins(driver, stem);
    if (fits && stem.size() > fs::path(best).stem().string().size()) best = entry.path().string();
  }
  return best.empty() ? DivergenceList{} : read_divergences(best);
}

}  // namespace granule::gpu
