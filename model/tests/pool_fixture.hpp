// A machine with one current context and short words for the calls that pool tests make.
#pragma once

#include <gtest/gtest.h>

#include <granule/backend_api/call.hpp>
#include <granule/model/model.hpp>

namespace granule::model {

inline constexpr std::uint64_t kMib = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kGib = std::uint64_t{1} << 30;
inline constexpr std::uint64_t kMax = UINT64_MAX;
inline constexpr ThreadId kMain{0};

using enum DriverStatus;

inline Config machine(std::size_t devices = 1) {
  Config config;
  config.devices.assign(devices, DeviceConfig{});
  return config;
}

class PoolTest : public ::testing::Test {
 protected:
  explicit PoolTest(const Config& config = machine()) : state(config) {
    Init init;
    EXPECT_EQ(run(init), kSuccess);
    DevicePrimaryCtxRetain retain;
    EXPECT_EQ(run(retain), kSuccess);
    context = retain.context;
    CtxSetCurrent current;
    current.context = context;
    EXPECT_EQ(run(current), kSuccess);
    start = state.free_bytes(0);
  }

  template <class C>
  DriverStatus run(C& call, ThreadId thread = kMain) {
    Call any(call);
    const DriverStatus status = step(state, thread, any);
    call = *std::get_if<C>(&any);
    return status;
  }

  // Streams and events.
  StreamHandle stream(std::uint32_t flags = kStreamNonBlocking) {
    StreamCreate call;
    call.flags = flags;
    EXPECT_EQ(run(call), kSuccess);
    return call.stream;
  }
  DriverStatus sync(StreamHandle on) {
    StreamSynchronize call;
    call.stream = on;
    return run(call);
  }
  DriverStatus sync() {
    CtxSynchronize call;
    return run(call);
  }
  DriverStatus destroy(StreamHandle which) {
    StreamDestroy call;
    call.stream = which;
    return run(call);
  }
  DriverStatus query(StreamHandle which) {
    StreamQuery call;
    call.stream = which;
    return run(call);
  }
  void hold(StreamHandle on) {
    CloseGate call;
    call.stream = on;
    EXPECT_EQ(run(call), kSuccess);
  }
  void release(StreamHandle on) {
    OpenGate call;
    call.stream = on;
    EXPECT_EQ(run(call), kSuccess);
  }
  void pause(std::uint64_t milliseconds = 30) {
    Pause call;
    call.duration_ns = milliseconds * 1'000'000;
    EXPECT_EQ(run(call), kSuccess);
  }
  EventHandle record(StreamHandle on) {
    EventCreate made;
    EXPECT_EQ(run(made), kSuccess);
    EventRecord call;
    call.event = made.event;
    call.stream = on;
    EXPECT_EQ(run(call), kSuccess);
    return made.event;
  }
  void wait(EventHandle event, StreamHandle on) {
    StreamWaitEvent call;
    call.event = event;
    call.stream = on;
    EXPECT_EQ(run(call), kSuccess);
  }
  DriverStatus sync(EventHandle event) {
    EventSynchronize call;
    call.event = event;
    return run(call);
  }
  bool done(EventHandle event) { return state.event_done(event); }
  DriverStatus fill(DevicePtr ptr, std::uint64_t size, StreamHandle on, std::uint8_t value = 0x11) {
    MemsetD8Async call;
    call.ptr = ptr;
    call.value = value;
    call.size = size;
    call.stream = on;
    return run(call);
  }

  // Pools.
  PoolHandle pool(std::uint64_t threshold = 0, std::uint64_t max_size = 0) {
    MemPoolCreate call;
    call.max_size = max_size;
    EXPECT_EQ(run(call), kSuccess);
    if (threshold != 0) {
      EXPECT_EQ(set(call.pool, PoolAttribute::kReleaseThreshold, threshold), kSuccess);
    }
    return call.pool;
  }
  PoolHandle default_pool(std::int32_t device = 0) {
    DeviceGetDefaultMemPool call;
    call.device = DeviceId{device};
    EXPECT_EQ(run(call), kSuccess);
    return call.pool;
  }
  DriverStatus drop(PoolHandle which) {
    MemPoolDestroy call;
    call.pool = which;
    return run(call);
  }
  DriverStatus set(PoolHandle which, PoolAttribute attribute, std::uint64_t value) {
    MemPoolSetAttribute call;
    call.pool = which;
    call.attribute = attribute;
    call.value = value;
    return run(call);
  }
  std::uint64_t get(PoolHandle which, PoolAttribute attribute) {
    MemPoolGetAttribute call;
    call.pool = which;
    call.attribute = attribute;
    EXPECT_EQ(run(call), kSuccess);
    return call.value;
  }
  void switches(PoolHandle which, bool follow, bool opportunistic, bool internal) {
    set(which, PoolAttribute::kReuseFollowEventDependencies, follow);
    set(which, PoolAttribute::kReuseAllowOpportunistic, opportunistic);
    set(which, PoolAttribute::kReuseAllowInternalDependencies, internal);
  }
  DriverStatus trim(PoolHandle which, std::uint64_t keep, ThreadId thread = kMain) {
    MemPoolTrimTo call;
    call.pool = which;
    call.keep = keep;
    return run(call, thread);
  }
  DriverStatus ask(std::uint64_t size, PoolHandle from, StreamHandle on, DevicePtr& ptr) {
    MemAllocFromPoolAsync call;
    call.size = size;
    call.pool = from;
    call.stream = on;
    const DriverStatus status = run(call);
    ptr = call.ptr;
    return status;
  }
  DevicePtr ask(std::uint64_t size, PoolHandle from, StreamHandle on) {
    DevicePtr ptr;
    EXPECT_EQ(ask(size, from, on, ptr), kSuccess);
    return ptr;
  }
  DriverStatus ask_default(std::uint64_t size, StreamHandle on, DevicePtr& ptr,
                           ThreadId thread = kMain) {
    MemAllocAsync call;
    call.size = size;
    call.stream = on;
    const DriverStatus status = run(call, thread);
    ptr = call.ptr;
    return status;
  }
  DriverStatus give(DevicePtr ptr, StreamHandle on, ThreadId thread = kMain) {
    MemFreeAsync call;
    call.ptr = ptr;
    call.stream = on;
    return run(call, thread);
  }
  DriverStatus free_plain(DevicePtr ptr) {
    MemFree call;
    call.ptr = ptr;
    return run(call);
  }
  DriverStatus create(std::uint64_t size) {
    MemCreate call;
    call.size = size;
    return run(call);
  }
  /// RESERVED, RESERVED_HIGH, USED, USED_HIGH.
  using Counters = std::array<std::uint64_t, 4>;
  Counters counters(PoolHandle which) {
    return {get(which, PoolAttribute::kReservedMemCurrent),
            get(which, PoolAttribute::kReservedMemHigh), get(which, PoolAttribute::kUsedMemCurrent),
            get(which, PoolAttribute::kUsedMemHigh)};
  }
  std::uint64_t reserved(PoolHandle which) {
    return get(which, PoolAttribute::kReservedMemCurrent);
  }
  /// Device memory taken since the start.
  std::uint64_t taken(std::int32_t device = 0) { return start - state.free_bytes(device); }

  DriverState state;
  ContextHandle context;
  std::uint64_t start = 0;
};

}  // namespace granule::model
