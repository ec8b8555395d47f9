// JSON as plain data.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "alloclog.hpp"
#include "plain.hpp"

namespace granule::alloclog {
namespace {

using Ref = Plain::Ref;
using Kind = Plain::Kind;

/// What nlohmann's parser calls for each thing that it reads.
class JsonReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  JsonReader(std::string_view text, Plain& plain) : text_(text), plain_(plain) {}
  Ref root() const { return root_; }

  bool null() override { return put(plain_.add({})); }
  bool boolean(bool value) override {
    return put(plain_.add({Kind::kBool, true, value ? 1u : 0u, {}, 0}));
  }
  bool number_integer(std::int64_t value) override {
    return put(plain_.add({Kind::kInteger, value >= 0, static_cast<std::uint64_t>(value), {}, 0}));
  }
  bool number_unsigned(std::uint64_t value) override {
    return put(plain_.add({Kind::kInteger, true, value, {}, 0}));
  }
  bool number_float(double value, const std::string& /*text*/) override {
    constexpr double kEnd = 18446744073709551616.0;
    const bool fits = value >= 0 && value < kEnd;
    return put(
        plain_.add({Kind::kFloat, fits, fits ? static_cast<std::uint64_t>(value) : 0, {}, 0}));
  }
  bool string(std::string& value) override { return put(text(value)); }
  bool binary(nlohmann::json::binary_t& /*value*/) override { return false; }
  bool start_object(std::size_t /*size*/) override { return open(Kind::kDict); }
  bool key(std::string& value) override {
    plain_.items(open_.back()).push_back(text(value));
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(std::size_t /*size*/) override { return open(Kind::kList); }
  bool end_array() override { return close(); }

  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    const std::size_t offset = position == 0 ? 0 : std::min(position - 1, text_.size());
    const std::string_view before = text_.substr(0, offset);
    const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
    std::string message = error.what();
    if (const std::size_t at = message.find("- "); at != std::string::npos)
      message.erase(0, at + 2);
    throw Unreadable{
        {static_cast<std::uint64_t>(std::count(before.begin(), before.end(), '\n')) + 1,
         offset - line_start + 1, offset, "expected JSON: " + message}};
  }

 private:
  Ref text(std::string_view value) {
    return plain_.add({Kind::kText, true, 0, plain_.kept(value), 0});
  }
  bool put(Ref ref) {
    if (open_.empty()) {
      root_ = ref;
    } else {
      plain_.items(open_.back()).push_back(ref);
    }
    return true;
  }
  bool open(Kind kind) {
    const Ref ref = plain_.add_items(kind);
    put(ref);
    open_.push_back(ref);
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  Plain& plain_;
  Ref root_ = 0;
  std::vector<Ref> open_;
};

}  // namespace

Plain::Ref read_json(std::string_view text, Plain& plain) {
  JsonReader reader(text, plain);
  nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  return reader.root();
}

}  // namespace granule::alloclog
