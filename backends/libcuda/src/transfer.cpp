// Copies and fills.
#include "transfer.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <new>

namespace granule::libcuda {
namespace {

/// Copies host memory that nobody vouches for: false where it is not there.
bool copy_carefully(void* to, const void* from, std::size_t size) {
  iovec local{to, size};
  iovec remote{const_cast<void*>(from), size};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size);
}
bool write_carefully(void* to, const void* from, std::size_t size) {
  iovec local{const_cast<void*>(from), size};
  iovec remote{to, size};
  return process_vm_writev(getpid(), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size);
}

abi::Result not_memory(const char* name, std::uint64_t address) {
  char text[96];
  std::snprintf(text, sizeof(text), "%s at 0x%llx, which is no memory of a device or of the host",
                name, static_cast<unsigned long long>(address));
  Session::get().add_misuse("unmapped_use", text, name);
  return kBadValue;
}

/// The same call on a stream or on none; `describe` sets what both have.
template <class OnNone, class OnStream, class Describe>
abi::Result submit_ordered(Order order, Describe&& describe) {
  if (!order) {
    OnNone call;
    describe(call);
    return submit(call);
  }
  OnStream call;
  describe(call);
  call.stream = *order;
  return submit(call);
}

abi::Result host_to_device(std::uint64_t dst, const void* src, std::uint64_t size, Order order) {
  return submit_ordered<MemcpyHtoD, MemcpyHtoDAsync>(order, [&](auto& call) {
    call.dst = {dst};
    call.src.data = src;
    call.src.uniform = false;
    call.size = size;
  });
}

abi::Result device_to_host(void* dst, std::uint64_t src, std::uint64_t size, Order order) {
  return submit_ordered<MemcpyDtoH, MemcpyDtoHAsync>(order, [&](auto& call) {
    call.dst = dst;
    call.src = {src};
    call.size = size;
  });
}

abi::Result device_to_device(std::uint64_t dst, std::uint64_t src, std::uint64_t size,
                             Order order) {
  return submit_ordered<MemcpyDtoD, MemcpyDtoDAsync>(order, [&](auto& call) {
    call.dst = {dst};
    call.src = {src};
    call.size = size;
  });
}

/// Host to host: when all work before it on the stream is done.
abi::Result host_to_host(const char* name, End dst, End src, std::uint64_t size, Order order) {
  StreamSynchronize before;
  before.stream = order.value_or(StreamHandle{});
  if (const abi::Result result = submit(before)) return result;
  if (size == 0) return kOk;
  void* to = pointer_of<void*>(dst.address);
  const void* from = pointer_of<const void*>(src.address);
  if (to == nullptr || from == nullptr) return kBadValue;
  if (copy_carefully(to, from, size)) return kOk;
  return not_memory(name, dst.address);
}

/// One end is host memory that nobody vouches for: through a buffer, piece by piece.
abi::Result copy_suspect(const char* name, End dst, End src, std::uint64_t size, Order order) {
  constexpr std::uint64_t kPiece = std::uint64_t{4} << 20;
  const std::unique_ptr<char[]> piece(new (std::nothrow) char[std::min(size, kPiece)]);
  if (!piece) return static_cast<int>(DriverStatus::kOutOfMemory);
  for (std::uint64_t at = 0; at < size; at += kPiece) {
    const std::uint64_t part = std::min(kPiece, size - at);
    if (dst.device) {
      if (!copy_carefully(piece.get(), pointer_of<const void*>(src.address + at), part))
        return not_memory(name, src.address + at);
      if (const abi::Result result = host_to_device(dst.address + at, piece.get(), part, order))
        return result;
      continue;
    }
    if (const abi::Result result = device_to_host(piece.get(), src.address + at, part, order))
      return result;
    if (!write_carefully(pointer_of<void*>(dst.address + at), piece.get(), part))
      return not_memory(name, dst.address + at);
  }
  return kOk;
}

abi::Result copy_once(const char* name, End dst, End src, std::uint64_t size, Order order) {
  if (dst.device && src.device) return device_to_device(dst.address, src.address, size, order);
  if (!dst.device && !src.device) return host_to_host(name, dst, src, size, order);
  if (!dst.vouched || !src.vouched) return copy_suspect(name, dst, src, size, order);
  if (size != 0 && (dst.address == 0 || src.address == 0)) return kBadValue;
  if (dst.device)
    return host_to_device(dst.address, pointer_of<const void*>(src.address), size, order);
  return device_to_host(pointer_of<void*>(dst.address), src.address, size, order);
}

abi::Result fill_part(abi::DevicePtr ptr, std::uint32_t value, unsigned width, std::uint64_t bytes,
                      Order order) {
  const auto describe = [&](auto& call) {
    call.ptr = {ptr};
    call.value = static_cast<decltype(call.value)>(value);
    call.size = bytes;
  };
  return width == 1 ? submit_ordered<MemsetD8, MemsetD8Async>(order, describe)
                    : submit_ordered<MemsetD32, MemsetD32Async>(order, describe);
}

/// 16-bit elements: words of two, and single ones where they do not fit.
abi::Result fill_halves(abi::DevicePtr ptr, std::uint32_t value, std::uint64_t count, Order order) {
  const std::uint16_t half = static_cast<std::uint16_t>(value);
  if (ptr % 2 != 0) return kBadValue;
  const auto single = [&](abi::DevicePtr at) { return host_to_device(at, &half, 2, order); };
  if (count != 0 && ptr % 4 != 0) {
    if (const abi::Result result = single(ptr)) return result;
    ptr += 2;
    count -= 1;
  }
  const std::uint32_t word = half | static_cast<std::uint32_t>(half) << 16;
  if (const abi::Result result = fill_part(ptr, word, 4, count / 2 * 4, order)) return result;
  return count % 2 != 0 ? single(ptr + (count - 1) * 2) : kOk;
}

}  // namespace

