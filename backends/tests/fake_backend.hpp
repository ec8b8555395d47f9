// A backend for tests of decorators: numbers every object it makes and answers as it is told.
#pragma once

#include <type_traits>
#include <vector>

#include <granule/backend_api/backend.hpp>

namespace granule::test {

template <class T>
concept HasValue = requires(T& object) {
  object.value = 0;
};
/// Makes objects with consecutive values from `base`; answers `next_status` once, then success.
class FakeBackend final : public Backend {
 public:
  explicit FakeBackend(std::uint64_t base = 0x1000) : next_(base) {}

  DriverStatus execute(Call& call) noexcept override {
    seen.push_back(call);
    const DriverStatus status = next_status;
    next_status = DriverStatus::kSuccess;
    if (status != DriverStatus::kSuccess) return status;
    std::visit(
        [&](auto& c) {
          for_each_field(c, [&](const auto& field, auto& member) {
            using T = std::remove_cvref_t<decltype(member)>;
            if (field.role != Role::kMakes) return;
            const std::uint64_t value = next_;
            next_ += 0x1000;
            if constexpr (std::is_same_v<T, std::uint64_t>) {
              member = value;
            } else if constexpr (HasValue<T>) {
              member.value = static_cast<decltype(member.value)>(value);
            }
          });
        },
        call);
    return status;
  }

  std::vector<Call> seen;
  DriverStatus next_status = DriverStatus::kSuccess;

 private:
  std::uint64_t next_;
};

}  // namespace granule::test
