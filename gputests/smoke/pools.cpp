// Stream-ordered pools.
#include "smoke.hpp"

namespace granule::smoke {
namespace {

using enum DriverStatus;

std::uint64_t counter(Smoke& s, PoolHandle pool, PoolAttribute which) {
  return s.ok(MemPoolGetAttribute{pool, which, 0}, "").value;
}

}  // namespace

void pools(Smoke& s) {
  const StreamHandle stream = s.ok(StreamCreate{kStreamNonBlocking, {}}, "").stream;
  const PoolHandle standard = s.ok(DeviceGetDefaultMemPool{}, "").pool;
  s.equal("current is default", s.ok(DeviceGetMemPool{}, "P140.1").pool.value == standard.value,
          true);
  s.run(MemPoolDestroy{standard}, kInvalidValue, "P140.25");
  const PoolHandle pool = s.ok(MemPoolCreate{}, "").pool;
  MemPoolCreate elsewhere;
  elsewhere.properties.location = device_location({99});
  s.run(elsewhere, kInvalidValue, "P140");
  s.equal("threshold", counter(s, pool, PoolAttribute::kReleaseThreshold), 0u);
  s.equal("follow", counter(s, pool, PoolAttribute::kReuseFollowEventDependencies), 1u);
  s.ok(MemPoolSetAttribute{pool, PoolAttribute::kReuseFollowEventDependencies, 0}, "");
  s.equal("follow", counter(s, pool, PoolAttribute::kReuseFollowEventDependencies), 0u);
  s.ok(MemPoolSetAttribute{pool, PoolAttribute::kReleaseThreshold, UINT64_MAX}, "");
  s.equal("threshold", counter(s, pool, PoolAttribute::kReleaseThreshold), UINT64_MAX);
  s.run(MemPoolSetAttribute{pool, PoolAttribute::kUsedMemCurrent, 0}, kInvalidValue, "P140");
  const Location here = device_location({0});
  s.equal("own access", s.ok(MemPoolGetAccess{pool, here, Access::kNone}, "").access,
          Access::kReadWrite);
  MemPoolSetAccess access{pool, {}};
  access.access.push({here, Access::kRead});
  s.run(access, kNotSupported, "S48");
  access.access.entries[0].access = Access::kNone;
  s.run(access, kInvalidDevice, "S48");
  access.access.entries[0].access = Access::kReadWrite;
  s.ok(access, "");

  const DevicePtr x = s.ok(MemAllocFromPoolAsync{65 * kMiB, pool, stream, {}}, "").ptr;
  s.equal("reserved", counter(s, pool, PoolAttribute::kReservedMemCurrent), 96 * kMiB);
  s.equal("used", counter(s, pool, PoolAttribute::kUsedMemCurrent), 65 * kMiB);
  s.run(MemFreeAsync{plus(x, 512), stream}, kInvalidValue, "P344: interior");
  s.ok(MemFreeAsync{x, stream}, "");
  s.equal("used", counter(s, pool, PoolAttribute::kUsedMemCurrent), 0u);
  s.run(MemFreeAsync{x, stream}, kInvalidValue, "P342: twice");
  s.ok(StreamSynchronize{stream}, "");
  s.ok(MemPoolTrimTo{pool, 33 * kMiB}, "S46");
  s.equal("reserved", counter(s, pool, PoolAttribute::kReservedMemCurrent), 64 * kMiB);
  s.ok(MemPoolTrimTo{pool, 0}, "");
  s.equal("reserved", counter(s, pool, PoolAttribute::kReservedMemCurrent), 0u);
  s.equal("nothing", s.ok(MemAllocFromPoolAsync{0, pool, stream, {}}, "S44").ptr.value, 0u);

  s.ok(DeviceSetMemPool{{0}, pool}, "");
  const DevicePtr y = s.ok(MemAllocAsync{1, stream, {}}, "from the current pool").ptr;
  s.equal("used", counter(s, pool, PoolAttribute::kUsedMemCurrent), 1u);
  s.ok(MemFreeAsync{y, stream}, "");
  s.ok(MemFreeAsync{{}, stream}, "P341: null");
  s.ok(DeviceSetMemPool{{0}, standard}, "");
  s.ok(StreamSynchronize{stream}, "");
  s.ok(MemPoolDestroy{pool}, "");
  s.run(MemPoolGetAttribute{pool, PoolAttribute::kReleaseThreshold, 0}, kInvalidValue,
        "P335: destroyed");
  s.ok(StreamDestroy{stream}, "");
  s.run(MemAllocAsync{1, stream, {}}, kUndefined, "S50: not asked");
}

}  // namespace granule::smoke
