// Initialisation, devices, contexts, and what only a harness asks for.
#include <chrono>
#include <thread>

#include "impl.hpp"

namespace granule::cuda {

DriverStatus CudaBackend::Impl::call(Init& c) { return invoke(driver->cuInit, c.flags); }

DriverStatus CudaBackend::Impl::call(DriverGetVersion& c) {
  return invoke(driver->cuDriverGetVersion, &c.version);
}

DriverStatus CudaBackend::Impl::call(DeviceGetCount& c) {
  return invoke(driver->cuDeviceGetCount, &c.count);
}

DriverStatus CudaBackend::Impl::call(DeviceGetAttribute& c) {
  return invoke(driver->cuDeviceGetAttribute, &c.value, static_cast<int>(c.attribute),
                to_abi(c.device));
}

DriverStatus CudaBackend::Impl::call(DeviceTotalMem& c) {
  std::size_t total = c.total;
  const DriverStatus status = invoke(driver->cuDeviceTotalMem, &total, to_abi(c.device));
  c.total = total;
  return status;
}

DriverStatus CudaBackend::Impl::call(DeviceCanAccessPeer& c) {
  return invoke(driver->cuDeviceCanAccessPeer, &c.can, to_abi(c.device), to_abi(c.peer));
}

DriverStatus CudaBackend::Impl::call(CtxGetCurrent& c) {
  abi::Context context = to_abi(c.context);
  const DriverStatus status = invoke(driver->cuCtxGetCurrent, &context);
  c.context.value = to_value(context);
  return status;
}

DriverStatus CudaBackend::Impl::call(CtxSetCurrent& c) {
  return invoke(driver->cuCtxSetCurrent, to_abi(c.context));
}

DriverStatus CudaBackend::Impl::call(CtxPushCurrent& c) {
  return invoke(driver->cuCtxPushCurrent, to_abi(c.context));
}

DriverStatus CudaBackend::Impl::call(CtxPopCurrent& c) {
  abi::Context context = to_abi(c.context);
  const DriverStatus status = invoke(driver->cuCtxPopCurrent, &context);
  c.context.value = to_value(context);
  return status;
}

DriverStatus CudaBackend::Impl::call(CtxGetDevice& c) {
  return invoke(driver->cuCtxGetDevice, &c.device.value);
}

DriverStatus CudaBackend::Impl::call(CtxSynchronize&) { return invoke(driver->cuCtxSynchronize); }

DriverStatus CudaBackend::Impl::call(CtxCreate& c) {
  abi::Context context = to_abi(c.context);
  const DriverStatus status = invoke(driver->cuCtxCreate, &context, c.flags, to_abi(c.device));
  c.context.value = to_value(context);
  return status;
}

// Ends a context by `drop`. What we keep in it is not touched any more from before the call, and
// its gates are opened, since nothing could open them afterwards.
template <class Drop>
DriverStatus CudaBackend::Impl::drop_context(abi::Context context, Drop drop) {
  if (context == nullptr) return drop();
  gates.open_in(context);
  contexts.leaving(context);
  const DriverStatus status = drop();
  if (status == DriverStatus::kSuccess) {
    contexts.forget(context);
    guard.context_gone({to_value(context)});
  } else {
    contexts.staying(context);
  }
  return status;
}

DriverStatus CudaBackend::Impl::call(CtxDestroy& c) {
  return drop_context(to_abi(c.context),
                      [&] { return invoke(driver->cuCtxDestroy, to_abi(c.context)); });
}

DriverStatus CudaBackend::Impl::call(DevicePrimaryCtxRetain& c) {
  abi::Context context = to_abi(c.context);
  const DriverStatus status = invoke(driver->cuDevicePrimaryCtxRetain, &context, to_abi(c.device));
  c.context.value = to_value(context);
  if (status == DriverStatus::kSuccess) {
    const std::lock_guard lock(primaries_mutex_);
    primaries_[to_abi(c.device)] = context;
  }
  return status;
}

abi::Context CudaBackend::Impl::primary_of(abi::Device device) {
  const std::lock_guard lock(primaries_mutex_);
  const auto found = primaries_.find(device);
  return found != primaries_.end() ? found->second : nullptr;
}

DriverStatus CudaBackend::Impl::call(DevicePrimaryCtxRelease& c) {
  const DriverStatus status = invoke(driver->cuDevicePrimaryCtxRelease, to_abi(c.device));
  unsigned flags = 0;
  int active = 1;
  invoke(driver->cuDevicePrimaryCtxGetState, to_abi(c.device), &flags, &active);
  const abi::Context context = primary_of(to_abi(c.device));
  if (status == DriverStatus::kSuccess && active == 0 && context != nullptr) {
    contexts.forget(context);
    guard.context_gone({to_value(context)});
  }
  return status;
}

DriverStatus CudaBackend::Impl::call(DevicePrimaryCtxReset& c) {
  return drop_context(primary_of(to_abi(c.device)),
                      [&] { return invoke(driver->cuDevicePrimaryCtxReset, to_abi(c.device)); });
}

DriverStatus CudaBackend::Impl::call(CloseGate& c) { return gates.close(c.stream); }

DriverStatus CudaBackend::Impl::call(OpenGate& c) { return gates.open(c.stream); }

DriverStatus CudaBackend::Impl::call(Pause& c) {
  std::this_thread::sleep_for(std::chrono::nanoseconds(c.duration_ns));
  return DriverStatus::kSuccess;
}

DriverStatus CudaBackend::Impl::call(TakeLanding& c) { return landings.take(c.landing, &c.found); }

}  // namespace granule::cuda
