// Virtual memory management and pools as C.
#include "c_writer.hpp"

namespace granule::gpu {

void CWriter::call(const MemAddressReserve& c) {
  emit("cuMemAddressReserve(" + slot(ObjectKind::kReservation, c.ptr.value, c.size) + ", " +
       number(c.size) + ", " + number(c.alignment) + ", " + ptr(c.hint) + ", " + number(c.flags) +
       ")");
}

void CWriter::call(const MemAddressFree& c) {
  emit("cuMemAddressFree(" + ptr(c.ptr) + ", " + number(c.size) + ")");
}

void CWriter::call(const MemCreate& c) {
  line("prop = " + props(c.properties) + ";");
  emit("cuMemCreate(" + slot(ObjectKind::kAllocation, c.handle.value) + ", " + number(c.size) +
       ", &prop, " + number(c.flags) + ")");
}

void CWriter::call(const MemRelease& c) { emit("cuMemRelease(" + handle(c.handle) + ")"); }

void CWriter::call(const MemRetainAllocationHandle& c) {
  emit("cuMemRetainAllocationHandle(" + slot(ObjectKind::kAllocation, c.handle.value) +
       ", (void*)(size_t)(" + ptr(c.ptr) + "))");
}

void CWriter::call(const MemMap& c) {
  emit("cuMemMap(" + ptr(c.ptr) + ", " + number(c.size) + ", " + number(c.offset) + ", " +
       handle(c.handle) + ", " + number(c.flags) + ")");
}

void CWriter::call(const MemUnmap& c) {
  emit("cuMemUnmap(" + ptr(c.ptr) + ", " + number(c.size) + ")");
}

void CWriter::call(const MemSetAccess& c) {
  set_access(c.access);
  emit("cuMemSetAccess(" + ptr(c.ptr) + ", " + number(c.size) + ", access, " +
       std::to_string(c.access.count) + ")");
}

void CWriter::call(const MemGetAccess& c) {
  line("where = " + place(c.location) + ";");
  emit("cuMemGetAccess(&flags, &where, " + ptr(c.ptr) + ")");
  beside("access", "%llu", "flags", plain(c.access));
}

void CWriter::call(const MemGetAllocationGranularity& c) {
  line("prop = " + props(c.properties) + ";");
  emit("cuMemGetAllocationGranularity(&n1, &prop, (CUmemAllocationGranularity_flags)" +
       plain(c.option) + ")");
  beside("granularity", "%zu", "n1", std::to_string(c.granularity));
}

void CWriter::call(const MemGetAllocationPropertiesFromHandle& c) {
  emit("cuMemGetAllocationPropertiesFromHandle(&prop, " + handle(c.handle) + ")");
  beside("place", "%d:%d", "(int)prop.location.type, prop.location.id",
         plain(c.properties.location.type) + ":" + std::to_string(c.properties.location.id));
}

void CWriter::call(const MemExportToShareableHandle& c) {
  emit("cuMemExportToShareableHandle(" +
       slot(ObjectKind::kDescriptor, static_cast<std::uint64_t>(c.descriptor.value)) + ", " +
       handle(c.handle) + ", (CUmemAllocationHandleType)" + plain(c.type) + ", " + number(c.flags) +
       ")");
}

void CWriter::call(const MemImportFromShareableHandle& c) {
  const std::string fd =
      value(ObjectKind::kDescriptor, static_cast<std::uint64_t>(c.descriptor.value));
  emit("cuMemImportFromShareableHandle(" + slot(ObjectKind::kAllocation, c.handle.value) +
       ", (void*)(long)" + fd + ", (CUmemAllocationHandleType)" + plain(c.type) + ")");
}

void CWriter::call(const CloseDescriptor& c) {
  line("close(" + value(ObjectKind::kDescriptor, static_cast<std::uint64_t>(c.descriptor.value)) +
       ");");
}

void CWriter::call(const MemPoolCreate& c) {
  const AllocationProperties& p = c.properties;
  line("pool_prop = pool_props(" + std::to_string(p.type) + ", " + plain(p.location.type) + ", " +
       std::to_string(p.location.id) + ", " + plain(p.handle_types) + ", " + number(c.max_size) +
       ");");
  emit("cuMemPoolCreate(" + slot(ObjectKind::kPool, c.pool.value) + ", &pool_prop)");
}

void CWriter::call(const MemPoolDestroy& c) { emit("cuMemPoolDestroy(" + pool(c.pool) + ")"); }

void CWriter::call(const MemPoolTrimTo& c) {
  emit("cuMemPoolTrimTo(" + pool(c.pool) + ", " + number(c.keep) + ")");
}

// The three switches are ints, all other attributes 64 bits; a little-endian word serves for both.
void CWriter::call(const MemPoolSetAttribute& c) {
  line("u1 = " + number(c.value) + ";");
  emit("cuMemPoolSetAttribute(" + pool(c.pool) + ", (CUmemPool_attribute)" + plain(c.attribute) +
       ", &u1)");
}

void CWriter::call(const MemPoolGetAttribute& c) {
  line("u1 = 0;");
  emit("cuMemPoolGetAttribute(" + pool(c.pool) + ", (CUmemPool_attribute)" + plain(c.attribute) +
       ", &u1)");
  beside("attribute", "%llu", "(unsigned long long)u1", std::to_string(c.value));
}

void CWriter::call(const MemPoolSetAccess& c) {
  set_access(c.access);
  emit("cuMemPoolSetAccess(" + pool(c.pool) + ", access, " + std::to_string(c.access.count) + ")");
}

void CWriter::call(const MemPoolGetAccess& c) {
  line("where = " + place(c.location) + ";");
  emit("cuMemPoolGetAccess(&right, " + pool(c.pool) + ", &where)");
  beside("access", "%d", "(int)right", plain(c.access));
}

void CWriter::call(const DeviceGetDefaultMemPool& c) {
  emit("cuDeviceGetDefaultMemPool(" + slot(ObjectKind::kPool, c.pool.value) + ", " +
       std::to_string(c.device.value) + ")");
}

void CWriter::call(const DeviceGetMemPool& c) {
  emit("cuDeviceGetMemPool(" + slot(ObjectKind::kPool, c.pool.value) + ", " +
       std::to_string(c.device.value) + ")");
}

void CWriter::call(const DeviceSetMemPool& c) {
  emit("cuDeviceSetMemPool(" + std::to_string(c.device.value) + ", " + pool(c.pool) + ")");
}

void CWriter::call(const MemAllocAsync& c) {
  emit("cuMemAllocAsync(" + slot(ObjectKind::kPoolBlock, c.ptr.value, c.size) + ", " +
       number(c.size) + ", " + stream(c.stream) + ")");
}

void CWriter::call(const MemAllocFromPoolAsync& c) {
  emit("cuMemAllocFromPoolAsync(" + slot(ObjectKind::kPoolBlock, c.ptr.value, c.size) + ", " +
       number(c.size) + ", " + pool(c.pool) + ", " + stream(c.stream) + ")");
}

void CWriter::call(const MemFreeAsync& c) {
  emit("cuMemFreeAsync(" + ptr(c.ptr) + ", " + stream(c.stream) + ")");
}

}  // namespace granule::gpu
