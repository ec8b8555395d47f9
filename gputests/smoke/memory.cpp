// Plain memory, fills, copies, summaries, pointer queries.
#include "smoke.hpp"

namespace granule::smoke {
namespace {

using enum DriverStatus;

void plain(Smoke& s) {
  const std::uint64_t before = s.ok(MemGetInfo{}, "").free;
  const DevicePtr x = s.ok(MemAlloc{33 * kMiB, {}}, "").ptr;
  s.equal("33 MiB take", before - s.ok(MemGetInfo{}, "P063").free, 34 * kMiB);
  s.equal("range size", s.ok(MemGetAddressRange{plus(x, kMiB), {}, 0}, "P804").size, 33 * kMiB);
  s.run(MemGetAddressRange{plus(x, 33 * kMiB), {}, 0}, kNotFound, "P804: past the size");
  PointerGetAttribute ask{x, PointerAttribute::kMemoryType, 0};
  s.equal("memory type", s.ok(ask, "").value, 2u);
  ask.attribute = PointerAttribute::kDeviceOrdinal;
  s.equal("ordinal", s.ok(ask, "").value, 0u);
  ask.attribute = PointerAttribute::kAccessFlags;
  s.equal("access flags", s.ok(ask, "S18").value, 3u);
  ask.attribute = PointerAttribute::kRangeStartAddr;
  s.equal("range start", s.ok(ask, "").value == x.value, true);
  ask.attribute = PointerAttribute::kIsLegacyCudaIpcCapable;
  s.equal("legacy ipc", s.ok(ask, "P804").value, 1u);
  s.run(MemAlloc{0, {}}, kInvalidValue, "P063.10");
  s.ok(MemFree{x}, "");
  s.ok(MemFree{}, "P063.12: null");
  s.run(MemFree{x}, kInvalidValue, "P349: twice");
  s.equal("free again", s.ok(MemGetInfo{}, "").free, before);
  PointerGetAttributes many{x, PointerAttribute::kDeviceOrdinal, 0, 0};
  many = s.ok(many, "P804: not memory");
  s.equal("ordinal of no memory", static_cast<std::int64_t>(many.value), -2);
  many.attribute = PointerAttribute::kRangeSize;
  s.equal("range size is untouched", s.ok(many, "P804").written, 0);
  const std::uint64_t pinned = s.ok(MemAllocHost{4096, 0}, "").host;
  s.equal("memory type",
          s.ok(PointerGetAttribute{{pinned}, PointerAttribute::kMemoryType, 0}, "P806").value, 1u);
  s.ok(MemFreeHost{pinned}, "");
}

void copies(Smoke& s) {
  const DevicePtr p = map_chunks(s.backend(), 4 * g);
  const DevicePtr q = plus(p, 2 * g);
  s.equal("range of a mapping", s.ok(MemGetAddressRange{plus(p, g + 1), {}, 0}, "").size, g);
  s.ok(MemsetD8{p, 0x11, 2 * g}, "");
  s.equal("read", s.ok(MemcpyDtoH{nullptr, p, 2 * g, {}}, "").found, all_of(0x11));
  s.ok(MemsetD32{plus(p, 4), 0x22222222, 8}, "");
  s.equal("read", s.ok(MemcpyDtoH{nullptr, plus(p, 4), 8, {}}, "").found, all_of(0x22));
  s.equal("read", s.ok(MemcpyDtoH{nullptr, p, 2 * g, {}}, "").found, mixed());
  s.ok(MemcpyHtoD{p, {nullptr, 0x33, true}, 2 * g}, "");
  s.ok(MemcpyDtoD{q, p, 2 * g}, "");
  s.equal("read", s.ok(MemcpyDtoH{nullptr, q, 2 * g, {}}, "").found, all_of(0x33));
  const std::uint32_t word = 0x01020304;
  s.ok(MemcpyHtoD{q, {&word, 0, false}, 4}, "own bytes");
  s.ok(Memcpy{p, q, 4}, "");
  std::uint32_t back = 0;
  s.ok(MemcpyDtoH{&back, p, 4, {}}, "own buffer");
  s.equal("bytes", back, word);
  s.ok(MemsetD8{{0}, 0, 0}, "P491: size 0");
  s.ok(MemcpyDtoH{nullptr, {0x1000}, 0, {}}, "P492: size 0");
  s.ok(access_call(p, g, Access::kRead), "");
  s.run(MemsetD8{p, 0, g}, kInvalidValue, "P536: READ");
  s.run(MemcpyHtoD{p, {nullptr, 0, true}, 2 * g}, kInvalidValue, "P590: half READ");
  s.ok(MemcpyDtoH{nullptr, p, 2 * g, {}}, "P590");
  s.ok(MemUnmap{p, g}, "");
  s.run(MemcpyDtoH{nullptr, p, 2 * g, {}}, kInvalidValue, "P552: half hole");
  s.run(Memcpy{p, q, 4}, kUndefined, "S39: not asked");
  unmap_chunks(s.backend(), p, 4 * g);
}

// A range that is read at its seams only.
void large(Smoke& s) {
  constexpr std::uint64_t kSize = 64 * g;
  const DevicePtr p = map_chunks(s.backend(), kSize);
  s.ok(MemcpyHtoD{p, {nullptr, 0x44, true}, kSize}, "128 MiB");
  s.equal("sampled", s.ok(MemcpyDtoH{nullptr, p, kSize, {}}, "128 MiB").found, all_of(0x44));
  for (const std::uint64_t at : {std::uint64_t{0}, 5 * g - 1, 5 * g, kSize - 1}) {
    s.ok(MemsetD8{plus(p, at), 0x45, 1}, "");
    s.equal("sampled", s.ok(MemcpyDtoH{nullptr, p, kSize, {}}, "").found, mixed());
    const StreamHandle own;  // the null stream
    s.ok(MemcpyDtoHAsync{nullptr, p, kSize, own, 1}, "");
    s.ok(StreamSynchronize{own}, "");
    s.equal("sampled", s.ok(TakeLanding{1, {}}, "").found, mixed());
    s.ok(MemsetD8{plus(p, at), 0x44, 1}, "");
  }
  s.ok(CtxSynchronize{}, "");
  s.ok(MemUnmap{plus(p, 7 * g), g}, "");
  s.run(MemcpyDtoH{nullptr, p, kSize, {}}, kInvalidValue, "P552: a hole in it");
  s.run(MemcpyDtoHAsync{nullptr, p, kSize, {}, 1}, kInvalidValue, "P552: a hole in it");
  unmap_chunks(s.backend(), p, kSize);
}

}  // namespace

void memory(Smoke& s) {
  plain(s);
  copies(s);
  large(s);
}

}  // namespace granule::smoke
