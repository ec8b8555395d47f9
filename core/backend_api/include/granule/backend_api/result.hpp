// Errors as values: Error, Status, Result<T>, and the exceptions for callers who want them.
// No allocation on the error path; the class is [[nodiscard]], so that no error is dropped unseen.
#pragma once

#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include <granule/backend_api/export.hpp>
#include <granule/backend_api/status.hpp>

namespace granule {

/// What went wrong, in the library's own terms (the names of the program format).
enum class ErrorCode : std::uint8_t {
  kOutOfMemory,
  kInvalidArgument,
  kOverflow,
  kUnsupported,
  kClosed,
  kWrongResource,
  kSuspended,
  kCapturing,
  kDriver,  // anything else the driver said: Error::driver holds it
};

/// Which resource ran out, where the code is kOutOfMemory.
enum class Exhausted : std::uint8_t { kNone, kDevice, kAddresses, kBudget, kPending, kHost };

/// One failure. A plain value of fixed size, made without allocating.
struct Error {
  ErrorCode code = ErrorCode::kDriver;
  Exhausted exhausted = Exhausted::kNone;
  DriverStatus driver = DriverStatus::kSuccess;  // what the driver said, if it was asked
  std::string_view call;        // name of the driver call that failed; static storage; may be empty
  std::string_view detail;      // what was expected, or what to do; static storage; may be empty
  std::uint64_t wanted = 0;     // bytes asked for, where that says something
  std::uint64_t available = 0;  // bytes that were to be had
  std::uint64_t object = 0;     // address or handle concerned
};

/// "out_of_memory", "invalid_argument", ... as the program format spells it.
GRANULE_EXPORT std::string_view name_of(ErrorCode code) noexcept;
/// "device", "addresses", "budget", "pending", "host"; "" for kNone.
GRANULE_EXPORT std::string_view name_of(Exhausted what) noexcept;
/// One line for a person: what happened, what was expected, what to do.
GRANULE_EXPORT std::string to_string(const Error& error);

/// Out of device memory, addresses, budget or host memory. A std::bad_alloc.
class GRANULE_EXPORT OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(const Error& error) noexcept : error_(error) {}
  const char* what() const noexcept override { return "granule: out of memory"; }
  const Error& error() const noexcept { return error_; }

 private:
  Error error_;
};

/// Every other failure.
class GRANULE_EXPORT BackendError : public std::runtime_error {
 public:
  explicit BackendError(const Error& error) : std::runtime_error(to_string(error)), error_(error) {}
  const Error& error() const noexcept { return error_; }

 private:
  Error error_;
};

/// Throws OutOfMemory or BackendError, by the code of `error`.
[[noreturn]] GRANULE_EXPORT void throw_error(const Error& error);

/// Success, or an Error.
class [[nodiscard]] GRANULE_EXPORT Status {
 public:
  constexpr Status() noexcept = default;
  constexpr Status(const Error& error) noexcept : error_(error), failed_(true) {}  // NOLINT
  constexpr bool ok() const noexcept { return !failed_; }
  constexpr explicit operator bool() const noexcept { return ok(); }
  /// The error; only when !ok().
  constexpr const Error& error() const noexcept { return error_; }
  /// Nothing, or throws OutOfMemory / BackendError.
  void value() const {
    if (failed_) throw_error(error_);
  }
  /// States that a failure is of no interest here; say why beside the call.
  constexpr void ignore() const noexcept {}

 private:
  Error error_{};
  bool failed_ = false;
};

/// A T, or an Error.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) noexcept(std::is_nothrow_move_constructible_v<T>)  // NOLINT
      : data_(std::in_place_index<0>, std::move(value)) {}
  Result(const Error& error) noexcept : data_(std::in_place_index<1>, error) {}  // NOLINT
  bool ok() const noexcept { return data_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }
  /// The value; only when ok().
  T& operator*() & noexcept { return *std::get_if<0>(&data_); }
  const T& operator*() const& noexcept { return *std::get_if<0>(&data_); }
  T&& operator*() && noexcept { return std::move(*std::get_if<0>(&data_)); }
  T* operator->() noexcept { return std::get_if<0>(&data_); }
  const T* operator->() const noexcept { return std::get_if<0>(&data_); }
  /// The error; only when !ok().
  const Error& error() const noexcept { return *std::get_if<1>(&data_); }
  Status status() const noexcept { return ok() ? Status() : Status(error()); }
  /// The value, or throws OutOfMemory / BackendError.
  T& value() & {
    if (!ok()) throw_error(error());
    return **this;
  }
  T&& value() && {
    if (!ok()) throw_error(error());
    return std::move(**this);
  }

 private:
  std::variant<T, Error> data_;
};

}  // namespace granule
