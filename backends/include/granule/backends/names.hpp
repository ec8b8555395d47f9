// The spelling of the driver's enumerations in texts (traces, programs, reports).
// Values that no table lists are written as their number, so that every value has a text.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include <granule/backend_api/call.hpp>

namespace granule::trace {

/// One value and its spelling.
template <class E>
struct EnumName {
  E value;
  std::string_view name;
};

inline constexpr std::array<EnumName<Access>, 3> kAccessNames{
    {{Access::kNone, "none"}, {Access::kRead, "r"}, {Access::kReadWrite, "rw"}}};

inline constexpr std::array<EnumName<LocationType>, 5> kLocationNames{
    {{LocationType::kInvalid, "invalid"},
     {LocationType::kDevice, "device"},
     {LocationType::kHost, "host"},
     {LocationType::kHostNuma, "host_numa"},
     {LocationType::kHostNumaCurrent, "host_numa_current"}}};

inline constexpr std::array<EnumName<HandleType>, 5> kHandleTypeNames{
    {{HandleType::kNone, "none"},
     {HandleType::kPosixFd, "posix_fd"},
     {HandleType::kWin32, "win32"},
     {HandleType::kWin32Kmt, "win32_kmt"},
     {HandleType::kFabric, "fabric"}}};

inline constexpr std::array<EnumName<GranularityKind>, 2> kGranularityNames{
    {{GranularityKind::kMinimum, "minimum"}, {GranularityKind::kRecommended, "recommended"}}};

inline constexpr std::array<EnumName<CaptureMode>, 3> kCaptureModeNames{
    {{CaptureMode::kGlobal, "global"},
     {CaptureMode::kThreadLocal, "thread_local"},
     {CaptureMode::kRelaxed, "relaxed"}}};

inline constexpr std::array<EnumName<CaptureStatus>, 3> kCaptureStatusNames{
    {{CaptureStatus::kNone, "none"},
     {CaptureStatus::kActive, "active"},
     {CaptureStatus::kInvalidated, "invalidated"}}};

inline constexpr std::array<EnumName<KernelKind>, 4> kKernelNames{{{KernelKind::kSpin, "spin"},
                                                                   {KernelKind::kWrite, "write"},
                                                                   {KernelKind::kRead, "read"},
                                                                   {KernelKind::kTouch, "touch"}}};

inline constexpr std::array<EnumName<PoolAttribute>, 8> kPoolAttributeNames{
    {{PoolAttribute::kReuseFollowEventDependencies, "REUSE_FOLLOW_EVENT_DEPENDENCIES"},
     {PoolAttribute::kReuseAllowOpportunistic, "REUSE_ALLOW_OPPORTUNISTIC"},
     {PoolAttribute::kReuseAllowInternalDependencies, "REUSE_ALLOW_INTERNAL_DEPENDENCIES"},
     {PoolAttribute::kReleaseThreshold, "RELEASE_THRESHOLD"},
     {PoolAttribute::kReservedMemCurrent, "RESERVED_MEM_CURRENT"},
     {PoolAttribute::kReservedMemHigh, "RESERVED_MEM_HIGH"},
     {PoolAttribute::kUsedMemCurrent, "USED_MEM_CURRENT"},
     {PoolAttribute::kUsedMemHigh, "USED_MEM_HIGH"}}};

inline constexpr std::array<EnumName<PointerAttribute>, 20> kPointerAttributeNames{
    {{PointerAttribute::kContext, "CONTEXT"},
     {PointerAttribute::kMemoryType, "MEMORY_TYPE"},
     {PointerAttribute::kDevicePointer, "DEVICE_POINTER"},
     {PointerAttribute::kHostPointer, "HOST_POINTER"},
     {PointerAttribute::kSyncMemops, "SYNC_MEMOPS"},
     {PointerAttribute::kBufferId, "BUFFER_ID"},
     {PointerAttribute::kIsManaged, "IS_MANAGED"},
     {PointerAttribute::kDeviceOrdinal, "DEVICE_ORDINAL"},
     {PointerAttribute::kIsLegacyCudaIpcCapable, "IS_LEGACY_CUDA_IPC_CAPABLE"},
     {PointerAttribute::kRangeStartAddr, "RANGE_START_ADDR"},
     {PointerAttribute::kRangeSize, "RANGE_SIZE"},
     {PointerAttribute::kMapped, "MAPPED"},
     {PointerAttribute::kAllowedHandleTypes, "ALLOWED_HANDLE_TYPES"},
     {PointerAttribute::kIsGpuDirectRdmaCapable, "IS_GPU_DIRECT_RDMA_CAPABLE"},
     {PointerAttribute::kAccessFlags, "ACCESS_FLAGS"},
     {PointerAttribute::kMempoolHandle, "MEMPOOL_HANDLE"},
     {PointerAttribute::kMappingSize, "MAPPING_SIZE"},
     {PointerAttribute::kMappingBaseAddr, "MAPPING_BASE_ADDR"},
     {PointerAttribute::kMemoryBlockId, "MEMORY_BLOCK_ID"},
     {PointerAttribute::kIsHwDecompressCapable, "IS_HW_DECOMPRESS_CAPABLE"}}};

/// The table of an enumeration; an empty one if it is written as a number.
template <class E>
inline constexpr std::array<EnumName<E>, 0> kNamesOf{};
template <>
inline constexpr auto kNamesOf<Access> = kAccessNames;
template <>
inline constexpr auto kNamesOf<LocationType> = kLocationNames;
template <>
inline constexpr auto kNamesOf<HandleType> = kHandleTypeNames;
template <>
inline constexpr auto kNamesOf<GranularityKind> = kGranularityNames;
template <>
inline constexpr auto kNamesOf<CaptureMode> = kCaptureModeNames;
template <>
inline constexpr auto kNamesOf<CaptureStatus> = kCaptureStatusNames;
template <>
inline constexpr auto kNamesOf<KernelKind> = kKernelNames;
template <>
inline constexpr auto kNamesOf<PoolAttribute> = kPoolAttributeNames;
template <>
inline constexpr auto kNamesOf<PointerAttribute> = kPointerAttributeNames;

/// The spelling of a value, or "" if it has none.
template <class E>
constexpr std::string_view spelling(E value) noexcept {
  for (const auto& entry : kNamesOf<E>)
    if (entry.value == value) return entry.name;
  return {};
}

/// The value of that spelling, or nothing.
template <class E>
constexpr std::optional<E> spelled(std::string_view name) noexcept {
  for (const auto& entry : kNamesOf<E>)
    if (entry.name == name) return entry.value;
  return std::nullopt;
}

}  // namespace granule::trace
