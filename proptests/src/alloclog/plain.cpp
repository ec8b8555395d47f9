// The table of plain values.
#include "plain.hpp"

#include <cstddef>

#include "alloclog.hpp"

namespace granule::alloclog {

Plain::Ref Plain::add(const Value& value) {
  if (values_.size() >= UINT32_MAX)
    throw Unreadable{{0, 0, ReadError::kNoOffset, "more than 2^32 values"}};
  values_.push_back(value);
  return static_cast<Ref>(values_.size() - 1);
}

Plain::Ref Plain::add_items(Kind kind) {
  Value value;
  value.kind = kind;
  value.items = static_cast<std::uint32_t>(items_.size());
  items_.emplace_back();
  return add(value);
}

std::string_view Plain::kept(std::string_view text) { return *texts_.emplace(text).first; }

const Plain::Value* Plain::find(Ref dict, std::string_view key, Ref* where) const {
  if (values_[dict].kind != Kind::kDict) return nullptr;
  const std::vector<Ref>& pairs = items(dict);
  for (std::size_t i = pairs.size() / 2; i-- > 0;) {
    const Value& name = values_[pairs[2 * i]];
    if (name.kind != Kind::kText || name.text != key) continue;
    if (where) *where = pairs[2 * i + 1];
    return &values_[pairs[2 * i + 1]];
  }
  return nullptr;
}

}  // namespace granule::alloclog
