// Programs to text: the inverse of the parser.
#include <array>
#include <cstdio>
#include <utility>

#include <granule/prop/text.hpp>

namespace granule::prop {
namespace {

std::string place_text(const Place& place) {
  return place.id ? place.kind + ":" + std::to_string(*place.id) : place.kind;
}

std::string time_text(std::uint64_t nanoseconds) {
  constexpr std::array<std::pair<std::uint64_t, const char*>, 4> kUnits{
      {{1000000000, "s"}, {1000000, "ms"}, {1000, "us"}, {1, "ns"}}};
  for (const auto& [unit, name] : kUnits)
    if (nanoseconds != 0 && nanoseconds % unit == 0)
      return std::to_string(nanoseconds / unit) + name;
  return "0ms";
}

std::string byte_text(std::uint8_t value) {
  std::array<char, 8> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "0x%02X", static_cast<unsigned>(value));
  return buffer.data();
}

std::string range_text(const Range& range) {
  if (range.whole) return range.name;
  return range.name + "[" + to_text(range.from) + ".." + (range.to ? to_text(*range.to) : "") + "]";
}

std::string list_text(const NumberList& list) {
  std::string text;
  for (const std::int64_t value : list.values) {
    if (!text.empty()) text += ',';
    text += std::to_string(value);
  }
  return text;
}

struct OperandText {
  std::string operator()(const Name& name) const { return name.text; }
  std::string operator()(const Size& size) const { return to_text(size); }
  std::string operator()(const Address& address) const { return to_text(address); }
  std::string operator()(const Range& range) const { return range_text(range); }
  std::string operator()(const Word& word) const { return word.text; }
  std::string operator()(const Place& place) const { return place_text(place); }
  std::string operator()(const Grant& grant) const {
    return place_text(grant.place) + "=" + grant.access.text;
  }
  std::string operator()(const Duration& time) const { return time_text(time.nanoseconds); }
  std::string operator()(const Byte& byte) const { return byte_text(byte.value); }
  std::string operator()(const NumberList& list) const { return list_text(list); }
};

/// The verb, its operands and the words between them, its options.
void append_call(std::string& text, const Statement& statement) {
  const VerbSpec& spec = spec_of(statement.verb);
  text += spec.spelling;
  std::size_t next = 0;
  for (const OperandSpec& wanted : spec.operands) {
    if (wanted.kind == OperandKind::kLiteral) {
      text += ' ';
      text += wanted.object;
    } else if (next < statement.operands.size()) {
      text += ' ';
      text += to_text(statement.operands[next++]);
    }
  }
  for (; next < statement.operands.size(); ++next) text += ' ' + to_text(statement.operands[next]);
  for (const Option& option : statement.options) {
    const OptionSpec* known = spec.option(option.key);
    text += ' ' + option.key;
    if (!option.value) continue;
    text += known && known->assigned ? '=' : ' ';
    text += to_text(*option.value);
  }
}

void append_program(std::string& text, const Program& program) {
  std::string thread;
  for (const Statement& statement : program.statements) {
    if (statement.thread != thread) {
      if (!thread.empty()) text += "}\n";
      thread = statement.thread;
      if (!thread.empty()) text += "thread " + thread + " {\n";
    }
    if (!thread.empty()) text += "  ";
    text += to_text(statement);
    text += '\n';
  }
  if (!thread.empty()) text += "}\n";
}

}  // namespace

std::string to_text(const Operand& operand) { return std::visit(OperandText{}, operand); }

std::string to_text(const Address& address) {
  if (address.name.empty()) return to_text(address.offset);
  if (address.offset.terms.empty()) return address.name;
  return address.name + (address.offset.terms.front().negative ? "" : "+") +
         to_text(address.offset);
}

std::string to_text(const Outcome& outcome) {
  switch (outcome.kind) {
    case Outcome::Kind::kWord:
      return outcome.word;
    case Outcome::Kind::kError:
      return "error " + outcome.word + (outcome.detail.empty() ? "" : ":" + outcome.detail);
    case Outcome::Kind::kValues:
      break;
  }
  std::string text;
  for (const Address& value : outcome.values) {
    if (!text.empty()) text += ' ';
    text += to_text(value);
  }
  return text;
}

std::string to_text(const std::vector<Outcome>& expected) {
  std::string text;
  for (const Outcome& outcome : expected) {
    if (!text.empty()) text += '|';
    text += to_text(outcome);
  }
  return text;
}

std::string to_text(const Statement& statement) {
  std::string text;
  if (statement.repeat)
    text += "repeat " + std::to_string(statement.repeat->first) + ".." +
            std::to_string(statement.repeat->last) + " ";
  if (!statement.host_function.empty())
    text += "in_host_function " + statement.host_function + " { ";
  if (!statement.target.empty()) text += statement.target + " = ";
  append_call(text, statement);
  if (!statement.expected.empty()) text += " => " + to_text(statement.expected);
  if (!statement.host_function.empty()) text += " }";
  return text;
}

std::string to_text(const Program& program) {
  std::string text = "granule 1\n";
  append_program(text, program);
  return text;
}

std::string to_text(const Document& document) {
  std::string text = "granule 1\n";
  for (const Program& program : document.programs) {
    if (document.split) text += "\nprogram " + program.name + "\n";
    append_program(text, program);
  }
  return text;
}

std::string to_text(const ParseError& error) {
  return error.file + ":" + std::to_string(error.line) + ":" + std::to_string(error.column) + ": " +
         error.message;
}

}  // namespace granule::prop
