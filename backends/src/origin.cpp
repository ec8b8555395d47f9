// The per-thread switches behind CallOrigin and logical thread numbers.
#include <granule/backends/origin.hpp>

#include <array>
#include <cstddef>

namespace granule {
namespace {
thread_local CallOrigin t_origin = CallOrigin::kLibrary;
thread_local std::optional<std::uint32_t> t_number;
constexpr std::array<std::string_view, 3> kOriginNames{"library", "program", "harness"};
}  // namespace

std::string_view name_of(CallOrigin origin) noexcept {
  const auto index = static_cast<std::size_t>(origin);
  return index < kOriginNames.size() ? kOriginNames[index] : "unknown";
}

std::optional<CallOrigin> origin_named(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kOriginNames.size(); ++i)
    if (kOriginNames[i] == name) return static_cast<CallOrigin>(i);
  return std::nullopt;
}

CallOrigin current_origin() noexcept { return t_origin; }
std::optional<std::uint32_t> current_thread_number() noexcept { return t_number; }

OriginScope::OriginScope(CallOrigin origin) noexcept : before_(t_origin) { t_origin = origin; }
OriginScope::~OriginScope() { t_origin = before_; }

ThreadScope::ThreadScope(std::uint32_t number) noexcept : before_(t_number) { t_number = number; }
ThreadScope::~ThreadScope() { t_number = before_; }

ThreadMarks exchange_thread_marks(const ThreadMarks& marks) noexcept {
  const ThreadMarks before{t_origin, t_number};
  t_origin = marks.origin;
  t_number = marks.number;
  return before;
}

}  // namespace granule
