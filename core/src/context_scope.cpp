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
    (void)driver_.call(pop);  // a context that is gone was taken off the stack by the driver
  }
  if (retained_) {
    DevicePrimaryCtxRelease release{device_};
    (void)driver_.call(release);  // ditto: a reset primary context holds no reference of ours
  }
}

RelaxedScope::RelaxedScope(const Driver& driver) : driver_(driver) {
  ThreadExchangeStreamCaptureMode exchange{CaptureMode::kRelaxed, CaptureMode::kGlobal};
  const DriverStatus status = driver_.call(exchange);
  if (status != DriverStatus::kSuccess) {
    status_ = driver_error(status, kind_of<ThreadExchangeStreamCaptureMode>);
    return;
  }
  previous_ = exchange.previous;
}

RelaxedScope::~RelaxedScope() {
  if (!status_.ok()) return;
  ThreadExchangeStreamCaptureMode exchange{previous_, CaptureMode::kRelaxed};
  // Our own words say which mode to put back; if the driver refuses, nothing better is to be had.
  (void)driver_.call(exchange);
}

}  // namespace granule::detail
