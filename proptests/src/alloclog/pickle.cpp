// Pickles of plain data. An opcode either pushes data or is refused: nothing is looked up by name,
// nothing is called.
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "alloclog.hpp"
#include "plain.hpp"

namespace granule::alloclog {
namespace {

using Ref = Plain::Ref;
using Kind = Plain::Kind;

enum Op : unsigned char {
  kProto = 0x80,
  kFrame = 0x95,
  kStop = '.',
  kMark = '(',
  kPop = '0',
  kPopMark = '1',
  kDup = '2',
  kNone = 'N',
  kTrue = 0x88,
  kFalse = 0x89,
  kInt4 = 'J',
  kInt1 = 'K',
  kInt2 = 'M',
  kLong1 = 0x8A,
  kLong4 = 0x8B,
  kFloat = 'G',
  kShortText = 0x8C,
  kText = 'X',
  kText8 = 0x8D,
  kShortBytes = 'C',
  kBytes = 'B',
  kBytes8 = 0x8E,
  kEmptyList = ']',
  kAppend = 'a',
  kAppends = 'e',
  kList = 'l',
  kEmptyTuple = ')',
  kTuple = 't',
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kEmptyDict = '}',
  kDict = 'd',
  kSetItem = 's',
  kSetItems = 'u',
  kMemoize = 0x94,
  kPut1 = 'q',
  kPut4 = 'r',
  kGet1 = 'h',
  kGet4 = 'j',
};

/// Opcodes that name, make or call something, by what a message calls them.
const char* name_of_refused(unsigned char op) {
  switch (op) {
    case 'c':
      return "GLOBAL";
    case 0x93:
      return "STACK_GLOBAL";
    case 'R':
      return "REDUCE";
    case 'b':
      return "BUILD";
    case 'i':
      return "INST";
    case 'o':
      return "OBJ";
    case 0x81:
      return "NEWOBJ";
    case 0x92:
      return "NEWOBJ_EX";
    case 'P':
      return "PERSID";
    case 'Q':
      return "BINPERSID";
    case 0x82:
    case 0x83:
    case 0x84:
      return "EXT";
    default:
      return nullptr;
  }
}

class PickleReader {
 public:
  PickleReader(std::string_view bytes, Plain& plain) : bytes_(bytes), plain_(plain) {}

  Ref read() {
    while (true) {
      start_ = at_;
      const auto op = static_cast<unsigned char>(take(1)[0]);
      if (op == kStop) return pop();
      if (!scalar(op) && !container(op) && !memo(op)) refuse(op);
    }
  }

 private:
  [[noreturn]] void fail(std::string message) const {
    throw Unreadable{{0, 0, start_, std::move(message)}};
  }

  [[noreturn]] void refuse(unsigned char op) const {
    if (const char* name = name_of_refused(op))
      fail(std::string("expected plain data, found the opcode ") + name +
           ", which names or calls something of Python's; nothing of a pickle is executed here");
    char hex[8];
    std::snprintf(hex, sizeof hex, "0x%02x", op);
    fail(std::string("expected an opcode of plain data (protocol 2 to 5), found ") + hex);
  }

  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_)
      fail("expected " + std::to_string(count) + " more bytes, found the end of the file");
    const std::string_view part = bytes_.substr(at_, static_cast<std::size_t>(count));
    at_ += static_cast<std::size_t>(count);
    return part;
  }

  std::uint64_t little_endian(std::size_t width) {
    std::uint64_t value = 0;
    const std::string_view part = take(width);
    for (std::size_t i = 0; i < width; ++i)
      value |= std::uint64_t{static_cast<unsigned char>(part[i])} << (8 * i);
    return value;
  }

  void push(const Plain::Value& value) { stack_.push_back(plain_.add(value)); }

  void push_integer(std::uint64_t number, bool fits = true) {
    Plain::Value value;
    value.kind = Kind::kInteger;
    value.number = number;
    value.fits = fits;
    push(value);
  }

  void push_text(std::uint64_t length) {
    Plain::Value value;
    value.kind = Kind::kText;
    value.text = take(length);
    push(value);
  }

  /// A whole number of any length, two's complement.
  void push_long(std::uint64_t length) {
    const std::string_view part = take(length);
    std::uint64_t number = 0;
    bool fits = part.empty() || (static_cast<unsigned char>(part.back()) & 0x80) == 0;
    for (std::size_t i = 0; i < part.size(); ++i) {
      const std::uint64_t byte = static_cast<unsigned char>(part[i]);
      if (i < 8) number |= byte << (8 * i);
      if (i >= 8 && byte != 0) fits = false;
    }
    push_integer(number, fits);
  }

  void push_float() {
    std::uint64_t bits = 0;
    for (const char c : take(8)) bits = bits << 8 | static_cast<unsigned char>(c);
    double number = 0;
    std::memcpy(&number, &bits, sizeof number);
    Plain::Value value;
    value.kind = Kind::kFloat;
    constexpr double kEnd = 18446744073709551616.0;
    value.fits = number >= 0 && number < kEnd;
    value.number = value.fits ? static_cast<std::uint64_t>(number) : 0;
    push(value);
  }

