// Entry points: copies in two and three dimensions. Arrays are not simulated.
#include "entry.hpp"
#include "transfer.hpp"

namespace granule::libcuda {
namespace {

/// One side of a strided copy as the driver describes it.
struct Side {
  int type = 0;
  const void* host = nullptr;
  abi::DevicePtr device = 0;
  std::uint64_t x = 0;
  std::uint64_t y = 0;
  std::uint64_t z = 0;
  std::uint64_t pitch = 0;
  std::uint64_t height = 0;
};

/// The block at the side's offsets; a code if it is none.
abi::Result block_of(const char* name, const Side& side, std::uint64_t width, Block& out) {
  switch (side.type) {
    case abi::kMemoryTypeHost:
      out.end = host_end(side.host);
      if (side.host == nullptr) return kBadValue;
      break;
    case abi::kMemoryTypeDevice:
      out.end = device_end(side.device);
      break;
    case abi::kMemoryTypeUnified:
      out.end = unified_end(side.device);
      break;
    case abi::kMemoryTypeArray:
      return unsupported(name);
    default:
      return kBadValue;
  }
  out.pitch = side.pitch != 0 ? side.pitch : side.x + width;
  if (out.pitch < side.x + width) return kBadValue;
  out.slice = out.pitch * side.height;
  out.end.address += side.z * out.slice + side.y * out.pitch + side.x;
  return kOk;
}

abi::Result copy_2d(const char* name, const abi::Memcpy2D* p, Order order) {
  if (const abi::Result not_ready = ready_for(p)) return not_ready;
  Block src;
  Block dst;
  const Side from{p->src_type, p->src_host, p->src_device, p->src_x, p->src_y, 0, p->src_pitch, 0};
  const Side to{p->dst_type, p->dst_host, p->dst_device, p->dst_x, p->dst_y, 0, p->dst_pitch, 0};
  if (const abi::Result bad = block_of(name, from, p->width, src)) return bad;
  if (const abi::Result bad = block_of(name, to, p->width, dst)) return bad;
  return copy_block(name, dst, src, p->width, p->height, 1, order);
}

abi::Result copy_3d(const char* name, const abi::Memcpy3D* p, Order order) {
  if (const abi::Result not_ready = ready_for(p)) return not_ready;
  if (p->src_lod != 0 || p->dst_lod != 0) return kBadValue;
  Block src;
  Block dst;
  const Side from{p->src_type, p->src_host, p->src_device, p->src_x,
                  p->src_y,    p->src_z,    p->src_pitch,  p->src_height};
  const Side to{p->dst_type, p->dst_host, p->dst_device, p->dst_x,
                p->dst_y,    p->dst_z,    p->dst_pitch,  p->dst_height};
  if (const abi::Result bad = block_of(name, from, p->width, src)) return bad;
  if (const abi::Result bad = block_of(name, to, p->width, dst)) return bad;
  return copy_block(name, dst, src, p->width, p->height, p->depth, order);
}

}  // namespace

GRANULE_ENTRY(cuMemcpy2D_v2)(const abi::Memcpy2D* copy) {
  return copy_2d("cuMemcpy2D", copy, synchronous());
}
GRANULE_ENTRY(cuMemcpy2DUnaligned_v2)(const abi::Memcpy2D* copy) {
  return copy_2d("cuMemcpy2DUnaligned", copy, synchronous());
}
GRANULE_ENTRY(cuMemcpy2DAsync_v2)(const abi::Memcpy2D* copy, abi::Stream stream) {
  return copy_2d("cuMemcpy2DAsync", copy, stream_of(stream));
}
GRANULE_ENTRY(cuMemcpy3D_v2)(const abi::Memcpy3D* copy) {
  return copy_3d("cuMemcpy3D", copy, synchronous());
}
GRANULE_ENTRY(cuMemcpy3DAsync_v2)(const abi::Memcpy3D* copy, abi::Stream stream) {
  return copy_3d("cuMemcpy3DAsync", copy, stream_of(stream));
}
// The peer forms have contexts where the others have reserved fields.
GRANULE_ENTRY(cuMemcpy3DPeer)(const abi::Memcpy3D* copy) {
  return copy_3d("cuMemcpy3DPeer", copy, synchronous());
}
GRANULE_ENTRY(cuMemcpy3DPeerAsync)(const abi::Memcpy3D* copy, abi::Stream stream) {
  return copy_3d("cuMemcpy3DPeerAsync", copy, stream_of(stream));
}

}  // namespace granule::libcuda
