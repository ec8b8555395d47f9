// What is generated from the call list: names, defaults, poison, comparison.
#include <granule/backend_api/call.hpp>

#include <array>
#include <cstring>

namespace granule {
namespace {

template <std::size_t... I>
constexpr std::array<CallInfo, kCallCount> make_infos(std::index_sequence<I...>) {
  return {std::variant_alternative_t<I, Call>::info...};
}
constexpr auto kInfos = make_infos(std::make_index_sequence<kCallCount>());

template <std::size_t... I>
Call make_by_index(std::size_t index, std::index_sequence<I...>) {
  Call call;
  ((I == index ? void(call.emplace<I>()) : void()), ...);
  return call;
}

template <class T>
constexpr bool kIsId = false;
template <class Tag>
constexpr bool kIsId<Id<Tag>> = true;

template <class T>
bool holds_poison(const T& value) {
  if constexpr (kIsId<T> || std::is_same_v<T, DevicePtr>) {
    return value.value == kPoison64;
  } else if constexpr (std::is_same_v<T, Descriptor>) {
    return static_cast<std::uint32_t>(value.value) == static_cast<std::uint32_t>(kPoison64);
  } else {
    return false;
  }
}

template <class T>
bool equal_inputs(const T& a, const T& b) {
  return a == b;
}

}  // namespace

std::string_view name_of(ObjectKind kind) noexcept {
  static constexpr std::array<std::string_view, 13> kNames{
      "none",          "reservation", "allocation handle", "mapping", "descriptor", "plain memory",
      "pinned memory", "pool",        "pool block",        "stream",  "event",      "context",
      "graph"};
  const auto index = static_cast<std::size_t>(kind);
  return index < kNames.size() ? kNames[index] : "none";
}

const CallInfo& info_of(CallKind kind) noexcept { return kInfos[static_cast<std::size_t>(kind)]; }

std::optional<CallKind> call_named(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kCallCount; ++i)
    if (kInfos[i].name == name) return static_cast<CallKind>(i);
  return std::nullopt;
}

Call make_call(CallKind kind) noexcept {
  return make_by_index(static_cast<std::size_t>(kind), std::make_index_sequence<kCallCount>());
}

void poison_outputs(Call& call) noexcept {
  std::visit(
      [](auto& c) {
        for_each_field(c, [](const auto& field, auto& member) {
          if (is_output(field.role)) {
            // Every output is a plain value; bytes are what a forgotten status check would read.
            std::memset(static_cast<void*>(&member), 0xDB, sizeof(member));
          }
        });
      },
      call);
}

bool uses_poison(const Call& call) noexcept {
  return std::visit(
      [](const auto& c) {
        bool found = false;
        for_each_field(c, [&](const auto& field, const auto& member) {
          if (!is_output(field.role) && holds_poison(member)) found = true;
        });
        return found;
      },
      call);
}

bool same_inputs(const Call& a, const Call& b) noexcept {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&](const auto& left) {
        using C = std::remove_cvref_t<decltype(left)>;
        const C& right = *std::get_if<C>(&b);
        bool same = true;
        for_each_field(left, [&](const auto& field, const auto& member) {
          if (!is_output(field.role) && !equal_inputs(member, right.*(field.member))) same = false;
        });
        return same;
      },
      a);
}

}  // namespace granule
