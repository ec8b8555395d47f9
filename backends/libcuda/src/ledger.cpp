// Entering and taking objects by the roles of a call's fields.
#include "ledger.hpp"

#include <algorithm>
#include <iterator>
#include <type_traits>
#include <utility>

namespace granule::libcuda {
namespace {

template <class T>
std::uint64_t number_of(const T& member) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<std::uint64_t>(member);
  } else if constexpr (requires { member.value; }) {
    return static_cast<std::uint64_t>(member.value);
  } else {
    return 0;
  }
}

bool in_range(std::uint64_t at, std::uint64_t base, std::uint64_t size) {
  return at >= base && at - base < size;
}

}  // namespace

bool counts_as_leak(ObjectKind kind) {
  switch (kind) {
    case ObjectKind::kReservation:
    case ObjectKind::kAllocation:
    case ObjectKind::kMapping:
    case ObjectKind::kDescriptor:
    case ObjectKind::kPlainMemory:
    case ObjectKind::kPinnedMemory:
    case ObjectKind::kPool:
    case ObjectKind::kPoolBlock:
      return true;
    default:
      return false;
  }
}

const char* leak_name(ObjectKind kind) {
  switch (kind) {
    case ObjectKind::kReservation:
      return "reservation";
    case ObjectKind::kAllocation:
      return "handle";
    case ObjectKind::kMapping:
      return "mapping";
    case ObjectKind::kDescriptor:
      return "descriptor";
    case ObjectKind::kPool:
      return "pool";
    case ObjectKind::kPlainMemory:
    case ObjectKind::kPinnedMemory:
    case ObjectKind::kPoolBlock:
      return "pointer";
    default:
      return "object";
  }
}

bool Ledger::makes(const Call& call) {
  if (std::holds_alternative<MemMap>(call)) return true;
  return std::visit(
      [](const auto& one) {
        bool found = false;
        for_each_field(one, [&](const auto& field, const auto&) {
          found = found || field.role == Role::kMakes;
        });
        return found;
      },
      call);
}

void Ledger::take_one(ObjectKind kind, std::uint64_t value, std::vector<Object>& out) {
  Objects& objects = of(kind);
  // Of several references with one value the youngest goes: retain and release come in pairs.
  const auto after = objects.upper_bound(value);
  if (after == objects.begin() || std::prev(after)->first != value) return;
  const auto it = std::prev(after);
  out.push_back(it->second);
  objects.erase(it);
}

void Ledger::take_context(std::uint64_t context, std::vector<Object>& out) {
  for (const ObjectKind kind : {ObjectKind::kPlainMemory, ObjectKind::kPinnedMemory,
                                ObjectKind::kStream, ObjectKind::kEvent}) {
    Objects& objects = of(kind);
    for (auto it = objects.begin(); it != objects.end();) {
      if (it->second.context != context) {
        ++it;
        continue;
      }
      out.push_back(it->second);
      it = objects.erase(it);
    }
  }
}

std::vector<Object> Ledger::take_dropped(const Call& call) {
  std::vector<Object> out;
  const std::lock_guard lock(mutex_);
  if (const auto* unmap = std::get_if<MemUnmap>(&call)) {
    Objects& mappings = of(ObjectKind::kMapping);
    auto it = mappings.lower_bound(unmap->ptr.value);
    while (it != mappings.end() && in_range(it->first, unmap->ptr.value, unmap->size)) {
      out.push_back(it->second);
      it = mappings.erase(it);
    }
    return out;
  }
  const auto* release = std::get_if<DevicePrimaryCtxRelease>(&call);
  const auto* reset = std::get_if<DevicePrimaryCtxReset>(&call);
  if (release != nullptr || reset != nullptr) {
    const auto device = release != nullptr ? release->device.value : reset->device.value;
    const auto primary = primaries_.find(device);
    if (primary == primaries_.end()) return out;
    const auto holders = of(ObjectKind::kContext).count(primary->second);
    for (std::size_t i = 0; i < (reset != nullptr ? holders : 1); ++i)
      take_one(ObjectKind::kContext, primary->second, out);
    if (reset != nullptr || holders <= 1) take_context(primary->second, out);
    return out;
  }
  std::visit(
      [&](const auto& one) {
        for_each_field(one, [&](const auto& field, const auto& member) {
          if (field.role == Role::kDrops) take_one(field.kind, number_of(member), out);
        });
      },
      call);
  if (const auto* destroy = std::get_if<CtxDestroy>(&call))
    take_context(destroy->context.value, out);
  // Either free takes the other's memory too.
  if (out.empty()) {
    if (const auto* free = std::get_if<MemFree>(&call))
      take_one(ObjectKind::kPoolBlock, free->ptr.value, out);
    if (const auto* free = std::get_if<MemFreeAsync>(&call))
      take_one(ObjectKind::kPlainMemory, free->ptr.value, out);
  }
  return out;
}

