// Names for the objects of a recording: what the calls of a program name instead of addresses and
// handles.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace granule::cli {

/// A size in the spelling of programs.
std::string program_size(std::uint64_t bytes);

/// Values of one kind of object and the names they go by. Several references may share a value.
class HandleNames {
 public:
  explicit HandleNames(std::string prefix) : prefix_(std::move(prefix)) {}
  const std::string& make(std::uint64_t value);
  /// The youngest name of a value; its number if it has none.
  std::string name(std::uint64_t value) const;
  /// The same, and the name goes.
  std::string drop(std::uint64_t value);
  bool known(std::uint64_t value) const { return names_.count(value) != 0; }

 private:
  std::string prefix_;
  std::map<std::uint64_t, std::vector<std::string>> names_;
  std::map<std::uint64_t, std::string> dead_;
  std::uint64_t made_ = 0;
};

/// Ranges of addresses; an address is written as NAME+OFFSET.
class RangeNames {
 public:
  explicit RangeNames(std::string prefix) : prefix_(std::move(prefix)) {}
  const std::string& make(std::uint64_t base, std::uint64_t size);
  void drop(std::uint64_t base);
  /// The address inside a live range; with `dead`, inside one that is gone.
  std::optional<std::string> find(std::uint64_t address, bool dead) const;

 private:
  struct Range {
    std::uint64_t size = 0;
    std::string name;
  };
  static std::optional<std::string> find_in(const std::map<std::uint64_t, Range>& ranges,
                                            std::uint64_t address);

  std::string prefix_;
  std::map<std::uint64_t, Range> live_;
  std::map<std::uint64_t, Range> dead_;
  std::uint64_t made_ = 0;
};

}  // namespace granule::cli
