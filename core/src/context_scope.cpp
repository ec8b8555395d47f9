// Entering and leaving contexts and the relaxed capture mode.
#include "context_scope.hpp"

namespace granule::detail {

ContextScope::ContextScope(const Driver& driver, ContextHandle context, DeviceId device,
                           bool primary)
    : driver_(driver), context_(context), device_(device) {
  if (primary) {
    DevicePrimaryCtxRetain retain{device, {}};
    const DriverStatus status = driver_.call(retain);
    if (status != DriverStatus::kSuccess) {
      status_ = driver_error(status, kind_of<DevicePrimaryCtxRetain>);
      return;
    }
    retained_ = true;
    context_ = retain.context;
  }
  CtxPushCurrent push{context_};
  const DriverStatus status = driver_.call(push);
  if (status != DriverStatus::kSuccess) {
    status_ = driver_error(status, kind_of<CtxPushCurrent>, context_.value);
    return;
  }
  pushed_ = true;
}

ContextScope::~ContextScope() {
  if (pushed_) {
    CtxPopCurrent pop;
    if (driver_.call(pop) != DriverStatus::kSuccess) {
      // Refused, or done all the same? The context that is current now tells; if it is gone, the
      // driver has taken it off the stack by itself.
      CtxGetCurrent now;
      if (driver_.call(now) == DriverStatus::kSuccess && now.context == context_)
        (void)driver_.call(pop);
    }
  }
  if (retained_) {
    DevicePrimaryCtxRelease release{device_};
    (void)driver_.call(release);  // fails only for a context that was reset: nothing is held then
  }
}

RelaxedScope::RelaxedScope(const Driver& driver) : driver_(driver) {
  ThreadExchangeStreamCaptureMode exchange{CaptureMode::kRelaxed, CaptureMode::kGlobal};
  const DriverStatus status = driver_.call(exchange);
  if (status != DriverStatus::kSuccess)
    status_ = driver_error(status, kind_of<ThreadExchangeStreamCaptureMode>);
  previous_ = exchange.previous;
}

RelaxedScope::~RelaxedScope() {
  if (!status_.ok()) return;
  ThreadExchangeStreamCaptureMode exchange{previous_, CaptureMode::kRelaxed};
  // Setting a mode twice does no harm, so a refusal is tried once more.
  if (driver_.call(exchange) == DriverStatus::kSuccess) return;
  (void)driver_.call(exchange);
}

}  // namespace granule::detail
