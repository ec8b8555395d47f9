// Call sites: the C stack and, in a Python process, the Python frames under which a driver call
// was made. Taken at the call, named only when they are printed.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace granule::libcuda {

struct PythonFrame {
  const std::string* file = nullptr;  // interned
  const std::string* function = nullptr;
  int line = 0;
  friend bool operator==(const PythonFrame&, const PythonFrame&) = default;
};

/// Where a call came from, innermost frame first.
struct Site {
  static constexpr std::size_t kFrames = 20;
  static constexpr std::size_t kPythonFrames = 12;
  std::array<void*, kFrames> frames{};
  std::size_t count = 0;
  std::array<PythonFrame, kPythonFrames> python{};
  std::size_t python_count = 0;
};

/// A frame of C code by name.
struct NamedFrame {
  std::string module;        // path of the library or program
  std::string function;      // empty if nobody knows
  std::uint64_t offset = 0;  // in the module, as addr2line takes it
};

/// Number of a site; 0 is none.
using SiteId = std::uint32_t;

/// Equal sites are kept once. Thread-safe.
class Sites {
 public:
  /// The caller's site. `python`: ask the interpreter, if there is one; may take its lock, so no
  /// lock of ours may be held.
  SiteId capture(bool python);
  Site site(SiteId id) const;

 private:
  mutable std::mutex mutex_;
  std::unordered_multimap<std::uint64_t, SiteId> known_;
  std::deque<Site> sites_;
};

/// The C frames of a site outside this library.
std::vector<NamedFrame> name_frames(const Site& site);

/// The frame that a reader wants to see first: the first Python frame that is not in an installed
/// package ("leak.py:7"), else the first C frame ("chunk_create" or "app+0x1234").
std::string short_name(const Site& site);

/// Whether Python code lies in an installed package, not in what the user writes.
bool is_installed(const std::string& file);

/// Fills in the Python frames; does nothing where no interpreter runs.
void capture_python(Site& site);
/// One copy of each string, for ever.
const std::string* interned(const char* text);

}  // namespace granule::libcuda
