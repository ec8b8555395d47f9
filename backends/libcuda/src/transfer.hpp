// Copies and fills in the terms of the interface, whatever entry point asked for them.
#pragma once

#include <cstdint>
#include <optional>

#include "entry.hpp"

namespace granule::libcuda {

/// One end of a copy: memory of a device, or a host pointer that the client vouches for.
struct End {
  bool device = false;
  std::uint64_t address = 0;
  bool vouched = true;  // false: an address that is host memory only because no device has it
};

inline End device_end(abi::DevicePtr ptr) { return {true, ptr, true}; }
inline End host_end(const void* host) { return {false, value_of(host), true}; }
/// What a unified address is: device memory if the driver knows it, else host memory.
End unified_end(std::uint64_t address);

/// Where a copy or fill is ordered: the synchronous form, or on a stream.
using Order = std::optional<StreamHandle>;
/// The order of the synchronous forms: the null stream, or the thread's own.
Order synchronous();

/// Copies `size` bytes.
abi::Result copy(const char* name, End dst, End src, std::uint64_t size, Order order);
/// Fills `count` elements of `width` 1, 2 or 4 bytes.
abi::Result fill(abi::DevicePtr ptr, std::uint32_t value, unsigned width, std::uint64_t count,
                 Order order);

/// A block of rows; `slice` is the distance of two planes.
struct Block {
  End end;
  std::uint64_t pitch = 0;
  std::uint64_t slice = 0;
};
/// Copies depth planes of height rows of width bytes.
abi::Result copy_block(const char* name, Block dst, Block src, std::uint64_t width,
                       std::uint64_t height, std::uint64_t depth, Order order);

}  // namespace granule::libcuda
