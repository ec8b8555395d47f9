// The device virtual address space: which addresses are taken, and the measured rules by which a
// driver chooses a place (driver contract, section 1). Knows nothing of what lies there.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include <granule/model/config.hpp>

namespace granule::model {

/// The next multiple of `unit`. Only for values far below 2^64.
inline std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

class AddressSpace {
 public:
  /// `bottom` 0: all that a reserve can give; else 128 TiB from there on.
  explicit AddressSpace(std::uint64_t granularity = std::uint64_t{2} << 20,
                        std::uint64_t bottom = 0);

  /// A place for `size` bytes (whole granules), or nothing if there is none.
  std::optional<std::uint64_t> choose(std::uint64_t size, std::uint64_t alignment,
                                      std::uint64_t hint, Placement placement, bool use_hint) const;
  bool is_free(std::uint64_t base, std::uint64_t size) const;
  /// Marks free addresses as taken, and back.
  void take(std::uint64_t base, std::uint64_t size);
  void give(std::uint64_t base, std::uint64_t size);

  /// Placement works in blocks of this size: 16 granules, 32 MiB as a rule.
  std::uint64_t block() const { return block_; }
  static constexpr std::uint64_t kTop = std::uint64_t{1} << 47;

 private:
  struct Block {
    std::uint16_t used = 0;    // a bit a granule
    std::uint64_t opened = 0;  // order of first use
  };
  using Recent = std::set<std::pair<std::uint64_t, std::uint64_t>>;  // (opened, base)

  std::optional<std::uint64_t> first_fit(std::uint64_t size, std::uint64_t alignment,
                                         std::uint64_t from) const;
  std::optional<std::uint64_t> in_part_used(std::uint64_t size, std::uint64_t alignment) const;
  std::optional<std::uint64_t> in_part_used_above(std::uint64_t size, std::uint64_t alignment,
                                                  std::uint64_t hint) const;
  std::optional<std::uint64_t> place_in(std::uint64_t base, const Block& block, std::uint64_t size,
                                        std::uint64_t alignment, std::uint64_t from) const;
  void add_gap(std::uint64_t start, std::uint64_t length);
  void drop_gap(std::uint64_t start, std::uint64_t length);
  void mark(std::uint64_t base, std::uint64_t size, bool used);
  void mark_block(std::uint64_t block_base, std::uint64_t from, std::uint64_t to, bool used);

  std::uint64_t granule_;
  std::uint64_t block_;
  std::uint64_t bottom_;
  std::uint64_t huge_bottom_;                             // where the largest ranges begin
  std::map<std::uint64_t, std::uint64_t> gaps_;           // start -> length
  std::array<std::set<std::uint64_t>, 48> gaps_by_size_;  // by floor(log2(length))
  std::map<std::uint64_t, Block> part_used_;              // by base
  std::array<Recent, 17> by_room_;                        // by longest free run
  std::uint64_t next_opened_ = 1;
  std::uint64_t never_used_ = 0;  // all addresses from here up are fresh
};

}  // namespace granule::model
