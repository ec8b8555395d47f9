// Parts of the driver's binary interface that only a library in the driver's place needs; the rest
// is driver_abi.hpp. Layouts are those of CUDA 13.0.
#pragma once

#include <cstddef>
#include <cstdint>

#include <granule/backends/driver_abi.hpp>

namespace granule::abi {

using Library = struct LibraryObject*;
using Kernel = struct KernelObject*;
/// CUstreamCallback.
using StreamCallback = void (*)(Stream, Result, void*);

/// CUDA_MEMCPY3D; the fields of CUDA_MEMCPY3D_PEER differ only where contexts stand.
struct Memcpy3D {
  std::size_t src_x = 0;
  std::size_t src_y = 0;
  std::size_t src_z = 0;
  std::size_t src_lod = 0;
  int src_type = 0;
  const void* src_host = nullptr;
  DevicePtr src_device = 0;
  Array src_array = nullptr;
  void* src_reserved = nullptr;
  std::size_t src_pitch = 0;
  std::size_t src_height = 0;
  std::size_t dst_x = 0;
  std::size_t dst_y = 0;
  std::size_t dst_z = 0;
  std::size_t dst_lod = 0;
  int dst_type = 0;
  void* dst_host = nullptr;
  DevicePtr dst_device = 0;
  Array dst_array = nullptr;
  void* dst_reserved = nullptr;
  std::size_t dst_pitch = 0;
  std::size_t dst_height = 0;
  std::size_t width = 0;
  std::size_t height = 0;
  std::size_t depth = 0;
};
static_assert(sizeof(Memcpy3D) == 200);

inline constexpr int kMemoryTypeArray = 3;
inline constexpr int kMemoryTypeUnified = 4;

/// CUlaunchConfig, up to what is looked at.
struct LaunchConfig {
  unsigned grid[3] = {};
  unsigned block[3] = {};
  unsigned shared_bytes = 0;
  Stream stream = nullptr;
  void* attributes = nullptr;
  unsigned attribute_count = 0;
};

/// CUdevprop, of cuDeviceGetProperties.
struct DeviceProperties {
  int max_threads_per_block = 0;
  int max_threads_dim[3] = {};
  int max_grid_size[3] = {};
  int shared_mem_per_block = 0;
  int total_constant_memory = 0;
  int simd_width = 0;
  int mem_pitch = 0;
  int regs_per_block = 0;
  int clock_rate = 0;
  int texture_align = 0;
};

}  // namespace granule::abi
