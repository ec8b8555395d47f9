// Reads single operands: sizes, addresses, ranges, places, grants, times, bytes, results.
#include "lex.hpp"

#include <array>
#include <utility>

namespace granule::prop::detail {
namespace {

constexpr std::size_t kMaxTerms = 16;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::optional<std::uint32_t> hex_digit(char c) {
  if (is_digit(c)) return static_cast<std::uint32_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<std::uint32_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<std::uint32_t>(c - 'A' + 10);
  return std::nullopt;
}

/// A cursor over one word.
struct Cursor {
  std::string_view text;
  std::size_t at = 0;
  bool end() const { return at >= text.size(); }
  char peek() const { return end() ? '\0' : text[at]; }
  bool take(std::string_view word) {
    if (text.substr(at, word.size()) != word) return false;
    at += word.size();
    return true;
  }
};

struct Number {
  std::uint64_t value = 0;
  bool hex = false;
};

/// Digits, or 0x and hexadecimal digits; nothing if there are none or they need more than 64 bits.
std::optional<Number> take_number(Cursor& cursor) {
  Number number;
  number.hex = cursor.take("0x") || cursor.take("0X");
  const std::uint64_t base = number.hex ? 16 : 10;
  bool any = false;
  while (!cursor.end()) {
    const auto digit = hex_digit(cursor.peek());
    if (!digit || *digit >= base) break;
    if (number.value > (UINT64_MAX - *digit) / base) return std::nullopt;
    number.value = number.value * base + *digit;
    any = true;
    ++cursor.at;
  }
  if (!any) return std::nullopt;
  return number;
}

Unit take_unit(Cursor& cursor) {
  constexpr std::array<std::pair<std::string_view, Unit>, 6> kUnits{{{"KiB", Unit::kKiB},
                                                                     {"MiB", Unit::kMiB},
                                                                     {"GiB", Unit::kGiB},
                                                                     {"TiB", Unit::kTiB},
                                                                     {"B", Unit::kByte},
                                                                     {"g", Unit::kGranule}}};
  for (const auto& [name, unit] : kUnits)
    if (cursor.take(name)) return unit;
  return Unit::kNone;
}

bool fits(std::uint64_t value, Unit unit) {
  const int shift = unit == Unit::kKiB   ? 10
                    : unit == Unit::kMiB ? 20
                    : unit == Unit::kGiB ? 30
                    : unit == Unit::kTiB ? 40
                                         : 0;
  return value <= (UINT64_MAX >> shift);
}

Read<Term> take_term(Cursor& cursor) {
  Term term;
  if (cursor.take("max")) {
    term.kind = Term::Kind::kMax;
    return done(term);
  }
  if (cursor.take("@")) {
    term.kind = Term::Kind::kCounter;
    term.unit = take_unit(cursor);
    return done(term);
  }
  const std::size_t start = cursor.at;
  const auto number = take_number(cursor);
  if (!number) return fail<Term>("a size (as 2g+1, 4MiB, 2^60, max), below 2^64", start);
  term.value = number->value;
  term.hex = number->hex;
  if (!term.hex && cursor.take("%")) {
    if (term.value > 100) return fail<Term>("a percentage up to 100%", start);
    term.kind = Term::Kind::kPercent;
    return done(term);
  }
  if (!term.hex && cursor.take("^")) {
    const std::size_t exponent_at = cursor.at;
    const auto exponent = take_number(cursor);
    if (term.value != 2 || !exponent || exponent->value > 63)
      return fail<Term>("2^N with N below 64", exponent_at);
    term.kind = Term::Kind::kPowerOfTwo;
    term.value = exponent->value;
    return done(term);
  }
  term.unit = take_unit(cursor);
  if (!fits(term.value, term.unit)) return fail<Term>("a size below 2^64", start);
  return done(term);
}

/// Terms up to the end of the word, or to a character that ends a size (`]`, `.`).
Read<Size> take_size(Cursor& cursor) {
  Size size;
  while (true) {
    bool negative = false;
    if (cursor.take("-")) {
      negative = true;
    } else if (!size.terms.empty() && !cursor.take("+")) {
      break;
    }
    Read<Term> term = take_term(cursor);
    if (!term.value) return {std::nullopt, term.complaint};
    term.value->negative = negative;
    size.terms.push_back(*term.value);
    if (size.terms.size() > kMaxTerms) return fail<Size>("at most 16 terms", cursor.at);
    if (cursor.peek() != '+' && cursor.peek() != '-') break;
  }
  return done(std::move(size));
}

std::string_view take_symbol(Cursor& cursor) {
  const std::size_t start = cursor.at;
  if (cursor.end() || !(is_letter(cursor.peek()) || cursor.peek() == '_')) return {};
  while (!cursor.end()) {
    const char c = cursor.peek();
    if (!is_letter(c) && !is_digit(c) && c != '_' && c != '@') break;
    ++cursor.at;
  }
  return cursor.text.substr(start, cursor.at - start);
}

Read<Range> read_range(std::string_view text) {
  Cursor cursor{text};
  Range range;
  range.name = take_symbol(cursor);
  if (range.name.empty()) return fail<Range>("a buffer, as a or a[2g..3g]", 0);
  if (cursor.end()) return done(std::move(range));
  range.whole = false;
  if (!cursor.take("[")) return fail<Range>("[FROM..TO] or the end of the word", cursor.at);
  Read<Size> from = take_size(cursor);
  if (!from.value) return {std::nullopt, from.complaint};
  range.from = std::move(*from.value);
  if (!cursor.take("..")) return fail<Range>("..", cursor.at);
  if (cursor.peek() != ']') {
    Read<Size> to = take_size(cursor);
    if (!to.value) return {std::nullopt, to.complaint};
    range.to = std::move(*to.value);
  }
  if (!cursor.take("]")) return fail<Range>("]", cursor.at);
  if (!cursor.end()) return fail<Range>("the end of the word", cursor.at);
  return done(std::move(range));
}

Read<Place> read_place(std::string_view text) {
  Cursor cursor{text};
  Place place;
  place.kind = take_symbol(cursor);
  constexpr std::array<std::string_view, 4> kKinds{"device", "host", "host_numa",
                                                   "host_numa_current"};
  bool known = false;
  for (const std::string_view kind : kKinds) known = known || kind == place.kind;
  if (!known) return fail<Place>("device:N, host, host_numa:N or host_numa_current", 0);
  if (cursor.take(":")) {
    const bool negative = cursor.take("-");
    const auto number = take_number(cursor);
    if (!number || number->value > INT32_MAX) return fail<Place>("a number", cursor.at);
    place.id = static_cast<std::int64_t>(number->value) * (negative ? -1 : 1);
  } else if (place.kind == "device" || place.kind == "host_numa") {
    return fail<Place>(":N", cursor.at);
  }
  if (!cursor.end()) return fail<Place>("the end of the word", cursor.at);
  return done(std::move(place));
}

Read<Grant> read_grant(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) return fail<Grant>("PLACE=rw|r|none", text.size());
  Read<Place> place = read_place(text.substr(0, equals));
  if (!place.value) return {std::nullopt, place.complaint};
  Grant grant;
  grant.place = std::move(*place.value);
  grant.access.text = text.substr(equals + 1);
  Cursor cursor{grant.access.text};
  const bool number = take_number(cursor).has_value() && cursor.end();
  if (grant.access.text != "rw" && grant.access.text != "r" && grant.access.text != "none" &&
      !number)
    return fail<Grant>("rw, r, none or a number", equals + 1);
  return done(std::move(grant));
}

Read<Duration> read_time(std::string_view text) {
  Cursor cursor{text};
  const auto number = take_number(cursor);
  if (!number) return fail<Duration>("a time, as 50ms", 0);
  std::uint64_t unit = 0;
  if (cursor.take("ns")) {
    unit = 1;
  } else if (cursor.take("us")) {
    unit = 1000;
  } else if (cursor.take("ms")) {
    unit = 1000000;
  } else if (cursor.take("s")) {
    unit = 1000000000;
  } else {
    return fail<Duration>("ns, us, ms or s", cursor.at);
  }
  if (!cursor.end()) return fail<Duration>("the end of the word", cursor.at);
  constexpr std::uint64_t kHour = 3600ull * 1000000000ull;
  if (number->value > kHour / unit) return fail<Duration>("a time of an hour at most", 0);
  return done(Duration{number->value * unit});
}

Read<Byte> read_byte(std::string_view text) {
  Cursor cursor{text};
  const auto number = take_number(cursor);
  if (!number || !cursor.end() || number->value > 255) return fail<Byte>("a byte, as 0xA5", 0);
  return done(Byte{static_cast<std::uint8_t>(number->value)});
}

Read<NumberList> read_list(std::string_view text) {
  Cursor cursor{text};
  NumberList list;
  do {
    const bool negative = cursor.take("-");
    const auto number = take_number(cursor);
    if (!number || number->value > INT32_MAX || list.values.size() >= 64)
      return fail<NumberList>("numbers, as 1,2", cursor.at);
    list.values.push_back(static_cast<std::int64_t>(number->value) * (negative ? -1 : 1));
  } while (cursor.take(","));
  if (!cursor.end()) return fail<NumberList>(", or the end of the word", cursor.at);
  return done(std::move(list));
}

std::string joined(const std::vector<std::string>& choices) {
  std::string text;
  for (const std::string& choice : choices) {
    if (!text.empty()) text += '|';
    text += choice == "#" ? "a number" : choice;
  }
  return text;
}

Read<Word> read_word(std::string_view text, const OperandSpec& spec) {
  for (const char c : text)
    if (c == '=' || c == '{' || c == '}' || c < '!' || c > '~') return fail<Word>("a word", 0);
  if (spec.choices.empty()) return done(Word{std::string(text)});
  for (const std::string& choice : spec.choices) {
    if (choice == text) return done(Word{std::string(text)});
    if (choice != "#") continue;
    Cursor cursor{text};
    if (take_number(cursor) && cursor.end()) return done(Word{std::string(text)});
  }
  return fail<Word>(joined(spec.choices), 0);
}

template <class T>
Read<Operand> as_operand(Read<T> read) {
  if (!read.value) return {std::nullopt, std::move(read.complaint)};
  return {Operand(std::move(*read.value)), {}};
}

}  // namespace

