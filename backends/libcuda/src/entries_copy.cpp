// Entry points: copies in one dimension. Those that go by unified addresses look what each end is.
#include "entry.hpp"
#include "transfer.hpp"

namespace granule::libcuda {

GRANULE_ENTRY(cuMemcpyHtoD_v2)(abi::DevicePtr dst, const void* src, std::size_t size) {
  return copy("cuMemcpyHtoD", device_end(dst), host_end(src), size, synchronous());
}
GRANULE_ENTRY(cuMemcpyDtoH_v2)(void* dst, abi::DevicePtr src, std::size_t size) {
  return copy("cuMemcpyDtoH", host_end(dst), device_end(src), size, synchronous());
}
GRANULE_ENTRY(cuMemcpyDtoD_v2)(abi::DevicePtr dst, abi::DevicePtr src, std::size_t size) {
  return copy("cuMemcpyDtoD", device_end(dst), device_end(src), size, synchronous());
}
GRANULE_ENTRY(cuMemcpyHtoDAsync_v2)
(abi::DevicePtr dst, const void* src, std::size_t size, abi::Stream stream) {
  return copy("cuMemcpyHtoDAsync", device_end(dst), host_end(src), size, stream_of(stream));
}
GRANULE_ENTRY(cuMemcpyDtoHAsync_v2)
(void* dst, abi::DevicePtr src, std::size_t size, abi::Stream stream) {
  return copy("cuMemcpyDtoHAsync", host_end(dst), device_end(src), size, stream_of(stream));
}
GRANULE_ENTRY(cuMemcpyDtoDAsync_v2)
(abi::DevicePtr dst, abi::DevicePtr src, std::size_t size, abi::Stream stream) {
  return copy("cuMemcpyDtoDAsync", device_end(dst), device_end(src), size, stream_of(stream));
}

GRANULE_ENTRY(cuMemcpy)(abi::DevicePtr dst, abi::DevicePtr src, std::size_t size) {
  if (const abi::Result not_ready = ready()) return not_ready;
  return copy("cuMemcpy", unified_end(dst), unified_end(src), size, synchronous());
}
GRANULE_ENTRY(cuMemcpyAsync)
(abi::DevicePtr dst, abi::DevicePtr src, std::size_t size, abi::Stream stream) {
  if (const abi::Result not_ready = ready()) return not_ready;
  return copy("cuMemcpyAsync", unified_end(dst), unified_end(src), size, stream_of(stream));
}
GRANULE_ENTRY(cuMemcpyPeer)
(abi::DevicePtr dst, abi::Context, abi::DevicePtr src, abi::Context, std::size_t size) {
  return copy("cuMemcpyPeer", device_end(dst), device_end(src), size, synchronous());
}
GRANULE_ENTRY(cuMemcpyPeerAsync)
(abi::DevicePtr dst, abi::Context, abi::DevicePtr src, abi::Context, std::size_t size,
 abi::Stream stream) {
  return copy("cuMemcpyPeerAsync", device_end(dst), device_end(src), size, stream_of(stream));
}

}  // namespace granule::libcuda
