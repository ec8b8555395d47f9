// Words of a line and the reading of single operands, for the parser only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <granule/prop/program.hpp>

namespace granule::prop::detail {

/// One word of a line; `column` counts from 1.
struct Token {
  std::string_view text;
  std::uint32_t column = 0;
};

/// The words of a line up to a comment, split at blanks.
std::vector<Token> words_of(std::string_view line);

/// True for a symbol: a letter or `_`, then letters, digits, `_` and `@`.
bool is_symbol(std::string_view text);

/// Why an operand could not be read: what was expected, and how far into the word it went.
struct Complaint {
  std::string expected;
  std::uint32_t offset = 0;
};

template <class T>
struct Read {
  std::optional<T> value;
  Complaint complaint;
};

template <class T>
Read<T> fail(std::string expected, std::size_t offset) {
  return {std::nullopt, {std::move(expected), static_cast<std::uint32_t>(offset)}};
}
template <class T>
Read<T> done(T value) {
  return {std::move(value), {}};
}

Read<Size> read_size(std::string_view text);
Read<Address> read_address(std::string_view text);
/// The operand that `spec` asks for.
Read<Operand> read_operand(std::string_view text, const OperandSpec& spec);
/// The words behind `=>`, up to the end of the statement.
Read<std::vector<Outcome>> read_outcomes(std::string_view text);
/// A name or kind of operand as a person would say it.
std::string describe(const OperandSpec& spec);

}  // namespace granule::prop::detail
