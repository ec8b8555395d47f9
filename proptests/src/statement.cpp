// Words to a statement: verb, operands, options, results.
#include "statement.hpp"

#include <algorithm>

#include <granule/prop/text.hpp>

namespace granule::prop::detail {
namespace {

std::string quoted(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  std::string shown = "`";
  for (const char c : text.substr(0, kLongest)) shown += (c >= ' ' && c <= '~') ? c : '?';
  if (text.size() > kLongest) shown += "...";
  return shown + "`";
}

}  // namespace

LineError expected(std::string_view what, const Token& found, std::uint32_t offset) {
  return {found.column + offset, "expected " + std::string(what) + ", found " + quoted(found.text)};
}

namespace {

/// Reads the operands and options of one verb. Positional words are gathered first, because an
/// operand that may be left out can stand before one that may not.
class CallReader {
 public:
  CallReader(const VerbSpec& spec, const Words& words, std::size_t start)
      : spec_(spec), words_(words), at_(start) {}

  /// How many words were understood; tells which of two readings of a line went further.
  std::size_t progress() const { return progress_; }

  std::optional<LineError> read(Statement& out) {
    while (at_ < words_.list.size()) {
      if (auto error = read_word(out)) return error;
      progress_ = std::max(progress_, at_);
    }
    if (auto error = place_operands(out)) return error;
    for (const OptionSpec& option : spec_.options)
      if (option.required && !out.has(option.key))
        return words_.ended("`" + option.key + "` and " + describe(option.operand),
                            words_.list.size());
    return std::nullopt;
  }

 private:
  std::optional<LineError> read_word(Statement& out) {
    const Token word = words_.list[at_];
    const std::size_t equals = word.text.find('=');
    const OptionSpec* option = spec_.option(word.text.substr(0, equals));
    const bool is_option =
        option && (equals == std::string_view::npos ? !option->assigned || option->value_optional
                                                    : option->assigned);
    if (!is_option || (equals == std::string_view::npos && operand_is_due())) {
      if (equals != std::string_view::npos && !takes_grants()) return unknown_option(word);
      positional_.push_back(at_++);
      return std::nullopt;
    }
    if (out.has(option->key)) return expected("each option once", word);
    return read_option(*option, word, equals, out);
  }

  /// True while a name that must come first is still missing: then even `on` is a name.
  bool operand_is_due() const {
    if (!positional_.empty() || spec_.operands.empty()) return false;
    const OperandSpec& first = spec_.operands.front();
    return first.arity == Arity::kOne || first.arity == Arity::kSome;
  }

  bool takes_grants() const {
    return std::any_of(spec_.operands.begin(), spec_.operands.end(),
                       [](const OperandSpec& o) { return o.kind == OperandKind::kGrant; });
  }

  LineError unknown_option(const Token& word) const {
    std::string known;
    for (const OptionSpec& option : spec_.options) {
      if (!known.empty()) known += ", ";
      known += option.key;
      if (option.assigned) known += '=';
    }
    return expected(known.empty() ? "no options" : "one of " + known, word);
  }

  std::optional<LineError> read_option(const OptionSpec& spec, const Token& word,
                                       std::size_t equals, Statement& out) {
    Option option;
    option.key = spec.key;
    ++at_;
    if (equals == std::string_view::npos &&
        (spec.operand.kind == OperandKind::kNone || spec.value_optional)) {
      out.options.push_back(std::move(option));
      return std::nullopt;
    }
    Token value = word;
    std::uint32_t offset = 0;
    if (equals == std::string_view::npos) {
      if (at_ >= words_.list.size()) return words_.ended(describe(spec.operand), at_);
      value = words_.list[at_++];
    } else {
      offset = static_cast<std::uint32_t>(equals + 1);
    }
    auto read = read_operand(value.text.substr(offset), spec.operand);
    if (!read.value)
      return expected(read.complaint.expected, value, offset + read.complaint.offset);
    option.value = std::move(*read.value);
    out.options.push_back(std::move(option));
    return std::nullopt;
  }

  std::optional<LineError> place_operands(Statement& out) {
    std::size_t needed = 0;
    for (const OperandSpec& wanted : spec_.operands)
      if (wanted.arity == Arity::kOne || wanted.arity == Arity::kSome) ++needed;
    std::size_t next = 0;
    for (const OperandSpec& wanted : spec_.operands) {
      const bool must = wanted.arity == Arity::kOne || wanted.arity == Arity::kSome;
      if (must) --needed;
      std::size_t count = must ? 1 : 0;
      const std::size_t spare =
          positional_.size() > next + needed ? positional_.size() - next - needed : 0;
      if (wanted.arity == Arity::kOptional) count = std::min<std::size_t>(1, spare);
      if (wanted.arity == Arity::kAny || wanted.arity == Arity::kSome)
        count = std::max(count, spare);
      for (std::size_t i = 0; i < count; ++i) {
        if (next >= positional_.size()) return words_.ended(describe(wanted), words_.list.size());
        if (auto error = place_one(wanted, words_.list[positional_[next]], out)) return error;
        progress_ = std::max(progress_, positional_[next++] + 1);
      }
    }
    if (next < positional_.size())
      return expected("=> or the end of the statement", words_.list[positional_[next]]);
    return std::nullopt;
  }

  static std::optional<LineError> place_one(const OperandSpec& wanted, const Token& word,
                                            Statement& out) {
    if (wanted.kind == OperandKind::kLiteral) {
      if (word.text == wanted.object) return std::nullopt;
      return expected(describe(wanted), word);
    }
    auto read = read_operand(word.text, wanted);
    if (!read.value) return expected(read.complaint.expected, word, read.complaint.offset);
    out.operands.push_back(std::move(*read.value));
    return std::nullopt;
  }

