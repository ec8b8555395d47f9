// One function a driver call, found by overload; step() checks what is common to all of them
// (initialisation, host functions) and then calls one of these. Grouped by the file they are in.
#pragma once

#include "state.hpp"

namespace granule::model {

// vmm_reserve.cpp, vmm_create.cpp, vmm_map.cpp, vmm_access.cpp, vmm_share.cpp
DriverStatus run_call(State&, ThreadId, MemAddressReserve&);
DriverStatus run_call(State&, ThreadId, MemAddressFree&);
DriverStatus run_call(State&, ThreadId, MemCreate&);
DriverStatus run_call(State&, ThreadId, MemRelease&);
DriverStatus run_call(State&, ThreadId, MemRetainAllocationHandle&);
DriverStatus run_call(State&, ThreadId, MemMap&);
DriverStatus run_call(State&, ThreadId, MemUnmap&);
DriverStatus run_call(State&, ThreadId, MemSetAccess&);
DriverStatus run_call(State&, ThreadId, MemGetAccess&);
DriverStatus run_call(State&, ThreadId, MemGetAllocationGranularity&);
DriverStatus run_call(State&, ThreadId, MemGetAllocationPropertiesFromHandle&);
DriverStatus run_call(State&, ThreadId, MemExportToShareableHandle&);
DriverStatus run_call(State&, ThreadId, MemImportFromShareableHandle&);
DriverStatus run_call(State&, ThreadId, CloseDescriptor&);

// plain.cpp (MemFree asks free_pool_block first)
DriverStatus run_call(State&, ThreadId, MemGetInfo&);
DriverStatus run_call(State&, ThreadId, MemAlloc&);
DriverStatus run_call(State&, ThreadId, MemFree&);
DriverStatus run_call(State&, ThreadId, MemAllocHost&);
DriverStatus run_call(State&, ThreadId, MemFreeHost&);

// query.cpp
DriverStatus run_call(State&, ThreadId, MemGetAddressRange&);
DriverStatus run_call(State&, ThreadId, PointerGetAttribute&);
DriverStatus run_call(State&, ThreadId, PointerGetAttributes&);

// transfer.cpp
DriverStatus run_call(State&, ThreadId, MemsetD8&);
DriverStatus run_call(State&, ThreadId, MemsetD8Async&);
DriverStatus run_call(State&, ThreadId, MemsetD32&);
DriverStatus run_call(State&, ThreadId, MemsetD32Async&);
DriverStatus run_call(State&, ThreadId, MemcpyHtoD&);
DriverStatus run_call(State&, ThreadId, MemcpyHtoDAsync&);
DriverStatus run_call(State&, ThreadId, MemcpyDtoH&);
DriverStatus run_call(State&, ThreadId, MemcpyDtoHAsync&);
DriverStatus run_call(State&, ThreadId, MemcpyDtoD&);
DriverStatus run_call(State&, ThreadId, MemcpyDtoDAsync&);
DriverStatus run_call(State&, ThreadId, Memcpy&);
DriverStatus run_call(State&, ThreadId, LaunchKernel&);
DriverStatus run_call(State&, ThreadId, StreamWriteValue64&);
DriverStatus run_call(State&, ThreadId, StreamWaitValue32&);
DriverStatus run_call(State&, ThreadId, TakeLanding&);

// pool_calls.cpp
DriverStatus run_call(State&, ThreadId, MemPoolCreate&);
DriverStatus run_call(State&, ThreadId, MemPoolDestroy&);
DriverStatus run_call(State&, ThreadId, MemPoolTrimTo&);
DriverStatus run_call(State&, ThreadId, MemPoolSetAttribute&);
DriverStatus run_call(State&, ThreadId, MemPoolGetAttribute&);
DriverStatus run_call(State&, ThreadId, MemPoolSetAccess&);
DriverStatus run_call(State&, ThreadId, MemPoolGetAccess&);
DriverStatus run_call(State&, ThreadId, MemAllocAsync&);
DriverStatus run_call(State&, ThreadId, MemAllocFromPoolAsync&);
DriverStatus run_call(State&, ThreadId, MemFreeAsync&);
DriverStatus run_call(State&, ThreadId, DeviceGetDefaultMemPool&);
DriverStatus run_call(State&, ThreadId, DeviceGetMemPool&);
DriverStatus run_call(State&, ThreadId, DeviceSetMemPool&);

// stream_calls.cpp, capture.cpp
DriverStatus run_call(State&, ThreadId, StreamCreate&);
DriverStatus run_call(State&, ThreadId, StreamDestroy&);
DriverStatus run_call(State&, ThreadId, StreamQuery&);
DriverStatus run_call(State&, ThreadId, StreamSynchronize&);
DriverStatus run_call(State&, ThreadId, StreamWaitEvent&);
DriverStatus run_call(State&, ThreadId, StreamGetCtx&);
DriverStatus run_call(State&, ThreadId, StreamGetId&);
DriverStatus run_call(State&, ThreadId, StreamIsCapturing&);
DriverStatus run_call(State&, ThreadId, StreamBeginCapture&);
DriverStatus run_call(State&, ThreadId, StreamEndCapture&);
DriverStatus run_call(State&, ThreadId, GraphDestroy&);
DriverStatus run_call(State&, ThreadId, ThreadExchangeStreamCaptureMode&);
DriverStatus run_call(State&, ThreadId, EventCreate&);
DriverStatus run_call(State&, ThreadId, EventDestroy&);
DriverStatus run_call(State&, ThreadId, EventRecord&);
DriverStatus run_call(State&, ThreadId, EventQuery&);
DriverStatus run_call(State&, ThreadId, EventSynchronize&);
DriverStatus run_call(State&, ThreadId, LaunchHostFunc&);
DriverStatus run_call(State&, ThreadId, CloseGate&);
DriverStatus run_call(State&, ThreadId, OpenGate&);
DriverStatus run_call(State&, ThreadId, Pause&);

// context.cpp
DriverStatus run_call(State&, ThreadId, Init&);
DriverStatus run_call(State&, ThreadId, DriverGetVersion&);
DriverStatus run_call(State&, ThreadId, DeviceGetCount&);
DriverStatus run_call(State&, ThreadId, DeviceGetAttribute&);
DriverStatus run_call(State&, ThreadId, DeviceTotalMem&);
DriverStatus run_call(State&, ThreadId, DeviceCanAccessPeer&);
DriverStatus run_call(State&, ThreadId, CtxGetCurrent&);
DriverStatus run_call(State&, ThreadId, CtxSetCurrent&);
DriverStatus run_call(State&, ThreadId, CtxPushCurrent&);
DriverStatus run_call(State&, ThreadId, CtxPopCurrent&);
DriverStatus run_call(State&, ThreadId, CtxGetDevice&);
DriverStatus run_call(State&, ThreadId, CtxSynchronize&);
DriverStatus run_call(State&, ThreadId, CtxCreate&);
DriverStatus run_call(State&, ThreadId, CtxDestroy&);
DriverStatus run_call(State&, ThreadId, DevicePrimaryCtxRetain&);
DriverStatus run_call(State&, ThreadId, DevicePrimaryCtxRelease&);
DriverStatus run_call(State&, ThreadId, DevicePrimaryCtxReset&);

// ---- hooks between the subjects -----------------------------------------------------------------

// pool_calls.cpp
/// cuMemFree of a pool block; nothing if `ptr` is not the start of a live block.
std::optional<DriverStatus> free_pool_block(State&, DevicePtr ptr);
/// Idle pool memory of a place goes back to it; the bytes given back.
std::uint64_t empty_pools(State&, const Location& place);
/// The host has waited for a stream up to a point (StreamSynchronize, EventSynchronize,
/// CtxSynchronize), or the stream was destroyed with everything done.
void pools_observe(State&, const StreamPoint& point);
/// The host has waited for all of a device: what destroyed streams left behind is seen too.
void pools_observe_destroyed(State&, std::int32_t device);

// plain.cpp
/// Frees a cuMemAlloc pointer at once, without waiting. INVALID_VALUE if it is none.
DriverStatus free_plain_now(State&, DevicePtr ptr);
/// cuMemFreeAsync of a cuMemAlloc pointer: gone for the caller at once, its memory goes behind the
/// work that the stream has before. INVALID_VALUE if it is none.
DriverStatus free_plain_on(State&, std::uint64_t stream, DevicePtr ptr);
/// Gives the memory of such a free back.
void finish_plain_free(State&, std::uint64_t base);
/// Such a free has run: its memory comes back once the host has waited for that point.
void plain_free_has_run(State&, std::uint64_t base, const StreamPoint& point);
/// The host has waited up to `point`: memory of frees that ran before it comes back.
void observe_plain_frees(State&, const StreamPoint& point);

// capture.cpp
/// For calls that a capture may forbid (alloc, free, pool alloc/free, trim, query, synchronize):
/// STREAM_CAPTURE_UNSUPPORTED and the captures concerned are dead, or kSuccess.
DriverStatus check_capture_allows(State&, ThreadId);
/// The same for what is done on a stream: IMPLICIT for the null stream beside a blocking capture.
DriverStatus check_null_stream(State&, std::uint64_t stream);
/// True if the stream is part of a live capture: what is done on it becomes a node.
bool is_capturing(const State&, std::uint64_t stream);
/// Adds a node to the stream's capture.
void add_capture_node(State&, std::uint64_t stream);

}  // namespace granule::model
