// Reads what stands behind `=>`: words, values, errors by name.
#include <array>
#include <utility>

#include "lex.hpp"

namespace granule::prop::detail {
namespace {

/// ERROR[:DETAIL] behind `error`.
Read<Outcome> read_error(std::string_view text, std::size_t offset) {
  constexpr std::array<std::string_view, 9> kNames{
      "out_of_memory",  "invalid_argument", "overflow",  "unsupported", "closed",
      "wrong_resource", "suspended",        "capturing", "driver"};
  Outcome outcome;
  outcome.kind = Outcome::Kind::kError;
  const std::size_t colon = text.find(':');
  outcome.word = text.substr(0, colon);
  if (colon != std::string_view::npos) outcome.detail = text.substr(colon + 1);
  for (const std::string_view name : kNames)
    if (outcome.word == name) return done(std::move(outcome));
  return fail<Outcome>("an error name (out_of_memory, invalid_argument, ..., driver:CODE)", offset);
}

Read<Outcome> read_outcome(std::string_view text, std::size_t offset) {
  const std::vector<Token> words = words_of(text);
  if (words.empty()) return fail<Outcome>("a result", offset);
  const auto column = [&](const Token& word) { return offset + word.column - 1; };
  if (words[0].text == "error") {
    if (words.size() != 2) return fail<Outcome>("error NAME", column(words[0]));
    return read_error(words[1].text, column(words[1]));
  }
  Outcome outcome;
  if (words.size() == 1 && is_symbol(words[0].text) && words[0].text != "max") {
    outcome.word = words[0].text;
    return done(std::move(outcome));
  }
  outcome.kind = Outcome::Kind::kValues;
  for (const Token& word : words) {
    Read<Address> value = read_address(word.text);
    if (!value.value)
      return fail<Outcome>("a result: a word, error NAME, or values",
                           column(word) + value.complaint.offset);
    outcome.values.push_back(std::move(*value.value));
    if (outcome.values.size() > 8) return fail<Outcome>("fewer values", column(word));
  }
  return done(std::move(outcome));
}

}  // namespace

Read<std::vector<Outcome>> read_outcomes(std::string_view text) {
  std::vector<Outcome> outcomes;
  std::size_t start = 0;
  while (true) {
    std::size_t end = text.find('|', start);
    if (end == std::string_view::npos) end = text.size();
    Read<Outcome> outcome = read_outcome(text.substr(start, end - start), start);
    if (!outcome.value) return {std::nullopt, outcome.complaint};
    outcomes.push_back(std::move(*outcome.value));
    if (end == text.size()) break;
    start = end + 1;
  }
  return done(std::move(outcomes));
}

}  // namespace granule::prop::detail
