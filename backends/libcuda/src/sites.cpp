// Taking and naming call sites.
#include "sites.hpp"

#include <dlfcn.h>
#include <execinfo.h>

#include <cstring>
#include <set>

#include "elf_symbols.hpp"

namespace granule::libcuda {
namespace {

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15ull + (hash << 6) + (hash >> 2);
  return hash * 0xff51afd7ed558ccdull;
}

std::uint64_t hash_of(const Site& site) {
  std::uint64_t hash = 1;
  for (std::size_t i = 0; i < site.count; ++i)
    hash = mixed(hash, reinterpret_cast<std::uint64_t>(site.frames[i]));
  for (std::size_t i = 0; i < site.python_count; ++i) {
    hash = mixed(hash, reinterpret_cast<std::uint64_t>(site.python[i].file));
    hash = mixed(hash, static_cast<std::uint64_t>(site.python[i].line));
  }
  return hash;
}

bool same(const Site& a, const Site& b) {
  return a.count == b.count && a.python_count == b.python_count && a.frames == b.frames &&
         a.python == b.python;
}

/// Where this library lies, so that its own frames can be left out.
const void* own_base() {
  static const void* const base = [] {
    Dl_info info{};
    static const int here = 0;
    return dladdr(&here, &info) != 0 ? info.dli_fbase : nullptr;
  }();
  return base;
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

bool is_installed(const std::string& file) {
  return file.find("site-packages/") != std::string::npos ||
         file.find("dist-packages/") != std::string::npos ||
         file.find("/lib/python") != std::string::npos || (!file.empty() && file[0] == '<');
}

const std::string* interned(const char* text) {
  static std::mutex mutex;
  static auto* const strings = new std::set<std::string, std::less<>>;
  const std::lock_guard lock(mutex);
  const auto found = strings->find(std::string_view(text));
  return found != strings->end() ? &*found : &*strings->emplace(text).first;
}

SiteId Sites::capture(bool python) {
  Site site;
  const int count = backtrace(site.frames.data(), static_cast<int>(Site::kFrames));
  site.count = count > 0 ? static_cast<std::size_t>(count) : 0;
  if (python) capture_python(site);
  const std::uint64_t hash = hash_of(site);
  const std::lock_guard lock(mutex_);
  const auto [first, last] = known_.equal_range(hash);
  for (auto it = first; it != last; ++it)
    if (same(sites_[it->second - 1], site)) return it->second;
  sites_.push_back(site);
  const auto id = static_cast<SiteId>(sites_.size());
  known_.emplace(hash, id);
  return id;
}

Site Sites::site(SiteId id) const {
  const std::lock_guard lock(mutex_);
  return id == 0 || id > sites_.size() ? Site{} : sites_[id - 1];
}

std::vector<NamedFrame> name_frames(const Site& site) {
  std::vector<NamedFrame> named;
  for (std::size_t i = 0; i < site.count; ++i) {
    // A return address may lie behind the end of its function: look one byte before it.
    const void* address = static_cast<const char*>(site.frames[i]) - 1;
    Dl_info info{};
    NamedFrame frame;
    if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) {
      frame.offset = reinterpret_cast<std::uint64_t>(address);
    } else {
      if (info.dli_fbase == own_base()) continue;
      frame.module = info.dli_fname;
      frame.offset = address_in_file(info.dli_fbase, address);
      if (info.dli_sname != nullptr) frame.function = info.dli_sname;
      if (frame.function.empty()) frame.function = symbol_in_file(frame.module, frame.offset);
    }
    named.push_back(std::move(frame));
  }
  return named;
}

std::string short_name(const Site& site) {
  for (std::size_t i = 0; i < site.python_count; ++i) {
    const PythonFrame& frame = site.python[i];
    if (!is_installed(*frame.file))
      return base_name(*frame.file) + ":" + std::to_string(frame.line);
  }
  if (site.python_count != 0)
    return base_name(*site.python[0].file) + ":" + std::to_string(site.python[0].line);
  const std::vector<NamedFrame> frames = name_frames(site);
  if (frames.empty()) return "unknown";
  if (!frames[0].function.empty()) return frames[0].function;
  char offset[32];
  std::snprintf(offset, sizeof(offset), "+0x%llx",
                static_cast<unsigned long long>(frames[0].offset));
  return base_name(frames[0].module) + offset;
}

}  // namespace granule::libcuda
