// Driver calls of the naive resource that need a context or a capture mode around them.
#include "naive_driver.hpp"

#include <optional>

namespace granule::prop::zoo {

Error driver_error(DriverStatus status, CallKind call, std::uint64_t object, Exhausted exhausted) {
  Error error;
  error.code = ErrorCode::kDriver;
  error.driver = status;
  error.call = name_of(call);
  error.object = object;
  if (status == DriverStatus::kOutOfMemory) {
    error.code = ErrorCode::kOutOfMemory;
    error.exhausted = exhausted;
  }
  return error;
}

Error error_of(ErrorCode code, std::string_view detail) {
  Error error;
  error.code = code;
  error.detail = detail;
  return error;
}

Error exhausted_error(Exhausted what, std::uint64_t wanted) {
  Error error = error_of(ErrorCode::kOutOfMemory, "");
  error.exhausted = what;
  error.wanted = wanted;
  return error;
}

/// The stream's context on top of the thread's stack, for a few calls.
class NaiveDriver::Scope {
 public:
  Scope(NaiveDriver& driver, const Stream& stream) : driver_(driver), device_(stream.device()) {
    ContextHandle context = stream.context();
    if (stream.kind() != StreamKind::kCreated) {
      if (driver.is(Mistake::kAmbientContext)) return;
      DevicePrimaryCtxRetain retain{device_, {}};
      const DriverStatus status = driver_.call(retain);
      if (status != DriverStatus::kSuccess) {
        status_ = driver_error(status, kind_of<DevicePrimaryCtxRetain>);
        return;
      }
      retained_ = true;
      context = retain.context;
    }
    CtxPushCurrent push{context};
    const DriverStatus status = driver_.call(push);
    if (status != DriverStatus::kSuccess) {
      status_ = driver_error(status, kind_of<CtxPushCurrent>, context.value);
      return;
    }
    pushed_ = true;
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() {
    if (pushed_) {
      CtxPopCurrent pop;
      (void)driver_.call(pop);  // a context that is gone was taken off the stack
    }
    if (retained_) {
      DevicePrimaryCtxRelease release{device_};
      (void)driver_.call(release);
    }
  }
  const Status& status() const { return status_; }

 private:
  NaiveDriver& driver_;
  DeviceId device_;
  Status status_;
  bool retained_ = false;
  bool pushed_ = false;
};

namespace {

/// Relaxed capture mode while it lives.
class Relaxed {
 public:
  explicit Relaxed(NaiveDriver& driver) : driver_(driver) {
    if (driver.is(Mistake::kWaitInDefaultMode)) return;
    ThreadExchangeStreamCaptureMode exchange{CaptureMode::kRelaxed, CaptureMode::kGlobal};
    on_ = driver_.call(exchange) == DriverStatus::kSuccess;
    previous_ = exchange.previous;
  }
  Relaxed(const Relaxed&) = delete;
  Relaxed& operator=(const Relaxed&) = delete;
  ~Relaxed() {
    if (!on_) return;
    ThreadExchangeStreamCaptureMode exchange{previous_, CaptureMode::kRelaxed};
    (void)driver_.call(exchange);
  }

