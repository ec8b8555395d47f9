// Elements of an SVG picture, appended to a text. Coordinates are whole pixels.
#pragma once

#include <string>
#include <string_view>

#include <granule/prop/xml.hpp>

namespace granule::prop::picture {

struct Place {
  int x = 0;
  int y = 0;
};

struct Area {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
};

class Canvas {
 public:
  void rect(const Area& at, std::string_view type, std::string_view fill = {}) {
    out_ += "<rect" + number("x", at.x) + number("y", at.y) + number("width", at.width) +
            number("height", at.height) + word("class", type) +
            (fill.empty() ? "" : word("fill", fill)) + "/>";
  }
  void text(const Place& at, std::string_view type, std::string_view text) {
    out_ += "<text" + number("x", at.x) + number("y", at.y) + word("class", type) + ">" +
            xml_escaped(text) + "</text>";
  }
  void line(const Place& from, const Place& to, std::string_view type) {
    out_ += "<line" + number("x1", from.x) + number("y1", from.y) + number("x2", to.x) +
            number("y2", to.y) + word("class", type) + "/>";
  }
  /// Slanted lines all over an area.
  void hatch(const Area& at, int apart, std::string_view type) {
    std::string path;
    for (int d = apart; d < at.width + at.height; d += apart) {
      const int over = d > at.width ? d - at.width : 0;  // runs out at the right
      const int down = d > at.height ? at.height : d;
      path += "M" + std::to_string(at.x + d - over) + " " + std::to_string(at.y + over) + "L" +
              std::to_string(at.x + d - down) + " " + std::to_string(at.y + down);
    }
    if (!path.empty()) out_ += "<path" + word("d", path) + word("class", type) + "/>";
  }
  /// What follows until end_group() shows this text to a pointer that rests on it.
  void begin_group(std::string_view tooltip) {
    out_ += "<g><title>" + xml_escaped(tooltip) + "</title>";
  }
  void end_group() { out_ += "</g>\n"; }
  const std::string& elements() const { return out_; }

 private:
  static std::string number(std::string_view name, int value) {
    return " " + std::string(name) + R"(=")" + std::to_string(value) + R"(")";
  }
  static std::string word(std::string_view name, std::string_view value) {
    return " " + std::string(name) + R"(=")" + xml_escaped(value) + R"(")";
  }

  std::string out_;
};

}  // namespace granule::prop::picture