void Ledger::put_back(std::vector<Object> objects) {
  const std::lock_guard lock(mutex_);
  for (Object& object : objects) of(object.kind).emplace(object.value, object);
}

std::uint64_t Ledger::size_of_new(const Call& call) const {
  std::uint64_t size = 0;
  std::visit(
      [&](const auto& one) {
        for_each_field(one, [&](const auto& field, const auto& member) {
          if (field.role == Role::kSize && field.name == "size") size = number_of(member);
        });
      },
      call);
  const auto* retain = std::get_if<MemRetainAllocationHandle>(&call);
  if (retain == nullptr) return size;
  const Objects& mappings = objects_[static_cast<std::size_t>(ObjectKind::kMapping)];
  auto it = mappings.upper_bound(retain->ptr.value);
  if (it == mappings.begin()) return 0;
  --it;
  return in_range(retain->ptr.value, it->first, it->second.size) ? it->second.size : 0;
}

void Ledger::add_made(const Call& call, std::uint64_t context, SiteId site) {
  const std::lock_guard lock(mutex_);
  Object object;
  object.call = kind(call);
  object.context = context;
  object.site = site;
  object.size = size_of_new(call);
  const auto add = [&](ObjectKind kind, std::uint64_t value) {
    if (value == 0 && kind != ObjectKind::kDescriptor) return;  // memory of no bytes
    object.kind = kind;
    object.value = value;
    object.number = ++made_;
    of(kind).emplace(value, object);
  };
  if (const auto* map = std::get_if<MemMap>(&call)) add(ObjectKind::kMapping, map->ptr.value);
  std::visit(
      [&](const auto& one) {
        for_each_field(one, [&](const auto& field, const auto& member) {
          if (field.role == Role::kMakes) add(field.kind, number_of(member));
        });
      },
      call);
  if (const auto* retain = std::get_if<DevicePrimaryCtxRetain>(&call))
    primaries_[retain->device.value] = retain->context.value;
}

std::vector<Object> Ledger::leaks(std::uint64_t after) const {
  std::vector<Object> found;
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < kKinds; ++i) {
    if (!counts_as_leak(static_cast<ObjectKind>(i))) continue;
    for (const auto& [value, object] : objects_[i])
      if (object.number > after && !object.told) found.push_back(object);
  }
  std::sort(found.begin(), found.end(),
            [](const Object& a, const Object& b) { return a.number < b.number; });
  return found;
}

void Ledger::forget(std::uint64_t after) {
  const std::lock_guard lock(mutex_);
  for (Objects& objects : objects_)
    for (auto& [value, object] : objects) object.told = object.told || object.number > after;
}

bool Ledger::holds_primary(std::int32_t device) const {
  const std::lock_guard lock(mutex_);
  const auto primary = primaries_.find(device);
  const Objects& contexts = objects_[static_cast<std::size_t>(ObjectKind::kContext)];
  return primary != primaries_.end() && contexts.count(primary->second) != 0;
}

std::uint64_t Ledger::last_number() const {
  const std::lock_guard lock(mutex_);
  return made_;
}

}  // namespace granule::libcuda
