// Text inside XML, for reports that machines read.
#pragma once

#include <string>
#include <string_view>

namespace granule::prop {

/// `text` as it may stand in an element or an attribute; control characters become `?`. May throw
/// std::bad_alloc. Thread-safe.
inline std::string xml_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? '?' : c;
    }
  }
  return out;
}

}  // namespace granule::prop