  bool scalar(unsigned char op) {
    switch (op) {
      case kProto:
        if (const std::uint64_t version = little_endian(1); version > 5)
          fail("expected a pickle of protocol 2 to 5, found " + std::to_string(version));
        return true;
      case kFrame:
        return take(8), true;
      case kNone:
        return push({}), true;
      case kTrue:
      case kFalse:
        return push({Kind::kBool, true, op == kTrue ? 1u : 0u, {}, 0}), true;
      case kInt1:
        return push_integer(little_endian(1)), true;
      case kInt2:
        return push_integer(little_endian(2)), true;
      case kInt4: {
        const std::uint64_t number = little_endian(4);
        return push_integer(number, number < std::uint64_t{1} << 31), true;
      }
      case kLong1:
        return push_long(little_endian(1)), true;
      case kLong4:
        return push_long(little_endian(4)), true;
      case kFloat:
        return push_float(), true;
      case kShortText:
      case kShortBytes:
        return push_text(little_endian(1)), true;
      case kText:
      case kBytes:
        return push_text(little_endian(4)), true;
      case kText8:
      case kBytes8:
        return push_text(little_endian(8)), true;
      default:
        return false;
    }
  }

  Ref pop() {
    if (stack_.empty() || plain_[stack_.back()].kind == Kind::kMark)
      fail("expected a value on the stack, found none");
    const Ref ref = stack_.back();
    stack_.pop_back();
    return ref;
  }

  Ref top_of(Kind kind) const {
    if (stack_.empty() || plain_[stack_.back()].kind != kind)
      fail(kind == Kind::kList ? "expected a list on the stack" : "expected a dict on the stack");
    return stack_.back();
  }

  /// Everything above the last mark, which goes, too.
  std::vector<Ref> above_mark() {
    std::size_t at = stack_.size();
    while (at > 0 && plain_[stack_[at - 1]].kind != Kind::kMark) --at;
    if (at == 0) fail("expected a mark on the stack, found none");
    std::vector<Ref> items(stack_.begin() + static_cast<std::ptrdiff_t>(at), stack_.end());
    stack_.resize(at - 1);
    return items;
  }

  void push_items(Kind kind, const std::vector<Ref>& items) {
    if (kind == Kind::kDict && items.size() % 2 != 0) fail("expected pairs of key and value");
    const Ref ref = plain_.add_items(kind);
    plain_.items(ref) = items;
    stack_.push_back(ref);
  }

  void append(Kind kind, const std::vector<Ref>& items) {
    if (kind == Kind::kDict && items.size() % 2 != 0) fail("expected pairs of key and value");
    std::vector<Ref>& all = plain_.items(top_of(kind));
    all.insert(all.end(), items.begin(), items.end());
  }

  void push_tuple(std::size_t count) {
    std::vector<Ref> items(count);
    for (std::size_t i = count; i-- > 0;) items[i] = pop();
    push_items(Kind::kList, items);
  }

  bool container(unsigned char op) {
    switch (op) {
      case kMark:
        return push({Kind::kMark, true, 0, {}, 0}), true;
      case kPop:
        if (stack_.empty()) fail("expected a value on the stack, found none");
        return stack_.pop_back(), true;
      case kPopMark:
        return above_mark(), true;
      case kDup: {
        const Ref ref = pop();
        stack_.push_back(ref);
        return stack_.push_back(ref), true;
      }
      case kEmptyList:
      case kEmptyTuple:
        return push_items(Kind::kList, {}), true;
      case kEmptyDict:
        return push_items(Kind::kDict, {}), true;
      case kList:
      case kTuple:
        return push_items(Kind::kList, above_mark()), true;
      case kDict:
        return push_items(Kind::kDict, above_mark()), true;
      case kTuple1:
      case kTuple2:
      case kTuple3:
        return push_tuple(std::size_t{op} - kTuple1 + 1), true;
      case kAppend: {
        const Ref item = pop();
        return append(Kind::kList, {item}), true;
      }
      case kAppends: {
        const std::vector<Ref> items = above_mark();
        return append(Kind::kList, items), true;
      }
      case kSetItem: {
        const Ref value = pop();
        const Ref key = pop();
        return append(Kind::kDict, {key, value}), true;
      }
      case kSetItems: {
        const std::vector<Ref> items = above_mark();
        return append(Kind::kDict, items), true;
      }
      default:
        return false;
    }
  }

  void put(std::uint64_t index) {
    const Ref ref = pop();
    stack_.push_back(ref);
    memo_[index] = ref;
  }

  void get(std::uint64_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end())
      fail("expected a number that the memo holds, found " + std::to_string(index));
    stack_.push_back(found->second);
  }

  bool memo(unsigned char op) {
    switch (op) {
      case kMemoize:
        return put(memo_.size()), true;
      case kPut1:
        return put(little_endian(1)), true;
      case kPut4:
        return put(little_endian(4)), true;
      case kGet1:
        return get(little_endian(1)), true;
      case kGet4:
        return get(little_endian(4)), true;
      default:
        return false;
    }
  }

  std::string_view bytes_;
  Plain& plain_;
  std::size_t at_ = 0;
  std::size_t start_ = 0;  // of the opcode
  std::vector<Ref> stack_;
  std::unordered_map<std::uint64_t, Ref> memo_;
};

}  // namespace

Plain::Ref read_pickle(std::string_view bytes, Plain& plain) {
  return PickleReader(bytes, plain).read();
}

}  // namespace granule::alloclog
