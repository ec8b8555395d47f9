// The binary interface of the CUDA driver in our own words: handles, structs, numbers and the
// types of the entry points that we use. No NVIDIA header is needed; where one is installed,
// backends/cuda/src/abi_check.cpp compares the two.
#pragma once

#include <cstddef>
#include <cstdint>

namespace granule::abi {

/// CUresult as a plain number: it crosses a C boundary, so any value may arrive.
using Result = int;
/// CUdevice: equal to the device's ordinal.
using Device = int;
/// CUdeviceptr.
using DevicePtr = unsigned long long;
/// CUmemGenericAllocationHandle.
using AllocationHandle = unsigned long long;

// Opaque objects: pointers to types that only the driver knows.
using Context = struct ContextObject*;
using Module = struct ModuleObject*;
using Function = struct FunctionObject*;
using Stream = struct StreamObject*;
using Event = struct EventObject*;
using Graph = struct GraphObject*;
using MemoryPool = struct MemoryPoolObject*;
using Array = struct ArrayObject*;
/// CUhostFn.
using HostFunction = void (*)(void*);

/// CUmemLocation.
struct MemLocation {
  int type = 0;
  int id = 0;
};

/// CUmemAllocationProp.
struct MemAllocationProp {
  int type = 0;
  int requested_handle_types = 0;
  MemLocation location;
  void* win32_metadata = nullptr;
  struct Flags {
    unsigned char compression = 0;
    unsigned char rdma = 0;
    unsigned short usage = 0;
    unsigned char reserved[4] = {};
  } flags;
};

/// CUmemAccessDesc.
struct MemAccessDesc {
  MemLocation location;
  int flags = 0;
};

/// CUmemPoolProps. `usage` was carved out of the reserved bytes by CUDA 12.
struct MemPoolProps {
  int type = 0;
  int handle_types = 0;
  MemLocation location;
  void* win32_attributes = nullptr;
  std::size_t max_size = 0;
  unsigned short usage = 0;
  unsigned char reserved[54] = {};
};

/// CUDA_MEMCPY2D (the 64-bit form).
struct Memcpy2D {
  std::size_t src_x = 0;
  std::size_t src_y = 0;
  int src_type = 0;
  const void* src_host = nullptr;
  DevicePtr src_device = 0;
  Array src_array = nullptr;
  std::size_t src_pitch = 0;
  std::size_t dst_x = 0;
  std::size_t dst_y = 0;
  int dst_type = 0;
  void* dst_host = nullptr;
  DevicePtr dst_device = 0;
  Array dst_array = nullptr;
  std::size_t dst_pitch = 0;
  std::size_t width = 0;
  std::size_t height = 0;
};

/// CUuuid.
struct Uuid {
  unsigned char bytes[16] = {};
};

inline constexpr int kMemoryTypeHost = 1;
inline constexpr int kMemoryTypeDevice = 2;
inline constexpr unsigned kHostAllocPortable = 1;
inline constexpr unsigned kHostAllocDeviceMap = 2;
inline constexpr unsigned kWaitValueGeq = 0;
inline constexpr unsigned kWaitValueEq = 1;
inline constexpr unsigned kWaitValueAnd = 2;
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr std::uint64_t kProcAddressDefault = 0;
inline constexpr std::uint64_t kProcAddressLegacyStream = 1;
inline constexpr std::uint64_t kProcAddressPerThreadStream = 2;

/// CUdriverProcAddressQueryResult.
enum ProcAddressResult : int {
  kProcAddressFound = 0,
  kProcAddressNotFound = 1,
  kProcAddressVersionNotSufficient = 2,
};

/// cuGetProcAddress as libraries export it since CUDA 11.3, and its successor of CUDA 12.
using GetProcAddress = Result (*)(const char*, void**, int, unsigned long long);
using GetProcAddressV2 = Result (*)(const char*, void**, int, unsigned long long, int*);

/// One pointer per entry point, null where the driver has none.
struct FunctionTable {
#define GRANULE_DRIVER_FUNCTION(name, version, parameters) Result(*name) parameters = nullptr;
#include <granule/backends/driver_functions.inc>
#undef GRANULE_DRIVER_FUNCTION
};

/// Name of an entry point and the CUDA version whose signature is meant, as cuGetProcAddress
/// wants them.
struct FunctionName {
  const char* name;
  int version;
};
inline constexpr FunctionName kFunctionNames[] = {
#define GRANULE_DRIVER_FUNCTION(name, version, parameters) {#name, version},
#include <granule/backends/driver_functions.inc>
#undef GRANULE_DRIVER_FUNCTION
};
inline constexpr std::size_t kFunctionCount = sizeof(kFunctionNames) / sizeof(kFunctionNames[0]);
static_assert(sizeof(FunctionTable) == kFunctionCount * sizeof(void*));

}  // namespace granule::abi
