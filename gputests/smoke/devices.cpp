// Initialisation, device questions, contexts; and the loss of one.
#include "smoke.hpp"

namespace granule::smoke {

using enum DriverStatus;

void without_context(Smoke& s) {
  s.ok(Init{}, "again");
  s.equal("CUDA 11.2 or newer", s.ok(DriverGetVersion{}, "").version >= 11020, true);
  const std::int32_t count = s.ok(DeviceGetCount{}, "").count;
  s.equal("devices", count >= 1, true);
  s.equal("vmm",
          s.ok(DeviceGetAttribute{DeviceAttribute::kVmmSupported, {0}, 0}, "attribute 102").value,
          1);
  s.run(DeviceGetAttribute{DeviceAttribute::kVmmSupported, {99}, 0}, kInvalidDevice, "no device");
  s.equal("total memory", s.ok(DeviceTotalMem{}, "").total > g, true);
  s.equal("peer of itself", s.ok(DeviceCanAccessPeer{{0}, {0}, 0}, "").can, 0);
  s.equal("current context", s.ok(CtxGetCurrent{}, "none yet").context.value, 0u);
  s.run(MemGetInfo{}, kInvalidContext, "P102.1");
  s.run(MemAlloc{4096, {}}, kInvalidContext, "P102");
  s.run(StreamQuery{}, kInvalidContext, "P102: null stream");
  LaunchKernel spin;
  s.run(spin, kInvalidContext, "null stream, no context");
  s.run(EventQuery{}, kInvalidHandle, "P101: null event");
  const MemCreate create = s.ok(create_call(g), "P102: no context needed");
  s.ok(MemRelease{create.handle}, "P102");
}

ContextHandle devices(Smoke& s) {
  const ContextHandle primary = s.ok(DevicePrimaryCtxRetain{}, "").context;
  s.ok(CtxSetCurrent{primary}, "");
  s.equal("device of the context", s.ok(CtxGetDevice{}, "").device.value, 0);
  s.ok(CtxPushCurrent{primary}, "");
  s.equal("popped", s.ok(CtxPopCurrent{}, "").context.value == primary.value, true);
  const ContextHandle other = s.ok(CtxCreate{}, "second context").context;
  const StreamHandle theirs = s.ok(StreamCreate{kStreamNonBlocking, {}}, "of it").stream;
  s.equal("context of the stream", s.ok(StreamGetCtx{theirs, {}}, "").context.value == other.value,
          true);
  s.ok(CtxPopCurrent{}, "");
  LaunchKernel spin;
  spin.stream = theirs;
  spin.duration_ns = 1000;
  s.ok(spin, "on a stream of another context");
  s.ok(StreamSynchronize{theirs}, "X050");
  s.equal("current context", s.ok(CtxGetCurrent{}, "unchanged").context.value == primary.value,
          true);
  s.ok(CtxDestroy{other}, "");
  s.run(StreamQuery{theirs}, kUndefined, "went with its context; not asked");
  s.run(CtxSetCurrent{{0x1234}}, kUndefined, "made up; not asked");
  return primary;
}

void fault(Smoke& s) {
  devices(s);
  const DevicePtr ptr = s.ok(MemAddressReserve{2 * g, 0, {}, 0, {}}, "").ptr;
  const StreamHandle stream = s.ok(StreamCreate{kStreamNonBlocking, {}}, "").stream;
  LaunchKernel write;
  write.kind = KernelKind::kWrite;
  write.ptr = ptr;
  write.size = g;
  write.stream = stream;
  s.ok(write, "P493: the launch itself is fine");
  s.run(StreamSynchronize{stream}, kIllegalAddress, "P493");
  s.run(MemGetInfo{}, kIllegalAddress, "S32");
  s.run(EventCreate{}, kIllegalAddress, "S32");
  s.run(MemcpyDtoH{nullptr, ptr, 4, {}}, kIllegalAddress, "S32");
  const AllocationHandle handle = s.ok(create_call(g), "S32").handle;
  s.ok(MemMap{ptr, g, 0, handle, 0}, "S32");
  s.ok(access_call(ptr, g, Access::kReadWrite), "S32");
  s.ok(MemUnmap{ptr, g}, "S32");
  s.ok(MemRelease{handle}, "S32");
  s.ok(MemAddressFree{ptr, 2 * g}, "S32");
}

}  // namespace granule::smoke
