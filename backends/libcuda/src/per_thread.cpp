// Entry points of the forms for per-thread default streams: those of the plain names, called with
// null streams meaning the calling thread's own.
#include "entry.hpp"

namespace granule::libcuda {
namespace {

using Word = std::uintptr_t;
/// Any entry point: at most twelve arguments, all of them numbers or pointers, so each is a word
/// to the caller and to the called; words that the called does not take are not looked at.
using AnyEntry = abi::Result (*)(Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word,
                                 Word);

class PerThread {
 public:
  PerThread() { null_is_per_thread = true; }
  ~PerThread() { null_is_per_thread = false; }
  PerThread(const PerThread&) = delete;
  PerThread& operator=(const PerThread&) = delete;
};

}  // namespace

#if defined(__clang__)
#define GRANULE_ANY_TYPE __attribute__((no_sanitize("function")))
#else
#define GRANULE_ANY_TYPE
#endif

#define GRANULE_PER_THREAD(base, symbol)                                                         \
  extern "C" abi::Result base();                                                                 \
  GRANULE_ANY_TYPE GRANULE_ENTRY(symbol)(Word a, Word b, Word c, Word d, Word e, Word f, Word g, \
                                         Word h, Word i, Word j, Word k, Word l) {               \
    const PerThread scope;                                                                       \
    return reinterpret_cast<AnyEntry>(reinterpret_cast<void*>(&base))(a, b, c, d, e, f, g, h, i, \
                                                                      j, k, l);                  \
  }

GRANULE_PER_THREAD(cuEventRecord, cuEventRecord_ptsz)
GRANULE_PER_THREAD(cuEventRecordWithFlags, cuEventRecordWithFlags_ptsz)
GRANULE_PER_THREAD(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz)
GRANULE_PER_THREAD(cuLaunchHostFunc, cuLaunchHostFunc_ptsz)
GRANULE_PER_THREAD(cuLaunchKernel, cuLaunchKernel_ptsz)
GRANULE_PER_THREAD(cuLaunchKernelEx, cuLaunchKernelEx_ptsz)
GRANULE_PER_THREAD(cuMemAllocAsync, cuMemAllocAsync_ptsz)
GRANULE_PER_THREAD(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync_ptsz)
GRANULE_PER_THREAD(cuMemFreeAsync, cuMemFreeAsync_ptsz)
GRANULE_PER_THREAD(cuMemcpy, cuMemcpy_ptds)
GRANULE_PER_THREAD(cuMemcpy2DAsync_v2, cuMemcpy2DAsync_v2_ptsz)
GRANULE_PER_THREAD(cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned_v2_ptds)
GRANULE_PER_THREAD(cuMemcpy2D_v2, cuMemcpy2D_v2_ptds)
GRANULE_PER_THREAD(cuMemcpy3DAsync_v2, cuMemcpy3DAsync_v2_ptsz)
GRANULE_PER_THREAD(cuMemcpy3DPeer, cuMemcpy3DPeer_ptds)
GRANULE_PER_THREAD(cuMemcpy3DPeerAsync, cuMemcpy3DPeerAsync_ptsz)
GRANULE_PER_THREAD(cuMemcpy3D_v2, cuMemcpy3D_v2_ptds)
GRANULE_PER_THREAD(cuMemcpyAsync, cuMemcpyAsync_ptsz)
GRANULE_PER_THREAD(cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz)
GRANULE_PER_THREAD(cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds)
GRANULE_PER_THREAD(cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz)
GRANULE_PER_THREAD(cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds)
GRANULE_PER_THREAD(cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz)
GRANULE_PER_THREAD(cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds)
GRANULE_PER_THREAD(cuMemcpyPeer, cuMemcpyPeer_ptds)
GRANULE_PER_THREAD(cuMemcpyPeerAsync, cuMemcpyPeerAsync_ptsz)
GRANULE_PER_THREAD(cuMemsetD16Async, cuMemsetD16Async_ptsz)
GRANULE_PER_THREAD(cuMemsetD16_v2, cuMemsetD16_v2_ptds)
GRANULE_PER_THREAD(cuMemsetD2D16Async, cuMemsetD2D16Async_ptsz)
GRANULE_PER_THREAD(cuMemsetD2D16_v2, cuMemsetD2D16_v2_ptds)
GRANULE_PER_THREAD(cuMemsetD2D32Async, cuMemsetD2D32Async_ptsz)
GRANULE_PER_THREAD(cuMemsetD2D32_v2, cuMemsetD2D32_v2_ptds)
GRANULE_PER_THREAD(cuMemsetD2D8Async, cuMemsetD2D8Async_ptsz)
GRANULE_PER_THREAD(cuMemsetD2D8_v2, cuMemsetD2D8_v2_ptds)
GRANULE_PER_THREAD(cuMemsetD32Async, cuMemsetD32Async_ptsz)
GRANULE_PER_THREAD(cuMemsetD32_v2, cuMemsetD32_v2_ptds)
GRANULE_PER_THREAD(cuMemsetD8Async, cuMemsetD8Async_ptsz)
GRANULE_PER_THREAD(cuMemsetD8_v2, cuMemsetD8_v2_ptds)
GRANULE_PER_THREAD(cuStreamAddCallback, cuStreamAddCallback_ptsz)
GRANULE_PER_THREAD(cuStreamBeginCapture, cuStreamBeginCapture_ptsz)
GRANULE_PER_THREAD(cuStreamBeginCapture_v2, cuStreamBeginCapture_v2_ptsz)
GRANULE_PER_THREAD(cuStreamEndCapture, cuStreamEndCapture_ptsz)
GRANULE_PER_THREAD(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_ptsz)
GRANULE_PER_THREAD(cuStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo_v2_ptsz)
GRANULE_PER_THREAD(cuStreamGetCaptureInfo_v3, cuStreamGetCaptureInfo_v3_ptsz)
GRANULE_PER_THREAD(cuStreamGetCtx, cuStreamGetCtx_ptsz)
GRANULE_PER_THREAD(cuStreamGetCtx_v2, cuStreamGetCtx_v2_ptsz)
GRANULE_PER_THREAD(cuStreamGetDevice, cuStreamGetDevice_ptsz)
GRANULE_PER_THREAD(cuStreamGetFlags, cuStreamGetFlags_ptsz)
GRANULE_PER_THREAD(cuStreamGetId, cuStreamGetId_ptsz)
GRANULE_PER_THREAD(cuStreamGetPriority, cuStreamGetPriority_ptsz)
GRANULE_PER_THREAD(cuStreamIsCapturing, cuStreamIsCapturing_ptsz)
GRANULE_PER_THREAD(cuStreamQuery, cuStreamQuery_ptsz)
GRANULE_PER_THREAD(cuStreamSynchronize, cuStreamSynchronize_ptsz)
GRANULE_PER_THREAD(cuStreamWaitEvent, cuStreamWaitEvent_ptsz)
GRANULE_PER_THREAD(cuStreamWaitValue32_v2, cuStreamWaitValue32_v2_ptsz)
GRANULE_PER_THREAD(cuStreamWriteValue64_v2, cuStreamWriteValue64_v2_ptsz)

#undef GRANULE_PER_THREAD
#undef GRANULE_ANY_TYPE

}  // namespace granule::libcuda
