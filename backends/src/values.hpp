// Text of the values that call members can have, and the way back. No value contains a space.
// Private to the text form of calls.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include <granule/backend_api/call.hpp>
#include <granule/backends/names.hpp>

namespace granule::trace {

template <class T>
inline constexpr bool kIsId = false;
template <class Tag>
inline constexpr bool kIsId<Id<Tag>> = true;

inline void put_hex(std::string& out, std::uint64_t value) {
  char buffer[16];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, 16).ptr;
  out += "0x";
  out.append(buffer, end);
}

template <class T>
bool get_number(std::string_view text, T& value) {
  int base = 10;
  if (text.size() > 2 && text.substr(0, 2) == "0x") {
    base = 16;
    text.remove_prefix(2);
  }
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value, base);
  return result.ec == std::errc{} && result.ptr == end && !text.empty();
}

/// The part of `text` before `separator`, which is removed with it; all of it if there is none.
inline std::string_view cut(std::string_view& text, char separator) {
  const std::size_t at = text.find(separator);
  const std::string_view head = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return head;
}

template <class E>
void put_enum(std::string& out, E value) {
  const std::string_view name = spelling(value);
  if (!name.empty()) {
    out += name;
  } else {
    out += std::to_string(static_cast<std::underlying_type_t<E>>(value));
  }
}

template <class E>
bool get_enum(std::string_view text, E& value) {
  if (const auto named = spelled<E>(text)) {
    value = *named;
    return true;
  }
  std::underlying_type_t<E> number{};
  if (!get_number(text, number)) return false;
  value = static_cast<E>(number);
  return true;
}

inline void put(std::string& out, const Location& value) {
  put_enum(out, value.type);
  out += ':';
  out += std::to_string(value.id);
}
inline bool get(std::string_view text, Location& value) {
  return get_enum(cut(text, ':'), value.type) && get_number(text, value.id);
}

// device:0 and, where they are not the defaults, ,handle=... ,type=... and so on.
inline void put(std::string& out, const AllocationProperties& value) {
  const AllocationProperties defaults;
  put(out, value.location);
  if (value.handle_types != defaults.handle_types) {
    out += ",handle:";
    put_enum(out, value.handle_types);
  }
  const auto number = [&](const char* name, std::uint32_t member, std::uint32_t standard) {
    if (member != standard) out += name + std::to_string(member);
  };
  number(",type:", value.type, defaults.type);
  number(",compression:", value.compression, defaults.compression);
  number(",rdma:", value.rdma, defaults.rdma);
  number(",usage:", value.usage, defaults.usage);
}
inline bool get(std::string_view text, AllocationProperties& value) {
  value = AllocationProperties{};
  if (!get(cut(text, ','), value.location)) return false;
  while (!text.empty()) {
    std::string_view item = cut(text, ',');
    const std::string_view name = cut(item, ':');
    bool known = false;
    if (name == "handle") known = get_enum(item, value.handle_types);
    if (name == "type") known = get_number(item, value.type);
    if (name == "compression") known = get_number(item, value.compression);
    if (name == "rdma") known = get_number(item, value.rdma);
    if (name == "usage") known = get_number(item, value.usage);
    if (!known) return false;
  }
  return true;
}

// device:0/rw,host:0/r, or - for an empty list.
inline void put(std::string& out, const AccessEntries& value) {
  if (value.count == 0) out += '-';
  for (const AccessEntry& entry : value) {
    if (&entry != value.begin()) out += ',';
    put(out, entry.location);
    out += '/';
    put_enum(out, entry.access);
  }
}
inline bool get(std::string_view text, AccessEntries& value) {
  value = AccessEntries{};
  if (text == "-") return true;
  while (!text.empty()) {
    std::string_view item = cut(text, ',');
    AccessEntry entry;
    if (!get(cut(item, '/'), entry.location) || !get_enum(item, entry.access)) return false;
    if (!value.push(entry)) return false;
  }
  return value.count > 0;
}

// 0x22, or mixed:0x22 for bytes that are not all the same.
inline void put(std::string& out, const HostSource& value) {
  if (!value.uniform) out += "mixed:";
  put_hex(out, value.pattern);
}
inline bool get(std::string_view text, HostSource& value) {
  value = HostSource{};
  constexpr std::string_view kMixed = "mixed:";
  value.uniform = text.substr(0, kMixed.size()) != kMixed;
  if (!value.uniform) text.remove_prefix(kMixed.size());
  return get_number(text, value.pattern);
}

// 0x22, mixed:0x22 or unknown:0x0; any other kind by its number.
inline void put(std::string& out, const ByteSummary& value) {
  if (value.kind == ByteSummary::Kind::kMixed) out += "mixed:";
  if (value.kind == ByteSummary::Kind::kUnknown) out += "unknown:";
  if (value.kind > ByteSummary::Kind::kUnknown)
    out += std::to_string(static_cast<unsigned>(value.kind)) + ":";
  put_hex(out, value.byte);
}
inline bool get(std::string_view text, ByteSummary& value) {
  value.kind = ByteSummary::Kind::kUniform;
  if (text.find(':') != std::string_view::npos) {
    const std::string_view kind = cut(text, ':');
    std::uint8_t number = 0;
    if (kind == "mixed") {
      value.kind = ByteSummary::Kind::kMixed;
    } else if (kind == "unknown") {
      value.kind = ByteSummary::Kind::kUnknown;
    } else if (get_number(kind, number)) {
      value.kind = static_cast<ByteSummary::Kind>(number);
    } else {
      return false;
    }
  }
  return get_number(text, value.byte);
}

template <class T>
void put(std::string& out, const T& value) {
  if constexpr (kIsId<T> || std::is_same_v<T, DevicePtr>) {
    put_hex(out, value.value);
  } else if constexpr (std::is_same_v<T, DeviceId> || std::is_same_v<T, Descriptor>) {
    out += std::to_string(value.value);
  } else if constexpr (std::is_pointer_v<T>) {
    put_hex(out, reinterpret_cast<std::uintptr_t>(value));
  } else if constexpr (std::is_enum_v<T>) {
    put_enum(out, value);
  } else {
    static_assert(std::is_integral_v<T>);
    out += std::to_string(value);
  }
}

template <class T>
bool get(std::string_view text, T& value) {
  if constexpr (kIsId<T> || std::is_same_v<T, DevicePtr> || std::is_same_v<T, DeviceId> ||
                std::is_same_v<T, Descriptor>) {
    return get_number(text, value.value);
  } else if constexpr (std::is_pointer_v<T>) {
    std::uintptr_t number = 0;
    if (!get_number(text, number)) return false;
    value = reinterpret_cast<T>(number);
    return true;
  } else if constexpr (std::is_enum_v<T>) {
    return get_enum(text, value);
  } else {
    static_assert(std::is_integral_v<T>);
    return get_number(text, value);
  }
}

}  // namespace granule::trace
