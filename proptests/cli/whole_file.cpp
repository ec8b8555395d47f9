// Reading whole files, and replacing them in one step.
#include "whole_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include <unistd.h>

namespace granule::cli {
namespace {

bool refuse(const std::string& path, const char* what) {
  std::fprintf(stderr, "granule: cannot %s %s: %s\n", what, path.c_str(), std::strerror(errno));
  return false;
}

struct CloseFile {
  void operator()(FILE* file) const { (void)std::fclose(file); }
};

}  // namespace

std::optional<std::string> read_whole(const std::string& path) {
  errno = 0;
  const std::unique_ptr<FILE, CloseFile> file(std::fopen(path.c_str(), "rb"));
  if (!file) return refuse(path, "read"), std::nullopt;
  std::string text;
  constexpr std::size_t kPart = 1 << 20;
  while (true) {
    const std::size_t before = text.size();
    text.resize(before + kPart);
    const std::size_t got = std::fread(text.data() + before, 1, kPart, file.get());
    text.resize(before + got);
    if (got != 0) continue;
    if (std::ferror(file.get()) != 0) return refuse(path, "read"), std::nullopt;
    return text;
  }
}

bool write_whole(const std::string& path, std::string_view text) {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  // Writers of the same file on several machines do not meet in its temporary.
  char host[64] = {};
  (void)gethostname(host, sizeof host - 1);
  const std::string next = path + "." + host + "." + std::to_string(getpid()) + ".new";
  errno = 0;
  {
    std::ofstream out(next, std::ios::binary);
    out << text;
    out.close();
    if (!out) {
      refuse(path, "write");
      std::filesystem::remove(next, error);
      return false;
    }
  }
  std::filesystem::rename(next, path, error);
  if (!error) return true;
  errno = error.value();
  refuse(path, "write");
  std::filesystem::remove(next, error);
  return false;
}

}  // namespace granule::cli
