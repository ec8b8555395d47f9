// Reservations, allocations, mappings, access, handles.
#include "smoke.hpp"

namespace granule::smoke {
namespace {

using enum DriverStatus;

void reservations(Smoke& s) {
  s.run(MemAddressReserve{0, 0, {}, 0, {}}, kInvalidValue, "P010: size 0");
  s.run(MemAddressReserve{g + 4096, 0, {}, 0, {}}, kInvalidValue, "P010: off the granule");
  s.run(MemAddressReserve{g, 0, {4096}, 0, {}}, kInvalidValue, "S19: odd hint");
  s.run(MemAddressReserve{std::uint64_t{1} << 47, 0, {}, 0, {}}, kOutOfMemory, "P013.12");
  const DevicePtr p = s.ok(MemAddressReserve{8 * g, 0, {}, 0, {}}, "").ptr;
  s.equal("aligned", p.value % g, 0u);
  s.run(MemAddressFree{p, 4 * g}, kInvalidValue, "P020: not the size");
  s.run(MemAddressFree{plus(p, g), 7 * g}, kInvalidValue, "P020: interior");
  s.ok(MemAddressFree{p, 8 * g}, "");
  s.run(MemAddressFree{p, 8 * g}, kInvalidValue, "P020.7: twice");
}

void allocations(Smoke& s) {
  MemGetAllocationGranularity unit;
  s.equal("granularity", s.ok(unit, "S27").granularity, g);
  s.run(create_call(g + 1), kInvalidValue, "P030: off the granule");
  MemCreate elsewhere = create_call(g);
  elsewhere.properties.location = device_location({99});
  s.run(elsewhere, kInvalidDevice, "P031: no device");
  s.run(create_call(std::uint64_t{1} << 50), kOutOfMemory, "P030");
  const std::uint64_t before = s.ok(MemGetInfo{}, "").free;
  const AllocationHandle h = s.ok(create_call(4 * g, HandleType::kPosixFd), "").handle;
  s.equal("free taken", before - s.ok(MemGetInfo{}, "S24").free, 4 * g);
  const AllocationProperties granted =
      s.ok(MemGetAllocationPropertiesFromHandle{h, {}}, "").properties;
  s.equal("handle types", granted.handle_types, HandleType::kPosixFd);
  s.equal("location", granted.location.type, LocationType::kDevice);

  MemExportToShareableHandle share;
  share.handle = h;
  const Descriptor fd = s.ok(share, "").descriptor;
  share.type = HandleType::kNone;
  s.run(share, kInvalidValue, "P034: type 0");
  const AllocationHandle imported =
      s.ok(MemImportFromShareableHandle{fd, HandleType::kPosixFd, {}}, "").handle;
  s.equal("import is another value", imported.value != h.value, true);
  s.run(MemImportFromShareableHandle{{-1}, HandleType::kPosixFd, {}}, kUnknown, "P328");
  s.ok(MemRelease{imported}, "");
  s.ok(MemRelease{h}, "");
  s.equal("kept by the descriptor", before - s.ok(MemGetInfo{}, "X060").free, 4 * g);
  s.ok(CloseDescriptor{fd}, "X062");
  s.equal("free again", s.ok(MemGetInfo{}, "").free, before);
  s.run(CloseDescriptor{{0}}, kUndefined, "not ours; not closed");
  s.run(MemRelease{{0}}, kInvalidValue, "P305");
  s.run(MemRelease{{0x1234}}, kUndefined, "S23: made up; not asked");
  s.run(MemRelease{h}, kInvalidValue, "S23: twice");
}

void maps(Smoke& s) {
  const DevicePtr p = s.ok(MemAddressReserve{8 * g, 0, {}, 0, {}}, "").ptr;
  const AllocationHandle h = s.ok(create_call(2 * g), "").handle;
  const AllocationHandle one = s.ok(create_call(g), "").handle;
  s.run(MemMap{p, g, 0, h, 0}, kNotSupported, "S8: a part");
  s.run(MemMap{p, 2 * g, g, h, 0}, kNotSupported, "S8: at an offset");
  s.run(MemMap{p, 2 * g, 0, {0}, 0}, kInvalidValue, "P314");
  s.ok(MemMap{p, 2 * g, 0, h, 0}, "");
  s.run(MemMap{plus(p, g), g, 0, one, 0}, kInvalidValue, "P041: overlap");
  s.run(MemAddressFree{p, 8 * g}, kInvalidValue, "S22: mapped");
  const Location here = device_location({0});
  s.equal("access", s.ok(MemGetAccess{here, p, Access::kNone}, "P050.1").access, Access::kNone);
  s.run(MemGetAccess{device_location({99}), p, Access::kNone}, kInvalidDevice, "S16");
  s.run(MemGetAccess{here, plus(p, 2 * g), Access::kNone}, kInvalidValue, "P051: hole");
  s.run(access_call(p, g, Access::kReadWrite), kInvalidValue, "S14: part of a mapping");
  s.ok(access_call(p, 2 * g, Access::kReadWrite), "");
  s.equal("access", s.ok(MemGetAccess{here, plus(p, g), Access::kNone}, "").access,
          Access::kReadWrite);
  // A hole between two mappings: success, but only the part before it is changed.
  s.ok(MemMap{plus(p, 3 * g), g, 0, one, 0}, "");
  s.ok(access_call(p, 4 * g, Access::kRead), "S15: over a hole");
  s.equal("before the hole", s.ok(MemGetAccess{here, p, Access::kNone}, "").access, Access::kRead);
  s.equal("behind the hole", s.ok(MemGetAccess{here, plus(p, 3 * g), Access::kNone}, "").access,
          Access::kNone);
  MemSetAccess host{p, 2 * g, {}};
  host.access.push({{LocationType::kHost, 0}, Access::kReadWrite});
  s.run(host, kNotSupported, "S17");
  const AllocationHandle again = s.ok(MemRetainAllocationHandle{plus(p, g + 1), {}}, "").handle;
  s.equal("retained is the same", again.value == h.value, true);
  s.run(MemRetainAllocationHandle{plus(p, 2 * g), {}}, kInvalidValue, "P033: hole");
  s.ok(MemRelease{h}, "");
  s.ok(MemRelease{h}, "");
  s.ok(MemMap{plus(p, 5 * g), 2 * g, 0, h, 0}, "S11: kept by its mapping");
  s.run(MemUnmap{plus(p, g), g}, kInvalidValue, "P042: part of a mapping");
  s.ok(MemUnmap{p, 8 * g}, "S12: with holes");
  s.run(MemMap{p, 2 * g, 0, h, 0}, kUndefined, "S11: dead; not asked");
  s.ok(MemUnmap{p, 8 * g}, "S12: empty");
  s.ok(MemRelease{one}, "");
  s.ok(MemAddressFree{p, 8 * g}, "");
}

}  // namespace

void mappings(Smoke& s) {
  reservations(s);
  allocations(s);
  maps(s);
}

}  // namespace granule::smoke
