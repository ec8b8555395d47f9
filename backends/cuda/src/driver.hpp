// The loaded driver library: opened at run time, entry points through cuGetProcAddress.
#pragma once

#include <memory>

#include <granule/backend_api/result.hpp>
#include <granule/backends/driver_abi.hpp>

namespace granule::cuda {

/// One opened libcuda. It stays loaded until the process ends: the driver does not like to be
/// unloaded. Immutable after load, so it may be used from any thread.
class Driver {
 public:
  /// Opens `path`, or the system's libcuda.so.1 where that is null, and looks up every entry
  /// point. Calls no driver function but cuGetProcAddress. Errors: kUnsupported, where there is
  /// no such library or it is older than CUDA 11.3.
  static Result<std::unique_ptr<Driver>> load(const char* path);

  const abi::FunctionTable& functions() const noexcept { return functions_; }
  const abi::FunctionTable* operator->() const noexcept { return &functions_; }

 private:
  Driver() = default;
  abi::FunctionTable functions_;
};

/// The driver's answer of a call through a possibly missing entry point.
template <class... Parameters, class... Arguments>
DriverStatus invoke(abi::Result (*function)(Parameters...), Arguments... arguments) {
  if (function == nullptr) return DriverStatus::kUnavailable;
  return static_cast<DriverStatus>(function(arguments...));
}

}  // namespace granule::cuda
