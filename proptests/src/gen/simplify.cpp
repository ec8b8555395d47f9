// Simplifications of one statement, and plain names for a whole program.
#include <algorithm>
#include <map>

#include <granule/prop/shrink.hpp>

namespace granule::prop {
namespace {

/// A count or an index rather than an amount of memory.
bool is_small_number(const Term& term) {
  return term.kind == Term::Kind::kNumber && term.unit == Unit::kNone && term.value < 1000;
}

/// How complicated a size is: the number of granules, and a penalty for each further term.
std::uint64_t cost(const Size& size) {
  std::uint64_t sum = 0;
  for (const Term& term : size.terms) {
    const bool plain = term.kind == Term::Kind::kNumber && !term.negative &&
                       (term.unit == Unit::kGranule || is_small_number(term));
    sum += plain ? std::min<std::uint64_t>(term.value, 1000000) : 2000000;
  }
  return sum;
}

bool is_percentage(const Size& size) {
  return size.terms.size() == 1 && size.terms.front().kind == Term::Kind::kPercent;
}

/// Smaller sizes to try, the simplest first; all cost less.
std::vector<Size> smaller_sizes(const Size& size) {
  std::vector<Size> found;
  if (is_percentage(size)) return found;  // where one stands, no size can
  const std::uint64_t now = cost(size);
  const auto add = [&](Size candidate) {
    if (cost(candidate) < now && std::find(found.begin(), found.end(), candidate) == found.end())
      found.push_back(std::move(candidate));
  };
  if (size.terms.size() == 1 && is_small_number(size.terms.front())) {
    const std::uint64_t value = size.terms.front().value;
    for (const std::uint64_t less : {std::uint64_t{0}, std::uint64_t{1}, value / 2, value - 1})
      if (value > 0) add(Size::bytes(less));
    return found;
  }
  for (std::uint64_t few = 0; few <= 3; ++few) add(Size::granules(few));
  if (size.terms.size() > 1) add(Size{{size.terms.front()}});
  if (!size.terms.empty() && size.terms.front().unit == Unit::kGranule) {
    const std::uint64_t value = size.terms.front().value;
    add(Size::granules(value / 2));
    if (value > 0) add(Size::granules(value - 1));
  }
  return found;
}

class Simplifier {
 public:
  explicit Simplifier(const Statement& statement) : from_(statement) {}

  std::vector<Statement> all() {
    drop_options();
    drop_frames();
    shorten_lists();
    shrink_sizes();
    shrink_durations();
    return std::move(found_);
  }

 private:
  void drop_options() {
    const VerbSpec& spec = spec_of(from_.verb);
    for (std::size_t i = 0; i < from_.options.size(); ++i) {
      const OptionSpec* option = spec.option(from_.options[i].key);
      if (option && option->required) continue;
      Statement next = from_;
      next.options.erase(next.options.begin() + static_cast<std::ptrdiff_t>(i));
      found_.push_back(std::move(next));
    }
    if (!from_.expected.empty()) {
      found_.push_back(from_);
      found_.back().expected.clear();
    }
  }

  void drop_frames() {
    if (!from_.thread.empty()) {
      found_.push_back(from_);
      found_.back().thread.clear();
    }
    if (!from_.repeat || from_.repeat->first == from_.repeat->last) return;
    const std::uint64_t count = from_.repeat->last - from_.repeat->first;
    for (const std::uint64_t left : {std::uint64_t{0}, count / 2, count - 1}) {
      found_.push_back(from_);
      found_.back().repeat->last = from_.repeat->first + left;
    }
  }

  /// Operands that a statement can do without: all behind the first of a `suspend`, the word of a
  /// `stream` or `begin_capture`.
  void shorten_lists() {
    const VerbSpec& spec = spec_of(from_.verb);
    std::size_t least = 0;
    for (const OperandSpec& operand : spec.operands)
      if (operand.kind != OperandKind::kLiteral &&
          (operand.arity == Arity::kOne || operand.arity == Arity::kSome))
        ++least;
    if (from_.operands.size() <= least) return;
    for (std::size_t i = 0; i < from_.operands.size(); ++i) {
      if (i < least && !std::holds_alternative<Name>(from_.operands[i])) continue;
      Statement next = from_;
      next.operands.erase(next.operands.begin() + static_cast<std::ptrdiff_t>(i));
      if (still_fits(next, spec)) found_.push_back(std::move(next));
    }
  }

  static bool still_fits(const Statement& next, const VerbSpec& spec) {
    std::size_t at = 0;
    for (const OperandSpec& operand : spec.operands) {
      if (operand.kind == OperandKind::kLiteral || operand.arity != Arity::kOne) continue;
      if (at >= next.operands.size()) return false;
      const bool name = std::holds_alternative<Name>(next.operands[at]);
      const bool wants_name =
          operand.kind == OperandKind::kName || operand.kind == OperandKind::kNew;
      if (name != wants_name) return false;
      ++at;
    }
    return true;
  }

