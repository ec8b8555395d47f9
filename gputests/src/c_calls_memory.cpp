// Plain and pinned memory, queries of addresses, fills and copies as C. Copies from and to the host
// go through a buffer of 1 MiB; longer ones are cut to that.
#include <algorithm>

#include "c_writer.hpp"

namespace granule::gpu {
namespace {

constexpr std::uint64_t kHostBuffer = 1u << 20;

std::uint64_t cut(std::uint64_t size) { return std::min(size, kHostBuffer); }

}  // namespace

void CWriter::call(const MemGetInfo& c) {
  emit("cuMemGetInfo(&n1, &n2)");
  beside("free", "%zu", "n1", std::to_string(c.free));
}

void CWriter::call(const MemAlloc& c) {
  emit("cuMemAlloc(" + slot(ObjectKind::kPlainMemory, c.ptr.value, c.size) + ", " + number(c.size) +
       ")");
}

void CWriter::call(const MemFree& c) { emit("cuMemFree(" + ptr(c.ptr) + ")"); }

void CWriter::call(const MemAllocHost& c) {
  emit("cuMemAllocHost(" + slot(ObjectKind::kPinnedMemory, c.host, c.size) + ", " + number(c.size) +
       ")");
}

void CWriter::call(const MemFreeHost& c) {
  const auto found = pinned_.find(c.host);
  emit("cuMemFreeHost(" +
       (found != pinned_.end() ? found->second.second : "(void*)(size_t)" + number(c.host)) + ")");
}

void CWriter::call(const MemGetAddressRange& c) {
  emit("cuMemGetAddressRange(&base, &n1, " + ptr(c.ptr) + ")");
  beside("size", "%zu", "n1", std::to_string(c.size));
}

void CWriter::call(const PointerGetAttribute& c) {
  line("u1 = 0;");
  emit("cuPointerGetAttribute(&u1, (CUpointer_attribute)" + plain(c.attribute) + ", " + ptr(c.ptr) +
       ")");
  beside("attribute", "%llu", "(unsigned long long)u1", std::to_string(c.value));
}

void CWriter::call(const PointerGetAttributes& c) {
  line("u1 = 0; { CUpointer_attribute asked = (CUpointer_attribute)" + plain(c.attribute) +
       "; void* data = &u1;");
  emit("cuPointerGetAttributes(1, &asked, &data, " + ptr(c.ptr) + ")");
  line("}");
  beside("attribute", "%llu", "(unsigned long long)u1", std::to_string(c.value));
}

void CWriter::call(const MemsetD8& c) {
  emit("cuMemsetD8(" + ptr(c.ptr) + ", " + std::to_string(c.value) + ", " + number(c.size) + ")");
}

void CWriter::call(const MemsetD8Async& c) {
  emit("cuMemsetD8Async(" + ptr(c.ptr) + ", " + std::to_string(c.value) + ", " + number(c.size) +
       ", " + stream(c.stream) + ")");
}

void CWriter::call(const MemsetD32& c) {
  emit("cuMemsetD32(" + ptr(c.ptr) + ", " + std::to_string(c.value) + "u, " + number(c.size / 4) +
       ")");
}

void CWriter::call(const MemsetD32Async& c) {
  emit("cuMemsetD32Async(" + ptr(c.ptr) + ", " + std::to_string(c.value) + "u, " +
       number(c.size / 4) + ", " + stream(c.stream) + ")");
}

void CWriter::call(const MemcpyHtoD& c) {
  fill_host(c.src, c.size);
  emit("cuMemcpyHtoD(" + ptr(c.dst) + ", host, " + number(cut(c.size)) + ")");
}

void CWriter::call(const MemcpyHtoDAsync& c) {
  fill_host(c.src, c.size);
  emit("cuMemcpyHtoDAsync(" + ptr(c.dst) + ", host, " + number(cut(c.size)) + ", " +
       stream(c.stream) + ")");
}

void CWriter::call(const MemcpyDtoH& c) {
  emit("cuMemcpyDtoH(host, " + ptr(c.src) + ", " + number(cut(c.size)) + ")");
  if (succeeded()) line("printf(\"  first byte 0x%02x\\n\", host[0]);");
}

void CWriter::call(const MemcpyDtoHAsync& c) {
  emit("cuMemcpyDtoHAsync(host, " + ptr(c.src) + ", " + number(cut(c.size)) + ", " +
       stream(c.stream) + ")");
}

void CWriter::call(const MemcpyDtoD& c) {
  emit("cuMemcpyDtoD(" + ptr(c.dst) + ", " + ptr(c.src) + ", " + number(c.size) + ")");
}

void CWriter::call(const MemcpyDtoDAsync& c) {
  emit("cuMemcpyDtoDAsync(" + ptr(c.dst) + ", " + ptr(c.src) + ", " + number(c.size) + ", " +
       stream(c.stream) + ")");
}

void CWriter::call(const Memcpy& c) {
  emit("cuMemcpy(" + word(c.dst) + ", " + word(c.src) + ", " + number(c.size) + ")");
}

}  // namespace granule::gpu
