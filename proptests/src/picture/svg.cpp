// The picture of a snapshot: rows of boxes under the names that see them, and what all of it means.
#include "svg.hpp"

#include <algorithm>
#include <array>

#include <granule/prop/text.hpp>

#include "canvas.hpp"
#include "layout.hpp"
#include "legend.hpp"

namespace granule::prop::picture {
namespace {

constexpr int kMargin = 16;
constexpr int kGutter = 78;  // left of the rows: who has access
constexpr int kLeft = kMargin + kGutter;
constexpr int kTextLine = 16;
constexpr int kLevelHeight = 18;
constexpr int kBoxHeight = 36;
constexpr int kAccessHeight = 13;
constexpr int kBetweenRows = 16;
constexpr std::size_t kLineLength = 140;  // characters of a caption
constexpr std::size_t kRowsKeptFirst = 40;
constexpr std::size_t kRowsKeptLast = 20;

/// "3 MiB" where that is exact, "1.5 GiB" otherwise rounded down, "512 B".
std::string human_text(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits{"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  std::size_t unit = 0;
  std::uint64_t size = std::uint64_t{1} << 10;
  for (; unit + 1 < kUnits.size() && bytes >> 10 >= size; ++unit) size <<= 10;
  std::string text = std::to_string(bytes / size);
  const std::uint64_t tenth = bytes % size / (size / 10);
  if (bytes % size != 0) text += "." + std::to_string(std::min<std::uint64_t>(tenth, 9));
  return text + " " + std::string(kUnits[unit]);
}

std::string size_text(std::uint64_t bytes, std::uint64_t granule) {
  const std::string amount = amount_text(bytes, granule);
  return amount.back() == 'g' ? amount + " (" + human_text(bytes) + ")" : human_text(bytes);
}

/// Lines of at most kLineLength bytes, broken at spaces; line breaks stay.
std::vector<std::string> wrapped(const std::string& text) {
  std::vector<std::string> lines(1);
  std::string word;
  const auto add_word = [&] {
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > kLineLength)
      lines.emplace_back();
    if (!lines.back().empty() && !word.empty()) lines.back() += ' ';
    lines.back() += word;
    word.clear();
  };
  for (const char c : text) {
    if (c != ' ' && c != '\n') {
      word += c;
      continue;
    }
    add_word();
    if (c == '\n') lines.emplace_back();
  }
  add_word();
  return lines;
}

/// Puts rows under each other.
class Painter {
 public:
  explicit Painter(const Snapshot& shot) : shot_(shot) {}

  void add_lines(const std::string& text, std::string_view type) {
    for (const std::string& line : wrapped(text)) {
      y_ += kTextLine + 2;
      canvas_.text({kMargin, y_}, type, line);
      widen(kMargin + text_width(line));
    }
  }

  void add_rows() {
    y_ += 8;
    const std::size_t count = shot_.rows.size();
    const bool thin = count > kRowsKeptFirst + kRowsKeptLast;
    for (std::size_t i = 0; i < count; ++i) {
      if (thin && i == kRowsKeptFirst) {
        const std::size_t left_out = count - kRowsKeptFirst - kRowsKeptLast;
        add_lines("... " + std::to_string(left_out) + " rows between are not drawn", "note");
        y_ += kBetweenRows;
        i += left_out;
      }
      add_row(shot_.rows[i], i == 0 ? nullptr : &shot_.rows[i - 1]);
    }
    if (count == 0) add_lines("no address is reserved or mapped", "note");
  }

  void add_totals() {
    y_ += 4;
    if (!shot_.loose.empty()) add_lines(loose_text(shot_), "when");
    add_lines(totals_text(shot_), "note");
    if (!shot_.uses_known)
      add_lines("an operation was under way: what is pending, parked, idle or held is not known",
                "note");
  }

  void add_legend() {
    y_ = draw_legend(canvas_, shot_, seen_, {kMargin, y_ + 6});
    widen(kMargin + kLegendWidth);
  }

