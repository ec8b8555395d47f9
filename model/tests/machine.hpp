// A simulated machine for tests: short words for driver calls, each returning its status.
#pragma once

#include <gtest/gtest.h>

#include <granule/backend_api/call.hpp>
#include <granule/model/model.hpp>

namespace granule::model {

inline constexpr std::uint64_t kG = std::uint64_t{2} << 20;  // a granule

/// One machine with the primary context of device 0 current on thread 0.
class Machine {
 public:
  explicit Machine(const Config& config = {}) : state(config) {
    call(Init{});
    primary = made(DevicePrimaryCtxRetain{}).context;
    call(CtxSetCurrent{primary});
    start = state.free_bytes(0);
  }

  /// Runs a call; `status` and the answer are kept.
  template <class C>
  DriverStatus call(C one) {
    Call any(one);
    status = step(state, thread, any);
    return status;
  }
  template <class C>
  C made(C one) {
    Call any(one);
    status = step(state, thread, any);
    return *std::get_if<C>(&any);
  }

  DevicePtr reserve(std::uint64_t size, std::uint64_t align = 0, DevicePtr hint = {}) {
    return made(MemAddressReserve{size, align, hint, 0, {}}).ptr;
  }
  AllocationHandle create(std::uint64_t size, HandleType types = HandleType::kNone,
                          Location place = {}) {
    AllocationProperties properties;
    properties.handle_types = types;
    properties.location = place;
    return made(MemCreate{size, properties, 0, {}}).handle;
  }
  DriverStatus map(DevicePtr at, std::uint64_t size, AllocationHandle handle) {
    return call(MemMap{at, size, 0, handle, 0});
  }
  DriverStatus unmap(DevicePtr at, std::uint64_t size) { return call(MemUnmap{at, size}); }
  DriverStatus access(DevicePtr at, std::uint64_t size, Access what, Location who = {}) {
    MemSetAccess set;
    set.ptr = at;
    set.size = size;
    set.access.push({who, what});
    return call(set);
  }
  Access access_of(DevicePtr at, Location who = {}) {
    return made(MemGetAccess{who, at, Access::kNone}).access;
  }
  DriverStatus release(AllocationHandle handle) { return call(MemRelease{handle}); }

  /// A reservation with `count` mapped chunks of one granule, readable and writable.
  DevicePtr buffer(std::uint64_t count, std::uint64_t room = 0) {
    const DevicePtr base = reserve((room == 0 ? count : room) * kG);
    for (std::uint64_t i = 0; i < count; ++i) {
      const AllocationHandle chunk = create(kG);
      map(DevicePtr{base.value + i * kG}, kG, chunk);
      release(chunk);
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      access(DevicePtr{base.value + i * kG}, kG, Access::kReadWrite);
    }
    return base;
  }

  StreamHandle stream(std::uint32_t flags = kStreamNonBlocking) {
    return made(StreamCreate{flags, {}}).stream;
  }
  EventHandle event_on(StreamHandle on) {
    const EventHandle event = made(EventCreate{}).event;
    call(EventRecord{event, on});
    return event;
  }
  DriverStatus fill(DevicePtr at, std::uint8_t value, std::uint64_t size, StreamHandle on) {
    return call(MemsetD8Async{at, value, size, on});
  }
  DriverStatus kernel(KernelKind kind, DevicePtr at, std::uint64_t size, StreamHandle on,
                      std::uint64_t ns = 0) {
    LaunchKernel launch;
    launch.kind = kind;
    launch.value = 0x5A;
    launch.ptr = at;
    launch.size = size;
    launch.stream = on;
    launch.duration_ns = ns;
    return call(launch);
  }
  DriverStatus sync(StreamHandle on) { return call(StreamSynchronize{on}); }
  DriverStatus sync() { return call(CtxSynchronize{}); }
  /// The byte that fills a range, or -1 (several), -2 (nobody knows), -3 (the read failed).
  int read(DevicePtr at, std::uint64_t size) {
    const MemcpyDtoH copy = made(MemcpyDtoH{nullptr, at, size, {}});
    if (status != DriverStatus::kSuccess) return -3;
    if (copy.found.kind == ByteSummary::Kind::kUnknown) return -2;
    return copy.found.kind == ByteSummary::Kind::kMixed ? -1 : copy.found.byte;
  }
  std::int64_t free_change() const {
    return static_cast<std::int64_t>(state.free_bytes(0)) - static_cast<std::int64_t>(start);
  }
  /// How many violations of a kind were found.
  int count(ViolationKind kind) const {
    int found = 0;
    for (const Violation& one : state.violations()) found += one.kind == kind ? 1 : 0;
    return found;
  }

  DriverState state;
  ThreadId thread{0};
  ContextHandle primary;
  DriverStatus status = DriverStatus::kSuccess;
  std::uint64_t start = 0;
};

inline Config with_verdict(Verdict verdict) {
  Config config;
  config.verdict = verdict;
  return config;
}
inline DevicePtr plus(DevicePtr base, std::uint64_t offset) {
  return DevicePtr{base.value + offset};
}

}  // namespace granule::model
