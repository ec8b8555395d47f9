// Reads the source tree and fails where it breaks its own rules: which layer may include which,
// what may lie at the top, how long a file may be, and that the README's example is the tested one.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;

const fs::path& root() {
  static const fs::path path = GRANULE_SOURCE_DIR;
  return path;
}

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

std::vector<std::string> lines_of(const fs::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// All source files below the five folders, relative to the root, sorted.
std::vector<std::string> sources() {
  static const std::set<std::string> kExtensions{".hpp", ".h", ".cpp", ".inc", ".def", ".cu"};
  std::vector<std::string> found;
  for (const char* folder : {"core", "backends", "model", "proptests", "gputests"}) {
    if (!fs::exists(root() / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root() / folder))
      if (entry.is_regular_file() && kExtensions.count(entry.path().extension().string()) != 0)
        found.push_back(fs::relative(entry.path(), root()).generic_string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// Layers, by the folder a file lies in. The longest prefix decides.
std::string layer_of_file(const std::string& file) {
  static const std::vector<std::pair<std::string, std::string>> kFolders{
      {"core/backend_api/", "backend_api"},
      {"core/", "core"},
      {"model/", "model"},
      {"backends/cuda/", "cuda"},
      {"backends/libcuda/", "libcuda"},
      {"backends/include/granule/backends/driver_", "driver_abi"},
      {"backends/", "decorators"},
      {"proptests/cli/", "cli"},
      {"proptests/tests/consumer/", "consumer"},
      {"proptests/", "proptests"},
      {"gputests/", "gputests"}};
  for (const auto& [prefix, layer] : kFolders)
    if (starts_with(file, prefix)) return layer;
  return "unknown";
}

/// Layers, by the path in an #include <...>; nothing for what is not ours.
std::optional<std::string> layer_of_include(const std::string& path) {
  if (path == "cuda.h" || starts_with(path, "cuda/") || path == "cuda_runtime.h") return "nvidia";
  if (!starts_with(path, "granule/")) return std::nullopt;
  const std::string rest = path.substr(8);
  if (starts_with(rest, "backend_api/")) return "backend_api";
  if (starts_with(rest, "model/")) return "model";
  if (starts_with(rest, "prop/")) return "proptests";
  if (starts_with(rest, "gputests/")) return "gputests";
  if (starts_with(rest, "backends/")) {
    const std::string name = rest.substr(9);
    if (starts_with(name, "driver_")) return "driver_abi";
    if (starts_with(name, "cuda")) return "cuda";
    if (starts_with(name, "libcuda")) return "libcuda";
    return "decorators";
  }
  return "core";
}

const std::map<std::string, std::set<std::string>>& allowed() {
  static const std::map<std::string, std::set<std::string>> kAllowed{
      {"backend_api", {"backend_api"}},
      {"core", {"backend_api", "core"}},
      {"model", {"backend_api", "model"}},
      {"decorators", {"backend_api", "decorators"}},
      {"driver_abi", {"driver_abi"}},
      {"cuda", {"backend_api", "decorators", "driver_abi", "cuda"}},
      {"libcuda", {"backend_api", "decorators", "driver_abi", "libcuda"}},
      {"proptests", {"backend_api", "core", "model", "decorators", "proptests"}},
      {"cli", {"backend_api", "core", "model", "decorators", "proptests", "cuda", "gputests"}},
      {"consumer", {"backend_api", "core", "model", "decorators", "proptests", "cuda"}},
      {"gputests",
       {"backend_api", "core", "model", "decorators", "proptests", "cuda", "driver_abi",
        "gputests"}}};
  return kAllowed;
}

/// Single files with a wider licence, each for a reason.
bool excused(const std::string& file, const std::string& layer) {
  // The one comparison of our own ABI with NVIDIA's, where that is installed.
  if (starts_with(file, "backends/cuda/") && file.find("abi_check") != std::string::npos)
    return layer == "nvidia";
  // Where libcuda.so.1 is put together: the model or the real driver behind decorators.
  if (starts_with(file, "backends/libcuda/") && file.find("compos") != std::string::npos)
    return layer == "model" || layer == "cuda";
  // Simulated-driver tests speak the C ABI that they test.
  if (starts_with(file, "proptests/tests/") && layer == "driver_abi") return true;
  return false;
}

struct Include {
  std::size_t line;
  std::string path;
  bool quoted;
};

std::vector<Include> includes_of(const std::string& file) {
  std::vector<Include> found;
  const auto lines = lines_of(root() / file);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    if (!starts_with(line, "#include")) continue;
    const std::size_t open = line.find_first_of("<\"", 8);
    if (open == std::string::npos) continue;
    const bool quoted = line[open] == '"';
    const std::size_t close = line.find(quoted ? '"' : '>', open + 1);
    if (close == std::string::npos) continue;
    found.push_back({i + 1, line.substr(open + 1, close - open - 1), quoted});
  }
  return found;
}

TEST(Layers, EachFileIncludesOnlyWhatItsLayerMay) {
  const auto files = sources();
  ASSERT_GT(files.size(), 20u) << "is this the source tree? " << root();
  for (const std::string& file : files) {
    const std::string layer = layer_of_file(file);
    for (const Include& include : includes_of(file)) {
      const auto where = file + ":" + std::to_string(include.line) + ": " + include.path;
      if (include.path.find("..") != std::string::npos) {
        const fs::path named = (fs::path(file).parent_path() / include.path).lexically_normal();
        EXPECT_EQ(layer_of_file(named.generic_string()), layer) << where << " leaves its part";
      }
      const auto target = layer_of_include(include.path);
      if (!target) continue;
      EXPECT_FALSE(include.quoted) << where << ": public headers are included with <>";
      EXPECT_TRUE(allowed().at(layer).count(*target) != 0 || excused(file, *target))
          << where << ": layer " << layer << " may not include layer " << *target;
    }
  }
}

TEST(Layers, BackendApiNeedsOnlyTheStandardLibrary) {
  for (const std::string& file : sources()) {
    if (!starts_with(file, "core/backend_api/") || starts_with(file, "core/backend_api/tests/"))
      continue;
    for (const Include& include : includes_of(file)) {
      const bool standard = include.path.find('/') == std::string::npos &&
                            include.path.find('.') == std::string::npos;
      EXPECT_TRUE(standard || starts_with(include.path, "granule/backend_api/"))
          << file << ":" << include.line << ": " << include.path;
    }
  }
}

TEST(Layers, QuotedIncludesStayInTheirOwnPart) {
  for (const std::string& file : sources()) {
    for (const Include& include : includes_of(file)) {
      if (!include.quoted) continue;
      // Beside the file, or below the src, tests, bench or cli folder of the same part.
      bool found = fs::exists((root() / file).parent_path() / include.path);
      for (fs::path dir = fs::path(file).parent_path(); !found && !dir.empty();
           dir = dir.parent_path())
        for (const char* below : {"src", "tests", "bench", "cli", "smoke", "."})
          found = found || fs::exists(root() / dir / below / include.path);
      // The command is one program: what needs a GPU adds its sub-commands to it.
      if (starts_with(file, "gputests/cli/"))
        found = found || fs::exists(root() / "proptests/cli" / include.path);
      EXPECT_TRUE(found) << file << ":" << include.line << ": " << include.path;
    }
  }
}

TEST(Tree, NothingUnknownAtTheTop) {
  static const std::set<std::string> kKnown{"CMakeLists.txt", "README.md", "core",
                                            "backends",       "model",     "proptests",
                                            "gputests",       "LICENSE",   "CMakePresets.json"};
  static const std::vector<std::string> kIgnored{"build", "cmake-build", "compile_commands.json",
                                                 "granule-", "CMakeUserPresets.json"};
  for (const auto& entry : fs::directory_iterator(root())) {
    const std::string name = entry.path().filename().string();
    if (name.front() == '.' || kKnown.count(name) != 0) continue;
    const bool ignored = std::any_of(kIgnored.begin(), kIgnored.end(),
                                     [&](const std::string& p) { return starts_with(name, p); });
    EXPECT_TRUE(ignored) << name << " does not belong at the top of the tree";
  }
}

TEST(Tree, FilesHaveAPurposeLineAndAReadableLength) {
  constexpr std::size_t kLinesMax = 500;
  for (const std::string& file : sources()) {
    const auto lines = lines_of(root() / file);
    EXPECT_LE(lines.size(), kLinesMax) << file;
    ASSERT_FALSE(lines.empty()) << file;
    EXPECT_TRUE(starts_with(lines[0], "//") || starts_with(lines[0], "/*"))
        << file << ": the first lines say what the file is for";
  }
}

TEST(Tree, NoUnfinishedBusiness) {
  // Spelled apart, so that this file does not find itself.
  const std::vector<std::string> words{std::string("TO") + "DO", std::string("FIX") + "ME",
                                       std::string("XX") + "X"};
  for (const std::string& file : sources()) {
    const std::string text = text_of(root() / file);
    for (const std::string& word : words)
      EXPECT_EQ(text.find(word), std::string::npos) << file << " holds a " << word;
  }
}

TEST(Readme, ExampleIsTheOneThatIsCompiledAndRun) {
  const std::string readme = text_of(root() / "README.md");
  const std::size_t open = readme.find("```cpp\n");
  ASSERT_NE(open, std::string::npos);
  const std::size_t close = readme.find("```", open + 7);
  const std::string shown = readme.substr(open + 7, close - open - 7);
  const std::string tested = text_of(root() / "proptests/tests/consumer/main.cpp");
  EXPECT_NE(tested.find(shown), std::string::npos)
      << "the first C++ block of README.md is not in proptests/tests/consumer/main.cpp";
}

}  // namespace