  const VerbSpec& spec_;
  const Words& words_;
  std::size_t at_;
  std::size_t progress_ = 0;
  std::vector<std::size_t> positional_;
};

/// Reads the words from `start` on as a verb with its operands.
std::optional<LineError> read_call(const Words& words, std::size_t start, Statement& out) {
  const Token first = words.at(start);
  if (first.text.empty()) return words.ended("a statement", start);
  std::string spelling(first.text);
  std::size_t rest = start + 1;
  if (spelling == "expect" || spelling == "require") {
    if (rest >= words.list.size())
      return words.ended("what to " + spelling + " (free, same, ...)", rest);
    spelling += ' ';
    spelling += words.list[rest++].text;
  }
  const std::vector<Verb> verbs = verbs_spelled(spelling);
  if (verbs.empty()) {
    if (rest == start + 2) return expected("a known check behind it", words.list[start + 1]);
    return expected("a statement", first);
  }
  std::optional<LineError> best;
  std::size_t furthest = 0;
  for (const Verb verb : verbs) {
    Statement attempt = out;
    attempt.verb = verb;
    CallReader reader(spec_of(verb), words, rest);
    std::optional<LineError> error = reader.read(attempt);
    if (!error) {
      out = std::move(attempt);
      return std::nullopt;
    }
    if (!best || reader.progress() > furthest) {
      furthest = reader.progress();
      best = std::move(error);
    }
  }
  return best;
}

std::optional<LineError> check_target(const Words& words, std::size_t start,
                                      const Statement& statement) {
  const VerbSpec& spec = spec_of(statement.verb);
  if (statement.target.empty() && spec.target_required)
    return expected("NAME = in front of " + std::string(spec.spelling), words.at(start));
  if (!statement.target.empty() && spec.target.empty())
    return expected("no NAME = in front of " + std::string(spec.spelling), words.at(start));
  return std::nullopt;
}

/// The word itself, or what is given behind the key of an option.
std::optional<LineError> check_words(const Words& words, std::size_t start,
                                     const Statement& statement) {
  const std::optional<UnknownWord> wrong = unknown_word(statement);
  if (!wrong) return std::nullopt;
  for (std::size_t i = start + 1; i < words.list.size(); ++i) {
    const std::size_t at = words.list[i].text.find(wrong->word);
    if (at != std::string_view::npos)
      return expected(wrong->expected, words.list[i], static_cast<std::uint32_t>(at));
  }
  return expected(wrong->expected, words.at(start));
}

/// `first..last` behind `repeat`.
std::optional<LineError> read_repeat(const Words& words, std::size_t& at, Statement& out) {
  const Token word = words.at(at);
  const std::size_t dots = word.text.find("..");
  if (dots == std::string_view::npos) return words.ended("FIRST..LAST", at);
  const auto first = read_size(word.text.substr(0, dots));
  const auto last = read_size(word.text.substr(dots + 2));
  const SizeContext none;
  if (!first.value || !last.value) return expected("FIRST..LAST", word);
  Repeat repeat{first.value->evaluate(none), last.value->evaluate(none)};
  if (repeat.last < repeat.first || repeat.last - repeat.first >= kMaxRepeat)
    return expected("FIRST..LAST, rising, of at most a million numbers", word);
  out.repeat = repeat;
  ++at;
  return std::nullopt;
}

/// Splits off `=> ...`; the text of the results is cut out of the line.
std::optional<LineError> read_results(std::string_view line, Words& words, Statement& out) {
  for (std::size_t i = 0; i < words.list.size(); ++i) {
    if (words.list[i].text != "=>") continue;
    const std::uint32_t column = words.list[i].column + 2;
    const std::uint32_t end =
        words.list.back().column - 1 + static_cast<std::uint32_t>(words.list.back().text.size());
    auto outcomes = read_outcomes(line.substr(column - 1, end - (column - 1)));
    if (!outcomes.value)
      return LineError{column + outcomes.complaint.offset,
                       "expected " + outcomes.complaint.expected + " behind =>"};
    out.expected = std::move(*outcomes.value);
    words.end_column = words.list[i].column;
    words.list.resize(i);
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<LineError> read_statement(std::string_view line, Words words, Statement& out) {
  std::size_t at = 0;
  if (words.at(at).text == "repeat") {
    if (auto error = read_repeat(words, ++at, out)) return error;
  }
  if (words.at(at).text == "in_host_function") {
    const Token stream = words.at(++at);
    if (!is_symbol(stream.text)) return words.ended("the name of a stream", at);
    out.host_function = stream.text;
    if (words.at(++at).text != "{") return words.ended("{ CALL }", at);
    if (words.list.back().text != "}") return words.ended("} at the end", words.list.size());
    ++at;
    words.end_column = words.list.back().column;
    words.list.pop_back();
    if (words.list.size() < at) return words.ended("a call inside { }", at);
  }
  if (auto error = read_results(line, words, out)) return error;
  if (words.list.size() < at) return words.ended("a statement", at);
  if (words.at(at + 1).text == "=") {
    if (!is_symbol(words.at(at).text)) return words.ended("a name in front of =", at);
    out.target = words.at(at).text;
    at += 2;
  }
  if (auto error = read_call(words, at, out)) return error;
  if (auto error = check_target(words, at, out)) return error;
  return check_words(words, at, out);
}

}  // namespace granule::prop::detail
