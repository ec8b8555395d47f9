// What the bytes of the program's buffers must be: written patterns by happens-before, apart from
// the model's own contents. Bytes written twice without an order are unknown until written again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <granule/backend_api/types.hpp>

#include "timeline.hpp"

namespace granule::prop {

/// Bytes that one or more buffers see: what a single allocation or growth added.
class Extent {
 public:
  explicit Extent(std::uint64_t size) : cells_{{0, size, std::nullopt, {}, {}}} {}

  /// A run of bytes with one history.
  struct Cell {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::optional<std::uint8_t> value;  // nothing: unknown
    std::vector<Stamp> writers;         // the last writes that have no order between them
    std::vector<Stamp> sources;         // the operations that made `value` what it is
  };
  /// A copy out of here that may still be running when somebody writes here.
  struct Reader {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    Stamp stamp;
  };

  /// `op` (which knows `clock`) writes `value` (nothing: bytes that nobody knows).
  /// `from`: what a copied value came from, beside `op`.
  /// Returns the copies out of here that this write may have run into: what they made is unknown.
  std::vector<Stamp> write(std::uint64_t begin, std::uint64_t end,
                           std::optional<std::uint8_t> value, const Stamp& op, const Clock& clock,
                           const Clock& host, const std::vector<Stamp>& from = {});
  /// `op` reads the bytes and writes the same back. Returns as write.
  std::vector<Stamp> rewrite(std::uint64_t begin, std::uint64_t end, const Stamp& op,
                             const Clock& clock, const Clock& host);
  /// The bytes become unknown, whoever wrote them.
  void forget(std::uint64_t begin, std::uint64_t end);
  /// Remembers a copy out of here.
  void add_reader(const Reader& reader) { readers_.push_back(reader); }
  /// Bytes that `op` had a part in become unknown.
  void spoil(const Stamp& op);
  /// Remembers that `op` touches bytes here.
  void touch(const Stamp& op);

  /// A buffer that sees these bytes tells the library of work on that lane.
  void tell(Lane lane) {
    if (std::find(told_.begin(), told_.end(), lane) == told_.end()) told_.push_back(lane);
  }
  bool is_told(Lane lane) const {
    return std::find(told_.begin(), told_.end(), lane) != told_.end();
  }

  const std::vector<Cell>& cells() const { return cells_; }
  /// The last operation of each lane that touched anything here.
  const std::vector<Stamp>& uses() const { return uses_; }

 private:
  void cut(std::uint64_t at);
  void merge();
  std::vector<Stamp> disturbed(std::uint64_t begin, std::uint64_t end, const Clock& clock,
                               const Clock& host);

  std::vector<Cell> cells_;
  std::vector<Stamp> uses_;
  std::vector<Reader> readers_;
  std::vector<Lane> told_;
};

/// A part of a buffer: `length` bytes of an extent from `offset` on.
struct Segment {
  std::shared_ptr<Extent> extent;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::vector<AccessEntry> access;  // promised
};

/// A part of a range of a buffer, as for_each_part hands it out.
struct Part {
  Extent* extent = nullptr;
  std::uint64_t begin = 0;  // in the extent
  std::uint64_t end = 0;
  std::uint64_t offset = 0;  // of `begin` in the buffer
};

/// The parts of bytes [from, to) of a buffer.
std::vector<Part> parts_of(const std::vector<Segment>& segments, std::uint64_t from,
                           std::uint64_t to);

/// A run of a buffer whose bytes are known, or not.
struct Known {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::optional<std::uint8_t> value;
  bool settled = false;  // the host knows that the last write has run
};
/// What is known of bytes [from, to) of a buffer.
std::vector<Known> known_of(const std::vector<Segment>& segments, std::uint64_t from,
                            std::uint64_t to, const Clock& host);

}  // namespace granule::prop
