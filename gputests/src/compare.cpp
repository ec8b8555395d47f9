// Comparison of answers, call kind by call kind where a kind has rules of its own.
#include "compare.hpp"

#include <optional>
#include <type_traits>

namespace granule::gpu {
namespace {

template <class C, class... List>
constexpr bool is_one_of = (std::is_same_v<C, List> || ...);

/// Answers about the machine, not about the program.
template <class C>
constexpr bool describes_machine =
    is_one_of<C, DriverGetVersion, DeviceGetCount, DeviceGetAttribute, DeviceTotalMem>;

IdKind id_of(PointerAttribute attribute) {
  switch (attribute) {
    case PointerAttribute::kContext:
      return IdKind::kContext;
    case PointerAttribute::kMempoolHandle:
      return IdKind::kPool;
    case PointerAttribute::kBufferId:
      return IdKind::kBufferId;
    case PointerAttribute::kMemoryBlockId:
      return IdKind::kBlockId;
    default:
      return IdKind::kNone;
  }
}

bool is_address(PointerAttribute attribute) {
  return attribute == PointerAttribute::kDevicePointer ||
         attribute == PointerAttribute::kHostPointer ||
         attribute == PointerAttribute::kRangeStartAddr ||
         attribute == PointerAttribute::kMappingBaseAddr;
}

/// Known names must agree; a name seen for the first time is learnt.
bool ids_agree(Renamer& names, IdKind kind, std::uint64_t device, std::uint64_t oracle) {
  if (names.knows(kind, device)) return names.id(kind, device) == oracle;
  if (oracle == 0) return false;
  names.learn(kind, device, oracle);
  return true;
}

template <class C>
std::string attribute_difference(Renamer& names, const C& device, const C& oracle) {
  if constexpr (std::is_same_v<C, PointerGetAttributes>) {
    if (device.written != oracle.written) return "written";
    if (device.written == 0) return {};
  }
  const PointerAttribute attribute = device.attribute;
  const IdKind kind = id_of(attribute);
  // Whether two pieces of plain or pinned memory lie in one block is the driver's choice.
  if (attribute == PointerAttribute::kMemoryBlockId && names.in_range(device.ptr.value)) return {};
  if (kind != IdKind::kNone)
    return ids_agree(names, kind, device.value, oracle.value) ? "" : "value";
  // The 2 MiB blocks under plain memory are shared with what the context itself holds.
  if (attribute == PointerAttribute::kMappingBaseAddr && names.in_range(device.ptr.value))
    return {};
  const std::uint64_t value = is_address(attribute) ? names.address(device.value) : device.value;
  return value == oracle.value ? "" : "value";
}

template <class C>
std::string difference(Renamer& names, const C& device, const C& oracle) {
  if constexpr (describes_machine<C>) {
    return {};
  } else if constexpr (is_one_of<C, PointerGetAttribute, PointerGetAttributes>) {
    return attribute_difference(names, device, oracle);
  } else if constexpr (std::is_same_v<C, MemGetInfo>) {
    return device.free == oracle.free ? "" : "free";
  } else if constexpr (std::is_same_v<C, MemcpyDtoH>) {
    constexpr std::uint64_t kFullRead = std::uint64_t{8} << 20;
    return bytes_agree(device.found, oracle.found, device.size > kFullRead) ? "" : "found";
  } else if constexpr (std::is_same_v<C, TakeLanding>) {
    return bytes_agree(device.found, oracle.found, true) ? "" : "found";
  } else {
    std::string name;
    for_each_field(device, [&](const auto& field, const auto& member) {
      using T = std::remove_cvref_t<decltype(member)>;
      if (!is_output(field.role) || !name.empty()) return;
      if (field.role == Role::kMakes && !std::is_same_v<C, MemRetainAllocationHandle>) return;
      const T& other = oracle.*(field.member);
      bool same = true;
      if constexpr (kIdKind<T> != IdKind::kNone) {
        same = ids_agree(names, kIdKind<T>, static_cast<std::uint64_t>(member.value),
                         static_cast<std::uint64_t>(other.value));
      } else {
        same = names.input(member, field.kind) == other;
      }
      if (!same) name = std::string(field.name);
    });
    return name;
  }
}

/// The bytes that a call asks for: its first size member.
template <class C>
std::uint64_t size_asked(const C& call) {
  std::optional<std::uint64_t> size;
  for_each_field(call, [&](const auto& field, const auto& member) {
    using T = std::remove_cvref_t<decltype(member)>;
    if constexpr (std::is_same_v<T, std::uint64_t>)
      if (field.role == Role::kSize && !size) size = member;
  });
  return size.value_or(0);
}

template <class C>
void learn(Renamer& names, const C& device, const C& oracle) {
  for_each_field(device, [&](const auto& field, const auto& member) {
    using T = std::remove_cvref_t<decltype(member)>;
    const T& other = oracle.*(field.member);
    if (field.role == Role::kDrops && field.kind != ObjectKind::kMapping) {
      if constexpr (std::is_same_v<T, DevicePtr>) {
        names.forget_range(member.value);
      } else if constexpr (std::is_same_v<T, std::uint64_t>) {
        names.forget_range(member);
      } else if constexpr (kIdKind<T> != IdKind::kNone && !std::is_same_v<T, AllocationHandle>) {
        names.forget(kIdKind<T>, static_cast<std::uint64_t>(member.value));
      }
    }
    if (field.role != Role::kMakes) return;
    if constexpr (kIdKind<T> != IdKind::kNone) {
      names.learn(kIdKind<T>, static_cast<std::uint64_t>(member.value),
                  static_cast<std::uint64_t>(other.value));
    } else if constexpr (std::is_same_v<T, DevicePtr>) {
      if (field.kind != ObjectKind::kReservation)
        names.learn_range(member.value, size_asked(device), other.value);
    } else if constexpr (std::is_same_v<T, std::uint64_t>) {
      names.learn_range(member, size_asked(device), other);
    }
  });
}

}  // namespace

Call renamed_inputs(const Renamer& names, const Call& call) {
  Call out = call;
  std::visit(
      [&](auto& c) {
        using C = std::remove_cvref_t<decltype(c)>;
        for_each_field(c, [&](const auto& field, auto& member) {
          if (is_output(field.role)) return;
          if (std::is_same_v<C, MemAddressReserve> && field.role == Role::kAddress) return;
          member = names.input(member, field.kind);
        });
        if constexpr (is_one_of<C, MemcpyDtoH, MemcpyDtoHAsync>) c.dst = nullptr;
        if constexpr (std::is_same_v<C, LaunchHostFunc>) {
          c.function = [](void*) {};  // the oracle has nobody to run it
          c.argument = nullptr;
        }
      },
      out);
  return out;
}

bool bytes_agree(const ByteSummary& device, const ByteSummary& oracle, bool sampled) {
  switch (oracle.kind) {
    case ByteSummary::Kind::kUnknown:
      return true;
    case ByteSummary::Kind::kUniform:
      return device == oracle;
    case ByteSummary::Kind::kMixed:
      return sampled || device.kind != ByteSummary::Kind::kUniform;
  }
  return true;
}

std::string first_difference(Renamer& names, const Call& device, const Call& oracle) {
  return std::visit(
      [&](const auto& mine) {
        const auto& other = *std::get_if<std::remove_cvref_t<decltype(mine)>>(&oracle);
        return difference(names, mine, other);
      },
      device);
}

void learn_effects(Renamer& names, const Call& device, const Call& oracle) {
  std::visit(
      [&](const auto& mine) {
        learn(names, mine, *std::get_if<std::remove_cvref_t<decltype(mine)>>(&oracle));
      },
      device);
}

}  // namespace granule::gpu