std::vector<Token> words_of(std::string_view line) {
  std::vector<Token> words;
  line = line.substr(0, line.find('#'));
  std::size_t at = 0;
  while (at < line.size()) {
    if (line[at] == ' ' || line[at] == '\t' || line[at] == '\r') {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < line.size() && line[end] != ' ' && line[end] != '\t' && line[end] != '\r') ++end;
    words.push_back({line.substr(at, end - at), static_cast<std::uint32_t>(at + 1)});
    at = end;
  }
  return words;
}

bool is_symbol(std::string_view text) {
  Cursor cursor{text};
  return !text.empty() && take_symbol(cursor).size() == text.size();
}

Read<Size> read_size(std::string_view text) {
  Cursor cursor{text};
  Read<Size> size = take_size(cursor);
  if (size.value && !cursor.end()) return fail<Size>("+, - or the end of the size", cursor.at);
  return size;
}

Read<Address> read_address(std::string_view text) {
  Cursor cursor{text};
  Address address;
  const std::string_view symbol = take_symbol(cursor);
  if (symbol == "max" && symbol.size() == text.size()) {
    address.offset = Size::max();
    return done(std::move(address));
  }
  address.name = symbol;
  if (!address.name.empty() && cursor.end()) return done(std::move(address));
  if (!address.name.empty() && cursor.peek() != '+' && cursor.peek() != '-')
    return fail<Address>("+OFFSET or the end of the word", cursor.at);
  if (!address.name.empty()) cursor.take("+");
  Read<Size> offset = take_size(cursor);
  if (!offset.value) {
    if (address.name.empty()) return fail<Address>("NAME, NAME+OFFSET or a number", 0);
    return {std::nullopt, offset.complaint};
  }
  if (!cursor.end()) return fail<Address>("+, - or the end of the address", cursor.at);
  address.offset = std::move(*offset.value);
  return done(std::move(address));
}

