// Plain and pinned allocations, copies, fills, memory information and pointer queries.
// Driver contract, sections 14 and 15.
#pragma once

#include <granule/backend_api/field.hpp>
#include <granule/backend_api/types.hpp>

namespace granule {

struct MemGetInfo {
  static constexpr CallInfo info{"cuMemGetInfo", CallFamily::kMemory};
  std::uint64_t free = 0;   // out
  std::uint64_t total = 0;  // out
  static constexpr auto fields() {
    return std::tuple{out("free", &MemGetInfo::free), out("total", &MemGetInfo::total)};
  }
};

struct MemAlloc {
  static constexpr CallInfo info{"cuMemAlloc", CallFamily::kMemory};
  std::uint64_t size = 0;
  DevicePtr ptr;  // out
  static constexpr auto fields() {
    return std::tuple{bytes("size", &MemAlloc::size),
                      makes("ptr", &MemAlloc::ptr, ObjectKind::kPlainMemory)};
  }
};

struct MemFree {
  static constexpr CallInfo info{"cuMemFree", CallFamily::kMemory};
  DevicePtr ptr;
  static constexpr auto fields() {
    return std::tuple{drops("ptr", &MemFree::ptr, ObjectKind::kPlainMemory)};
  }
};

/// Pinned host memory; the address serves host and device alike.
struct MemAllocHost {
  static constexpr CallInfo info{"cuMemAllocHost", CallFamily::kMemory};
  std::uint64_t size = 0;
  std::uint64_t host = 0;  // out
  static constexpr auto fields() {
    return std::tuple{bytes("size", &MemAllocHost::size),
                      makes("host", &MemAllocHost::host, ObjectKind::kPinnedMemory)};
  }
};

struct MemFreeHost {
  static constexpr CallInfo info{"cuMemFreeHost", CallFamily::kMemory};
  std::uint64_t host = 0;
  static constexpr auto fields() {
    return std::tuple{drops("host", &MemFreeHost::host, ObjectKind::kPinnedMemory)};
  }
};

struct MemGetAddressRange {
  static constexpr CallInfo info{"cuMemGetAddressRange", CallFamily::kMemory};
  DevicePtr ptr;
  DevicePtr base;          // out
  std::uint64_t size = 0;  // out
  static constexpr auto fields() {
    using C = MemGetAddressRange;
    return std::tuple{address("ptr", &C::ptr), out("base", &C::base), out("size", &C::size)};
  }
};

struct PointerGetAttribute {
  static constexpr CallInfo info{"cuPointerGetAttribute", CallFamily::kMemory};
  DevicePtr ptr;
  PointerAttribute attribute = PointerAttribute::kMemoryType;
  std::uint64_t value = 0;  // out; signed answers are sign-extended
  static constexpr auto fields() {
    using C = PointerGetAttribute;
    return std::tuple{address("ptr", &C::ptr), in("attribute", &C::attribute),
                      out("value", &C::value)};
  }
};

/// The plural form with one attribute. It succeeds where the singular form fails; `value` then
/// is what the driver wrote, and `written` tells whether it wrote anything.
struct PointerGetAttributes {
  static constexpr CallInfo info{"cuPointerGetAttributes", CallFamily::kMemory};
  DevicePtr ptr;
  PointerAttribute attribute = PointerAttribute::kMemoryType;
  std::uint64_t value = 0;   // out
  std::uint8_t written = 0;  // out
  static constexpr auto fields() {
    using C = PointerGetAttributes;
    return std::tuple{address("ptr", &C::ptr), in("attribute", &C::attribute),
                      out("value", &C::value), out("written", &C::written)};
  }
};

/// Host bytes of a copy to the device: either `data`, or, where that is null, `pattern` repeated.
/// A caller that passes uniform bytes by pointer should also set `uniform` and `pattern`.
struct HostSource {
  const void* data = nullptr;
  std::uint8_t pattern = 0;
  bool uniform = true;
  friend constexpr bool operator==(const HostSource& a, const HostSource& b) {
    return a.uniform == b.uniform && a.pattern == b.pattern;
  }
};

struct MemsetD8 {
  static constexpr CallInfo info{"cuMemsetD8", CallFamily::kMemory};
  DevicePtr ptr;
  std::uint8_t value = 0;
  std::uint64_t size = 0;  // bytes
  static constexpr auto fields() {
    using C = MemsetD8;
    return std::tuple{address("ptr", &C::ptr), in("value", &C::value), bytes("size", &C::size)};
  }
};

struct MemsetD8Async {
  static constexpr CallInfo info{"cuMemsetD8Async", CallFamily::kMemory};
  DevicePtr ptr;
  std::uint8_t value = 0;
  std::uint64_t size = 0;  // bytes
  StreamHandle stream;
  static constexpr auto fields() {
    using C = MemsetD8Async;
    return std::tuple{address("ptr", &C::ptr), in("value", &C::value), bytes("size", &C::size),
                      on_stream("on", &C::stream)};
  }
};

/// `value` is the 32-bit word; `size` is in bytes here (the driver counts words).
struct MemsetD32 {
  static constexpr CallInfo info{"cuMemsetD32", CallFamily::kMemory};
  DevicePtr ptr;
  std::uint32_t value = 0;
  std::uint64_t size = 0;  // bytes
  static constexpr auto fields() {
    using C = MemsetD32;
    return std::tuple{address("ptr", &C::ptr), in("value", &C::value), bytes("size", &C::size)};
  }
};

struct MemsetD32Async {
  static constexpr CallInfo info{"cuMemsetD32Async", CallFamily::kMemory};
  DevicePtr ptr;
  std::uint32_t value = 0;
  std::uint64_t size = 0;  // bytes
  StreamHandle stream;
  static constexpr auto fields() {
    using C = MemsetD32Async;
    return std::tuple{address("ptr", &C::ptr), in("value", &C::value), bytes("size", &C::size),
                      on_stream("on", &C::stream)};
  }
};

struct MemcpyHtoD {
  static constexpr CallInfo info{"cuMemcpyHtoD", CallFamily::kMemory};
  DevicePtr dst;
  HostSource src;
  std::uint64_t size = 0;
  static constexpr auto fields() {
    using C = MemcpyHtoD;
    return std::tuple{address("dst", &C::dst), in("src", &C::src), bytes("size", &C::size)};
  }
};

/// From pinned host memory; `src.data` must live until the copy has run.
struct MemcpyHtoDAsync {
  static constexpr CallInfo info{"cuMemcpyHtoDAsync", CallFamily::kMemory};
  DevicePtr dst;
  HostSource src;
  std::uint64_t size = 0;
  StreamHandle stream;
  static constexpr auto fields() {
    using C = MemcpyHtoDAsync;
    return std::tuple{address("dst", &C::dst), in("src", &C::src), bytes("size", &C::size),
                      on_stream("on", &C::stream)};
  }
};

/// With `dst` null the bytes are only summarised.
struct MemcpyDtoH {
  static constexpr CallInfo info{"cuMemcpyDtoH", CallFamily::kMemory};
  void* dst = nullptr;
  DevicePtr src;
  std::uint64_t size = 0;
  ByteSummary found;  // out
  static constexpr auto fields() {
    using C = MemcpyDtoH;
    return std::tuple{in("dst", &C::dst), address("src", &C::src), bytes("size", &C::size),
                      out("found", &C::found)};
  }
};

/// To pinned host memory. With `dst` null the bytes are only summarised, under the number
/// `landing` (not 0), which TakeLanding fetches once the copy has run.
struct MemcpyDtoHAsync {
  static constexpr CallInfo info{"cuMemcpyDtoHAsync", CallFamily::kMemory};
  void* dst = nullptr;
  DevicePtr src;
  std::uint64_t size = 0;
  StreamHandle stream;
  std::uint64_t landing = 0;
  static constexpr auto fields() {
    using C = MemcpyDtoHAsync;
    return std::tuple{in("dst", &C::dst), address("src", &C::src), bytes("size", &C::size),
                      on_stream("on", &C::stream), in("landing", &C::landing)};
  }
};

struct MemcpyDtoD {
  static constexpr CallInfo info{"cuMemcpyDtoD", CallFamily::kMemory};
  DevicePtr dst;
  DevicePtr src;
  std::uint64_t size = 0;
  static constexpr auto fields() {
    using C = MemcpyDtoD;
    return std::tuple{address("dst", &C::dst), address("src", &C::src), bytes("size", &C::size)};
  }
};

struct MemcpyDtoDAsync {
  static constexpr CallInfo info{"cuMemcpyDtoDAsync", CallFamily::kMemory};
  DevicePtr dst;
  DevicePtr src;
  std::uint64_t size = 0;
  StreamHandle stream;
  static constexpr auto fields() {
    using C = MemcpyDtoDAsync;
    return std::tuple{address("dst", &C::dst), address("src", &C::src), bytes("size", &C::size),
                      on_stream("on", &C::stream)};
  }
};

/// The form that guesses directions: an unmapped address is taken for a host pointer (crash).
struct Memcpy {
  static constexpr CallInfo info{"cuMemcpy", CallFamily::kMemory};
  DevicePtr dst;
  DevicePtr src;
  std::uint64_t size = 0;
  static constexpr auto fields() {
    using C = Memcpy;
    return std::tuple{address("dst", &C::dst), address("src", &C::src), bytes("size", &C::size)};
  }
};

}  // namespace granule
