// What a CudaBackend is made of, and one overload of `call` for each call of the interface.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <granule/backend_api/call.hpp>
#include <granule/backends/cuda.hpp>

#include "contexts.hpp"
#include "convert.hpp"
#include "driver.hpp"
#include "gates.hpp"
#include "guard.hpp"
#include "landings.hpp"
#include "read_plan.hpp"

namespace granule::cuda {

/// How often this process has been forked off since its program started; see exec.cpp.
unsigned fork_generation() noexcept;

struct CudaBackend::Impl {
  Impl(const Options& chosen, std::unique_ptr<Driver> loaded);
  ~Impl();

  /// Guards, makes the call, notes what it did.
  DriverStatus execute(Call& call);

  // VMM
  DriverStatus call(MemAddressReserve& c);
  DriverStatus call(MemAddressFree& c);
  DriverStatus call(MemCreate& c);
  DriverStatus call(MemRelease& c);
  DriverStatus call(MemRetainAllocationHandle& c);
  DriverStatus call(MemMap& c);
  DriverStatus call(MemUnmap& c);
  DriverStatus call(MemSetAccess& c);
  DriverStatus call(MemGetAccess& c);
  DriverStatus call(MemGetAllocationGranularity& c);
  DriverStatus call(MemGetAllocationPropertiesFromHandle& c);
  DriverStatus call(MemExportToShareableHandle& c);
  DriverStatus call(MemImportFromShareableHandle& c);
  DriverStatus call(CloseDescriptor& c);
  // plain memory, copies, queries
  DriverStatus call(MemGetInfo& c);
  DriverStatus call(MemAlloc& c);
  DriverStatus call(MemFree& c);
  DriverStatus call(MemAllocHost& c);
  DriverStatus call(MemFreeHost& c);
  DriverStatus call(MemGetAddressRange& c);
  DriverStatus call(PointerGetAttribute& c);
  DriverStatus call(PointerGetAttributes& c);
  DriverStatus call(MemsetD8& c);
  DriverStatus call(MemsetD8Async& c);
  DriverStatus call(MemsetD32& c);
  DriverStatus call(MemsetD32Async& c);
  DriverStatus call(MemcpyHtoD& c);
  DriverStatus call(MemcpyHtoDAsync& c);
  DriverStatus call(MemcpyDtoH& c);
  DriverStatus call(MemcpyDtoHAsync& c);
  DriverStatus call(MemcpyDtoD& c);
  DriverStatus call(MemcpyDtoDAsync& c);
  DriverStatus call(Memcpy& c);
  // pools
  DriverStatus call(MemPoolCreate& c);
  DriverStatus call(MemPoolDestroy& c);
  DriverStatus call(MemPoolTrimTo& c);
  DriverStatus call(MemPoolSetAttribute& c);
  DriverStatus call(MemPoolGetAttribute& c);
  DriverStatus call(MemPoolSetAccess& c);
  DriverStatus call(MemPoolGetAccess& c);
  DriverStatus call(MemAllocAsync& c);
  DriverStatus call(MemAllocFromPoolAsync& c);
  DriverStatus call(MemFreeAsync& c);
  DriverStatus call(DeviceGetDefaultMemPool& c);
  DriverStatus call(DeviceGetMemPool& c);
  DriverStatus call(DeviceSetMemPool& c);
  // streams
  DriverStatus call(StreamCreate& c);
  DriverStatus call(StreamDestroy& c);
  DriverStatus call(StreamQuery& c);
  DriverStatus call(StreamSynchronize& c);
  DriverStatus call(StreamWaitEvent& c);
  DriverStatus call(StreamGetCtx& c);
  DriverStatus call(StreamGetId& c);
  DriverStatus call(StreamIsCapturing& c);
  DriverStatus call(StreamBeginCapture& c);
  DriverStatus call(StreamEndCapture& c);
  DriverStatus call(GraphDestroy& c);
  DriverStatus call(ThreadExchangeStreamCaptureMode& c);
  DriverStatus call(EventCreate& c);
  DriverStatus call(EventDestroy& c);
  DriverStatus call(EventRecord& c);
  DriverStatus call(EventQuery& c);
  DriverStatus call(EventSynchronize& c);
  DriverStatus call(LaunchHostFunc& c);
  DriverStatus call(LaunchKernel& c);
  DriverStatus call(StreamWriteValue64& c);
  DriverStatus call(StreamWaitValue32& c);
  // devices and contexts
  DriverStatus call(Init& c);
  DriverStatus call(DriverGetVersion& c);
  DriverStatus call(DeviceGetCount& c);
  DriverStatus call(DeviceGetAttribute& c);
  DriverStatus call(DeviceTotalMem& c);
  DriverStatus call(DeviceCanAccessPeer& c);
  DriverStatus call(CtxGetCurrent& c);
  DriverStatus call(CtxSetCurrent& c);
  DriverStatus call(CtxPushCurrent& c);
  DriverStatus call(CtxPopCurrent& c);
  DriverStatus call(CtxGetDevice& c);
  DriverStatus call(CtxSynchronize& c);
  DriverStatus call(CtxCreate& c);
  DriverStatus call(CtxDestroy& c);
  DriverStatus call(DevicePrimaryCtxRetain& c);
  DriverStatus call(DevicePrimaryCtxRelease& c);
  DriverStatus call(DevicePrimaryCtxReset& c);
  // harness
  DriverStatus call(CloseGate& c);
  DriverStatus call(OpenGate& c);
  DriverStatus call(Pause& c);
  DriverStatus call(TakeLanding& c);

  const Options options;
  const std::unique_ptr<Driver> driver_object;
  const Driver& driver;
  const unsigned generation;
  Contexts contexts;
  Gates gates;
  Landings landings;
  Guard guard;
  std::vector<abi::Device> warmed;  // devices whose primary context warm_up retained

 private:
  DriverStatus launch(const LaunchKernel& c, ContextState& state, std::uint32_t* results);
  DriverStatus copy_piece(const ReadPiece& piece, std::byte* to, const StreamHandle* stream);
  DriverStatus summarise(MemcpyDtoH& c);
  DriverStatus summarise_queued(MemcpyDtoHAsync& c);
  DriverStatus mark_arrival(const Arrival& arrival, StreamHandle stream);
  template <class Drop>
  DriverStatus drop_context(abi::Context context, Drop drop);
  abi::Context primary_of(abi::Device device);
  ContextHandle current() const;

  std::mutex primaries_mutex_;
  std::map<abi::Device, abi::Context> primaries_;
};

}  // namespace granule::cuda
