// The verbs of the text format and what each takes, read from verbs.def.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace granule::prop {

enum class Verb : std::uint8_t {
#define GRANULE_VERB(id, spelling, grammar) id,
#include <granule/prop/verbs.def>
#undef GRANULE_VERB
};

inline constexpr std::size_t kVerbCount = 0
#define GRANULE_VERB(id, spelling, grammar) +1
#include <granule/prop/verbs.def>
#undef GRANULE_VERB
    ;

/// What an operand is.
enum class OperandKind : std::uint8_t {
  kNone,  // a flag's value
  kName,  // a symbol that must exist
  kNew,   // a symbol that the statement makes
  kSize,
  kAddress,  // NAME+OFFSET or a number
  kRange,
  kWord,
  kPlace,
  kGrant,
  kTime,
  kByte,
  kList,
  kLiteral,  // a word that stands for itself
};

/// How often a positional operand may stand.
enum class Arity : std::uint8_t { kOne, kOptional, kAny, kSome };

struct OperandSpec {
  OperandKind kind = OperandKind::kNone;
  Arity arity = Arity::kOne;
  std::string object;                // class of a name (stream, buffer, ...); the literal itself
  std::vector<std::string> choices;  // of a word; empty: any
};

struct OptionSpec {
  std::string key;
  OperandSpec operand;          // kNone: a flag
  bool assigned = false;        // key=value rather than `key value`
  bool value_optional = false;  // the value of key=value may be left out
  bool required = false;
};

struct VerbSpec {
  Verb verb = Verb::kMark;
  std::string_view spelling;  // one word, or two for `expect X` and `require X`
  std::string target;         // class of what it makes; empty: no target
  bool target_required = false;
  std::vector<OperandSpec> operands;
  std::vector<OptionSpec> options;

  const OptionSpec* option(std::string_view key) const;
};

/// What `verb` takes.
const VerbSpec& spec_of(Verb verb);
inline std::string_view spelling_of(Verb verb) { return spec_of(verb).spelling; }
/// The verbs with that spelling (one, but for `resource` and `fail`).
std::vector<Verb> verbs_spelled(std::string_view spelling);

}  // namespace granule::prop
