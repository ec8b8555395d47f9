// Choosing and copying failing programs.
#include "merge_programs.hpp"

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

/// Line `line` of the comment in front, or nothing behind its end.
std::string comment_line(const std::string& text, std::size_t line) {
  std::size_t at = 0;
  for (std::size_t i = 0;; ++i) {
    if (text.compare(at, 2, "# ") != 0) return {};
    const std::size_t end = text.find('\n', at);
    if (i == line) return text.substr(at + 2, end == std::string::npos ? end : end - at - 2);
    if (end == std::string::npos) return {};
    at = end + 1;
  }
}

/// The command of a "Reproduce:" comment, without the file at its end.
std::string replay_of(const std::string& text) {
  for (std::size_t i = 0;; ++i) {
    const std::string line = comment_line(text, i);
    if (line.empty()) return "granule replay";
    constexpr const char* kFront = "Reproduce: ";
    const std::size_t front = std::char_traits<char>::length(kFront);
    if (line.compare(0, front, kFront) != 0) continue;
    const std::size_t end = line.rfind(' ');
    return end <= front ? "granule replay" : line.substr(front, end - front);
  }
}

KeptProgram read_program(const std::string& path) {
  std::optional<std::string> text = read_whole(path);
  if (!text) throw std::runtime_error(path + " cannot be read");
  KeptProgram one;
  one.path = path;
  one.text = std::move(*text);
  one.files = 1;
  one.replay = replay_of(one.text);
  one.signature = comment_line(one.text, 0);
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
