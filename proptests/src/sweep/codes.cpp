// The table of plausible codes.
#include "codes.hpp"

#include <algorithm>
#include <array>

namespace granule::prop::sweep {
namespace {

using S = DriverStatus;

struct Row {
  CallKind kind;
  std::array<S, 4> codes;
  std::size_t count;
  bool effect = true;
  bool retried = false;
};

template <class C>
constexpr Row effect(S first, S second = S::kSuccess, S third = S::kSuccess,
                     S fourth = S::kSuccess) {
  const std::array<S, 4> codes{first, second, third, fourth};
  std::size_t count = 0;
  for (const S code : codes) count += code != S::kSuccess ? 1 : 0;
  return {kind_of<C>, codes, count};
}

template <class C>
constexpr Row vmm(S first, S second = S::kSuccess, S third = S::kSuccess, S fourth = S::kSuccess) {
  Row row = effect<C>(first, second, third, fourth);
  row.retried = true;
  return row;
}

template <class C>
constexpr Row query(S first, S second = S::kSuccess, S third = S::kSuccess,
                    S fourth = S::kSuccess) {
  Row row = effect<C>(first, second, third, fourth);
  row.effect = false;
  return row;
}

// A block that was freed behind its owner's back may be somebody else's at once: whoever tries
// again then frees that. Nobody can keep such a promise, so these are refused only.
template <class C>
constexpr Row plain_free(S first, S second = S::kSuccess, S third = S::kSuccess) {
  return query<C>(first, second, third);
}

// Mapping calls run out of memory for page tables, object calls out of device memory or addresses;
// an fd table runs full (OPERATING_SYSTEM); a host function is no place for any of them
// (NOT_PERMITTED, S36); a capture forbids queries (S34); an earlier fault of the context surfaces
// at whatever waits (LAUNCH_FAILED, section 16). UNKNOWN is what no reader can have foreseen.
constexpr Row kRows[] = {
    vmm<MemAddressReserve>(S::kOutOfMemory, S::kInvalidValue, S::kUnknown),
    vmm<MemAddressFree>(S::kUnknown, S::kInvalidValue),
    vmm<MemCreate>(S::kOutOfMemory, S::kNotPermitted, S::kNotSupported, S::kUnknown),
    vmm<MemRelease>(S::kUnknown, S::kInvalidValue),
    vmm<MemRetainAllocationHandle>(S::kInvalidValue, S::kUnknown),
    vmm<MemMap>(S::kUnknown, S::kOutOfMemory, S::kInvalidValue),
    vmm<MemUnmap>(S::kUnknown, S::kInvalidValue),
    vmm<MemSetAccess>(S::kUnknown, S::kOutOfMemory, S::kInvalidDevice, S::kNotSupported),
    query<MemGetAccess>(S::kUnknown, S::kNotPermitted),  // INVALID_VALUE says: not mapped
    query<MemGetAllocationGranularity>(S::kInvalidDevice, S::kNotSupported),
    query<MemGetAllocationPropertiesFromHandle>(S::kInvalidValue, S::kUnknown),
    vmm<MemExportToShareableHandle>(S::kOperatingSystem, S::kNotSupported, S::kInvalidValue),
    vmm<MemImportFromShareableHandle>(S::kUnknown, S::kOutOfMemory, S::kNotSupported),
    query<MemGetInfo>(S::kInvalidContext, S::kUnknown),
    effect<MemAlloc>(S::kOutOfMemory, S::kStreamCaptureUnsupported),
    plain_free<MemFree>(S::kUnknown, S::kInvalidValue, S::kStreamCaptureUnsupported),
    effect<MemAllocHost>(S::kOutOfMemory, S::kOperatingSystem),
    effect<MemFreeHost>(S::kUnknown, S::kInvalidValue),
    effect<MemsetD8Async>(S::kInvalidValue, S::kOutOfMemory, S::kUnknown),
    effect<MemcpyHtoDAsync>(S::kInvalidValue, S::kOutOfMemory, S::kUnknown),
    effect<MemcpyDtoHAsync>(S::kInvalidValue, S::kOutOfMemory, S::kUnknown),
    effect<MemcpyHtoD>(S::kInvalidValue, S::kOutOfMemory, S::kLaunchFailed),
    effect<MemcpyDtoH>(S::kInvalidValue, S::kOutOfMemory, S::kLaunchFailed),
    effect<MemPoolCreate>(S::kOutOfMemory, S::kNotSupported, S::kNotPermitted),
    effect<MemPoolDestroy>(S::kUnknown, S::kInvalidValue),
    effect<MemPoolTrimTo>(S::kUnknown, S::kStreamCaptureUnsupported),
    effect<MemPoolSetAttribute>(S::kInvalidValue, S::kUnknown),
    query<MemPoolGetAttribute>(S::kInvalidValue, S::kUnknown),
    effect<MemPoolSetAccess>(S::kInvalidDevice, S::kNotSupported, S::kOutOfMemory),
    effect<MemAllocFromPoolAsync>(S::kOutOfMemory, S::kInvalidValue, S::kUnknown),
    effect<MemAllocAsync>(S::kOutOfMemory, S::kInvalidValue, S::kUnknown),
    plain_free<MemFreeAsync>(S::kInvalidValue, S::kStreamCaptureUnsupported, S::kUnknown),
    query<DeviceGetDefaultMemPool>(S::kInvalidDevice, S::kNotSupported),
    query<StreamQuery>(S::kUnknown, S::kInvalidHandle, S::kStreamCaptureImplicit, S::kLaunchFailed),
    effect<StreamSynchronize>(S::kUnknown, S::kInvalidHandle, S::kStreamCaptureUnsupported,
                              S::kLaunchFailed),
    effect<StreamWaitEvent>(S::kUnknown, S::kInvalidHandle, S::kStreamCaptureIsolation),
    query<StreamGetCtx>(S::kInvalidHandle, S::kContextIsDestroyed),
    query<StreamGetId>(S::kInvalidHandle, S::kContextIsDestroyed),
    query<StreamIsCapturing>(S::kUnknown, S::kInvalidHandle, S::kStreamCaptureImplicit),
    effect<ThreadExchangeStreamCaptureMode>(S::kUnknown, S::kInvalidValue),
    effect<EventCreate>(S::kOutOfMemory, S::kInvalidContext, S::kNotPermitted),
    effect<EventDestroy>(S::kUnknown, S::kInvalidHandle),
    effect<EventRecord>(S::kUnknown, S::kInvalidHandle, S::kLaunchFailed),
    query<EventQuery>(S::kUnknown, S::kInvalidHandle, S::kStreamCaptureUnsupported,
                      S::kLaunchFailed),
    effect<EventSynchronize>(S::kUnknown, S::kInvalidHandle, S::kStreamCaptureUnsupported,
                             S::kLaunchFailed),
    query<DeviceGetCount>(S::kNotInitialized, S::kUnknown),
    query<DeviceGetAttribute>(S::kInvalidValue, S::kInvalidDevice),
    query<DeviceTotalMem>(S::kInvalidDevice, S::kUnknown),
    query<DeviceCanAccessPeer>(S::kInvalidDevice, S::kUnknown),
    query<CtxGetCurrent>(S::kDeinitialized, S::kUnknown),
    query<CtxGetDevice>(S::kInvalidContext, S::kUnknown),
    effect<CtxSetCurrent>(S::kInvalidContext, S::kUnknown),
    effect<CtxPushCurrent>(S::kInvalidContext, S::kContextIsDestroyed),
    effect<CtxPopCurrent>(S::kInvalidContext, S::kUnknown),
    effect<CtxSynchronize>(S::kUnknown, S::kStreamCaptureUnsupported, S::kLaunchFailed),
    effect<DevicePrimaryCtxRetain>(S::kOutOfMemory, S::kDeviceUnavailable, S::kUnknown),
    effect<DevicePrimaryCtxRelease>(S::kUnknown, S::kInvalidContext),
};

constexpr Row kAnyOther{CallKind{}, {S::kUnknown, S::kInvalidValue}, 2};

const Row& row_of(CallKind kind) {
  const auto* found = std::find_if(std::begin(kRows), std::end(kRows),
                                   [&](const Row& r) { return r.kind == kind; });
  return found == std::end(kRows) ? kAnyOther : *found;
}

}  // namespace

std::span<const DriverStatus> plausible_codes(CallKind kind) {
  const Row& row = row_of(kind);
  return {row.codes.data(), row.count};
}

bool has_effect(CallKind kind) { return row_of(kind).effect; }

bool is_retried(CallKind kind) { return row_of(kind).retried; }

bool is_query_of_work(CallKind kind) {
  return kind == kind_of<EventQuery> || kind == kind_of<StreamQuery>;
}

bool is_driver_call(CallKind kind) {
  const CallInfo& info = info_of(kind);
  return info.family != CallFamily::kHarness && info.since != 0;
}

}  // namespace granule::prop::sweep
