// The address window of one pool: which bytes are live, which are free and since when, and which
// 32 MiB pieces hold physical memory. Offsets only; knows no streams beyond the tags it is given.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace granule::model {

/// Physical memory of a pool comes and goes in pieces of this size.
inline constexpr std::uint64_t kPoolPiece = std::uint64_t{32} << 20;
/// Blocks start at multiples of this and are rounded up to it.
inline constexpr std::uint64_t kPoolUnit = 512;

/// The place of an operation in the order of its stream. Stream numbers are the model's own, never
/// used twice; positions count up along the stream.
struct StreamPoint {
  std::uint64_t stream = 0;
  std::uint64_t position = 0;
  friend constexpr auto operator<=>(const StreamPoint&, const StreamPoint&) = default;
};

/// A half-open range of offsets.
struct Span {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  constexpr std::uint64_t size() const { return end - begin; }
  friend constexpr bool operator==(const Span&, const Span&) = default;
};

/// A set of offsets, held as disjoint, non-touching spans in ascending order.
class SpanSet {
 public:
  void insert(Span span);
  void erase(Span span);
  bool contains(Span span) const;
  std::uint64_t total() const { return total_; }
  /// The parts of `span` that are not in the set, ascending.
  std::vector<Span> missing(Span span) const;
  const std::map<std::uint64_t, std::uint64_t>& spans() const { return spans_; }

 private:
  std::map<std::uint64_t, std::uint64_t> spans_;  // begin -> end
  std::uint64_t total_ = 0;
};

/// Free bytes of a window with the free that each waits for. A byte without a tag is anybody's.
/// Equal neighbours are one extent.
class FreeMap {
 public:
  struct Extent {
    std::uint64_t end = 0;
    std::optional<StreamPoint> freed;
  };
  using Usable = std::function<bool(const StreamPoint&)>;

  /// One extent without a tag over the whole window.
  explicit FreeMap(std::uint64_t window) { extents_[0] = {window, std::nullopt}; }

  void give(Span span, std::optional<StreamPoint> freed);
  /// Takes a span that is free throughout; returns the tags that it carried.
  std::vector<StreamPoint> take(Span span);
  /// Removes every tag that is `seen`.
  void settle(const Usable& seen);
  /// Maximal runs of bytes that are untagged or whose tags are all `usable`, ascending.
  std::vector<Span> runs(const Usable& usable) const;
  /// Maximal runs without a tag.
  std::vector<Span> clean_runs() const;
  bool all_free(Span span, const Usable& usable) const;
  /// Maximal runs of bytes with the tags of one stream, ascending.
  std::vector<Span> runs_of_one_stream() const;
  /// Whether the span, which is free, has the tags of one stream only.
  bool is_of_one_stream(Span span) const;
  const std::map<std::uint64_t, Extent>& extents() const { return extents_; }

 private:
  using Iterator = std::map<std::uint64_t, Extent>::iterator;
  Iterator split(std::uint64_t at);
  Iterator merge_with_next(Iterator it);

  std::map<std::uint64_t, Extent> extents_;  // begin -> extent
};

}  // namespace granule::model
