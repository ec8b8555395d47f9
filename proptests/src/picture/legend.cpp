// The legend, the colours, and the style of every class that pictures use.
#include "legend.hpp"

#include <array>
#include <string>

#include "svg.hpp"

namespace granule::prop::picture {
namespace {

/// Tints of the Okabe-Ito colours, which people with any common colour vision tell apart, light
/// enough for black letters.
constexpr std::array<std::string_view, 8> kColours{"#F2B84B", "#8ECDF2", "#5CC2A3", "#F3EA7A",
                                                   "#7FA9DB", "#EE955A", "#E3A9C9", "#C4C4C4"};

constexpr std::string_view kStyle = R"(
svg.space text{font-family:"DejaVu Sans",Verdana,Arial,sans-serif;font-size:11px;fill:#222}
svg.space .paper{fill:#fff}
svg.space .title{font-size:15px;font-weight:bold}
svg.space .when{font-size:12px}
svg.space .failure{font-size:12px;font-weight:bold;fill:#A3160B}
svg.space .note{fill:#555}
svg.space .address{font-family:"DejaVu Sans Mono",Menlo,Consolas,monospace;font-weight:bold}
svg.space .about,svg.space .who,svg.space .other-name{fill:#444}
svg.space .who,svg.space .offset,svg.space .size,svg.space .may{font-size:10px}
svg.space .offset{fill:#666}
svg.space .name{font-weight:bold}
svg.space .other-name{font-style:italic}
svg.space .memory{font-size:13px;font-weight:bold}
svg.space .faint{fill:#777}
svg.space .bar{fill:#fff;stroke:#222;stroke-width:1.5}
svg.space .bar.suspended{stroke-dasharray:5 3;fill:#fafafa}
svg.space .bar.taken{fill:#eee;stroke:#999;stroke-width:1}
svg.space .bar.aside{fill:#fff;stroke:#777;stroke-width:1;stroke-dasharray:2 2}
svg.space .gap{fill:#f4f4f4;stroke:#999;stroke-dasharray:2 3}
svg.space .box{stroke:#222}
svg.space .hatch{stroke:#fff;stroke-width:2.5;fill:none}
svg.space .hatch-bad{stroke:#A3160B;stroke-width:1;fill:none}
svg.space .bad{fill:none;stroke:#A3160B;stroke-width:3}
svg.space .may-write{fill:#333}
svg.space .may-read{fill:#ddd;stroke:#333}
svg.space .may-not{fill:none;stroke:#999;stroke-dasharray:2 2}
svg.space .on-dark{fill:#fff}
svg.space .break{stroke:#222;stroke-width:1.5}
svg.space .tick{stroke:#888}
)";

class Legend {
 public:
  Legend(Canvas& canvas, Place at) : canvas_(canvas), at_(at) {}

  /// Starts a line: its text, and where its sign goes.
  Area line(std::string_view text) {
    constexpr int kLine = 19;
    at_.y += kLine;
    canvas_.text({at_.x + 46, at_.y + 11}, "note", text);
    return {at_.x, at_.y, 36, 14};
  }
  Canvas& canvas() { return canvas_; }
  int bottom() const { return at_.y + 14; }

 private:
  Canvas& canvas_;
  Place at_;
};

void add_memory(Legend& legend, const Seen& seen) {
  Canvas& canvas = legend.canvas();
  if (seen.mapped) {
    const Area sign = legend.line(
        seen.twice
            ? "mapped memory; each physical allocation has a letter. x2: mapped at two places, "
              "which have the same letter. Colours come again, letters do not"
            : "mapped memory; each physical allocation has a letter and a colour");
    canvas.rect(sign, "box", colour_of("A"));
    canvas.text({sign.x + 4, sign.y + 12}, "memory", seen.twice ? "A x2" : "A");
  }
  if (seen.gap) canvas.rect(legend.line("reserved addresses with nothing mapped"), "gap");
  if (seen.block) canvas.rect(legend.line("memory that no reservation holds"), "box", kBlockColour);
  if (seen.put_aside || seen.freed) {
    const Area sign = legend.line(
        "memory that no buffer has any more: pending (a free behind unfinished work), parked (kept "
        "for a capture or after a failed wait), idle (kept for reuse)");
    canvas.rect(sign, "box", colour_of("A"));
    canvas.hatch({sign.x + 1, sign.y + 1, sign.width - 2, sign.height - 2}, 7, "hatch");
  }
  if (seen.quarantined) {
    const Area sign = legend.line("quarantined: the driver would not unmap it");
    canvas.rect(sign, "box", colour_of("A"));
    canvas.hatch({sign.x + 1, sign.y + 1, sign.width - 2, sign.height - 2}, 7, "hatch-bad");
    canvas.rect({sign.x + 1, sign.y + 1, sign.width - 2, sign.height - 2}, "bad");
  }
}

void add_names(Legend& legend, const Seen& seen) {
  Canvas& canvas = legend.canvas();
  if (seen.buffer)
    canvas.rect(legend.line(seen.held ? "an open buffer and the bytes that it shows; held: a range "
                                        "that only a holder keeps"
                                      : "an open buffer and the bytes that it shows"),
                "bar");
  if (seen.suspended)
    canvas.rect(legend.line("a suspended buffer: it keeps its addresses, its memory is given back"),
                "bar suspended");
  if (seen.taken)
    canvas.rect(legend.line("a name of the program for addresses or memory that it took itself"),
                "bar taken");
}

void add_strips(Legend& legend, const Snapshot& shot, const Seen& seen) {
  Canvas& canvas = legend.canvas();
  if (seen.mapped) {
    const Area sign = legend.line("access of a device: read and write, read only, none");
    const int third = sign.width / 3;
    canvas.rect({sign.x, sign.y, third - 2, sign.height}, "may-write");
    canvas.rect({sign.x + third, sign.y, third - 2, sign.height}, "may-read");
    canvas.rect({sign.x + 2 * third, sign.y, third - 2, sign.height}, "may-not");
  }
  std::string scale = "1g is a granule: " + std::to_string(shot.granule >> 10) + " KiB";
  if (seen.shortened) scale += "; // at an edge: longer than it is drawn";
  legend.line(scale);
}

}  // namespace

std::string_view picture_style() { return kStyle; }

std::string_view colour_of(std::string_view memory) {
  std::size_t number = 0;
  for (const char c : memory) number = number * 26 + static_cast<std::size_t>(c - 'A') + 1;
  return kColours[(number + kColours.size() - 1) % kColours.size()];
}

int draw_legend(Canvas& canvas, const Snapshot& snapshot, const Seen& seen, Place at) {
  Legend legend(canvas, at);
  add_memory(legend, seen);
  add_names(legend, seen);
  add_strips(legend, snapshot, seen);
  return legend.bottom();
}

}  // namespace granule::prop::picture
