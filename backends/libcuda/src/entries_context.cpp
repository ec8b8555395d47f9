// Entry points: contexts, primary and created, and the stack of current ones.
#include <algorithm>

#include "entry.hpp"

namespace granule::libcuda {
namespace {

abi::Context context_of(ContextHandle handle) { return pointer_of<abi::Context>(handle.value); }
ContextHandle handle_of(abi::Context context) { return ContextHandle{value_of(context)}; }

abi::Result create(abi::Context* context, unsigned flags, abi::Device device) {
  if (const abi::Result not_ready = ready_for(context)) return not_ready;
  if ((flags & ~0xffu) != 0 || (flags & 7u) == 3 || (flags & 7u) > 4) return kBadValue;
  CtxCreate call;
  call.flags = flags;
  call.device = {device};
  return submit_for(call, context, [](const auto& c) { return context_of(c.context); });
}

/// The context meant: the one named, or for null the current one. Refuses one that is dead.
abi::Result resolve(abi::Context context, std::uint64_t& found) {
  if (const abi::Result not_ready = ready()) return not_ready;
  found = value_of(context);
  if (found == 0) {
    CtxGetCurrent current;
    ask(current);
    found = current.context.value;
    return found != 0 ? kOk : kBadContext;
  }
  CtxPushCurrent push;
  push.context = {found};
  if (const abi::Result dead = ask(push)) return dead;
  CtxPopCurrent pop;
  ask(pop);
  return kOk;
}

}  // namespace

GRANULE_ENTRY(cuCtxCreate)(abi::Context* context, unsigned flags, abi::Device device) {
  return create(context, flags, device);
}
GRANULE_ENTRY(cuCtxCreate_v2)(abi::Context* context, unsigned flags, abi::Device device) {
  return create(context, flags, device);
}
GRANULE_ENTRY(cuCtxCreate_v3)
(abi::Context* context, void* affinity, int count, unsigned flags, abi::Device device) {
  if (affinity != nullptr || count != 0) return unsupported("cuCtxCreate_v3 with affinity");
  return create(context, flags, device);
}
GRANULE_ENTRY(cuCtxCreate_v4)
(abi::Context* context, void* parameters, unsigned flags, abi::Device device) {
  if (parameters != nullptr) return unsupported("cuCtxCreate_v4 with parameters");
  return create(context, flags, device);
}

GRANULE_ENTRY(cuCtxDestroy_v2)(abi::Context context) {
  CtxDestroy call;
  call.context = handle_of(context);
  return submit(call);
}
GRANULE_ENTRY(cuCtxDestroy)(abi::Context context) { return GRANULE_CALL(cuCtxDestroy_v2)(context); }

GRANULE_ENTRY(cuCtxGetCurrent)(abi::Context* context) {
  if (const abi::Result not_ready = ready_for(context)) return not_ready;
  return submit_for(CtxGetCurrent{}, context, [](const auto& c) { return context_of(c.context); });
}
GRANULE_ENTRY(cuCtxSetCurrent)(abi::Context context) {
  CtxSetCurrent call;
  call.context = handle_of(context);
  return submit(call);
}
GRANULE_ENTRY(cuCtxPushCurrent_v2)(abi::Context context) {
  CtxPushCurrent call;
  call.context = handle_of(context);
  return submit(call);
}
GRANULE_ENTRY(cuCtxPushCurrent)(abi::Context context) {
  return GRANULE_CALL(cuCtxPushCurrent_v2)(context);
}
GRANULE_ENTRY(cuCtxPopCurrent_v2)(abi::Context* context) {
  CtxPopCurrent call;
  const abi::Result result = submit(call);
  if (result == kOk && context != nullptr) *context = context_of(call.context);
  return result;
}
GRANULE_ENTRY(cuCtxPopCurrent)(abi::Context* context) {
  return GRANULE_CALL(cuCtxPopCurrent_v2)(context);
}

GRANULE_ENTRY(cuCtxGetDevice)(abi::Device* device) {
  if (const abi::Result not_ready = ready_for(device)) return not_ready;
  return submit_for(CtxGetDevice{}, device, [](const auto& c) { return c.device.value; });
}
GRANULE_ENTRY(cuCtxGetDevice_v2)(abi::Device* device, abi::Context context) {
  if (context == nullptr) return GRANULE_CALL(cuCtxGetDevice)(device);
  if (const abi::Result not_ready = ready_for(device)) return not_ready;
  CtxPushCurrent push;
  push.context = handle_of(context);
  if (const abi::Result bad = ask(push)) return bad;
  CtxGetDevice asked;
  const abi::Result result = ask(asked);
  CtxPopCurrent pop;
  ask(pop);
  if (result == kOk) *device = asked.device.value;
  return result;
}

GRANULE_ENTRY(cuCtxSynchronize)() {
  CtxSynchronize call;
  return submit(call);
}
GRANULE_ENTRY(cuCtxSynchronize_v2)(abi::Context context) {
  if (context == nullptr) return GRANULE_CALL(cuCtxSynchronize)();
  if (const abi::Result bad = GRANULE_CALL(cuCtxPushCurrent_v2)(context)) return bad;
  const abi::Result result = GRANULE_CALL(cuCtxSynchronize)();
  GRANULE_CALL(cuCtxPopCurrent_v2)(nullptr);
  return result;
}

GRANULE_ENTRY(cuCtxGetId)(abi::Context context, unsigned long long* id) {
  if (const abi::Result not_ready = ready_for(id)) return not_ready;
  std::uint64_t found = 0;
  if (const abi::Result bad = resolve(context, found)) return bad;
  *id = found;
  return kOk;
}
GRANULE_ENTRY(cuCtxGetApiVersion)(abi::Context context, unsigned* version) {
  if (const abi::Result not_ready = ready_for(version)) return not_ready;
  std::uint64_t found = 0;
  if (const abi::Result bad = resolve(context, found)) return bad;
  *version = 3020;
  return kOk;
}
GRANULE_ENTRY(cuCtxGetFlags)(unsigned* flags) {
  if (const abi::Result not_ready = ready_for(flags)) return not_ready;
  std::uint64_t found = 0;
  if (const abi::Result bad = resolve(nullptr, found)) return bad;
  *flags = 0;
  return kOk;
}
GRANULE_ENTRY(cuCtxSetFlags)(unsigned flags) {
  std::uint64_t found = 0;
  if (const abi::Result bad = resolve(nullptr, found)) return bad;
  return (flags & ~0xffu) != 0 ? kBadValue : kOk;
}
GRANULE_ENTRY(cuCtxGetStreamPriorityRange)(int* least, int* greatest) {
  std::uint64_t found = 0;
  if (const abi::Result bad = resolve(nullptr, found)) return bad;
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return kOk;
}
GRANULE_ENTRY(cuCtxGetLimit)(std::size_t* value, int limit) {
  if (const abi::Result not_ready = ready_for(value)) return not_ready;
  std::uint64_t found = 0;
  if (const abi::Result bad = resolve(nullptr, found)) return bad;
  static constexpr std::size_t kLimits[] = {1024, 8u << 20, 8u << 20, 2, 2048, 64, 0};
  if (limit < 0 || limit >= static_cast<int>(std::size(kLimits)))
    return static_cast<int>(DriverStatus::kUnsupportedLimit);
  *value = kLimits[limit];
  return kOk;
}
GRANULE_ENTRY(cuCtxSetLimit)(int limit, std::size_t) {
  std::uint64_t found = 0;
  if (const abi::Result bad = resolve(nullptr, found)) return bad;
  return limit < 0 || limit > 6 ? static_cast<int>(DriverStatus::kUnsupportedLimit) : kOk;
}
GRANULE_ENTRY(cuCtxEnablePeerAccess)(abi::Context peer, unsigned flags) {
  if (const abi::Result not_ready = ready()) return not_ready;
  if (flags != 0) return kBadValue;
  std::uint64_t found = 0;
  if (const abi::Result bad = resolve(nullptr, found)) return bad;
  if (peer == nullptr || resolve(peer, found) != kOk) return kBadContext;
  return kOk;
}
GRANULE_ENTRY(cuCtxDisablePeerAccess)(abi::Context peer) {
  std::uint64_t found = 0;
  if (const abi::Result bad = resolve(nullptr, found)) return bad;
  return peer == nullptr || resolve(peer, found) != kOk ? kBadContext : kOk;
}

GRANULE_ENTRY(cuDevicePrimaryCtxRetain)(abi::Context* context, abi::Device device) {
  if (const abi::Result not_ready = ready_for(context)) return not_ready;
  DevicePrimaryCtxRetain call;
  call.device = {device};
  return submit_for(call, context, [](const auto& c) { return context_of(c.context); });
}
GRANULE_ENTRY(cuDevicePrimaryCtxRelease_v2)(abi::Device device) {
  DevicePrimaryCtxRelease call;
  call.device = {device};
  return submit(call);
}
GRANULE_ENTRY(cuDevicePrimaryCtxRelease)(abi::Device device) {
  return GRANULE_CALL(cuDevicePrimaryCtxRelease_v2)(device);
}
GRANULE_ENTRY(cuDevicePrimaryCtxReset_v2)(abi::Device device) {
  DevicePrimaryCtxReset call;
  call.device = {device};
  return submit(call);
}
GRANULE_ENTRY(cuDevicePrimaryCtxReset)(abi::Device device) {
  return GRANULE_CALL(cuDevicePrimaryCtxReset_v2)(device);
}
GRANULE_ENTRY(cuDevicePrimaryCtxSetFlags_v2)(abi::Device device, unsigned flags) {
  if (const abi::Result not_ready = ready()) return not_ready;
  DeviceTotalMem exists;
  exists.device = {device};
  if (const abi::Result bad = ask(exists)) return bad;
  return (flags & ~0xffu) != 0 ? kBadValue : kOk;
}
GRANULE_ENTRY(cuDevicePrimaryCtxSetFlags)(abi::Device device, unsigned flags) {
  return GRANULE_CALL(cuDevicePrimaryCtxSetFlags_v2)(device, flags);
}
GRANULE_ENTRY(cuDevicePrimaryCtxGetState)(abi::Device device, unsigned* flags, int* active) {
  if (const abi::Result not_ready = ready()) return not_ready;
  if (flags == nullptr || active == nullptr) return kBadValue;
  DeviceTotalMem exists;
  exists.device = {device};
  if (const abi::Result bad = ask(exists)) return bad;
  *flags = 0;
  *active = Session::get().primary_retained(device) ? 1 : 0;
  return kOk;
}

}  // namespace granule::libcuda
