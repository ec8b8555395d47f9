// A program of the text format as plain data: documents, programs, statements, operands.
// The generator, the shrinker, the printer and the interpreter all work on these values; what a
// verb takes is said once, in verbs.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <granule/prop/size.hpp>
#include <granule/prop/verbs.hpp>

namespace granule::prop {

/// A symbol: a buffer, a stream, a resource, ...
struct Name {
  std::string text;
  friend bool operator==(const Name&, const Name&) = default;
};

/// NAME, NAME+OFFSET, or a bare number (then `name` is empty). Also stands for handles, pools and
/// events where a driver call takes "a name or a number".
struct Address {
  std::string name;
  Size offset;
  friend bool operator==(const Address&, const Address&) = default;
};

/// `a` (whole), `a[from..to]`, or `a[from..]` (then `to` is empty).
struct Range {
  std::string name;
  bool whole = true;
  Size from;
  std::optional<Size> to;
  friend bool operator==(const Range&, const Range&) = default;
};

/// A keyword (`rw`, `posix_fd`, `RANGE_SIZE`, a call's or a code's name) or a number for one.
struct Word {
  std::string text;
  friend bool operator==(const Word&, const Word&) = default;
};

/// `device:0`, `host`, `host_numa:1`, `host_numa_current`.
struct Place {
  std::string kind = "device";
  std::optional<std::int64_t> id;
  friend bool operator==(const Place&, const Place&) = default;
};

/// PLACE=ACCESS of cuMemSetAccess.
struct Grant {
  Place place;
  Word access;
  friend bool operator==(const Grant&, const Grant&) = default;
};

/// `50ms`; printed in the largest unit that fits.
struct Duration {
  std::uint64_t nanoseconds = 0;
  friend bool operator==(const Duration&, const Duration&) = default;
};

/// A byte of contents, `0xA5`.
struct Byte {
  std::uint8_t value = 0;
  friend bool operator==(const Byte&, const Byte&) = default;
};

/// `1,2`.
struct NumberList {
  std::vector<std::int64_t> values;
  friend bool operator==(const NumberList&, const NumberList&) = default;
};

using Operand =
    std::variant<Name, Size, Address, Range, Word, Place, Grant, Duration, Byte, NumberList>;

/// An option: a flag (`zero`), `key=value`, or `key value` (`on s`).
struct Option {
  std::string key;
  std::optional<Operand> value;
  friend bool operator==(const Option&, const Option&) = default;
};

/// One alternative of what a statement must give.
struct Outcome {
  enum class Kind : std::uint8_t {
    kWord,    // ok, kept, would_block, rw, CUDA_ERROR_..., a name, ...
    kError,   // error NAME[:DETAIL]
    kValues,  // numbers and addresses
  };
  Kind kind = Kind::kWord;
  std::string word;             // the word, or the error's name
  std::string detail;           // device, addresses, ... or CUDA_ERROR_...
  std::vector<Address> values;  // kValues
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

/// `repeat first..last STATEMENT`; every @ in the statement stands for the number.
struct Repeat {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  friend bool operator==(const Repeat&, const Repeat&) = default;
};

/// Where a statement stood in its file; never part of a comparison.
struct SourceLine {
  std::uint32_t number = 0;
  friend bool operator==(const SourceLine&, const SourceLine&) { return true; }
};

struct Statement {
  SourceLine line;
  Verb verb = Verb::kMark;
  std::string target;  // NAME of `NAME = ...`; empty: none
  std::vector<Operand> operands;
  std::vector<Option> options;
  std::vector<Outcome> expected;  // alternatives; empty: any defined outcome
  std::string thread;             // the thread block that it stands in; empty: the main thread
  std::string host_function;      // the stream of an in_host_function; empty: none
  std::optional<Repeat> repeat;
  friend bool operator==(const Statement&, const Statement&) = default;

  const Option* option(std::string_view key) const;
  bool has(std::string_view key) const { return option(key) != nullptr; }
  /// Operand `index` as a T, or null if there is none or it is something else.
  template <class T>
  const T* operand(std::size_t index) const {
    return index < operands.size() ? std::get_if<T>(&operands[index]) : nullptr;
  }
  /// The value of option `key` as a T, or null.
  template <class T>
  const T* value(std::string_view key) const {
    const Option* found = option(key);
    return found && found->value ? std::get_if<T>(&*found->value) : nullptr;
  }
};

struct Program {
  std::string name;
  std::vector<Statement> statements;
  friend bool operator==(const Program&, const Program&) = default;
};

/// A file: `granule 1` and its programs. `split` says that it used `program NAME` lines.
struct Document {
  std::vector<Program> programs;
  bool split = false;
  friend bool operator==(const Document&, const Document&) = default;
};

/// Calls visitor(operand) for every operand and option value of the statement, in order; on a
/// mutable statement the visitor may change them.
template <class S, class Visitor>
void for_each_operand(S& statement, Visitor&& visitor) {
  for (auto& operand : statement.operands) visitor(operand);
  for (auto& option : statement.options)
    if (option.value) visitor(*option.value);
}

/// Calls visitor(size) for every size in the statement: operands, offsets, ends of ranges.
template <class S, class Visitor>
void for_each_size(S& statement, Visitor&& visitor) {
  for_each_operand(statement, [&](auto& operand) {
    if (auto* size = std::get_if<Size>(&operand)) {
      visitor(*size);
    } else if (auto* address = std::get_if<Address>(&operand)) {
      visitor(address->offset);
    } else if (auto* range = std::get_if<Range>(&operand)) {
      if (range->whole) return;
      visitor(range->from);
      if (range->to) visitor(*range->to);
    }
  });
}

/// Calls visitor(std::string&) for every symbol that the statement names, its target and stream
/// included: a renaming is one pass of this.
template <class S, class Visitor>
void for_each_name(S& statement, Visitor&& visitor) {
  if (!statement.target.empty()) visitor(statement.target);
  if (!statement.host_function.empty()) visitor(statement.host_function);
  for_each_operand(statement, [&](auto& operand) {
    if (auto* name = std::get_if<Name>(&operand)) {
      visitor(name->text);
    } else if (auto* address = std::get_if<Address>(&operand)) {
      if (!address->name.empty()) visitor(address->name);
    } else if (auto* range = std::get_if<Range>(&operand)) {
      visitor(range->name);
    }
  });
}

}  // namespace granule::prop
