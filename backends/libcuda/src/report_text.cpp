// The report as text and as JSON.
#include <cstdio>
#include <string>

#include "report.hpp"

namespace granule::libcuda {
namespace {

std::string size_text(std::uint64_t bytes) {
  static constexpr std::pair<const char*, int> kUnits[] = {{"GiB", 30}, {"MiB", 20}, {"KiB", 10}};
  for (const auto& [unit, shift] : kUnits)
    if (bytes >> shift != 0 && bytes % (std::uint64_t{1} << shift) == 0)
      return std::to_string(bytes >> shift) + " " + unit;
  return std::to_string(bytes) + " bytes";
}

const char* describe(const std::string& kind) {
  if (kind == "handle") return "handle reference";
  if (kind == "pointer") return "allocation";
  return kind.c_str();
}

std::string hex(std::uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string site_text(const Site& site) {
  std::string text;
  // From the driver call out to the user's code, and two frames of that.
  std::size_t own = 0;
  for (std::size_t i = 0; i < site.python_count && own < 3; ++i) {
    const PythonFrame& frame = site.python[i];
    text +=
        "      " + *frame.file + ":" + std::to_string(frame.line) + " in " + *frame.function + "\n";
    if (own != 0 || !is_installed(*frame.file)) ++own;
  }
  std::size_t left = site.python_count != 0 ? 1 : 12;
  for (const NamedFrame& frame : name_frames(site)) {
    if (left-- == 0) break;
    text += "      " + (frame.function.empty() ? "?" : frame.function) + "  [" + frame.module +
            "+" + hex(frame.offset) + "]\n";
    if (frame.function == "main") break;
  }
  return text;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", static_cast<unsigned>(c));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

template <class List, class Write>
std::string joined(const List& list, Write&& write) {
  std::string out;
  for (const auto& item : list) {
    if (!out.empty()) out += ",";
    out += write(item);
  }
  return out;
}

std::string json_of(const Finding& finding) {
  std::string python;
  for (std::size_t i = 0; i < finding.site.python_count; ++i) {
    const PythonFrame& frame = finding.site.python[i];
    if (i != 0) python += ",";
    python += "{\"file\":" + quoted(*frame.file) + ",\"line\":" + std::to_string(frame.line) +
              ",\"function\":" + quoted(*frame.function) + "}";
  }
  const std::string stack = joined(name_frames(finding.site), [](const NamedFrame& frame) {
    return "{\"module\":" + quoted(frame.module) + ",\"function\":" + quoted(frame.function) +
           ",\"offset\":" + std::to_string(frame.offset) + "}";
  });
  return "{\"id\":" + quoted(finding.id) + ",\"type\":" + quoted(finding.type) +
         ",\"kind\":" + quoted(finding.kind) + ",\"call\":" + quoted(finding.call) +
         ",\"message\":" + quoted(finding.message) + ",\"count\":" + std::to_string(finding.count) +
         ",\"bytes\":" + std::to_string(finding.bytes) +
         ",\"suppressed\":" + (finding.suppressed ? "true" : "false") + ",\"python\":[" + python +
         "],\"stack\":[" + stack + "],\"text\":" + quoted(to_text(finding)) + "}";
}

}  // namespace

std::string to_text(const Finding& finding) {
  std::string text = finding.id + "\n";
  if (finding.type == "leak") {
    text += "    " + std::to_string(finding.count) + " " + describe(finding.kind);
    if (finding.count > 1) text += "s";
    if (finding.bytes != 0) text += ", " + size_text(finding.bytes);
    text += ", never given back; made by " + finding.call + " at\n";
  } else {
    text += "    " + finding.message;
    if (finding.count > 1) text += " (" + std::to_string(finding.count) + " times)";
    text += "; in " + finding.call + " at\n";
  }
  return text + site_text(finding.site);
}

std::string to_text(const Report& report) {
  std::string text;
  for (const Finding& finding : report.findings)
    if (!finding.suppressed) text += to_text(finding);
  for (const std::string& failed : report.books.failed_calls) text += "fault: " + failed + "\n";
  for (const auto& [name, count] : report.books.unsupported)
    text += "not simulated: " + name + " (" + std::to_string(count) + " calls)\n";
  const std::uint64_t open = report.open_findings();
  return text + "granule sim: " + std::to_string(open) + (open == 1 ? " finding" : " findings") +
         " in " + std::to_string(report.books.calls) + " driver calls\n";
}

std::string to_json(const Report& report) {
  const auto text = [](const std::string& one) { return quoted(one); };
  std::string json = "{\"findings\":[" + joined(report.findings, json_of) + "]";
  json += ",\"calls\":" + std::to_string(report.books.calls);
  json += ",\"faults\":[" + joined(report.books.failed_calls, text) + "]";
  json += ",\"fired\":[" +
          joined(report.books.fired, [](std::uint64_t n) { return std::to_string(n); }) + "]";
  json += ",\"points\":[" + joined(report.books.points, text) + "]";
  json += ",\"unsupported\":{" + joined(report.books.unsupported, [](const auto& entry) {
            return quoted(entry.first) + ":" + std::to_string(entry.second);
          });
  return json + "},\"pid\":" + std::to_string(getpid()) + "}\n";
}

}  // namespace granule::libcuda
