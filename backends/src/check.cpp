// Poison detection, and lockstep comparison up to a renaming of addresses and handles.
#include <granule/backends/check.hpp>

#include <optional>
#include <type_traits>

namespace granule::check {
namespace {

// Kinds of handles, for the renaming. Every Id type of the interface is listed once.
template <class T>
constexpr int kIdKind = -1;
template <>
constexpr int kIdKind<AllocationHandle> = 0;
template <>
constexpr int kIdKind<PoolHandle> = 1;
template <>
constexpr int kIdKind<StreamHandle> = 2;
template <>
constexpr int kIdKind<EventHandle> = 3;
template <>
constexpr int kIdKind<ContextHandle> = 4;
template <>
constexpr int kIdKind<GraphHandle> = 5;
template <>
constexpr int kIdKind<StreamId> = 6;
template <>
constexpr int kIdKind<Descriptor> = 7;

constexpr std::uint64_t kNearPoison = std::uint64_t{1} << 40;

/// The bytes that a call asks for: its first size member; 0 if it has none.
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

/// True for an answer that is an address although its type is a plain number.
bool answers_an_address(const Call& call) {
  PointerAttribute attribute{};
  if (const auto* one = std::get_if<PointerGetAttribute>(&call)) attribute = one->attribute;
  if (const auto* many = std::get_if<PointerGetAttributes>(&call)) attribute = many->attribute;
  return attribute == PointerAttribute::kDevicePointer ||
         attribute == PointerAttribute::kHostPointer ||
         attribute == PointerAttribute::kRangeStartAddr ||
         attribute == PointerAttribute::kMappingBaseAddr;
}

/// True for an answer that is a number of the driver's own choice.
bool answers_a_name(const Call& call) {
  PointerAttribute attribute{};
  if (const auto* one = std::get_if<PointerGetAttribute>(&call)) attribute = one->attribute;
  if (const auto* many = std::get_if<PointerGetAttributes>(&call)) attribute = many->attribute;
  return attribute == PointerAttribute::kContext || attribute == PointerAttribute::kBufferId ||
         attribute == PointerAttribute::kMempoolHandle ||
         attribute == PointerAttribute::kMemoryBlockId;
}

}  // namespace

bool uses_poison_or_near(const Call& call) noexcept {
  if (uses_poison(call)) return true;
  return std::visit(
      [](const auto& c) {
        bool found = false;
        for_each_field(c, [&](const auto& field, const auto& member) {
          using T = std::remove_cvref_t<decltype(member)>;
          if constexpr (std::is_same_v<T, DevicePtr>)
            if (!is_output(field.role) && member.value - kPoison64 < kNearPoison) found = true;
        });
        return found;
      },
      call);
}

DriverStatus PoisonCheckBackend::execute(Call& call) noexcept {
  if (!uses_poison_or_near(call)) return inner_.execute(call);
  report_(call, current_origin());
  poison_outputs(call);
  return DriverStatus::kInvalidValue;
}

std::uint64_t LockstepBackend::model_address(std::uint64_t real) const {
  auto after = addresses_.upper_bound(real);
  if (after == addresses_.begin()) return real;
  const auto& [base, range] = *std::prev(after);
  // The end itself is renamed too: it is what a hint behind a range looks like.
  return real - base <= range.size ? range.model_base + (real - base) : real;
}

template <class T>
T LockstepBackend::renamed(const T& real) const {
  if constexpr (std::is_same_v<T, DevicePtr>) {
    return DevicePtr{model_address(real.value)};
  } else if constexpr (kIdKind<T> >= 0) {
    const auto found = ids_.find({kIdKind<T>, static_cast<std::uint64_t>(real.value)});
    if (found == ids_.end()) return real;
    T result = real;
    result.value = static_cast<decltype(result.value)>(found->second);
    return result;
  } else {
    return real;
  }
}

template <class C>
void LockstepBackend::learn(const C& real, const C& model) {
  for_each_field(real, [&](const auto& field, const auto& member) {
    using T = std::remove_cvref_t<decltype(member)>;
    if (!is_output(field.role)) return;
    const T& other = model.*(field.member);
    if constexpr (kIdKind<T> >= 0) {
      const std::pair key{kIdKind<T>, static_cast<std::uint64_t>(member.value)};
      const auto value = static_cast<std::uint64_t>(other.value);
      if (field.role == Role::kMakes) {
        ids_.insert_or_assign(key, value);
      } else {
        ids_.try_emplace(key, value);
      }
    } else if constexpr (std::is_same_v<T, DevicePtr>) {
      if (field.role == Role::kMakes)
        addresses_[member.value] = Range{size_asked(real), other.value};
    } else if constexpr (std::is_same_v<T, std::uint64_t>) {
      if (field.role == Role::kMakes) addresses_[member] = Range{size_asked(real), other};
    }
  });
}

template <class C>
std::string LockstepBackend::first_difference(const C& real, const C& model) const {
  std::string name;
  for_each_field(real, [&](const auto& field, const auto& member) {
    using T = std::remove_cvref_t<decltype(member)>;
    if (!is_output(field.role) || !name.empty()) return;
    // New objects have the names that each side chose; a retained handle is one known already.
    const bool retained = std::is_same_v<C, MemRetainAllocationHandle>;
    if (field.role == Role::kMakes && !retained) return;
    T expected = renamed(member);
    if constexpr (kIdKind<T> >= 0) {
      const std::pair key{kIdKind<T>, static_cast<std::uint64_t>(member.value)};
      if (ids_.find(key) == ids_.end()) return;
    }
    if constexpr (std::is_same_v<T, std::uint64_t>) {
      if (answers_an_address(Call(real))) expected = model_address(member);
      if (answers_a_name(Call(real))) expected = model.*(field.member);
    }
    if (!(expected == model.*(field.member))) name = std::string(field.name);
  });
  return name;
}

void LockstepBackend::forget(const Call& real) {
  std::visit(
      [&](const auto& c) {
        for_each_field(c, [&](const auto& field, const auto& member) {
          using T = std::remove_cvref_t<decltype(member)>;
          if (field.role != Role::kDrops || field.kind == ObjectKind::kMapping) return;
          if constexpr (std::is_same_v<T, DevicePtr>) {
            addresses_.erase(member.value);
          } else if constexpr (std::is_same_v<T, std::uint64_t>) {
            addresses_.erase(member);
          } else if constexpr (kIdKind<T> >= 0 && !std::is_same_v<T, AllocationHandle>) {
            // Memory may have other references; a handle value that comes back is learnt anew.
            ids_.erase({kIdKind<T>, static_cast<std::uint64_t>(member.value)});
          }
        });
      },
      real);
}

DriverStatus LockstepBackend::execute(Call& call) noexcept {
  const std::lock_guard lock(mutex_);
  ++number_;
  Call other = call;
  std::visit(
      [&](auto& c) {
        for_each_field(c, [&](const auto& field, auto& member) {
          if (is_output(field.role)) return;
          member = renamed(member);
          using T = std::remove_cvref_t<decltype(member)>;
          if constexpr (std::is_same_v<T, std::uint64_t>)
            if (field.kind == ObjectKind::kPinnedMemory) member = model_address(member);
        });
      },
      other);
  const DriverStatus real_status = real_.execute(call);
  const DriverStatus model_status = model_.execute(other);
  std::string field;
  if (real_status != model_status) field = "status";
  if (real_status == DriverStatus::kSuccess) {
    std::visit(
        [&](const auto& real) {
          const auto& model = *std::get_if<std::remove_cvref_t<decltype(real)>>(&other);
          if (model_status == DriverStatus::kSuccess) {
            if (field.empty()) field = first_difference(real, model);
            learn(real, model);
          }
        },
        call);
    forget(call);
  }
  if (!field.empty())
    report_(Difference{number_, call, real_status, other, model_status, std::move(field)});
  return real_status;
}

}  // namespace granule::check
