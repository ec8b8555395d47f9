// Initialisation, devices, contexts, and which context is current on a thread.
#include <algorithm>

#include "calls.hpp"
#include "capture.hpp"
#include "streams.hpp"

namespace granule::model {
namespace {

bool is_device(const State& state, DeviceId device) {
  return device.value >= 0 && device.value < static_cast<std::int32_t>(state.devices.size());
}

bool is_context(const State& state, ContextHandle context) {
  return state.contexts.count(context.value) != 0;
}

/// Everything that belongs to a context goes: streams, events, plain and pinned memory.
void tear_down(State& state, std::uint64_t handle) {
  Context& context = state.contexts.at(handle);
  const std::vector<std::uint64_t> streams = context.streams;
  for (const std::uint64_t number : streams) {
    Stream& stream = state.streams[number];
    if (stream.capture != 0) end_capture(state, stream.capture);
    stream.destroyed = true;
    discard_work(state, number);
    pools_observe(state, {number, stream.ran});
    if (stream.handle != 0 && state.stream_handles.erase(stream.handle) != 0) {
      state.ledger.streams -= 1;
    }
  }
  context.streams.clear();
  context.legacy = kNone;
  context.per_thread.clear();
  for (auto it = state.events.begin(); it != state.events.end();) {
    if (it->second.context != handle) {
      ++it;
      continue;
    }
    it = state.events.erase(it);
    state.ledger.events -= 1;
  }
  std::vector<std::uint64_t> plain;
  for (const auto& [base, memory] : state.plain) {
    if (memory.context.value == handle) plain.push_back(base);
  }
  for (const std::uint64_t base : plain) free_plain_now(state, DevicePtr{base});
  for (auto it = state.pinned.begin(); it != state.pinned.end();) {
    if (it->second.context.value != handle) {
      ++it;
      continue;
    }
    it = state.pinned.erase(it);
    state.ledger.pinned_blocks -= 1;
  }
  context.active = false;
}

std::int32_t attribute_of(const State& state, const Device& device, std::int32_t ordinal,
                          DeviceAttribute attribute) {
  const DeviceConfig& config = device.config;
  switch (attribute) {
    case DeviceAttribute::kUnifiedAddressing:
    case DeviceAttribute::kStreamMemOps64Bit:
      return 1;
    case DeviceAttribute::kPciBusId:
      return 3 + ordinal;
    case DeviceAttribute::kComputeCapabilityMajor:
      return 9;
    case DeviceAttribute::kComputeCapabilityMinor:
      return 0;
    case DeviceAttribute::kVmmSupported:
      return config.vmm ? 1 : 0;
    case DeviceAttribute::kPosixFdSupported:
      return config.posix_fd ? 1 : 0;
    case DeviceAttribute::kWin32HandleSupported:
    case DeviceAttribute::kWin32KmtHandleSupported:
      return 0;
    case DeviceAttribute::kGpuDirectRdmaWithVmm:
    case DeviceAttribute::kGpuDirectRdma:
      return config.rdma || state.config.quirks.rdma_flag_lies ? 1 : 0;
    case DeviceAttribute::kMemoryPoolsSupported:
      return config.pools ? 1 : 0;
    case DeviceAttribute::kFabricHandleSupported:
      return 1;
    case DeviceAttribute::kHostNumaId:
      return 0;
    case DeviceAttribute::kHostNumaVmmSupported:
    case DeviceAttribute::kHostVmmSupported:
      return state.config.numa_nodes != 0 ? 1 : 0;
  }
  return -1;
}

}  // namespace

std::uint64_t current_context(const State& state, ThreadId thread) {
  const auto it = state.threads.find(thread.value);
  if (it == state.threads.end() || it->second.contexts.empty()) return 0;
  return it->second.contexts.back();
}

DriverStatus need_context(State& state, ThreadId thread, std::uint64_t& context) {
  context = current_context(state, thread);
  if (context == 0) return DriverStatus::kInvalidContext;
  const auto it = state.contexts.find(context);
  if (it == state.contexts.end() || !it->second.active) return DriverStatus::kContextIsDestroyed;
  return state.devices[static_cast<std::size_t>(it->second.device)].sticky;
}

DriverStatus run_call(State& state, ThreadId, Init& call) {
  if (call.flags != 0) return DriverStatus::kInvalidValue;
  state.initialized = true;
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId, DriverGetVersion& call) {
  call.version = state.config.driver_version;
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId, DeviceGetCount& call) {
  call.count = static_cast<std::int32_t>(state.devices.size());
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId, DeviceGetAttribute& call) {
  if (!is_device(state, call.device)) return DriverStatus::kInvalidDevice;
  const Device& device = state.devices[static_cast<std::size_t>(call.device.value)];
  const std::int32_t value = attribute_of(state, device, call.device.value, call.attribute);
  if (value < 0) return DriverStatus::kInvalidValue;
  call.value = value;
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId, DeviceTotalMem& call) {
  if (!is_device(state, call.device)) return DriverStatus::kInvalidDevice;
  call.total = state.devices[static_cast<std::size_t>(call.device.value)].total;
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId, DeviceCanAccessPeer& call) {
  if (!is_device(state, call.device) || !is_device(state, call.peer)) {
    return DriverStatus::kInvalidDevice;
  }
  const auto reaches = [&](DeviceId device) {
    return state.devices[static_cast<std::size_t>(device.value)].config.peers;
  };
  call.can = call.device != call.peer && reaches(call.device) && reaches(call.peer) ? 1 : 0;
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId thread, CtxGetCurrent& call) {
  call.context = ContextHandle{current_context(state, thread)};
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId thread, CtxSetCurrent& call) {
  auto& stack = state.threads[thread.value].contexts;
  if (call.context.value == 0) {
    if (!stack.empty()) stack.pop_back();
    return DriverStatus::kSuccess;
  }
  if (!is_context(state, call.context)) return DriverStatus::kInvalidContext;
  if (stack.empty()) {
    stack.push_back(call.context.value);
  } else {
    stack.back() = call.context.value;
  }
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId thread, CtxPushCurrent& call) {
  if (!is_context(state, call.context)) return DriverStatus::kInvalidContext;
  state.threads[thread.value].contexts.push_back(call.context.value);
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId thread, CtxPopCurrent& call) {
  auto& stack = state.threads[thread.value].contexts;
  if (stack.empty()) return DriverStatus::kInvalidContext;
  call.context = ContextHandle{stack.back()};
  stack.pop_back();
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId thread, CtxGetDevice& call) {
  const std::uint64_t context = current_context(state, thread);
  if (context == 0) return DriverStatus::kInvalidContext;
  const auto it = state.contexts.find(context);
  if (it == state.contexts.end()) return DriverStatus::kContextIsDestroyed;
  call.device = DeviceId{it->second.device};
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId thread, CtxSynchronize&) {
  std::uint64_t context = 0;
  const DriverStatus current = need_context(state, thread, context);
  if (current != DriverStatus::kSuccess) return current;
  const std::int32_t device = state.contexts.at(context).device;
  const DriverStatus allowed = check_context_wait(state, device);
  if (allowed != DriverStatus::kSuccess) return allowed;
  return wait_for_context(state, device, context, true);
}

DriverStatus run_call(State& state, ThreadId thread, CtxCreate& call) {
  if (!is_device(state, call.device)) return DriverStatus::kInvalidDevice;
  const Device& device = state.devices[static_cast<std::size_t>(call.device.value)];
  if (device.sticky != DriverStatus::kSuccess) return device.sticky;
  if (!take_memory(state, device_location(call.device), state.config.context_bytes, true)) {
    return DriverStatus::kOutOfMemory;
  }
  Context context;
  context.device = call.device.value;
  context.active = true;
  state.contexts[state.next_context] = context;
  call.context = ContextHandle{state.next_context};
  state.threads[thread.value].contexts.push_back(state.next_context);
  state.next_context += 0x100;
  state.ledger.contexts += 1;
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId thread, CtxDestroy& call) {
  const auto it = state.contexts.find(call.context.value);
  if (it == state.contexts.end() || it->second.primary) return DriverStatus::kInvalidContext;
  const std::int32_t device = it->second.device;
  tear_down(state, call.context.value);
  give_memory(state, device_location({device}), state.config.context_bytes);
  state.contexts.erase(call.context.value);
  auto& stack = state.threads[thread.value].contexts;
  if (!stack.empty() && stack.back() == call.context.value) stack.pop_back();
  state.ledger.contexts -= 1;
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId, DevicePrimaryCtxRetain& call) {
  if (!is_device(state, call.device)) return DriverStatus::kInvalidDevice;
  const Device& device = state.devices[static_cast<std::size_t>(call.device.value)];
  if (device.sticky != DriverStatus::kSuccess) return device.sticky;
  Context& primary = state.contexts.at(device.primary);
  primary.active = true;
  primary.retains += 1;
  call.context = ContextHandle{device.primary};
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId, DevicePrimaryCtxRelease& call) {
  if (!is_device(state, call.device)) return DriverStatus::kInvalidDevice;
  const std::uint64_t handle = state.devices[static_cast<std::size_t>(call.device.value)].primary;
  Context& primary = state.contexts.at(handle);
  if (primary.retains == 0) return DriverStatus::kInvalidContext;
  primary.retains -= 1;
  if (primary.retains == 0) tear_down(state, handle);
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId, DevicePrimaryCtxReset& call) {
  if (!is_device(state, call.device)) return DriverStatus::kInvalidDevice;
  const std::uint64_t handle = state.devices[static_cast<std::size_t>(call.device.value)].primary;
  tear_down(state, handle);
  state.contexts.at(handle).retains = 0;
  return DriverStatus::kSuccess;
}

}  // namespace granule::model
