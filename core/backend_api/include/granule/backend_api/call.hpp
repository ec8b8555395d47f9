// One value for any driver call: the list of all of them, the variant, and what is generated
// from the field descriptions. A call that is missing from CallList does not exist anywhere else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include <granule/backend_api/calls_device.hpp>
#include <granule/backend_api/calls_memory.hpp>
#include <granule/backend_api/calls_pool.hpp>
#include <granule/backend_api/calls_stream.hpp>
#include <granule/backend_api/calls_vmm.hpp>
#include <granule/backend_api/export.hpp>
#include <granule/backend_api/status.hpp>

namespace granule {

/// Every call of the interface, once.
using Call = std::variant<
    // VMM
    MemAddressReserve, MemAddressFree, MemCreate, MemRelease, MemRetainAllocationHandle, MemMap,
    MemUnmap, MemSetAccess, MemGetAccess, MemGetAllocationGranularity,
    MemGetAllocationPropertiesFromHandle, MemExportToShareableHandle, MemImportFromShareableHandle,
    CloseDescriptor,
    // plain memory, copies, queries
    MemGetInfo, MemAlloc, MemFree, MemAllocHost, MemFreeHost, MemGetAddressRange,
    PointerGetAttribute, PointerGetAttributes, MemsetD8, MemsetD8Async, MemsetD32, MemsetD32Async,
    MemcpyHtoD, MemcpyHtoDAsync, MemcpyDtoH, MemcpyDtoHAsync, MemcpyDtoD, MemcpyDtoDAsync, Memcpy,
    // pools
    MemPoolCreate, MemPoolDestroy, MemPoolTrimTo, MemPoolSetAttribute, MemPoolGetAttribute,
    MemPoolSetAccess, MemPoolGetAccess, MemAllocAsync, MemAllocFromPoolAsync, MemFreeAsync,
    DeviceGetDefaultMemPool, DeviceGetMemPool, DeviceSetMemPool,
    // streams
    StreamCreate, StreamDestroy, StreamQuery, StreamSynchronize, StreamWaitEvent, StreamGetCtx,
    StreamGetId, StreamIsCapturing, StreamBeginCapture, StreamEndCapture, GraphDestroy,
    ThreadExchangeStreamCaptureMode, EventCreate, EventDestroy, EventRecord, EventQuery,
    EventSynchronize, LaunchHostFunc, LaunchKernel, StreamWriteValue64, StreamWaitValue32,
    // devices and contexts
    Init, DriverGetVersion, DeviceGetCount, DeviceGetAttribute, DeviceTotalMem, DeviceCanAccessPeer,
    CtxGetCurrent, CtxSetCurrent, CtxPushCurrent, CtxPopCurrent, CtxGetDevice, CtxSynchronize,
    CtxCreate, CtxDestroy, DevicePrimaryCtxRetain, DevicePrimaryCtxRelease, DevicePrimaryCtxReset,
    // harness
    CloseGate, OpenGate, Pause, TakeLanding>;

inline constexpr std::size_t kCallCount = std::variant_size_v<Call>;
static_assert(std::is_trivially_copyable_v<Call>);
static_assert(sizeof(Call) <= 256);

/// The number of a call in the list; an index into Call.
enum class CallKind : std::uint8_t {};

namespace detail {
template <class C, std::size_t... I>
constexpr std::size_t index_in_list(std::index_sequence<I...>) {
  std::size_t found = kCallCount;
  ((std::is_same_v<C, std::variant_alternative_t<I, Call>> ? void(found = I) : void()), ...);
  return found;
}
}  // namespace detail

/// The kind of the call struct C.
template <class C>
inline constexpr CallKind kind_of =
    static_cast<CallKind>(detail::index_in_list<C>(std::make_index_sequence<kCallCount>()));

inline CallKind kind(const Call& call) { return static_cast<CallKind>(call.index()); }
/// Name, family and first version of a kind.
GRANULE_EXPORT const CallInfo& info_of(CallKind kind) noexcept;
inline std::string_view name_of(CallKind kind) noexcept { return info_of(kind).name; }
/// The kind with that name, or nothing.
GRANULE_EXPORT std::optional<CallKind> call_named(std::string_view name) noexcept;
/// A call of that kind with default arguments.
GRANULE_EXPORT Call make_call(CallKind kind) noexcept;

/// Calls visitor(field, member) for each described member of a call struct, in order.
template <class C, class Visitor>
constexpr void for_each_field(C& call, Visitor&& visitor) {
  std::apply([&](const auto&... field) { (visitor(field, call.*(field.member)), ...); },
             std::remove_const_t<C>::fields());
}

/// Fills every output of the call with poison (0xDB bytes), as after a failed call.
GRANULE_EXPORT void poison_outputs(Call& call) noexcept;
/// The poison value of a 64-bit output.
inline constexpr std::uint64_t kPoison64 = 0xDBDBDBDBDBDBDBDBull;
/// True if an input handle, address or descriptor of the call holds poison.
GRANULE_EXPORT bool uses_poison(const Call& call) noexcept;
/// True if both are the same call with equal inputs.
GRANULE_EXPORT bool same_inputs(const Call& a, const Call& b) noexcept;

}  // namespace granule