  template <class Change>
  void with_operand(std::size_t index, Change&& change) {
    Statement next = from_;
    std::size_t at = 0;
    for_each_operand(next, [&](Operand& operand) {
      if (at++ == index) change(operand);
    });
    found_.push_back(std::move(next));
  }

  void shrink_sizes() {
    std::size_t index = 0;
    for_each_operand(from_, [&](const Operand& operand) {
      const std::size_t at = index++;
      if (const auto* size = std::get_if<Size>(&operand)) {
        for (const Size& smaller : smaller_sizes(*size))
          with_operand(at, [&](Operand& o) { o = smaller; });
      } else if (const auto* range = std::get_if<Range>(&operand)) {
        if (range->whole) return;
        with_operand(at, [&](Operand& o) {
          const std::string name = std::get<Range>(o).name;
          o = Range{name, true, {}, std::nullopt};
        });
        for (const Size& smaller : smaller_sizes(range->from))
          with_operand(at, [&](Operand& o) { std::get<Range>(o).from = smaller; });
        if (!range->to) return;
        with_operand(at, [&](Operand& o) { std::get<Range>(o).to.reset(); });
        for (const Size& smaller : smaller_sizes(*range->to))
          with_operand(at, [&](Operand& o) { std::get<Range>(o).to = smaller; });
      } else if (const auto* address = std::get_if<Address>(&operand)) {
        if (address->name.empty()) return;
        for (const Size& smaller : smaller_sizes(address->offset))
          with_operand(at, [&](Operand& o) {
            std::get<Address>(o).offset = cost(smaller) == 0 ? Size{} : smaller;
          });
      }
    });
  }

  void shrink_durations() {
    constexpr std::uint64_t kShort = 1'000'000;
    std::size_t index = 0;
    for_each_operand(from_, [&](const Operand& operand) {
      const std::size_t at = index++;
      const auto* duration = std::get_if<Duration>(&operand);
      if (duration && duration->nanoseconds > kShort)
        with_operand(at, [&](Operand& o) { o = Duration{kShort}; });
    });
  }

  const Statement& from_;
  std::vector<Statement> found_;
};

/// The stem of names of a class of objects.
std::string stem_of(std::string_view object) {
  if (object == "stream") return "s";
  if (object == "resource") return "r";
  if (object == "event") return "e";
  if (object == "decoy") return "d";
  if (object == "hole") return "h";
  if (object == "holder") return "k";
  if (object == "bundle") return "x";
  return "v";
}

std::string buffer_name(std::size_t number) {
  static constexpr std::string_view kLetters = "abcfgijlmnopqtuwyz";  // the rest are stems
  if (number < kLetters.size()) return std::string(1, kLetters[number]);
  return "a" + std::to_string(number);
}

/// The class of what a statement makes; empty: nothing.
std::string_view made_class(const Statement& statement) {
  const VerbSpec& spec = spec_of(statement.verb);
  if (!statement.target.empty()) return spec.target;
  for (const OperandSpec& operand : spec.operands)
    if (operand.kind == OperandKind::kNew) return operand.object;
  return {};
}

const std::string* made_name(const Statement& statement) {
  if (!statement.target.empty()) return &statement.target;
  std::size_t at = 0;
  for (const OperandSpec& operand : spec_of(statement.verb).operands) {
    if (operand.kind == OperandKind::kLiteral) continue;
    if (operand.kind == OperandKind::kNew) {
      const Name* name = statement.operand<Name>(at);
      return name ? &name->text : nullptr;
    }
    ++at;
  }
  return nullptr;
}

}  // namespace

std::vector<Statement> simpler_forms(const Statement& statement) {
  return Simplifier(statement).all();
}

Program with_plain_names(const Program& program) {
  std::map<std::string, std::string, std::less<>> renamed;
  std::map<std::string, std::size_t, std::less<>> counts;
  for (const Statement& statement : program.statements) {
    const std::string* name = made_name(statement);
    if (!name || renamed.count(*name) != 0 || name->find('@') != std::string::npos) continue;
    const std::string_view object = made_class(statement);
    const std::string key = object == "buffer" ? "buffer" : stem_of(object);
    const std::size_t number = counts[key]++;
    renamed[*name] = object == "buffer" ? buffer_name(number)
                     : number == 0      ? key
                                        : key + std::to_string(number + 1);
  }
  Program result = program;
  for (Statement& statement : result.statements)
    for_each_name(statement, [&](std::string& name) {
      const auto found = renamed.find(name);
      if (found != renamed.end()) name = found->second;
    });
  return result;
}

}  // namespace granule::prop
