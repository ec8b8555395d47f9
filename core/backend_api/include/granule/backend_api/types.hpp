// Strong types of the driver interface: addresses, handles, locations, properties.
// Only values; nothing here calls a driver. Numbers equal those of the CUDA driver API.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace granule {

/// An opaque driver object named by a 64-bit value. `Tag` keeps the kinds apart; 0 is null.
template <class Tag>
struct Id {
  std::uint64_t value = 0;
  constexpr explicit operator bool() const { return value != 0; }
  friend constexpr auto operator<=>(const Id&, const Id&) = default;
};

using AllocationHandle = Id<struct AllocationTag>;
using PoolHandle = Id<struct PoolTag>;
using StreamHandle = Id<struct StreamTag>;
using EventHandle = Id<struct EventTag>;
using ContextHandle = Id<struct ContextTag>;
using GraphHandle = Id<struct GraphTag>;
/// The driver's never-reused number of a stream (cuStreamGetId); a handle value may come back.
using StreamId = Id<struct StreamIdTag>;

/// The legacy default stream of the current context (CU_STREAM_LEGACY).
inline constexpr StreamHandle kLegacyStream{1};
/// The calling thread's default stream in the current context (CU_STREAM_PER_THREAD).
inline constexpr StreamHandle kPerThreadStream{2};

/// An address in the device's virtual address space, in bytes. 0 is null.
struct DevicePtr {
  std::uint64_t value = 0;
  constexpr explicit operator bool() const { return value != 0; }
  friend constexpr auto operator<=>(const DevicePtr&, const DevicePtr&) = default;
};

/// An open POSIX file descriptor of an exported allocation; -1 is none.
struct Descriptor {
  std::int32_t value = -1;
  friend constexpr auto operator<=>(const Descriptor&, const Descriptor&) = default;
};

/// A device ordinal.
struct DeviceId {
  std::int32_t value = 0;
  friend constexpr auto operator<=>(const DeviceId&, const DeviceId&) = default;
};

/// CUmemLocationType. Any other value may be passed and is judged by the driver.
enum class LocationType : std::int32_t {
  kInvalid = 0,
  kDevice = 1,
  kHost = 2,
  kHostNuma = 3,
  kHostNumaCurrent = 4,
};

/// A place of memory: a device, the host, or a NUMA node of the host.
struct Location {
  LocationType type = LocationType::kDevice;
  std::int32_t id = 0;
  friend constexpr auto operator<=>(const Location&, const Location&) = default;
};
constexpr Location device_location(DeviceId device) {
  return {LocationType::kDevice, device.value};
}

/// CUmemAccess_flags. Any other value may be passed and is judged by the driver.
enum class Access : std::uint32_t { kNone = 0, kRead = 1, kReadWrite = 3 };

/// One entry of an access list: who may do what.
struct AccessEntry {
  Location location;
  Access access = Access::kNone;
  friend constexpr auto operator<=>(const AccessEntry&, const AccessEntry&) = default;
};

/// CUmemAllocationHandleType as a bit set.
enum class HandleType : std::uint32_t {
  kNone = 0,
  kPosixFd = 1,
  kWin32 = 2,
  kWin32Kmt = 4,
  kFabric = 8,
};

/// CUmemAllocationProp, as far as the driver looks at it.
struct AllocationProperties {
  std::uint32_t type = 1;  // CU_MEM_ALLOCATION_TYPE_PINNED
  HandleType handle_types = HandleType::kNone;
  Location location;
  std::uint8_t compression = 0;
  std::uint8_t rdma = 0;
  std::uint16_t usage = 0;
  friend constexpr auto operator<=>(const AllocationProperties&,
                                    const AllocationProperties&) = default;
};

/// CUmemAllocationGranularity_flags.
enum class GranularityKind : std::uint32_t { kMinimum = 0, kRecommended = 1 };

/// CUstreamCaptureMode.
enum class CaptureMode : std::uint32_t { kGlobal = 0, kThreadLocal = 1, kRelaxed = 2 };
/// CUstreamCaptureStatus.
enum class CaptureStatus : std::uint32_t { kNone = 0, kActive = 1, kInvalidated = 2 };

/// CUdevice_attribute: those that the library asks for.
enum class DeviceAttribute : std::int32_t {
  kUnifiedAddressing = 41,
  kPciBusId = 33,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kVmmSupported = 102,
  kPosixFdSupported = 103,
  kWin32HandleSupported = 104,
  kWin32KmtHandleSupported = 105,
  kGpuDirectRdmaWithVmm = 110,
  kMemoryPoolsSupported = 115,
  kGpuDirectRdma = 116,
  kStreamMemOps64Bit = 122,
  kFabricHandleSupported = 128,
  kHostNumaId = 134,
  kHostNumaVmmSupported = 141,
  kHostVmmSupported = 145,
};

/// CUmemPool_attribute.
enum class PoolAttribute : std::int32_t {
  kReuseFollowEventDependencies = 1,
  kReuseAllowOpportunistic = 2,
  kReuseAllowInternalDependencies = 3,
  kReleaseThreshold = 4,
  kReservedMemCurrent = 5,
  kReservedMemHigh = 6,
  kUsedMemCurrent = 7,
  kUsedMemHigh = 8,
};

/// CUpointer_attribute.
enum class PointerAttribute : std::int32_t {
  kContext = 1,
  kMemoryType = 2,
  kDevicePointer = 3,
  kHostPointer = 4,
  kSyncMemops = 6,
  kBufferId = 7,
  kIsManaged = 8,
  kDeviceOrdinal = 9,
  kIsLegacyCudaIpcCapable = 10,
  kRangeStartAddr = 11,
  kRangeSize = 12,
  kMapped = 13,
  kAllowedHandleTypes = 14,
  kIsGpuDirectRdmaCapable = 15,
  kAccessFlags = 16,
  kMempoolHandle = 17,
  kMappingSize = 18,
  kMappingBaseAddr = 19,
  kMemoryBlockId = 20,
  kIsHwDecompressCapable = 21,
};

/// Stream creation flags (CUstream_flags).
inline constexpr std::uint32_t kStreamDefault = 0;
inline constexpr std::uint32_t kStreamNonBlocking = 1;

/// What a read found: one byte value throughout, several, or bytes that nobody knows.
struct ByteSummary {
  enum class Kind : std::uint8_t { kUniform, kMixed, kUnknown };
  Kind kind = Kind::kUnknown;
  std::uint8_t byte = 0;
  friend constexpr auto operator<=>(const ByteSummary&, const ByteSummary&) = default;
};

}  // namespace granule
