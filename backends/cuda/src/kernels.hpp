// The device code of the backend: one PTX module with the four kernels, and its launch shape.
#pragma once

#include <cstdint>

#include <granule/backend_api/calls_stream.hpp>

namespace granule::cuda {

/// PTX of the module; null-terminated, for cuModuleLoadData. Any driver with the virtual memory
/// calls understands it, for any device with a unified address space since 2016.
extern const char* const kKernelModule;

/// Entry point of a kernel in the module.
const char* entry_point(KernelKind kind) noexcept;

inline constexpr unsigned kThreadsPerBlock = 256;
/// Blocks at most; also the number of result words of a read.
inline constexpr unsigned kMaxBlocks = 128;

/// Blocks for a kernel over `size` bytes.
unsigned blocks_for(KernelKind kind, std::uint64_t size) noexcept;

/// A result word of one block of a read: bit 16 says that it was written, bits 0 to 7 hold the
/// AND of all bytes the block read, bits 8 to 15 their OR. Equal means: one value throughout.
inline constexpr std::uint32_t kResultWritten = 1u << 16;

}  // namespace granule::cuda
