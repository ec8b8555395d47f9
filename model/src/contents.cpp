// Symbolic memory contents: splitting and replacing pieces, and summaries for readers.
#include "contents.hpp"

#include <algorithm>
#include <cstring>

namespace granule::model {

Bytes Bytes::uniform(std::uint8_t value) {
  Bytes bytes;
  bytes.kind = Kind::kByte;
  bytes.byte = value;
  return bytes;
}

Bytes Bytes::words(std::uint32_t value) {
  const auto low = static_cast<std::uint8_t>(value & 0xffu);
  if (value == 0x01010101u * low) return uniform(low);
  Bytes bytes;
  bytes.kind = Kind::kWord;
  bytes.word = value;
  return bytes;
}

Bytes Bytes::literal(const void* source, std::uint64_t size) {
  const auto* first = static_cast<const std::uint8_t*>(source);
  if (size == 0) return unknown();
  if (std::memcmp(first, first + 1, static_cast<std::size_t>(size - 1)) == 0) {
    return uniform(first[0]);
  }
  Bytes bytes;
  bytes.kind = Kind::kLiteral;
  bytes.data = std::make_shared<const std::vector<std::uint8_t>>(first, first + size);
  return bytes;
}

Bytes Bytes::from(std::uint64_t offset) const {
  Bytes bytes = *this;
  if (kind == Kind::kWord) bytes.phase = static_cast<std::uint32_t>((phase + offset) % 4);
  if (kind == Kind::kLiteral) bytes.skip = skip + offset;
  return bytes;
}

std::size_t Contents::find(std::uint64_t at) const {
  const auto after = std::upper_bound(
      pieces_.begin(), pieces_.end(), at,
      [](std::uint64_t value, const ContentPiece& piece) { return value < piece.begin; });
  if (after == pieces_.begin()) return 0;
  return static_cast<std::size_t>(after - pieces_.begin()) - 1;
}

void Contents::write(std::uint64_t begin, std::uint64_t end, const Bytes& bytes,
                     StreamPoint writer) {
  if (begin >= end) return;
  const auto starts_after = [](std::uint64_t value, const ContentPiece& piece) {
    return value < piece.begin;
  };
  // What follows the written range keeps its bytes.
  auto after = std::upper_bound(pieces_.begin(), pieces_.end(), end, starts_after);
  ContentPiece rest{end, Bytes::unknown(), {}};
  if (after != pieces_.begin()) {
    const ContentPiece& covering = *(after - 1);
    rest = {end, covering.bytes.from(end - covering.begin), covering.writer};
  }
  const auto first = std::lower_bound(
      pieces_.begin(), pieces_.end(), begin,
      [](const ContentPiece& piece, std::uint64_t value) { return piece.begin < value; });
  const ContentPiece fresh{begin, bytes, writer};
  const auto at = pieces_.erase(first, after);
  const ContentPiece both[] = {fresh, rest};
  pieces_.insert(at, std::begin(both), std::end(both));
}

void Summary::add_byte(std::uint8_t value) {
  if (any_ && byte_ != value) mixed_ = true;
  if (!any_) byte_ = value;
  any_ = true;
}

void Summary::add(const Bytes& bytes, std::uint64_t size) {
  if (size == 0) return;
  switch (bytes.kind) {
    case Bytes::Kind::kUnknown:
      unknown_ = true;
      break;
    case Bytes::Kind::kByte:
      add_byte(bytes.byte);
      break;
    case Bytes::Kind::kWord:
      for (std::uint64_t i = 0; i < std::min<std::uint64_t>(size, 4); ++i) {
        add_byte(static_cast<std::uint8_t>(bytes.word >> (8 * ((bytes.phase + i) % 4))));
      }
      break;
    case Bytes::Kind::kLiteral: {
      const std::uint8_t* const first = bytes.data->data() + bytes.skip;
      add_byte(*first);
      if (std::memcmp(first, first + 1, static_cast<std::size_t>(size - 1)) != 0) mixed_ = true;
      break;
    }
  }
}

ByteSummary Summary::result() const {
  ByteSummary summary;
  if (unknown_ || !any_) return summary;
  summary.kind = mixed_ ? ByteSummary::Kind::kMixed : ByteSummary::Kind::kUniform;
  summary.byte = mixed_ ? std::uint8_t{0} : byte_;
  return summary;
}

void store(const Bytes& bytes, std::uint64_t size, std::uint8_t* to) {
  const auto count = static_cast<std::size_t>(size);
  switch (bytes.kind) {
    case Bytes::Kind::kUnknown:
      std::memset(to, 0xCD, count);
      return;
    case Bytes::Kind::kByte:
      std::memset(to, bytes.byte, count);
      return;
    case Bytes::Kind::kWord:
      for (std::size_t i = 0; i < count; ++i) {
        to[i] = static_cast<std::uint8_t>(bytes.word >> (8 * ((bytes.phase + i) % 4)));
      }
      return;
    case Bytes::Kind::kLiteral:
      std::memcpy(to, bytes.data->data() + bytes.skip, count);
      return;
  }
}

}  // namespace granule::model
