// Choosing and copying failing programs.
#include "merge_programs.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <utility>

#include <granule/prop/text.hpp>

#include "whole_file.hpp"

namespace granule::cli {
namespace {

namespace fs = std::filesystem;

/// What campaigns write in front of a program that hangs, whichever it is.
constexpr const char* kHang = "Does not end.";

/// The comment lines in front of a program.
std::vector<std::string> comment_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; text.compare(at, 2, "# ") == 0;) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at + 2, end - at - 2));
    at = std::min(end + 1, text.size());
  }
  return lines;
}

/// "diverged: ..." and so on: what a run on a device writes in front.
bool is_of_a_device(const std::string& signature) {
  for (const char* kind : {"failed: ", "diverged: ", "hang: ", "crash: "})
    if (signature.rfind(kind, 0) == 0) return true;
  return false;
}

/// The command of a "Reproduce:" line, without the file at its end.
std::string replay_of(const std::vector<std::string>& comment) {
  const std::string front = "Reproduce: ";
  for (const std::string& line : comment) {
    if (line.rfind(front, 0) != 0) continue;
    const std::size_t end = line.rfind(' ');
    if (end > front.size()) return line.substr(front.size(), end - front.size());
  }
  const bool device = !comment.empty() && is_of_a_device(comment[0]);
  return device ? "granule replay --backend cuda" : "granule replay";
}

KeptProgram read_program(const std::string& path) {
  std::optional<std::string> text = read_whole(path);
  if (!text) throw std::runtime_error(path + " cannot be read");
  KeptProgram one;
  one.path = path;
  one.text = std::move(*text);
  one.files = 1;
  const std::vector<std::string> comment = comment_of(one.text);
  one.replay = replay_of(comment);
  if (!comment.empty()) one.signature = comment[0];
  const std::string file = fs::path(path).filename().string();
  if (one.signature.empty()) one.signature = file;
  if (one.signature == kHang) one.signature = "hang of " + fs::path(path).stem().string();
  const prop::ParseResult parsed = prop::parse(one.text, path);
  if (!parsed.ok()) throw std::runtime_error(prop::to_text(parsed.errors[0]));
  for (const prop::Program& program : parsed.document.programs)
    one.statements += program.statements.size();
  return one;
}

bool is_shorter(const KeptProgram& a, const KeptProgram& b) {
  if (a.statements != b.statements) return a.statements < b.statements;
  return a.text < b.text;  // so that the order of the folders does not matter
}

/// A path in the folder at which nothing else lies: `name`, or with a number behind its stem.
fs::path free_path(const fs::path& folder, const fs::path& name, const std::string& text) {
  for (std::uint64_t i = 1;; ++i) {
    fs::path path = folder / name;
    if (i > 1)
      path = folder / (name.stem().string() + "-" + std::to_string(i) + name.extension().string());
    std::error_code error;
    if (!fs::exists(path, error)) return path;
    const std::optional<std::string> there = read_whole(path.string());
    if (there && *there == text) return path;
  }
}

}  // namespace

KeptPrograms keep_shortest(const std::vector<std::string>& paths) {
  KeptPrograms kept;
  std::map<std::string, KeptProgram> shortest;
  std::map<std::string, std::string> signatures;  // by path
  for (const std::string& path : paths) {
    KeptProgram one = read_program(path);
    signatures[path] = one.signature;
    const auto [at, is_new] = shortest.try_emplace(one.signature, one);
    if (is_new) continue;
    one.files = at->second.files + 1;
    if (is_shorter(one, at->second)) {
      at->second = std::move(one);
    } else {
      at->second.files = one.files;
    }
  }
  std::map<std::string, std::size_t> places;
  for (auto& [signature, one] : shortest) {
    places[signature] = kept.programs.size();
    kept.programs.push_back(std::move(one));
  }
  for (const auto& [path, signature] : signatures) kept.by_path[path] = places[signature];
  return kept;
}

bool copy_into(const std::string& folder, KeptPrograms& kept) {
  for (KeptProgram& one : kept.programs) {
    const fs::path path = free_path(folder, fs::path(one.path).filename(), one.text);
    if (!write_whole(path.string(), one.text)) return false;
    one.path = path.string();
  }
  return true;
}

}  // namespace granule::cli
