// Text inside XML and HTML, for reports and pictures.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace granule::prop {

/// Bytes of the UTF-8 character at `at` that XML allows as it is, or 0 if there is none: bytes that
/// are no UTF-8, and the control characters, surrogates and non-characters that XML 1.0 leaves out.
inline std::size_t xml_character(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(at);
  if (first < 0x80) return first >= 0x20 || first == '\n' || first == '\t' ? 1 : 0;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || at + length > text.size()) return 0;
  unsigned code = first & (0x7Fu >> length);
  for (std::size_t i = at + 1; i < at + length; ++i) {
    if ((byte(i) & 0xC0u) != 0x80u) return 0;
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  const bool shortest = code >= (length == 4 ? 0x10000u : length == 3 ? 0x800u : 0x80u);
  const bool allowed =
      code <= 0x10FFFF && !(code >= 0xD800 && code <= 0xDFFF) && code != 0xFFFE && code != 0xFFFF;
  return shortest && allowed ? length : 0;
}

/// `text` as it may stand in an element or an attribute; what XML does not allow becomes `?`, byte
/// by byte. May throw std::bad_alloc. Thread-safe.
inline std::string xml_escaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = xml_character(text, i);
    const std::string_view one = text.substr(i, length == 0 ? 1 : length);
    i += one.size();
    if (length == 0) {
      out += '?';
    } else if (one == "&") {
      out += "&amp;";
    } else if (one == "<") {
      out += "&lt;";
    } else if (one == ">") {
      out += "&gt;";
    } else if (one == "\"") {
      out += "&quot;";
    } else {
      out += one;
    }
  }
  return out;
}

}  // namespace granule::prop
