// Entry points: fills, of 8, 16 and 32 bits, in one and two dimensions.
#include "entry.hpp"
#include "transfer.hpp"

namespace granule::libcuda {
namespace {

abi::Result fill_rows(abi::DevicePtr ptr, std::size_t pitch, std::uint32_t value, unsigned width,
                      std::size_t columns, std::size_t rows, Order order) {
  if (const abi::Result not_ready = ready()) return not_ready;
  if (columns == 0 || rows == 0) return kOk;
  if (columns > SIZE_MAX / width || (rows > 1 && pitch < columns * width)) return kBadValue;
  if (pitch == columns * width && rows <= SIZE_MAX / columns)
    return fill(ptr, value, width, columns * rows, order);
  for (std::size_t row = 0; row < rows; ++row)
    if (const abi::Result bad = fill(ptr + row * pitch, value, width, columns, order)) return bad;
  return kOk;
}

}  // namespace

GRANULE_ENTRY(cuMemsetD8_v2)(abi::DevicePtr ptr, unsigned char value, std::size_t count) {
  return fill(ptr, value, 1, count, synchronous());
}
GRANULE_ENTRY(cuMemsetD16_v2)(abi::DevicePtr ptr, unsigned short value, std::size_t count) {
  return fill(ptr, value, 2, count, synchronous());
}
GRANULE_ENTRY(cuMemsetD32_v2)(abi::DevicePtr ptr, unsigned value, std::size_t count) {
  return fill(ptr, value, 4, count, synchronous());
}
GRANULE_ENTRY(cuMemsetD8Async)
(abi::DevicePtr ptr, unsigned char value, std::size_t count, abi::Stream stream) {
  return fill(ptr, value, 1, count, stream_of(stream));
}
GRANULE_ENTRY(cuMemsetD16Async)
(abi::DevicePtr ptr, unsigned short value, std::size_t count, abi::Stream stream) {
  return fill(ptr, value, 2, count, stream_of(stream));
}
GRANULE_ENTRY(cuMemsetD32Async)
(abi::DevicePtr ptr, unsigned value, std::size_t count, abi::Stream stream) {
  return fill(ptr, value, 4, count, stream_of(stream));
}

GRANULE_ENTRY(cuMemsetD2D8_v2)
(abi::DevicePtr ptr, std::size_t pitch, unsigned char value, std::size_t width,
 std::size_t height) {
  return fill_rows(ptr, pitch, value, 1, width, height, synchronous());
}
GRANULE_ENTRY(cuMemsetD2D16_v2)
(abi::DevicePtr ptr, std::size_t pitch, unsigned short value, std::size_t width,
 std::size_t height) {
  return fill_rows(ptr, pitch, value, 2, width, height, synchronous());
}
GRANULE_ENTRY(cuMemsetD2D32_v2)
(abi::DevicePtr ptr, std::size_t pitch, unsigned value, std::size_t width, std::size_t height) {
  return fill_rows(ptr, pitch, value, 4, width, height, synchronous());
}
GRANULE_ENTRY(cuMemsetD2D8Async)
(abi::DevicePtr ptr, std::size_t pitch, unsigned char value, std::size_t width, std::size_t height,
 abi::Stream stream) {
  return fill_rows(ptr, pitch, value, 1, width, height, stream_of(stream));
}
GRANULE_ENTRY(cuMemsetD2D16Async)
(abi::DevicePtr ptr, std::size_t pitch, unsigned short value, std::size_t width, std::size_t height,
 abi::Stream stream) {
  return fill_rows(ptr, pitch, value, 2, width, height, stream_of(stream));
}
GRANULE_ENTRY(cuMemsetD2D32Async)
(abi::DevicePtr ptr, std::size_t pitch, unsigned value, std::size_t width, std::size_t height,
 abi::Stream stream) {
  return fill_rows(ptr, pitch, value, 4, width, height, stream_of(stream));
}

}  // namespace granule::libcuda
