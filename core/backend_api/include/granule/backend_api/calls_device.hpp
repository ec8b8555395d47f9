// Initialisation, devices and contexts; and the calls that only a harness makes.
#pragma once

#include <granule/backend_api/field.hpp>
#include <granule/backend_api/types.hpp>

namespace granule {

struct Init {
  static constexpr CallInfo info{"cuInit", CallFamily::kDevice};
  std::uint32_t flags = 0;
  static constexpr auto fields() { return std::tuple{in("flags", &Init::flags)}; }
};

struct DriverGetVersion {
  static constexpr CallInfo info{"cuDriverGetVersion", CallFamily::kDevice};
  std::int32_t version = 0;  // out
  static constexpr auto fields() { return std::tuple{out("version", &DriverGetVersion::version)}; }
};

struct DeviceGetCount {
  static constexpr CallInfo info{"cuDeviceGetCount", CallFamily::kDevice};
  std::int32_t count = 0;  // out
  static constexpr auto fields() { return std::tuple{out("count", &DeviceGetCount::count)}; }
};

struct DeviceGetAttribute {
  static constexpr CallInfo info{"cuDeviceGetAttribute", CallFamily::kDevice};
  DeviceAttribute attribute = DeviceAttribute::kVmmSupported;
  DeviceId device;
  std::int32_t value = 0;  // out
  static constexpr auto fields() {
    using C = DeviceGetAttribute;
    return std::tuple{in("attribute", &C::attribute), in("device", &C::device),
                      out("value", &C::value)};
  }
};

struct DeviceTotalMem {
  static constexpr CallInfo info{"cuDeviceTotalMem", CallFamily::kDevice};
  DeviceId device;
  std::uint64_t total = 0;  // out
  static constexpr auto fields() {
    using C = DeviceTotalMem;
    return std::tuple{in("device", &C::device), out("total", &C::total)};
  }
};

/// Whether `device` can reach the memory of `peer`.
struct DeviceCanAccessPeer {
  static constexpr CallInfo info{"cuDeviceCanAccessPeer", CallFamily::kDevice};
  DeviceId device;
  DeviceId peer;
  std::int32_t can = 0;  // out
  static constexpr auto fields() {
    using C = DeviceCanAccessPeer;
    return std::tuple{in("device", &C::device), in("peer", &C::peer), out("can", &C::can)};
  }
};

struct CtxGetCurrent {
  static constexpr CallInfo info{"cuCtxGetCurrent", CallFamily::kDevice};
  ContextHandle context;  // out
  static constexpr auto fields() { return std::tuple{out("context", &CtxGetCurrent::context)}; }
};

struct CtxSetCurrent {
  static constexpr CallInfo info{"cuCtxSetCurrent", CallFamily::kDevice};
  ContextHandle context;
  static constexpr auto fields() {
    return std::tuple{uses("context", &CtxSetCurrent::context, ObjectKind::kContext)};
  }
};

struct CtxPushCurrent {
  static constexpr CallInfo info{"cuCtxPushCurrent", CallFamily::kDevice};
  ContextHandle context;
  static constexpr auto fields() {
    return std::tuple{uses("context", &CtxPushCurrent::context, ObjectKind::kContext)};
  }
};

struct CtxPopCurrent {
  static constexpr CallInfo info{"cuCtxPopCurrent", CallFamily::kDevice};
  ContextHandle context;  // out
  static constexpr auto fields() { return std::tuple{out("context", &CtxPopCurrent::context)}; }
};

/// The device of the current context.
struct CtxGetDevice {
  static constexpr CallInfo info{"cuCtxGetDevice", CallFamily::kDevice};
  DeviceId device;  // out
  static constexpr auto fields() { return std::tuple{out("device", &CtxGetDevice::device)}; }
};

struct CtxSynchronize {
  static constexpr CallInfo info{"cuCtxSynchronize", CallFamily::kDevice};
  static constexpr auto fields() { return std::tuple{}; }
};

/// Makes a context and makes it current on the calling thread.
struct CtxCreate {
  static constexpr CallInfo info{"cuCtxCreate", CallFamily::kDevice};
  std::uint32_t flags = 0;
  DeviceId device;
  ContextHandle context;  // out
  static constexpr auto fields() {
    using C = CtxCreate;
    return std::tuple{in("flags", &C::flags), in("device", &C::device),
                      makes("context", &C::context, ObjectKind::kContext)};
  }
};

struct CtxDestroy {
  static constexpr CallInfo info{"cuCtxDestroy", CallFamily::kDevice};
  ContextHandle context;
  static constexpr auto fields() {
    return std::tuple{drops("context", &CtxDestroy::context, ObjectKind::kContext)};
  }
};

struct DevicePrimaryCtxRetain {
  static constexpr CallInfo info{"cuDevicePrimaryCtxRetain", CallFamily::kDevice};
  DeviceId device;
  ContextHandle context;  // out
  static constexpr auto fields() {
    using C = DevicePrimaryCtxRetain;
    return std::tuple{in("device", &C::device),
                      makes("context", &C::context, ObjectKind::kContext)};
  }
};

struct DevicePrimaryCtxRelease {
  static constexpr CallInfo info{"cuDevicePrimaryCtxRelease", CallFamily::kDevice};
  DeviceId device;
  static constexpr auto fields() {
    return std::tuple{in("device", &DevicePrimaryCtxRelease::device)};
  }
};

struct DevicePrimaryCtxReset {
  static constexpr CallInfo info{"cuDevicePrimaryCtxReset", CallFamily::kDevice};
  DeviceId device;
  static constexpr auto fields() {
    return std::tuple{in("device", &DevicePrimaryCtxReset::device)};
  }
};

/// Harness: nothing queued on `stream` from here on starts before OpenGate. On hardware a stream
/// wait on a host word (driver contract, section 23).
struct CloseGate {
  static constexpr CallInfo info{"hold", CallFamily::kHarness, 0};
  StreamHandle stream;
  static constexpr auto fields() { return std::tuple{on_stream("stream", &CloseGate::stream)}; }
};

struct OpenGate {
  static constexpr CallInfo info{"release", CallFamily::kHarness, 0};
  StreamHandle stream;
  static constexpr auto fields() { return std::tuple{on_stream("stream", &OpenGate::stream)}; }
};

/// Harness: the host sleeps; queued work that is not held and takes less has run afterwards, but
/// the host has not observed it.
struct Pause {
  static constexpr CallInfo info{"pause", CallFamily::kHarness, 0};
  std::uint64_t duration_ns = 0;
  static constexpr auto fields() { return std::tuple{in("for", &Pause::duration_ns)}; }
};

/// Harness: what an asynchronous read put under `landing`. NOT_READY before it has run.
struct TakeLanding {
  static constexpr CallInfo info{"take_landing", CallFamily::kHarness, 0};
  std::uint64_t landing = 0;
  ByteSummary found;  // out
  static constexpr auto fields() {
    using C = TakeLanding;
    return std::tuple{in("landing", &C::landing), out("found", &C::found)};
  }
};

}  // namespace granule
