// Plain data (numbers, texts, lists, dictionaries) as a pickle or a JSON text holds it.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace granule::alloclog {

/// Values in one table, which refer to each other by number: what a file shares is shared, and a
/// list that holds itself does no harm. Not thread-safe.
class Plain {
 public:
  using Ref = std::uint32_t;
  enum class Kind : std::uint8_t { kNone, kBool, kInteger, kFloat, kText, kList, kDict, kMark };

  struct Value {
    Kind kind = Kind::kNone;
    bool fits = true;          // kInteger: it is in 0 to 2^64 - 1
    std::uint64_t number = 0;  // kBool, kInteger; kFloat: rounded towards zero
    std::string_view text;     // kText
    std::uint32_t items = 0;   // kList (tuples, too), kDict
  };

  const Value& operator[](Ref ref) const { return values_[ref]; }
  /// Items of a list; key, value, key, value of a dictionary.
  const std::vector<Ref>& items(Ref ref) const { return items_[values_[ref].items]; }
  std::vector<Ref>& items(Ref ref) { return items_[values_[ref].items]; }
  std::size_t size() const { return values_.size(); }

  Ref add(const Value& value);
  Ref add_items(Kind kind);
  /// Keeps a copy of `text`, one of equal texts.
  std::string_view kept(std::string_view text);
  /// The value of `key` in a dictionary (the last, if there are several), or null.
  const Value* find(Ref dict, std::string_view key, Ref* where = nullptr) const;

 private:
  std::deque<Value> values_;
  std::deque<std::vector<Ref>> items_;
  std::unordered_set<std::string> texts_;
};

/// Reads a pickle of protocol 2 to 5 into `plain`. Opcodes that name, make or call anything are
/// refused. Texts are views of `bytes`. Throws Unreadable with a byte offset, or std::bad_alloc.
Plain::Ref read_pickle(std::string_view bytes, Plain& plain);

/// Reads a JSON text into `plain`. Throws Unreadable with line and column, or std::bad_alloc.
Plain::Ref read_json(std::string_view text, Plain& plain);

}  // namespace granule::alloclog
