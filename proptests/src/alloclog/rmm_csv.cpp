// The CSV log of RMM's logging_resource_adaptor.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "alloclog.hpp"

namespace granule::alloclog {
namespace {

enum Column : std::size_t { kThread, kTime, kAction, kPointer, kSize, kStream, kColumns };
constexpr std::array<std::string_view, kColumns> kNames{"Thread",  "Time", "Action",
                                                        "Pointer", "Size", "Stream"};
constexpr std::string_view kHeader = "Thread,Time,Action,Pointer,Size,Stream";

/// `text` as a message may show it: short, and without control characters.
std::string shown(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  std::string out;
  for (const char c : text.substr(0, kLongest))
    out += static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) == 0x7F ? '?' : c;
  return "`" + out + (text.size() > kLongest ? "...`" : "`");
}

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

class CsvReader {
 public:
  explicit CsvReader(std::string_view text) : text_(text) {}

  Trace read() {
    std::string_view line;
    if (!next_line(line) || line.empty()) {
      line_ = 1;
      fail(0, "expected the header `" + std::string(kHeader) + "`, found an empty line");
    }
    read_header(line);
    while (next_line(line)) {
      if (without_blanks(line).empty()) continue;
      try {
        read_event(line);
      } catch (const Unreadable& unreadable) {
        if (!cut_off_) throw;
        trace_.notes.push_back("the last line (" + std::to_string(line_) +
                               ") is cut off and was left out: " + unreadable.error.message);
      }
    }
    return std::move(trace_);
  }

 private:
  [[noreturn]] void fail(std::size_t column, std::string message) const {
    throw Unreadable{{line_, column + 1, start_ + column, std::move(message)}};
  }

  /// The next line without its end; false behind the last.
  bool next_line(std::string_view& line) {
    if (at_ >= text_.size()) return false;
    ++line_;
    start_ = at_;
    const std::size_t end = text_.find('\n', at_);
    cut_off_ = end == std::string_view::npos;
    line = text_.substr(at_, cut_off_ ? std::string_view::npos : end - at_);
    at_ = cut_off_ ? text_.size() : end + 1;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    return true;
  }

  void read_header(std::string_view line) {
    constexpr std::size_t kNone = SIZE_MAX;
    std::array<std::size_t, kColumns> found{};
    found.fill(kNone);
    constexpr std::size_t kMost = 64;
    for (std::size_t begin = 0; begin <= line.size();) {
      const std::size_t end = std::min(line.find(',', begin), line.size());
      const std::string_view name = without_blanks(line.substr(begin, end - begin));
      for (std::size_t i = 0; i < kColumns; ++i)
        if (name == kNames[i]) found[i] = width_;
      if (++width_ > kMost) fail(begin, "expected at most 64 columns");
      begin = end + 1;
    }
    for (const Column needed : {kAction, kPointer, kSize, kStream})
      if (found[needed] == kNone)
        fail(0, "expected the header `" + std::string(kHeader) + "`, found " + shown(line) +
                    ", which has no column " + std::string(kNames[needed]));
    column_ = found;
  }

  struct Field {
    std::string_view text;
    std::size_t at = 0;  // in its line
  };

  void split(std::string_view line) {
    std::size_t count = 0;
    for (std::size_t begin = 0; begin <= line.size();) {
      const std::size_t end = std::min(line.find(',', begin), line.size());
      if (count == width_)
        fail(begin, "expected the line to end behind " + std::to_string(width_) +
                        " columns, found " + shown(line.substr(begin)));
      for (std::size_t i = 0; i < kColumns; ++i)
        if (column_[i] == count)
          fields_[i] = {without_blanks(line.substr(begin, end - begin)), begin};
      ++count;
      begin = end + 1;
    }
    if (count < width_)
      fail(line.size(),
           "expected " + std::to_string(width_) + " columns, found " + std::to_string(count));
  }

  /// A handle: hexadecimal with 0x, or decimal; `(nil)` is null.
  std::uint64_t handle(const Field& field, const char* what) const {
    if (field.text == "(nil)") return 0;
    const bool hex = field.text.substr(0, 2) == "0x" || field.text.substr(0, 2) == "0X";
    return number(field, field.text.substr(hex ? 2 : 0), hex ? 16 : 10, what);
  }

  std::uint64_t number(const Field& field, std::string_view digits, int base,
                       const char* what) const {
    std::uint64_t value = 0;
    const char* const end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, value, base);
    if (error != std::errc() || stop != end)
      fail(field.at, std::string("expected ") + what + ", found " + shown(field.text));
    return value;
  }

  void read_event(std::string_view line) {
    split(line);
    Event event;
    const std::string_view action = fields_[kAction].text;
    if (action == "allocate") {
      event.action = Action::kAllocate;
    } else if (action == "allocate failure") {
      event.action = Action::kFailed;
    } else if (action == "free" || action == "deallocate") {
      event.action = Action::kFree;
    } else {
      fail(fields_[kAction].at,
           "expected `allocate`, `allocate failure` or `free`, found " + shown(action));
    }
    event.pointer = handle(fields_[kPointer], "an address such as 0x7f0000000000");
    event.size = number(fields_[kSize], fields_[kSize].text, 10, "a size in bytes");
    event.stream = handle(fields_[kStream], "a stream such as 0x2");
    const auto added =
        threads_.try_emplace(fields_[kThread].text, static_cast<std::uint32_t>(threads_.size()));
    event.thread = added.first->second;
    event.place = line_;
    trace_.events.push_back(event);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t start_ = 0;  // of the line
  std::uint64_t line_ = 0;
  bool cut_off_ = false;   // the line has no end
  std::size_t width_ = 0;  // columns of the header
  std::array<std::size_t, kColumns> column_{};
  std::array<Field, kColumns> fields_{};
  std::unordered_map<std::string_view, std::uint32_t> threads_;
  Trace trace_;
};

}  // namespace

std::string to_text(const ReadError& error, const std::string& file) {
  if (error.line == 0 && error.offset == ReadError::kNoOffset) return file + ": " + error.message;
  if (error.line == 0)
    return file + ": byte " + std::to_string(error.offset) + ": " + error.message;
  return file + ":" + std::to_string(error.line) + ":" + std::to_string(error.column) + ": " +
         error.message;
}

Trace read_rmm_csv(std::string_view text) { return CsvReader(text).read(); }

}  // namespace granule::alloclog