End unified_end(std::uint64_t address) {
  PointerGetAttribute query;
  query.ptr = {address};
  query.attribute = PointerAttribute::kMemoryType;
  if (ask(query) == kOk) return {true, address, true};
  return {false, address, false};
}

Order synchronous() { return null_is_per_thread ? Order{kPerThreadStream} : Order{}; }

abi::Result copy(const char* name, End dst, End src, std::uint64_t size, Order order) {
  if (const abi::Result not_ready = ready()) return not_ready;
  return copy_once(name, dst, src, size, order);
}

abi::Result fill(abi::DevicePtr ptr, std::uint32_t value, unsigned width, std::uint64_t count,
                 Order order) {
  if (const abi::Result not_ready = ready()) return not_ready;
  if (count > UINT64_MAX / width) return kBadValue;
  if (width == 2) return fill_halves(ptr, value, count, order);
  return fill_part(ptr, value, width, count * width, order);
}

abi::Result copy_block(const char* name, Block dst, Block src, std::uint64_t width,
                       std::uint64_t height, std::uint64_t depth, Order order) {
  if (const abi::Result not_ready = ready()) return not_ready;
  if (width == 0 || height == 0 || depth == 0) return kOk;
  const bool rows = height > 1 || depth > 1;
  if (rows && (dst.pitch < width || src.pitch < width)) return kBadValue;
  // Rows and planes without gaps are one copy.
  if (depth > 1 && dst.slice == src.slice && dst.slice == dst.pitch * height &&
      dst.pitch == src.pitch) {
    height *= depth;
    depth = 1;
  }
  if (depth == 1 && dst.pitch == width && src.pitch == width && height <= UINT64_MAX / width) {
    width *= height;
    height = 1;
  }
  for (std::uint64_t z = 0; z < depth; ++z) {
    for (std::uint64_t y = 0; y < height; ++y) {
      End to = dst.end;
      End from = src.end;
      to.address += z * dst.slice + y * dst.pitch;
      from.address += z * src.slice + y * src.pitch;
      if (const abi::Result result = copy_once(name, to, from, width, order)) return result;
    }
  }
  return kOk;
}

}  // namespace granule::libcuda
