// The virtual memory management calls of the driver as value structs.
// What each answers, and in which order it checks: driver contract, sections 3 to 13.
#pragma once

#include <array>

#include <granule/backend_api/field.hpp>
#include <granule/backend_api/types.hpp>

namespace granule {

struct MemAddressReserve {
  static constexpr CallInfo info{"cuMemAddressReserve", CallFamily::kVmm};
  std::uint64_t size = 0;
  std::uint64_t alignment = 0;
  DevicePtr hint;
  std::uint64_t flags = 0;
  DevicePtr ptr;  // out
  static constexpr auto fields() {
    using C = MemAddressReserve;
    return std::tuple{bytes("size", &C::size), in("align", &C::alignment), address("at", &C::hint),
                      in("flags", &C::flags), makes("ptr", &C::ptr, ObjectKind::kReservation)};
  }
};

struct MemAddressFree {
  static constexpr CallInfo info{"cuMemAddressFree", CallFamily::kVmm};
  DevicePtr ptr;
  std::uint64_t size = 0;
  static constexpr auto fields() {
    using C = MemAddressFree;
    return std::tuple{drops("ptr", &C::ptr, ObjectKind::kReservation), bytes("size", &C::size)};
  }
};

struct MemCreate {
  static constexpr CallInfo info{"cuMemCreate", CallFamily::kVmm};
  std::uint64_t size = 0;
  AllocationProperties properties;
  std::uint64_t flags = 0;
  AllocationHandle handle;  // out
  static constexpr auto fields() {
    using C = MemCreate;
    return std::tuple{bytes("size", &C::size), in("properties", &C::properties),
                      in("flags", &C::flags), makes("handle", &C::handle, ObjectKind::kAllocation)};
  }
};

struct MemRelease {
  static constexpr CallInfo info{"cuMemRelease", CallFamily::kVmm};
  AllocationHandle handle;
  static constexpr auto fields() {
    return std::tuple{drops("handle", &MemRelease::handle, ObjectKind::kAllocation)};
  }
};

struct MemRetainAllocationHandle {
  static constexpr CallInfo info{"cuMemRetainAllocationHandle", CallFamily::kVmm};
  DevicePtr ptr;
  AllocationHandle handle;  // out
  static constexpr auto fields() {
    using C = MemRetainAllocationHandle;
    return std::tuple{address("ptr", &C::ptr),
                      makes("handle", &C::handle, ObjectKind::kAllocation)};
  }
};

struct MemMap {
  static constexpr CallInfo info{"cuMemMap", CallFamily::kVmm};
  DevicePtr ptr;
  std::uint64_t size = 0;
  std::uint64_t offset = 0;
  AllocationHandle handle;
  std::uint64_t flags = 0;
  static constexpr auto fields() {
    using C = MemMap;
    return std::tuple{address("ptr", &C::ptr), bytes("size", &C::size), in("offset", &C::offset),
                      uses("handle", &C::handle, ObjectKind::kAllocation), in("flags", &C::flags)};
  }
};

struct MemUnmap {
  static constexpr CallInfo info{"cuMemUnmap", CallFamily::kVmm};
  DevicePtr ptr;
  std::uint64_t size = 0;
  static constexpr auto fields() {
    using C = MemUnmap;
    return std::tuple{drops("ptr", &C::ptr, ObjectKind::kMapping), bytes("size", &C::size)};
  }
};

/// Up to 16 access entries, held inline so that a call stays trivially copyable.
struct AccessEntries {
  static constexpr std::size_t kCapacity = 16;
  std::array<AccessEntry, kCapacity> entries{};
  std::uint32_t count = 0;
  constexpr const AccessEntry* begin() const { return entries.data(); }
  constexpr const AccessEntry* end() const { return entries.data() + count; }
  /// Appends; false if there is no room.
  constexpr bool push(const AccessEntry& entry) {
    if (count == kCapacity) return false;
    entries[count++] = entry;
    return true;
  }
  friend constexpr bool operator==(const AccessEntries& a, const AccessEntries& b) {
    if (a.count != b.count) return false;
    for (std::uint32_t i = 0; i < a.count; ++i)
      if (!(a.entries[i] == b.entries[i])) return false;
    return true;
  }
};

struct MemSetAccess {
  static constexpr CallInfo info{"cuMemSetAccess", CallFamily::kVmm};
  DevicePtr ptr;
  std::uint64_t size = 0;
  AccessEntries access;
  static constexpr auto fields() {
    using C = MemSetAccess;
    return std::tuple{address("ptr", &C::ptr), bytes("size", &C::size), in("access", &C::access)};
  }
};

struct MemGetAccess {
  static constexpr CallInfo info{"cuMemGetAccess", CallFamily::kVmm};
  Location location;
  DevicePtr ptr;
  Access access = Access::kNone;  // out
  static constexpr auto fields() {
    using C = MemGetAccess;
    return std::tuple{address("ptr", &C::ptr), in("location", &C::location),
                      out("access", &C::access)};
  }
};

struct MemGetAllocationGranularity {
  static constexpr CallInfo info{"cuMemGetAllocationGranularity", CallFamily::kVmm};
  AllocationProperties properties;
  GranularityKind option = GranularityKind::kMinimum;
  std::uint64_t granularity = 0;  // out
  static constexpr auto fields() {
    using C = MemGetAllocationGranularity;
    return std::tuple{in("properties", &C::properties), in("option", &C::option),
                      out("granularity", &C::granularity)};
  }
};

struct MemGetAllocationPropertiesFromHandle {
  static constexpr CallInfo info{"cuMemGetAllocationPropertiesFromHandle", CallFamily::kVmm};
  AllocationHandle handle;
  AllocationProperties properties;  // out
  static constexpr auto fields() {
    using C = MemGetAllocationPropertiesFromHandle;
    return std::tuple{uses("handle", &C::handle, ObjectKind::kAllocation),
                      out("properties", &C::properties)};
  }
};

struct MemExportToShareableHandle {
  static constexpr CallInfo info{"cuMemExportToShareableHandle", CallFamily::kVmm};
  AllocationHandle handle;
  HandleType type = HandleType::kPosixFd;
  std::uint64_t flags = 0;
  Descriptor descriptor;  // out
  static constexpr auto fields() {
    using C = MemExportToShareableHandle;
    return std::tuple{uses("handle", &C::handle, ObjectKind::kAllocation), in("type", &C::type),
                      in("flags", &C::flags),
                      makes("descriptor", &C::descriptor, ObjectKind::kDescriptor)};
  }
};

struct MemImportFromShareableHandle {
  static constexpr CallInfo info{"cuMemImportFromShareableHandle", CallFamily::kVmm};
  Descriptor descriptor;
  HandleType type = HandleType::kPosixFd;
  AllocationHandle handle;  // out
  static constexpr auto fields() {
    using C = MemImportFromShareableHandle;
    return std::tuple{uses("descriptor", &C::descriptor, ObjectKind::kDescriptor),
                      in("type", &C::type), makes("handle", &C::handle, ObjectKind::kAllocation)};
  }
};

/// close(2) of an exported descriptor: no driver call, but it may give memory back.
struct CloseDescriptor {
  static constexpr CallInfo info{"close", CallFamily::kVmm, 0};
  Descriptor descriptor;
  static constexpr auto fields() {
    return std::tuple{drops("descriptor", &CloseDescriptor::descriptor, ObjectKind::kDescriptor)};
  }
};

}  // namespace granule
