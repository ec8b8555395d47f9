// Reading one statement, for the parser only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <granule/prop/program.hpp>

#include "lex.hpp"

namespace granule::prop::detail {

/// What is wrong with a line, and where.
struct LineError {
  std::uint32_t column = 1;
  std::string message;
};

/// `expected WHAT, found THAT`, at a word or some way into it.
LineError expected(std::string_view what, const Token& found, std::uint32_t offset = 0);

/// The words of one statement, and where its line ends.
struct Words {
  std::vector<Token> list;
  std::uint32_t end_column = 1;
  Token at(std::size_t index) const {
    return index < list.size() ? list[index] : Token{"", end_column};
  }
  LineError ended(std::string_view what, std::size_t index) const {
    if (index < list.size()) return expected(what, list[index]);
    return {end_column, "expected " + std::string(what) + ", found the end of the statement"};
  }
};

/// A word, or the key of an option, that is none of those that can stand there.
struct UnknownWord {
  std::string word;
  std::string_view expected;
};
/// The first of a statement; nothing if it has none.
std::optional<UnknownWord> unknown_word(const Statement& s);

/// One statement, with its `repeat`, host function, target and results.
std::optional<LineError> read_statement(std::string_view line, Words words, Statement& out);

}  // namespace granule::prop::detail