  std::string finish(std::string_view style) const {
    const std::string width = std::to_string(right_ + kMargin);
    const std::string height = std::to_string(y_ + kMargin);
    std::string svg = R"(<svg xmlns="http://www.w3.org/2000/svg" width=")" + width +
                      R"(" height=")" + height + R"(" viewBox="0 0 )" + width + " " + height +
                      "\" class=\"space\" role=\"img\">\n";
    if (!style.empty()) svg += "<style>" + std::string(style) + "</style>\n";
    svg += "<rect width=\"100%\" height=\"100%\" class=\"paper\"/>\n";
    return svg + canvas_.elements() + "</svg>\n";
  }

 private:
  void widen(int right) { right_ = std::max(right_, right); }

  void add_row(const Row& row, const Row* above) {
    const RowLayout layout = lay_out(row, shot_.granule);
    add_header(row, above);
    add_labels(layout);
    const int top = y_;
    for (const Box& box : layout.boxes) add_box(row, layout.scale, box, top);
    mark_shortened(layout.scale, top);
    y_ += kBoxHeight;
    if (row.kind == Row::Kind::kReservation && !row.pieces.empty())
      for (std::size_t i = 0; i < shot_.accessors.size(); ++i) add_access(row, layout, i);
    add_offsets(row, layout);
    widen(kLeft + layout.scale.width());
    y_ += kBetweenRows;
  }

  void add_header(const Row& row, const Row* above) {
    y_ += kTextLine;
    const std::string address = address_text(row.base);
    canvas_.text({kMargin, y_}, "address", address);
    std::string text;
    std::uint64_t mapped = 0;
    for (const Piece& piece : row.pieces) mapped += piece.size;
    switch (row.kind) {
      case Row::Kind::kReservation:
        text = "reserved " + size_text(row.size, shot_.granule) + ", mapped " +
               size_text(mapped, shot_.granule) + distance_text(row, above);
        break;
      case Row::Kind::kPlain:
        text = "plain memory (cuMemAlloc), " + human_text(mapped);
        break;
      case Row::Kind::kPool:
        text = "pool blocks, " + human_text(mapped);
        break;
    }
    canvas_.text({kMargin + text_width(address) + 18, y_}, "about", text);
    widen(kMargin + text_width(address) + 18 + text_width(text));
    y_ += 6;
  }

  std::string distance_text(const Row& row, const Row* above) const {
    if (!above) return "";
    if (above->end() == row.base) return "; directly behind the row above";
    return "; behind the row above " + size_text(row.base - above->end(), shot_.granule) +
           " are not reserved";
  }

  void add_labels(const RowLayout& layout) {
    if (layout.labels_left_out != 0) {
      y_ += kLevelHeight;
      canvas_.text({kLeft, y_ - 5}, "note",
                   "and " + std::to_string(layout.labels_left_out) + " more names");
    }
    for (const Label& label : layout.labels) {
      const int level = static_cast<int>(layout.levels - 1 - label.level);
      const Viewer& viewer = *label.viewer;
      const int top = y_ + level * kLevelHeight;
      canvas_.begin_group(viewer.name + ": " + address_text(viewer.base) + ", " +
                          size_text(viewer.size, shot_.granule) +
                          (viewer.suspended ? ", suspended" : ""));
      canvas_.rect({kLeft + label.x, top, label.width, kLevelHeight - 3}, style_of(viewer));
      canvas_.text({kLeft + label.text_x, top + 11},
                   viewer.kind == Viewer::Kind::kBuffer ? "name" : "other-name", label.text);
      canvas_.end_group();
      widen(kLeft + label.text_x + text_width(label.text));
    }
    y_ += static_cast<int>(layout.levels) * kLevelHeight;
  }

  std::string_view style_of(const Viewer& viewer) {
    if (viewer.kind == Viewer::Kind::kReservation || viewer.kind == Viewer::Kind::kBlock) {
      seen_.taken = true;
      return "bar taken";
    }
    if (viewer.kind == Viewer::Kind::kRange) {
      seen_.put_aside = true;
      return "bar aside";
    }
    if (viewer.kind == Viewer::Kind::kHolder) seen_.held = true;
    (viewer.suspended ? seen_.suspended : seen_.buffer) = true;
    return viewer.suspended ? "bar suspended" : "bar";
  }

