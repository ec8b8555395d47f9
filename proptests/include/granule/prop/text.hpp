// Text to programs and back. parse(print(document)) == document for every document that parses.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <granule/prop/program.hpp>

namespace granule::prop {

/// One thing that is wrong with a text. Lines and columns count from 1, columns in bytes.
struct ParseError {
  std::string file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::string message;  // what was expected, and what stood there
};
/// FILE:LINE:COLUMN: MESSAGE
std::string to_text(const ParseError& error);

struct ParseResult {
  Document document;               // what could be read, if there are errors
  std::vector<ParseError> errors;  // at most kMaxErrors
  bool ok() const { return errors.empty(); }
};

inline constexpr std::size_t kMaxErrors = 20;
/// Longer texts are refused, so that memory stays bounded.
inline constexpr std::size_t kMaxTextBytes = std::size_t{64} << 20;
/// `repeat` goes at most this often.
inline constexpr std::uint64_t kMaxRepeat = 1000000;
/// Devices that a program may have.
inline constexpr std::uint64_t kMostDevices = 16;
/// Is it a granularity that a device of a program may have? In bytes.
constexpr bool is_possible_granularity(std::uint64_t bytes) {
  return bytes >= 4096 && bytes <= std::uint64_t{1} << 30 && (bytes & (bytes - 1)) == 0;
}

/// Reads a text. `file` is used in messages, and its stem names the program of a file without
/// `program` lines. Accepts any bytes; never throws but for host memory.
ParseResult parse(std::string_view text, std::string_view file);
/// Reads a file; one that cannot be read is an error of line 0.
ParseResult parse_file(const std::string& path);

std::string to_text(const Document& document);
/// One program as a file of its own, `granule 1` included.
std::string to_text(const Program& program);
/// One statement on one line, without its thread block.
std::string to_text(const Statement& statement);
std::string to_text(const Operand& operand);
std::string to_text(const Address& address);
std::string to_text(const Outcome& outcome);
/// All alternatives, joined by `|`.
std::string to_text(const std::vector<Outcome>& expected);

}  // namespace granule::prop