 private:
  NaiveDriver& driver_;
  CaptureMode previous_ = CaptureMode::kGlobal;
  bool on_ = false;
};

bool is_capture_status(DriverStatus status) {
  return status == DriverStatus::kStreamCaptureUnsupported ||
         status == DriverStatus::kStreamCaptureInvalidated ||
         status == DriverStatus::kStreamCaptureImplicit;
}

}  // namespace

std::uint32_t NaiveDriver::retries() const {
  constexpr std::uint32_t kBound = 8;
  constexpr std::uint32_t kForever = 200'000;  // a harness has to come back from it
  if (is(Mistake::kNotReadyForever)) return kForever;
  return is(Mistake::kNotReadyNever) ? 0 : kBound;
}

Result<CaptureVerdict> NaiveDriver::capture_verdict(const Stream& stream) {
  std::optional<Scope> scope;
  if (stream.kind() != StreamKind::kCreated) {
    scope.emplace(*this, stream);
    if (!scope->status().ok()) return scope->status().error();
  }
  StreamIsCapturing query{stream.handle(), CaptureStatus::kNone};
  const DriverStatus status = call(query);
  if (status == DriverStatus::kStreamCaptureImplicit)
    return is(Mistake::kImplicitCaptureUnseen) ? CaptureVerdict::kClear : CaptureVerdict::kDisturbs;
  if (is_sticky(status)) return CaptureVerdict::kClear;
  if (status != DriverStatus::kSuccess)
    return driver_error(status, kind_of<StreamIsCapturing>, stream.handle().value);
  return query.status == CaptureStatus::kNone ? CaptureVerdict::kClear : CaptureVerdict::kCaptures;
}

Status NaiveDriver::wait_for(const Stream& stream) {
  std::optional<Scope> scope;
  if (stream.kind() != StreamKind::kCreated) {
    scope.emplace(*this, stream);
    if (!scope->status().ok()) return scope->status();
  }
  const Relaxed relaxed(*this);
  StreamSynchronize wait{stream.handle()};
  const DriverStatus status = call(wait);
  // After a sticky error nothing that was queued runs any more, and memory can still be given back.
  if (status == DriverStatus::kSuccess || is_sticky(status)) return {};
  Error error = driver_error(status, kind_of<StreamSynchronize>, stream.handle().value);
  if (is_capture_status(status)) error.code = ErrorCode::kCapturing;
  return error;
}

Result<bool> NaiveDriver::is_done(const Stream& stream) {
  std::optional<Scope> scope;
  if (stream.kind() != StreamKind::kCreated) {
    scope.emplace(*this, stream);
    if (!scope->status().ok()) return scope->status().error();
  }
  const Relaxed relaxed(*this);
  StreamQuery query{stream.handle()};
  const DriverStatus status = call(query);
  if (status == DriverStatus::kSuccess || is_sticky(status)) return true;
  if (status == DriverStatus::kNotReady) return false;
  return driver_error(status, kind_of<StreamQuery>, stream.handle().value);
}

NaiveDriver::~NaiveDriver() {
  for (const std::int32_t device : kept_) {
    DevicePrimaryCtxRelease release{DeviceId{device}};
    (void)call(release);  // nobody is left to be told
  }
}

Status NaiveDriver::keep_context(const Stream& stream) {
  if (stream.kind() == StreamKind::kCreated || is(Mistake::kAmbientContext)) return {};
  if (kept_.count(stream.device().value) != 0) return {};
  DevicePrimaryCtxRetain retain{stream.device(), {}};
  const DriverStatus status = call(retain);
  if (status != DriverStatus::kSuccess)
    return driver_error(status, kind_of<DevicePrimaryCtxRetain>);
  kept_.insert(stream.device().value);
  return {};
}

Status NaiveDriver::clear(const Stream& stream, std::uint64_t base, std::uint64_t size) {
  if (Status kept = keep_context(stream); !kept) return kept;
  const Scope scope(*this, stream);
  if (!scope.status().ok()) return scope.status();
  MemsetD8Async fill{DevicePtr{base}, 0, size, stream.handle()};
  const DriverStatus status = call(fill);
  if (status == DriverStatus::kSuccess) return {};
  return driver_error(status, kind_of<MemsetD8Async>, base);
}

Status NaiveDriver::copy(const Stream& stream, void* host, std::uint64_t base, std::uint64_t size,
                         bool to_host) {
  const Scope scope(*this, stream);
  if (!scope.status().ok()) return scope.status();
  DriverStatus status = DriverStatus::kSuccess;
  if (to_host) {
    MemcpyDtoHAsync copy{host, DevicePtr{base}, size, stream.handle(), 0};
    status = call(copy);
  } else {
    MemcpyHtoDAsync copy{DevicePtr{base}, HostSource{host, 0, false}, size, stream.handle()};
    status = call(copy);
  }
  if (status != DriverStatus::kSuccess) return driver_error(status, kind_of<MemcpyDtoHAsync>, base);
  return wait_for(stream);
}

}  // namespace granule::prop::zoo