Read<Operand> read_operand(std::string_view text, const OperandSpec& spec) {
  switch (spec.kind) {
    case OperandKind::kName:
    case OperandKind::kNew:
      if (!is_symbol(text)) return fail<Operand>(describe(spec), 0);
      return done(Operand(Name{std::string(text)}));
    case OperandKind::kSize:
      return as_operand(read_size(text));
    case OperandKind::kAddress:
      return as_operand(read_address(text));
    case OperandKind::kRange:
      return as_operand(read_range(text));
    case OperandKind::kWord:
      return as_operand(read_word(text, spec));
    case OperandKind::kPlace:
      return as_operand(read_place(text));
    case OperandKind::kGrant:
      return as_operand(read_grant(text));
    case OperandKind::kTime:
      return as_operand(read_time(text));
    case OperandKind::kByte:
      return as_operand(read_byte(text));
    case OperandKind::kList:
      return as_operand(read_list(text));
    case OperandKind::kNone:
    case OperandKind::kLiteral:
      break;
  }
  return fail<Operand>("nothing here", 0);
}

std::string describe(const OperandSpec& spec) {
  switch (spec.kind) {
    case OperandKind::kName:
      return spec.object.empty() ? "a name" : "the name of a " + spec.object;
    case OperandKind::kNew:
      return "a name for the " + spec.object;
    case OperandKind::kSize:
      return "a size";
    case OperandKind::kAddress:
      return "NAME, NAME+OFFSET or a number";
    case OperandKind::kRange:
      return "a buffer, as a or a[2g..3g]";
    case OperandKind::kWord:
      return spec.choices.empty() ? "a word" : joined(spec.choices);
    case OperandKind::kPlace:
      return "device:N, host, host_numa:N or host_numa_current";
    case OperandKind::kGrant:
      return "PLACE=rw|r|none";
    case OperandKind::kTime:
      return "a time, as 50ms";
    case OperandKind::kByte:
      return "a byte, as 0xA5";
    case OperandKind::kList:
      return "numbers, as 1,2";
    case OperandKind::kLiteral:
      return "`" + spec.object + "`";
    case OperandKind::kNone:
      break;
  }
  return "nothing";
}

}  // namespace granule::prop::detail
