// Driver: how the core makes a driver call. Turns statuses into errors, repeats what is only not
// ready, and lets a harness choose another thread before each call.
#pragma once

#include <granule/backend_api/backend.hpp>
#include <granule/backend_api/result.hpp>
#include <granule/backend_api/sync.hpp>

namespace granule::detail {

/// A VMM call that answers NOT_READY is repeated this often before it is an error.
inline constexpr int kNotReadyRetries = 8;

/// The error that a failed driver call means to a caller.
inline Error driver_error(DriverStatus status, CallKind call, std::uint64_t object = 0,
                          Exhausted exhausted = Exhausted::kDevice) {
  Error error;
  error.driver = status;
  error.call = name_of(call);
  error.object = object;
  if (status == DriverStatus::kOutOfMemory) {
    error.code = ErrorCode::kOutOfMemory;
    error.exhausted = exhausted;
  }
  return error;
}

inline Error make_error(ErrorCode code, std::string_view detail) {
  Error error;
  error.code = code;
  error.detail = detail;
  return error;
}

inline Error host_memory_error(std::uint64_t wanted) {
  Error error;
  error.code = ErrorCode::kOutOfMemory;
  error.exhausted = Exhausted::kHost;
  error.wanted = wanted;
  error.detail = "no host memory for the library's own records";
  return error;
}

/// A backend and the seam, together. A cheap value.
class Driver {
 public:
  Driver(Backend& backend, const Runtime& runtime) : backend_(&backend), runtime_(runtime) {}

  /// Makes the call once.
  template <class C>
  DriverStatus call(C& c) const {
    runtime_.yield_point();
    return backend_->run(c);
  }
  /// Makes a VMM call, repeated while the driver says NOT_READY; no sleep in between.
  template <class C>
  DriverStatus vmm(C& c) const {
    DriverStatus status = call(c);
    for (int i = 0; i < kNotReadyRetries && status == DriverStatus::kNotReady; ++i)
      status = call(c);
    return status;
  }
  Backend& backend() const { return *backend_; }
  const Runtime& runtime() const { return runtime_; }

 private:
  Backend* backend_;
  Runtime runtime_;
};

}  // namespace granule::detail