  void add_box(const Row& row, const Scale& scale, const Box& box, int top) {
    const int x = scale.x(box.begin);
    const Area area{kLeft + x, top, scale.x(box.end) - x, kBoxHeight};
    switch (box.kind) {
      case Box::Kind::kGap:
        if (row.kind == Row::Kind::kReservation) {
          canvas_.begin_group("reserved, nothing mapped: " + address_text(box.begin) + ", " +
                              size_text(box.end - box.begin, shot_.granule));
          canvas_.rect(area, "gap");
          add_size(area, box.end - box.begin);
          canvas_.end_group();
          seen_.gap = true;
        }
        return;
      case Box::Kind::kOmitted:
        canvas_.rect(area, "gap");
        canvas_.text({area.x + 6, top + 15}, "size", "not drawn:");
        canvas_.text({area.x + 6, top + 29}, "size",
                     std::to_string(box.count) +
                         (row.kind == Row::Kind::kReservation ? " mappings" : " blocks"));
        return;
      case Box::Kind::kPiece:
      case Box::Kind::kRun:
        add_pieces(row, box, area);
        return;
    }
  }

  void add_pieces(const Row& row, const Box& box, const Area& area) {
    const Piece& first = row.pieces[box.first];
    const Piece& last = row.pieces[box.first + box.count - 1];
    canvas_.begin_group(about(row, box));
    const bool block = first.memory.empty();
    canvas_.rect(area, "box", block ? kBlockColour : colour_of(first.memory));
    (block ? seen_.block : seen_.mapped) = true;
    if (first.freed) seen_.freed = true;
    const Area inside{area.x + 1, area.y + 1, area.width - 2, area.height - 2};
    if (first.use == Use::kQuarantined) {
      canvas_.hatch(inside, 7, "hatch-bad");
      canvas_.rect(inside, "bad");
      seen_.quarantined = true;
    } else if (first.freed || first.use == Use::kRetired || first.use == Use::kParked ||
               first.use == Use::kIdle) {
      canvas_.hatch(inside, 7, "hatch");
    }
    std::string letter = first.memory;
    if (box.count > 1 && !block) letter += "-" + last.memory;
    if (first.mapped > 1) letter += " x" + std::to_string(first.mapped);
    if (first.use == Use::kQuarantined) letter += " Q";
    seen_.twice = seen_.twice || first.mapped > 1;
    if (text_width(letter) + 4 <= area.width + 6)
      canvas_.text({area.x + 4, area.y + 15}, "memory", letter);
    else if (text_width(first.memory) <= area.width)
      canvas_.text({area.x + 2, area.y + 15}, "memory", first.memory);
    std::string size = block ? human_text(first.size) : amount_text(first.size, shot_.granule);
    if (box.count > 1) size = std::to_string(box.count) + " x " + size;
    if (first.location != device_location({0})) size += " on " + short_text(first.location);
    if (text_width(size) - 6 <= area.width) canvas_.text({area.x + 4, area.y + 30}, "size", size);
    canvas_.end_group();
  }

  void add_size(const Area& area, std::uint64_t bytes) {
    const std::string size = amount_text(bytes, shot_.granule);
    if (text_width(size) - 6 <= area.width)
      canvas_.text({area.x + 4, area.y + 30}, "size faint", size);
  }

  static std::string short_text(const Location& location) {
    if (location.type == LocationType::kDevice) return "dev " + std::to_string(location.id);
    return location.type == LocationType::kHost ? "host" : "numa";
  }

  std::string about(const Row& row, const Box& box) const {
    const Piece& first = row.pieces[box.first];
    const Piece& last = row.pieces[box.first + box.count - 1];
    std::string text = first.memory.empty() ? "block" : first.memory;
    if (box.count > 1)
      text += (last.memory.empty() ? "" : " to " + last.memory) + ", " + std::to_string(box.count) +
              " alike";
    text += ": " + address_text(first.base) + " (+" +
            amount_text(first.base - row.base, shot_.granule) + "), " +
            size_text(first.size, shot_.granule) + ", memory of " + to_text(first.location);
    for (std::size_t i = 0; i < first.access.size(); ++i)
      text += ", " + to_text(shot_.accessors[i]) + " " + std::string(name_of(first.access[i]));
    if (first.mapped > 1) text += ", mapped " + std::to_string(first.mapped) + " times";
    if (first.use != Use::kUntold) text += ", " + std::string(name_of(first.use));
    if (first.freed) text += ", freed behind unfinished work";
    return text;
  }

