// Where the parts of one row of a picture stand: boxes, pixels for addresses, levels for names.
// All in whole numbers, so that every machine draws the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <granule/prop/snapshot.hpp>

namespace granule::prop::picture {

/// Boxes a row has before mappings that are alike become one.
inline constexpr std::size_t kMostBoxes = 40;
/// Of a row that has too many boxes even then: so many of its beginning and its end stay.
inline constexpr std::size_t kBoxesKeptFirst = 24;
inline constexpr std::size_t kBoxesKeptLast = 8;
/// Names above a row stand on so many levels at most.
inline constexpr std::size_t kMostLevels = 10;
/// Bytes up to so many granules are to scale.
inline constexpr std::uint64_t kGranulesToScale = 8;
/// Width of a row, unless it has more boxes than fit.
inline constexpr int kRowWidth = 1000;

/// A part of a row: nothing mapped, one piece, several alike, or several that are left out.
struct Box {
  enum class Kind : std::uint8_t { kGap, kPiece, kRun, kOmitted };
  Kind kind = Kind::kGap;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::size_t first = 0;  // index of its first piece
  std::size_t count = 0;  // of pieces
};

/// Addresses of a row to pixels, in steps that are linear each.
class Scale {
 public:
  struct Step {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    int x = 0;
    int width = 0;
    bool shortened = false;
  };
  Scale(const Row& row, const std::vector<Box>& boxes, std::uint64_t granule);
  /// Pixels from the left edge of the row.
  int x(std::uint64_t address) const;
  int width() const { return steps_.empty() ? 0 : steps_.back().x + steps_.back().width; }
  const std::vector<Step>& steps() const { return steps_; }

 private:
  std::vector<Step> steps_;
};

/// A name above a row.
struct Label {
  const Viewer* viewer = nullptr;
  int x = 0;
  int width = 0;   // of its bar
  int text_x = 0;  // in the bar, or behind it if the text is longer
  std::size_t level = 0;
  std::string text;
};

struct RowLayout {
  std::vector<Box> boxes;
  Scale scale;
  std::vector<Label> labels;
  std::size_t levels = 0;
  std::size_t labels_left_out = 0;
};

/// Lays out a row. `row` outlives the layout.
RowLayout lay_out(const Row& row, std::uint64_t granule);

/// Pixels that text takes at 11 pixels a line, roughly, and never too few.
int text_width(std::string_view text);

}  // namespace granule::prop::picture
