// Who makes a driver call, and from which logical thread: what decorators count, fail and record
// by. Not part of any call, so that the same call values serve the library and the harness around
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <granule/backend_api/export.hpp>

namespace granule {

/// Who makes a call.
enum class CallOrigin : std::uint8_t {
  kLibrary,  // the allocator under test; what a thread is unless it says otherwise
  kProgram,  // written in the program that a harness runs
  kHarness,  // the harness's own: never counted, never failed
};

/// "library", "program", "harness".
GRANULE_EXPORT std::string_view name_of(CallOrigin origin) noexcept;
GRANULE_EXPORT std::optional<CallOrigin> origin_named(std::string_view name) noexcept;

/// The origin of the calls that this thread makes now.
GRANULE_EXPORT CallOrigin current_origin() noexcept;
/// The logical thread number set for this thread, or nothing if no ThreadScope is open.
GRANULE_EXPORT std::optional<std::uint32_t> current_thread_number() noexcept;

/// Calls of this thread have that origin while the scope lives. Scopes nest; each is closed by the
/// thread that opened it.
class [[nodiscard]] GRANULE_EXPORT OriginScope {
 public:
  explicit OriginScope(CallOrigin origin) noexcept;
  ~OriginScope();
  OriginScope(const OriginScope&) = delete;
  OriginScope& operator=(const OriginScope&) = delete;

 private:
  CallOrigin before_;
};

/// Calls of this thread carry that logical thread number while the scope lives.
class [[nodiscard]] GRANULE_EXPORT ThreadScope {
 public:
  explicit ThreadScope(std::uint32_t number) noexcept;
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  std::optional<std::uint32_t> before_;
};

/// Both of the above together, for harnesses that run several logical threads on one.
struct ThreadMarks {
  CallOrigin origin = CallOrigin::kLibrary;
  std::optional<std::uint32_t> number;
};
/// Sets the marks of this thread and returns what they were.
GRANULE_EXPORT ThreadMarks exchange_thread_marks(const ThreadMarks& marks) noexcept;

}  // namespace granule