  void mark_shortened(const Scale& scale, int top) {
    for (const Scale::Step& step : scale.steps()) {
      if (!step.shortened || step.width < 16) continue;
      seen_.shortened = true;
      const int x = kLeft + step.x + step.width - 12;
      for (const int edge : {top, top + kBoxHeight}) {
        canvas_.line({x - 3, edge + 4}, {x + 1, edge - 4}, "break");
        canvas_.line({x + 2, edge + 4}, {x + 6, edge - 4}, "break");
      }
    }
  }

  /// A strip of what one device may do, neighbours of the same access in one.
  void add_access(const Row& row, const RowLayout& layout, std::size_t accessor) {
    canvas_.text({kMargin, y_ + 10}, "who", to_text(shot_.accessors[accessor]));
    const std::vector<Box>& boxes = layout.boxes;
    for (std::size_t i = 0; i < boxes.size();) {
      const Box& box = boxes[i];
      std::size_t end = i + 1;
      if (box.kind == Box::Kind::kGap || box.kind == Box::Kind::kOmitted) {
        i = end;
        continue;
      }
      const Access access = row.pieces[box.first].access[accessor];
      while (end < boxes.size() && boxes[end].count != 0 &&
             boxes[end].kind != Box::Kind::kOmitted &&
             row.pieces[boxes[end].first].access[accessor] == access)
        ++end;
      const int x = layout.scale.x(box.begin);
      const Area area{kLeft + x, y_ + 1, layout.scale.x(boxes[end - 1].end) - x, kAccessHeight - 2};
      canvas_.rect(area, access == Access::kReadWrite ? "may-write"
                         : access == Access::kRead    ? "may-read"
                                                      : "may-not");
      canvas_.text({area.x + 4, area.y + 9}, access == Access::kReadWrite ? "may on-dark" : "may",
                   name_of(access));
      i = end;
    }
    y_ += kAccessHeight;
  }

  void add_offsets(const Row& row, const RowLayout& layout) {
    int free_from = 0;
    for (const Box& box : layout.boxes) {
      const int x = layout.scale.x(box.begin);
      const std::string text = "+" + amount_text(box.begin - row.base, shot_.granule);
      if (x < free_from) continue;
      canvas_.line({kLeft + x, y_}, {kLeft + x, y_ + 4}, "tick");
      canvas_.text({kLeft + x + 2, y_ + 11}, "offset", text);
      free_from = x + text_width(text) + 6;
    }
    y_ += 14;
  }

  const Snapshot& shot_;
  Canvas canvas_;
  Seen seen_;
  int y_ = kMargin - 6;
  int right_ = 0;
};

}  // namespace

std::string when_text(const Story& story, const StoryStep* step) {
  if (!step) return story.failed_at_the_end() ? "at the end of the program" : "at the end";
  const Statement& s = story.program->statements[step->statement];
  std::string text = "after line " + std::to_string(s.line.number) + ": ";
  if (!s.thread.empty()) text += s.thread + ": ";
  text += to_text(s) + "   -> " + step->reply;
  return text;
}

std::string svg_for_page(const Snapshot& snapshot) {
  Painter painter(snapshot);
  painter.add_rows();
  painter.add_totals();
  painter.add_legend();
  return painter.finish({});
}

}  // namespace granule::prop::picture

namespace granule::prop {

std::string svg_of(const Snapshot& snapshot, const Caption& caption) {
  picture::Painter painter(snapshot);
  if (!caption.title.empty()) painter.add_lines(caption.title, "title");
  if (!caption.when.empty()) painter.add_lines(caption.when, "when");
  if (!caption.failure.empty()) painter.add_lines(caption.failure, "failure");
  painter.add_rows();
  painter.add_totals();
  painter.add_legend();
  return painter.finish(picture::picture_style());
}

std::string svg_of(const Story& story) {
  Caption caption;
  caption.title = "program " + story.program->name;
  if (story.report.status == RunStatus::kUnmet)
    caption.when = "not run: it needs " + story.report.unmet;
  else if (!story.report.failure && !story.steps.empty())  // else the failure says it
    caption.when = picture::when_text(story, &story.steps.back());
  if (story.report.failure) caption.failure = describe(*story.program, *story.report.failure);
  return svg_of(story.pictures.empty() ? Snapshot() : story.pictures.back(), caption);
}

}  // namespace granule::prop
