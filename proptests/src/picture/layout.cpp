// Joining boxes, dividing pixels, stacking names.
#include "layout.hpp"

#include <algorithm>
#include <set>

namespace granule::prop::picture {
namespace {

constexpr int kGranuleWidth = 38;
constexpr int kPartWidth = 50;      // of less than a granule
constexpr int kDoublingWidth = 14;  // of each doubling beyond what is to scale
constexpr int kRunWidth = 110;
constexpr int kOmittedWidth = 170;
constexpr int kLeastWidth = 5;
constexpr std::size_t kLeastRun = 4;
constexpr std::size_t kMostViewerEdges = 60;

std::set<std::uint64_t> edges_of(const Row& row) {
  std::set<std::uint64_t> edges;
  for (const Viewer& viewer : row.viewers) {
    edges.insert(viewer.base);
    edges.insert(viewer.end());
  }
  return edges;
}

bool alike(const Piece& a, const Piece& b) {
  return a.end() == b.base && a.size == b.size && a.location == b.location &&
         a.access == b.access && a.use == b.use && a.freed == b.freed && a.mapped == b.mapped;
}

void add_gap(std::vector<Box>& boxes, std::uint64_t begin, std::uint64_t end) {
  if (begin < end) boxes.push_back({Box::Kind::kGap, begin, end, 0, 0});
}

/// One box a piece, or one for each run of at least kLeastRun that are alike, where `join`.
std::vector<Box> boxes_of(const Row& row, bool join) {
  const std::set<std::uint64_t> edges = join ? edges_of(row) : std::set<std::uint64_t>();
  std::vector<Box> boxes;
  std::uint64_t at = row.base;
  const std::vector<Piece>& pieces = row.pieces;
  for (std::size_t i = 0; i < pieces.size();) {
    std::size_t end = i + 1;
    while (join && end < pieces.size() && alike(pieces[end - 1], pieces[end]) &&
           edges.count(pieces[end].base) == 0)
      ++end;
    if (end - i < kLeastRun) end = i + 1;
    add_gap(boxes, at, pieces[i].base);
    at = pieces[end - 1].end();
    boxes.push_back(
        {end - i == 1 ? Box::Kind::kPiece : Box::Kind::kRun, pieces[i].base, at, i, end - i});
    i = end;
  }
  add_gap(boxes, at, row.end());
  return boxes;
}

/// The middle of too many boxes becomes one.
std::vector<Box> thinned(std::vector<Box> boxes) {
  if (boxes.size() <= kMostBoxes) return boxes;
  const auto middle = boxes.begin() + kBoxesKeptFirst;
  const auto last = boxes.end() - static_cast<std::ptrdiff_t>(kBoxesKeptLast);
  Box omitted{Box::Kind::kOmitted, middle->begin, std::prev(last)->end, 0, 0};
  for (auto box = middle; box != last; ++box) {
    if (box->count != 0 && omitted.count == 0) omitted.first = box->first;
    omitted.count += box->count;
  }
  *middle = omitted;
  boxes.erase(std::next(middle), last);
  return boxes;
}

/// Pixels of so many bytes: in proportion up to kGranulesToScale, then a few for each doubling.
int width_of(std::uint64_t bytes, std::uint64_t granule) {
  if (bytes < granule) return kPartWidth;
  const std::uint64_t granules = bytes / granule;
  if (granules <= kGranulesToScale) return static_cast<int>(granules) * kGranuleWidth;
  int width = static_cast<int>(kGranulesToScale) * kGranuleWidth;
  std::uint64_t reached = kGranulesToScale;
  for (; granules / 2 >= reached; reached *= 2) width += kDoublingWidth;
  return width + static_cast<int>((granules - reached) * std::uint64_t{kDoublingWidth} / reached);
}

/// Where the pixels of an address and the next change: at boxes, and at names inside single ones.
std::vector<std::uint64_t> cuts_of(const Row& row, const std::vector<Box>& boxes) {
  const std::set<std::uint64_t> edges = edges_of(row);
  std::vector<std::uint64_t> cuts;
  for (const Box& box : boxes) {
    cuts.push_back(box.begin);
    if (edges.size() > kMostViewerEdges || box.count > 1) continue;
    for (auto edge = edges.upper_bound(box.begin); edge != edges.end() && *edge < box.end; ++edge)
      cuts.push_back(*edge);
  }
  cuts.push_back(row.end());
  return cuts;
}

/// What crosses into the row before or behind says so with an arrow.
std::string label_text(const Row& row, const Viewer& viewer, std::uint64_t granule) {
  std::string text = viewer.base < row.base ? "<- " : "";
  text += viewer.name + " " + amount_text(viewer.size, granule);
  if (viewer.suspended) text += " suspended";
  if (row.kind == Row::Kind::kReservation && viewer.end() > row.end()) text += " ->";
  return text;
}

/// Puts each name on the first level where it and its text have room.
void stack_labels(const Row& row, std::uint64_t granule, RowLayout& layout) {
  constexpr int kApart = 6;
  std::vector<int> taken;  // by level: up to which pixel
  for (const Viewer& viewer : row.viewers) {
    Label label;
    label.viewer = &viewer;
    label.x = layout.scale.x(std::max(viewer.base, row.base));
    label.width = std::max(3, layout.scale.x(std::min(viewer.end(), row.end())) - label.x);
    label.text = label_text(row, viewer, granule);
    const int text_end = text_width(label.text);
    const bool inside = text_end + kApart <= label.width + 2;
    label.text_x = label.x + (inside ? 4 : label.width + 4);
    const int end = std::max(label.x + label.width, label.text_x + text_end);
    while (label.level < taken.size() && taken[label.level] > label.x) ++label.level;
    if (label.level >= kMostLevels) {
      ++layout.labels_left_out;
      continue;
    }
    if (label.level == taken.size()) taken.push_back(0);
    taken[label.level] = end + kApart;
    layout.labels.push_back(std::move(label));
  }
  layout.levels = taken.size();
}

}  // namespace

Scale::Scale(const Row& row, const std::vector<Box>& boxes, std::uint64_t granule) {
  const std::vector<std::uint64_t> cuts = cuts_of(row, boxes);
  auto box = boxes.begin();
  int total = 0;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    while (box->end <= cuts[i]) ++box;
    Step step{cuts[i], cuts[i + 1], 0, width_of(cuts[i + 1] - cuts[i], granule), false};
    step.shortened = (step.end - step.begin) / granule > kGranulesToScale;
    if (box->kind == Box::Kind::kRun) step.width = std::max(step.width, kRunWidth);
    if (box->kind == Box::Kind::kOmitted) step.width = kOmittedWidth;
    total += step.width;
    steps_.push_back(step);
  }
  int x = 0;
  for (Step& step : steps_) {
    if (total > kRowWidth) step.width = std::max(kLeastWidth, step.width * kRowWidth / total);
    step.x = x;
    x += step.width;
  }
}

int Scale::x(std::uint64_t address) const {
  for (const Step& step : steps_) {
    if (address >= step.end) continue;
    if (address <= step.begin) return step.x;
    const std::uint64_t bytes = step.end - step.begin;
    const std::uint64_t unit = std::max<std::uint64_t>(1, bytes >> 32);  // so that no product wraps
    return step.x + static_cast<int>((address - step.begin) / unit *
                                     static_cast<std::uint64_t>(step.width) / (bytes / unit));
  }
  return width();
}

RowLayout lay_out(const Row& row, std::uint64_t granule) {
  std::vector<Box> boxes = boxes_of(row, false);
  if (boxes.size() > kMostBoxes) boxes = thinned(boxes_of(row, true));
  Scale scale(row, boxes, granule);
  RowLayout layout{std::move(boxes), std::move(scale), {}, 0, 0};
  stack_labels(row, granule, layout);
  return layout;
}

int text_width(std::string_view text) {
  constexpr int kCharacter = 7;
  return static_cast<int>(text.size()) * kCharacter;
}

}  // namespace granule::prop::picture
