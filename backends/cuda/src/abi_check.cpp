// Compares driver_abi.hpp with NVIDIA's own headers where they are installed: sizes, offsets,
// numbers, and the shape of every entry point's signature. Nothing here runs.
#include <granule/backend_api/status.hpp>
#include <granule/backend_api/types.hpp>
#include <granule/backends/driver_abi.hpp>

#include <cuda.h>
#include <cudaTypedefs.h>

#include <type_traits>

namespace granule::abi {
namespace {

static_assert(sizeof(Result) == sizeof(CUresult) && sizeof(Device) == sizeof(CUdevice));
static_assert(sizeof(DevicePtr) == sizeof(CUdeviceptr));
static_assert(sizeof(AllocationHandle) == sizeof(CUmemGenericAllocationHandle));

#define SAME_SIZE(ours, theirs) \
  static_assert(sizeof(ours) == sizeof(theirs) && alignof(ours) == alignof(theirs))
#define SAME_FIELD(ours, field, theirs, their_field)                     \
  static_assert(offsetof(ours, field) == offsetof(theirs, their_field)); \
  static_assert(sizeof(ours::field) == sizeof(theirs::their_field))

SAME_SIZE(MemLocation, CUmemLocation);
SAME_FIELD(MemLocation, type, CUmemLocation, type);
SAME_FIELD(MemLocation, id, CUmemLocation, id);

SAME_SIZE(MemAllocationProp, CUmemAllocationProp);
SAME_FIELD(MemAllocationProp, type, CUmemAllocationProp, type);
SAME_FIELD(MemAllocationProp, requested_handle_types, CUmemAllocationProp, requestedHandleTypes);
SAME_FIELD(MemAllocationProp, location, CUmemAllocationProp, location);
SAME_FIELD(MemAllocationProp, win32_metadata, CUmemAllocationProp, win32HandleMetaData);
SAME_FIELD(MemAllocationProp, flags, CUmemAllocationProp, allocFlags);
using TheirFlags = decltype(CUmemAllocationProp::allocFlags);
SAME_FIELD(MemAllocationProp::Flags, compression, TheirFlags, compressionType);
SAME_FIELD(MemAllocationProp::Flags, rdma, TheirFlags, gpuDirectRDMACapable);
SAME_FIELD(MemAllocationProp::Flags, usage, TheirFlags, usage);
SAME_FIELD(MemAllocationProp::Flags, reserved, TheirFlags, reserved);

SAME_SIZE(MemAccessDesc, CUmemAccessDesc);
SAME_FIELD(MemAccessDesc, location, CUmemAccessDesc, location);
SAME_FIELD(MemAccessDesc, flags, CUmemAccessDesc, flags);

SAME_SIZE(MemPoolProps, CUmemPoolProps);
SAME_FIELD(MemPoolProps, type, CUmemPoolProps, allocType);
SAME_FIELD(MemPoolProps, handle_types, CUmemPoolProps, handleTypes);
SAME_FIELD(MemPoolProps, location, CUmemPoolProps, location);
SAME_FIELD(MemPoolProps, win32_attributes, CUmemPoolProps, win32SecurityAttributes);
#if CUDA_VERSION >= 12000
SAME_FIELD(MemPoolProps, max_size, CUmemPoolProps, maxSize);
#endif

SAME_SIZE(Memcpy2D, CUDA_MEMCPY2D);
SAME_FIELD(Memcpy2D, src_x, CUDA_MEMCPY2D, srcXInBytes);
SAME_FIELD(Memcpy2D, src_type, CUDA_MEMCPY2D, srcMemoryType);
SAME_FIELD(Memcpy2D, src_host, CUDA_MEMCPY2D, srcHost);
SAME_FIELD(Memcpy2D, src_device, CUDA_MEMCPY2D, srcDevice);
SAME_FIELD(Memcpy2D, src_pitch, CUDA_MEMCPY2D, srcPitch);
SAME_FIELD(Memcpy2D, dst_type, CUDA_MEMCPY2D, dstMemoryType);
SAME_FIELD(Memcpy2D, dst_host, CUDA_MEMCPY2D, dstHost);
SAME_FIELD(Memcpy2D, dst_device, CUDA_MEMCPY2D, dstDevice);
SAME_FIELD(Memcpy2D, dst_pitch, CUDA_MEMCPY2D, dstPitch);
SAME_FIELD(Memcpy2D, width, CUDA_MEMCPY2D, WidthInBytes);
SAME_FIELD(Memcpy2D, height, CUDA_MEMCPY2D, Height);
SAME_SIZE(Uuid, CUuuid);

#undef SAME_SIZE
#undef SAME_FIELD

#define SAME_NUMBER(ours, theirs) \
  static_assert(static_cast<long>(ours) == static_cast<long>(theirs))
SAME_NUMBER(kMemoryTypeHost, CU_MEMORYTYPE_HOST);
SAME_NUMBER(kMemoryTypeDevice, CU_MEMORYTYPE_DEVICE);
SAME_NUMBER(kHostAllocPortable, CU_MEMHOSTALLOC_PORTABLE);
SAME_NUMBER(kHostAllocDeviceMap, CU_MEMHOSTALLOC_DEVICEMAP);
SAME_NUMBER(kWaitValueGeq, CU_STREAM_WAIT_VALUE_GEQ);
SAME_NUMBER(kWaitValueEq, CU_STREAM_WAIT_VALUE_EQ);
SAME_NUMBER(kWaitValueAnd, CU_STREAM_WAIT_VALUE_AND);
SAME_NUMBER(kEventDisableTiming, CU_EVENT_DISABLE_TIMING);
SAME_NUMBER(kProcAddressLegacyStream, CU_GET_PROC_ADDRESS_LEGACY_STREAM);
SAME_NUMBER(kStreamDefault, CU_STREAM_DEFAULT);
SAME_NUMBER(kStreamNonBlocking, CU_STREAM_NON_BLOCKING);

SAME_NUMBER(LocationType::kDevice, CU_MEM_LOCATION_TYPE_DEVICE);
SAME_NUMBER(Access::kNone, CU_MEM_ACCESS_FLAGS_PROT_NONE);
SAME_NUMBER(Access::kRead, CU_MEM_ACCESS_FLAGS_PROT_READ);
SAME_NUMBER(Access::kReadWrite, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME_NUMBER(HandleType::kPosixFd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
SAME_NUMBER(HandleType::kWin32, CU_MEM_HANDLE_TYPE_WIN32);
SAME_NUMBER(HandleType::kWin32Kmt, CU_MEM_HANDLE_TYPE_WIN32_KMT);
SAME_NUMBER(GranularityKind::kMinimum, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
SAME_NUMBER(GranularityKind::kRecommended, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
SAME_NUMBER(AllocationProperties{}.type, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME_NUMBER(CaptureMode::kGlobal, CU_STREAM_CAPTURE_MODE_GLOBAL);
SAME_NUMBER(CaptureMode::kThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME_NUMBER(CaptureMode::kRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME_NUMBER(CaptureStatus::kActive, CU_STREAM_CAPTURE_STATUS_ACTIVE);
SAME_NUMBER(CaptureStatus::kInvalidated, CU_STREAM_CAPTURE_STATUS_INVALIDATED);

SAME_NUMBER(DeviceAttribute::kUnifiedAddressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
SAME_NUMBER(DeviceAttribute::kPciBusId, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
SAME_NUMBER(DeviceAttribute::kComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME_NUMBER(DeviceAttribute::kComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME_NUMBER(DeviceAttribute::kVmmSupported,
            CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
SAME_NUMBER(DeviceAttribute::kPosixFdSupported,
            CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
SAME_NUMBER(DeviceAttribute::kWin32HandleSupported,
            CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_HANDLE_SUPPORTED);
SAME_NUMBER(DeviceAttribute::kWin32KmtHandleSupported,
            CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED);
SAME_NUMBER(DeviceAttribute::kGpuDirectRdmaWithVmm,
            CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
SAME_NUMBER(DeviceAttribute::kMemoryPoolsSupported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
SAME_NUMBER(DeviceAttribute::kGpuDirectRdma, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED);
#if CUDA_VERSION >= 12000
SAME_NUMBER(DeviceAttribute::kStreamMemOps64Bit, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS);
#endif
#if CUDA_VERSION >= 12040
SAME_NUMBER(LocationType::kHost, CU_MEM_LOCATION_TYPE_HOST);
SAME_NUMBER(LocationType::kHostNuma, CU_MEM_LOCATION_TYPE_HOST_NUMA);
SAME_NUMBER(LocationType::kHostNumaCurrent, CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT);
SAME_NUMBER(HandleType::kFabric, CU_MEM_HANDLE_TYPE_FABRIC);
SAME_NUMBER(DeviceAttribute::kFabricHandleSupported,
            CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED);
SAME_NUMBER(DeviceAttribute::kHostNumaId, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID);
#endif
#if CUDA_VERSION >= 13000
SAME_NUMBER(DeviceAttribute::kHostNumaVmmSupported,
            CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
SAME_NUMBER(DeviceAttribute::kHostVmmSupported,
            CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
SAME_NUMBER(PointerAttribute::kIsHwDecompressCapable,
            CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE);
#endif

SAME_NUMBER(PoolAttribute::kReuseFollowEventDependencies,
            CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES);
SAME_NUMBER(PoolAttribute::kReuseAllowOpportunistic, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC);
SAME_NUMBER(PoolAttribute::kReuseAllowInternalDependencies,
            CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES);
SAME_NUMBER(PoolAttribute::kReleaseThreshold, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
SAME_NUMBER(PoolAttribute::kReservedMemCurrent, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
SAME_NUMBER(PoolAttribute::kReservedMemHigh, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
SAME_NUMBER(PoolAttribute::kUsedMemCurrent, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
SAME_NUMBER(PoolAttribute::kUsedMemHigh, CU_MEMPOOL_ATTR_USED_MEM_HIGH);

SAME_NUMBER(PointerAttribute::kContext, CU_POINTER_ATTRIBUTE_CONTEXT);
SAME_NUMBER(PointerAttribute::kMemoryType, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME_NUMBER(PointerAttribute::kDevicePointer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER);
SAME_NUMBER(PointerAttribute::kHostPointer, CU_POINTER_ATTRIBUTE_HOST_POINTER);
SAME_NUMBER(PointerAttribute::kSyncMemops, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS);
SAME_NUMBER(PointerAttribute::kBufferId, CU_POINTER_ATTRIBUTE_BUFFER_ID);
SAME_NUMBER(PointerAttribute::kIsManaged, CU_POINTER_ATTRIBUTE_IS_MANAGED);
SAME_NUMBER(PointerAttribute::kDeviceOrdinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME_NUMBER(PointerAttribute::kIsLegacyCudaIpcCapable,
            CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE);
SAME_NUMBER(PointerAttribute::kRangeStartAddr, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
SAME_NUMBER(PointerAttribute::kRangeSize, CU_POINTER_ATTRIBUTE_RANGE_SIZE);
SAME_NUMBER(PointerAttribute::kMapped, CU_POINTER_ATTRIBUTE_MAPPED);
SAME_NUMBER(PointerAttribute::kAllowedHandleTypes, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES);
SAME_NUMBER(PointerAttribute::kIsGpuDirectRdmaCapable,
            CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE);
SAME_NUMBER(PointerAttribute::kAccessFlags, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS);
SAME_NUMBER(PointerAttribute::kMempoolHandle, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE);
SAME_NUMBER(PointerAttribute::kMappingSize, CU_POINTER_ATTRIBUTE_MAPPING_SIZE);
SAME_NUMBER(PointerAttribute::kMappingBaseAddr, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR);
SAME_NUMBER(PointerAttribute::kMemoryBlockId, CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID);

SAME_NUMBER(DriverStatus::kInvalidValue, CUDA_ERROR_INVALID_VALUE);
SAME_NUMBER(DriverStatus::kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
SAME_NUMBER(DriverStatus::kNoDevice, CUDA_ERROR_NO_DEVICE);
SAME_NUMBER(DriverStatus::kInvalidContext, CUDA_ERROR_INVALID_CONTEXT);
SAME_NUMBER(DriverStatus::kInvalidHandle, CUDA_ERROR_INVALID_HANDLE);
SAME_NUMBER(DriverStatus::kNotFound, CUDA_ERROR_NOT_FOUND);
SAME_NUMBER(DriverStatus::kNotReady, CUDA_ERROR_NOT_READY);
SAME_NUMBER(DriverStatus::kIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS);
SAME_NUMBER(DriverStatus::kContextIsDestroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED);
SAME_NUMBER(DriverStatus::kLaunchFailed, CUDA_ERROR_LAUNCH_FAILED);
SAME_NUMBER(DriverStatus::kNotPermitted, CUDA_ERROR_NOT_PERMITTED);
SAME_NUMBER(DriverStatus::kNotSupported, CUDA_ERROR_NOT_SUPPORTED);
SAME_NUMBER(DriverStatus::kStreamCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
SAME_NUMBER(DriverStatus::kStreamCaptureImplicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
SAME_NUMBER(DriverStatus::kCapturedEvent, CUDA_ERROR_CAPTURED_EVENT);
SAME_NUMBER(DriverStatus::kUnknown, CUDA_ERROR_UNKNOWN);
#undef SAME_NUMBER

// Two parameters agree if they have one size and are both pointers, or both are not.
template <class Ours, class Theirs>
constexpr bool kSameParameter =
    sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs>;

template <class Ours, class Theirs>
constexpr bool kSameSignature = false;
template <class... Ours, class... Theirs>
constexpr bool kSameSignature<Result (*)(Ours...), CUresult (*)(Theirs...)> = [] {
  if constexpr (sizeof...(Ours) == sizeof...(Theirs)) {
    return (kSameParameter<Ours, Theirs> && ...);
  } else {
    return false;
  }
}();

// The typedefs carry the version in their names, so a wrong version does not compile either.
#define GRANULE_DRIVER_FUNCTION(name, version, parameters) \
  static_assert(kSameSignature<Result(*) parameters, PFN_##name##_v##version>);
#include <granule/backends/driver_functions.inc>
#undef GRANULE_DRIVER_FUNCTION

}  // namespace
}  // namespace granule::abi
