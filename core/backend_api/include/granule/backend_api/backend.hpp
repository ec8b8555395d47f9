// The driver as the rest of the project sees it: one virtual method that executes one call.
#pragma once

#include <utility>

#include <granule/backend_api/call.hpp>
#include <granule/backend_api/export.hpp>
#include <granule/backend_api/status.hpp>

namespace granule {

/// Something that answers driver calls: the model, the real driver, or a decorator around either.
/// Implementations must be callable from any thread; what a thread is to them (current context,
/// capture mode) is their own matter.
class GRANULE_EXPORT Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  /// Executes `call`, writes its outputs into it and returns the driver's status. Never throws.
  /// On failure the outputs hold whatever the backend left there: decorators poison them.
  virtual DriverStatus execute(Call& call) noexcept = 0;

  /// Executes a call struct in place.
  template <class C>
  DriverStatus run(C& call) noexcept {
    Call any(call);
    const DriverStatus status = execute(any);
    call = *std::get_if<C>(&any);
    return status;
  }
};

}  // namespace granule
