// Stream-ordered pools. Driver contract, section 17.
#pragma once

#include <granule/backend_api/calls_vmm.hpp>
#include <granule/backend_api/field.hpp>
#include <granule/backend_api/types.hpp>

namespace granule {

struct MemPoolCreate {
  static constexpr CallInfo info{"cuMemPoolCreate", CallFamily::kPool};
  AllocationProperties properties;
  std::uint64_t max_size = 0;  // 0: no bound
  PoolHandle pool;             // out
  static constexpr auto fields() {
    using C = MemPoolCreate;
    return std::tuple{in("properties", &C::properties), bytes("max", &C::max_size),
                      makes("pool", &C::pool, ObjectKind::kPool)};
  }
};

struct MemPoolDestroy {
  static constexpr CallInfo info{"cuMemPoolDestroy", CallFamily::kPool};
  PoolHandle pool;
  static constexpr auto fields() {
    return std::tuple{drops("pool", &MemPoolDestroy::pool, ObjectKind::kPool)};
  }
};

struct MemPoolTrimTo {
  static constexpr CallInfo info{"cuMemPoolTrimTo", CallFamily::kPool};
  PoolHandle pool;
  std::uint64_t keep = 0;
  static constexpr auto fields() {
    using C = MemPoolTrimTo;
    return std::tuple{uses("pool", &C::pool, ObjectKind::kPool), bytes("keep", &C::keep)};
  }
};

struct MemPoolSetAttribute {
  static constexpr CallInfo info{"cuMemPoolSetAttribute", CallFamily::kPool};
  PoolHandle pool;
  PoolAttribute attribute = PoolAttribute::kReleaseThreshold;
  std::uint64_t value = 0;
  static constexpr auto fields() {
    using C = MemPoolSetAttribute;
    return std::tuple{uses("pool", &C::pool, ObjectKind::kPool), in("attribute", &C::attribute),
                      in("value", &C::value)};
  }
};

struct MemPoolGetAttribute {
  static constexpr CallInfo info{"cuMemPoolGetAttribute", CallFamily::kPool};
  PoolHandle pool;
  PoolAttribute attribute = PoolAttribute::kReleaseThreshold;
  std::uint64_t value = 0;  // out
  static constexpr auto fields() {
    using C = MemPoolGetAttribute;
    return std::tuple{uses("pool", &C::pool, ObjectKind::kPool), in("attribute", &C::attribute),
                      out("value", &C::value)};
  }
};

struct MemPoolSetAccess {
  static constexpr CallInfo info{"cuMemPoolSetAccess", CallFamily::kPool};
  PoolHandle pool;
  AccessEntries access;
  static constexpr auto fields() {
    using C = MemPoolSetAccess;
    return std::tuple{uses("pool", &C::pool, ObjectKind::kPool), in("access", &C::access)};
  }
};

struct MemPoolGetAccess {
  static constexpr CallInfo info{"cuMemPoolGetAccess", CallFamily::kPool};
  PoolHandle pool;
  Location location;
  Access access = Access::kNone;  // out
  static constexpr auto fields() {
    using C = MemPoolGetAccess;
    return std::tuple{uses("pool", &C::pool, ObjectKind::kPool), in("location", &C::location),
                      out("access", &C::access)};
  }
};

struct MemAllocAsync {
  static constexpr CallInfo info{"cuMemAllocAsync", CallFamily::kPool};
  std::uint64_t size = 0;
  StreamHandle stream;
  DevicePtr ptr;  // out
  static constexpr auto fields() {
    using C = MemAllocAsync;
    return std::tuple{bytes("size", &C::size), on_stream("on", &C::stream),
                      makes("ptr", &C::ptr, ObjectKind::kPoolBlock)};
  }
};

struct MemAllocFromPoolAsync {
  static constexpr CallInfo info{"cuMemAllocFromPoolAsync", CallFamily::kPool};
  std::uint64_t size = 0;
  PoolHandle pool;
  StreamHandle stream;
  DevicePtr ptr;  // out
  static constexpr auto fields() {
    using C = MemAllocFromPoolAsync;
    return std::tuple{bytes("size", &C::size), uses("pool", &C::pool, ObjectKind::kPool),
                      on_stream("on", &C::stream), makes("ptr", &C::ptr, ObjectKind::kPoolBlock)};
  }
};

struct MemFreeAsync {
  static constexpr CallInfo info{"cuMemFreeAsync", CallFamily::kPool};
  DevicePtr ptr;
  StreamHandle stream;
  static constexpr auto fields() {
    using C = MemFreeAsync;
    return std::tuple{drops("ptr", &C::ptr, ObjectKind::kPoolBlock), on_stream("on", &C::stream)};
  }
};

struct DeviceGetDefaultMemPool {
  static constexpr CallInfo info{"cuDeviceGetDefaultMemPool", CallFamily::kPool};
  DeviceId device;
  PoolHandle pool;  // out; not owned by the caller
  static constexpr auto fields() {
    using C = DeviceGetDefaultMemPool;
    return std::tuple{in("device", &C::device), out("pool", &C::pool)};
  }
};

struct DeviceGetMemPool {
  static constexpr CallInfo info{"cuDeviceGetMemPool", CallFamily::kPool};
  DeviceId device;
  PoolHandle pool;  // out; not owned by the caller
  static constexpr auto fields() {
    using C = DeviceGetMemPool;
    return std::tuple{in("device", &C::device), out("pool", &C::pool)};
  }
};

struct DeviceSetMemPool {
  static constexpr CallInfo info{"cuDeviceSetMemPool", CallFamily::kPool};
  DeviceId device;
  PoolHandle pool;
  static constexpr auto fields() {
    using C = DeviceSetMemPool;
    return std::tuple{in("device", &C::device), uses("pool", &C::pool, ObjectKind::kPool)};
  }
};

}  // namespace granule
