// Reads the grammar strings of verbs.def into VerbSpecs, once.
#include <granule/prop/verbs.hpp>

#include <array>
#include <utility>

namespace granule::prop {
namespace {

struct Line {
  std::string_view spelling;
  std::string_view grammar;
};

constexpr std::array<Line, kVerbCount> kLines{{
#define GRANULE_VERB(id, spelling, grammar) {spelling, grammar},
#include <granule/prop/verbs.def>
#undef GRANULE_VERB
}};

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  while (start <= text.size()) {
    std::size_t end = text.find(separator, start);
    if (end == std::string_view::npos) end = text.size();
    if (end > start) parts.emplace_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

OperandKind kind_named(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, OperandKind>, 11> kKinds{{
      {"name", OperandKind::kName},
      {"new", OperandKind::kNew},
      {"size", OperandKind::kSize},
      {"addr", OperandKind::kAddress},
      {"range", OperandKind::kRange},
      {"word", OperandKind::kWord},
      {"place", OperandKind::kPlace},
      {"grant", OperandKind::kGrant},
      {"time", OperandKind::kTime},
      {"byte", OperandKind::kByte},
      {"list", OperandKind::kList},
  }};
  for (const auto& [spelled, kind] : kKinds)
    if (spelled == name) return kind;
  return OperandKind::kNone;
}

OperandSpec operand_spec(std::string_view text) {
  OperandSpec spec;
  if (!text.empty() && text.front() == '\'') {
    spec.kind = OperandKind::kLiteral;
    spec.object = text.substr(1);
    return spec;
  }
  if (!text.empty()) {
    const char last = text.back();
    if (last == '?') spec.arity = Arity::kOptional;
    if (last == '*') spec.arity = Arity::kAny;
    if (last == '+') spec.arity = Arity::kSome;
    if (spec.arity != Arity::kOne) text.remove_suffix(1);
  }
  const std::size_t colon = text.find(':');
  spec.kind = kind_named(text.substr(0, colon));
  if (colon == std::string_view::npos) return spec;
  const std::string_view rest = text.substr(colon + 1);
  if (spec.kind == OperandKind::kWord) {
    spec.choices = split(rest, '|');
  } else {
    spec.object = rest;
  }
  return spec;
}

/// `[...]` or `{...}`, without the brackets.
OptionSpec option_spec(std::string_view text, bool required) {
  OptionSpec spec;
  spec.required = required;
  const std::size_t end = text.find_first_of("= ");
  spec.key = text.substr(0, end);
  if (end == std::string_view::npos) return spec;
  spec.assigned = text[end] == '=';
  spec.operand = operand_spec(text.substr(end + 1));
  spec.value_optional = spec.operand.arity == Arity::kOptional;
  spec.operand.arity = Arity::kOne;
  return spec;
}

VerbSpec read_spec(std::size_t index) {
  VerbSpec spec;
  spec.verb = static_cast<Verb>(index);
  spec.spelling = kLines[index].spelling;
  const std::string_view grammar = kLines[index].grammar;
  std::size_t at = 0;
  while (at < grammar.size()) {
    const char first = grammar[at];
    if (first == ' ') {
      ++at;
      continue;
    }
    if (first == '[' || first == '{') {
      const std::size_t end = grammar.find(first == '[' ? ']' : '}', at);
      spec.options.push_back(option_spec(grammar.substr(at + 1, end - at - 1), first == '{'));
      at = end + 1;
      continue;
    }
    std::size_t end = grammar.find(' ', at);
    if (end == std::string_view::npos) end = grammar.size();
    const std::string_view word = grammar.substr(at, end - at);
    if (first == '=' || first == '~') {
      spec.target = word.substr(1);
      spec.target_required = first == '=';
    } else {
      spec.operands.push_back(operand_spec(word));
    }
    at = end;
  }
  return spec;
}

const std::vector<VerbSpec>& all_specs() {
  static const std::vector<VerbSpec> specs = [] {
    std::vector<VerbSpec> made;
    made.reserve(kVerbCount);
    for (std::size_t i = 0; i < kVerbCount; ++i) made.push_back(read_spec(i));
    return made;
  }();
  return specs;
}

}  // namespace

const OptionSpec* VerbSpec::option(std::string_view key) const {
  for (const OptionSpec& spec : options)
    if (spec.key == key) return &spec;
  return nullptr;
}

const VerbSpec& spec_of(Verb verb) { return all_specs()[static_cast<std::size_t>(verb)]; }

std::vector<Verb> verbs_spelled(std::string_view spelling) {
  std::vector<Verb> found;
  for (const VerbSpec& spec : all_specs())
    if (spec.spelling == spelling) found.push_back(spec.verb);
  return found;
}

}  // namespace granule::prop
