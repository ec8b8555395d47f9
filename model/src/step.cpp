// One call on a state: what is common to all calls, then the call itself.
#include <type_traits>

#include "calls.hpp"
#include "streams.hpp"

namespace granule::model {
namespace {

template <class C, class... List>
constexpr bool is_one_of = (std::is_same_v<C, List> || ...);

template <class C>
constexpr bool works_before_init =
    is_one_of<C, Init, DriverGetVersion, CloseDescriptor, Pause, OpenGate, TakeLanding>;

/// The few calls that a host function may make; harness calls are no driver calls.
template <class C>
constexpr bool works_in_host_function =
    C::info.family == CallFamily::kHarness ||
    is_one_of<C, MemsetD8Async, MemsetD32Async, EventRecord, EventQuery, StreamQuery,
              StreamSynchronize, StreamWaitEvent, StreamWriteValue64, StreamIsCapturing,
              DriverGetVersion, CloseDescriptor>;

/// Whether a handle, address or descriptor that goes in is what a failed call left behind.
template <class C>
bool takes_poison(const C& call) {
  bool found = false;
  for_each_field(call, [&](const auto& field, const auto& value) {
    if constexpr (requires { value.value; }) {
      if (is_output(field.role)) return;
      found = found || value.value == static_cast<std::decay_t<decltype(value.value)>>(kPoison64);
    }
  });
  return found;
}

template <class C>
DriverStatus guarded(State& state, ThreadId thread, C& call) {
  if (takes_poison(call)) {
    violate(state, ViolationKind::kPoisonedUse,
            std::string(C::info.name) + " with an output of a failed call");
  }
  if (!works_before_init<C> && !state.initialized) {
    if constexpr (std::is_same_v<C, EventQuery>) {
      if (call.event.value == 0) return DriverStatus::kInvalidHandle;
    }
    return DriverStatus::kNotInitialized;
  }
  if (!works_in_host_function<C> && thread == kHostFunctionThread) {
    return DriverStatus::kNotPermitted;
  }
  if constexpr (C::info.family == CallFamily::kVmm && C::info.since != 0) {
    if (state.config.quirks.not_ready_times != 0) {
      if (state.quirk_not_ready < state.config.quirks.not_ready_times) {
        state.quirk_not_ready += 1;
        return DriverStatus::kNotReady;
      }
      state.quirk_not_ready = 0;
    }
  }
  return run_call(state, thread, call);
}

}  // namespace

DriverStatus step(DriverState& driver, ThreadId thread, Call& call) {
  State& state = driver.raw();
  state.calls += 1;
  const DriverStatus status =
      std::visit([&](auto& one) { return guarded(state, thread, one); }, call);
  run_by_schedule(state);
  return status;
}

bool would_block(const DriverState& driver, ThreadId thread, const Call& call) {
  if (driver.raw().possible_blocks == 0) return false;
  const bool waits = std::visit(
      [](const auto& one) {
        using C = std::decay_t<decltype(one)>;
        return is_one_of<C, MemFree, MemFreeHost, MemcpyHtoD, MemcpyHtoDAsync, MemcpyDtoH,
                         MemcpyDtoHAsync, MemcpyDtoD, MemcpyDtoDAsync, Memcpy, StreamSynchronize,
                         EventSynchronize, CtxSynchronize>;
      },
      call);
  if (!waits) return false;
  DriverState tried = driver;
  tried.raw().dry = true;
  Call copy = call;
  return step(tried, thread, copy) == DriverStatus::kWouldBlock;
}

}  // namespace granule::model
