// Symbolic bytes of a piece of physical memory: an ascending list of pieces, each one byte value,
// one 32-bit word repeated, literal bytes, or unknown; with the stream operation that wrote it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <granule/backend_api/types.hpp>

#include "pool_space.hpp"

namespace granule::model {

/// What a range holds, without saying where.
struct Bytes {
  enum class Kind : std::uint8_t { kUnknown, kByte, kWord, kLiteral };
  Kind kind = Kind::kUnknown;
  std::uint8_t byte = 0;
  std::uint32_t word = 0;   // kWord: little-endian, its first byte at `phase` 0
  std::uint32_t phase = 0;  // kWord: which byte of the word the range starts with
  std::uint64_t skip = 0;   // kLiteral: offset of the first byte in `data`
  std::shared_ptr<const std::vector<std::uint8_t>> data;  // kLiteral

  static Bytes unknown() { return {}; }
  static Bytes uniform(std::uint8_t value);
  static Bytes words(std::uint32_t value);
  static Bytes literal(const void* source, std::uint64_t size);
  /// The same bytes from `offset` on.
  Bytes from(std::uint64_t offset) const;
};

/// One run of equal origin.
struct ContentPiece {
  std::uint64_t begin = 0;  // offset; the piece ends where the next begins
  Bytes bytes;
  StreamPoint writer{UINT64_MAX, 0};  // stream UINT64_MAX: nobody, or long ago
};

/// The bytes of `size` bytes of memory. Fresh memory is unknown and costs nothing.
class Contents {
 public:
  void write(std::uint64_t begin, std::uint64_t end, const Bytes& bytes, StreamPoint writer);
  /// Calls visit(begin, end, bytes, writer) over the range, ascending and gapless.
  template <class Visit>
  void visit(std::uint64_t begin, std::uint64_t end, Visit&& call) const {
    std::uint64_t at = begin;
    for (std::size_t i = find(begin); at < end; ++i) {
      if (i >= pieces_.size()) {
        call(at, end, Bytes::unknown(), StreamPoint{UINT64_MAX, 0});
        return;
      }
      const std::uint64_t start = pieces_[i].begin;
      const std::uint64_t stop = i + 1 < pieces_.size() ? pieces_[i + 1].begin : UINT64_MAX;
      if (at < start) {
        call(at, start < end ? start : end, Bytes::unknown(), StreamPoint{UINT64_MAX, 0});
        at = start < end ? start : end;
        if (at >= end) return;
      }
      const std::uint64_t last = stop < end ? stop : end;
      call(at, last, pieces_[i].bytes.from(at - start), pieces_[i].writer);
      at = last;
    }
  }
  bool never_written() const { return pieces_.empty(); }
  void clear() { pieces_.clear(); }

 private:
  std::size_t find(std::uint64_t at) const;  // the piece that holds `at`, or the first after it
  std::vector<ContentPiece> pieces_;
};

/// Folds pieces into what a reader is told.
class Summary {
 public:
  void add(const Bytes& bytes, std::uint64_t size);
  ByteSummary result() const;

 private:
  bool any_ = false;
  bool mixed_ = false;
  bool unknown_ = false;
  std::uint8_t byte_ = 0;
  void add_byte(std::uint8_t value);
};

/// Copies `size` bytes of `bytes` to host memory; unknown bytes are written as 0xCD.
void store(const Bytes& bytes, std::uint64_t size, std::uint8_t* to);

}  // namespace granule::model
