// Stories of short programs, and a reader of XML that says where a text is not well formed.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <granule/prop/picture.hpp>
#include <granule/prop/story.hpp>
#include <granule/prop/text.hpp>

namespace granule::prop {

/// A program and its story, which points into it.
struct Told {
  std::unique_ptr<Program> program;
  Story story;
  const Snapshot& end() const { return story.pictures.back(); }
};

inline Told told(const std::string& text, const RunOptions& options = {},
                 const std::string& file = "test.granule") {
  const ParseResult parsed = parse("granule 1\n" + text, file);
  for (const ParseError& error : parsed.errors) ADD_FAILURE() << to_text(error);
  Told result;
  result.program = std::make_unique<Program>(parsed.document.programs.at(0));
  result.story = tell(*result.program, options);
  return result;
}

/// "" if every element is closed in order, attributes are quoted, and & and < are escaped;
/// otherwise what is wrong and where. Text of <script> and <style> is not looked at.
inline std::string xml_fault(std::string_view xml) {
  std::vector<std::string> open;
  const auto here = [&](std::size_t at, const char* what) {
    return std::string(what) + " at: " + std::string(xml.substr(at, 60));
  };
  for (std::size_t at = 0; at < xml.size(); ++at) {
    const bool raw = !open.empty() && (open.back() == "script" || open.back() == "style");
    if (xml[at] == '&' && !raw) {
      const std::string_view name = xml.substr(at + 1, xml.find(';', at) - at - 1);
      if (name != "amp" && name != "lt" && name != "gt" && name != "quot" && name[0] != '#')
        return here(at, "an entity");
    }
    if (xml[at] != '<') continue;
    if (raw && xml.substr(at, open.back().size() + 2) != "</" + open.back()) continue;
    std::size_t end = at + 1;
    for (bool quoted = false; end < xml.size() && (quoted || xml[end] != '>'); ++end) {
      if (xml[end] == '"') quoted = !quoted;
      if (xml[end] == '<') return here(at, "a < inside a tag");
    }
    if (end == xml.size()) return here(at, "a tag without an end");
    const std::string_view tag = xml.substr(at + 1, end - at - 1);
    const std::string name(tag.substr(0, tag.find_first_of(" />\n", 1)));
    if (tag[0] == '/') {
      if (open.empty() || "/" + open.back() != name) return here(at, "closes what is not open");
      open.pop_back();
    } else if (tag[0] != '!' && tag.back() != '/') {
      open.push_back(name);
    }
    at = end;
  }
  return open.empty() ? "" : "not closed: " + open.back();
}

inline std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size()))
    ++count;
  return count;
}

}  // namespace granule::prop
