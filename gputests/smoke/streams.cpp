// Streams, events, kernels, gates, landings, captures, host functions, stream memory operations.
#include <chrono>

#include "smoke.hpp"

namespace granule::smoke {
namespace {

using enum DriverStatus;

LaunchKernel kernel(KernelKind kind, DevicePtr ptr, std::uint64_t size, StreamHandle stream) {
  LaunchKernel launch;
  launch.kind = kind;
  launch.ptr = ptr;
  launch.size = size;
  launch.stream = stream;
  return launch;
}

void kernels(Smoke& s, DevicePtr p, StreamHandle stream) {
  LaunchKernel write = kernel(KernelKind::kWrite, p, 2 * g, stream);
  write.value = 0x66;
  write.duration_ns = 20000000;
  const auto start = std::chrono::steady_clock::now();
  s.ok(write, "20 ms");
  s.ok(StreamSynchronize{stream}, "");
  const auto took = std::chrono::steady_clock::now() - start;
  s.equal("20 ms or more", took >= std::chrono::milliseconds(20), true);
  s.equal("less than 200 ms", took < std::chrono::milliseconds(200), true);
  LaunchKernel odd = kernel(KernelKind::kWrite, plus(p, 3), 1001, stream);
  odd.value = 0x67;
  s.ok(odd, "off alignment");
  s.ok(kernel(KernelKind::kTouch, p, 2 * g, stream), "");
  s.ok(kernel(KernelKind::kTouch, plus(p, 1), 4097, stream), "off alignment");
  std::uint64_t landing = 10;
  const auto read = [&](std::uint64_t at, std::uint64_t size, ByteSummary wanted) {
    LaunchKernel look = kernel(KernelKind::kRead, plus(p, at), size, stream);
    look.landing = ++landing;
    s.ok(look, "");
    s.ok(StreamSynchronize{stream}, "");
    s.equal("kernel read", s.ok(TakeLanding{landing, {}}, "").found, wanted);
  };
  read(0, 2 * g, mixed());
  read(0, 3, all_of(0x66));
  read(3, 1001, all_of(0x67));
  read(1004, 2 * g - 1004, all_of(0x66));
  read(2 * g - 16, 16, all_of(0x66));
  s.run(TakeLanding{landing, {}}, kInvalidValue, "taken already");
}

void gates(Smoke& s, DevicePtr p, StreamHandle stream) {
  const StreamHandle free_stream = s.ok(StreamCreate{kStreamNonBlocking, {}}, "").stream;
  const EventHandle e = s.ok(EventCreate{}, "").event;
  s.ok(CloseGate{stream}, "");
  s.ok(CloseGate{stream}, "closed already");
  s.ok(MemsetD8Async{p, 0x77, g, stream}, "");
  s.ok(MemsetD32Async{plus(p, g), 0x77777777, g, stream}, "");
  s.ok(MemcpyDtoHAsync{nullptr, p, 2 * g, stream, 20}, "");
  LaunchKernel look = kernel(KernelKind::kRead, p, 2 * g, stream);
  look.landing = 21;
  s.ok(look, "");
  s.ok(EventRecord{e, stream}, "");
  s.ok(Pause{5000000}, "");
  s.run(StreamQuery{stream}, kNotReady, "held");
  s.run(EventQuery{e}, kNotReady, "held");
  s.run(TakeLanding{20, {}}, kNotReady, "held");
  s.run(TakeLanding{21, {}}, kNotReady, "held");
  const MemCreate create = s.ok(create_call(g), "P855: VMM goes on");
  s.ok(MemRelease{create.handle}, "");
  s.ok(kernel(KernelKind::kSpin, {}, 0, free_stream), "P855: others go on");
  s.ok(StreamSynchronize{free_stream}, "");
  s.ok(OpenGate{stream}, "");
  s.ok(EventSynchronize{e}, "");
  s.ok(StreamQuery{stream}, "");
  s.equal("copied", s.ok(TakeLanding{20, {}}, "").found, all_of(0x77));
  s.equal("kernel read", s.ok(TakeLanding{21, {}}, "").found, all_of(0x77));

  // The same word serves again; a stream destroyed while held keeps its gate until it is opened.
  s.ok(CloseGate{free_stream}, "again");
  s.ok(MemcpyHtoDAsync{p, {nullptr, 0x78, true}, 2 * g, free_stream}, "");
  s.ok(StreamDestroy{free_stream}, "held");
  s.equal("read", s.ok(MemcpyDtoH{nullptr, p, 2 * g, {}}, "").found, all_of(0x77));
  s.ok(OpenGate{free_stream}, "destroyed");
  s.ok(CtxSynchronize{}, "");
  s.equal("read", s.ok(MemcpyDtoH{nullptr, p, 2 * g, {}}, "").found, all_of(0x78));
  s.ok(MemcpyDtoDAsync{plus(p, g), p, g, stream}, "");
  s.ok(StreamSynchronize{stream}, "");
  s.ok(EventDestroy{e}, "");
}

void events(Smoke& s, StreamHandle stream) {
  const EventHandle e = s.ok(EventCreate{}, "").event;
  s.ok(EventQuery{e}, "P130: never recorded");
  s.ok(StreamWaitEvent{stream, e, 0}, "");
  s.run(StreamWaitEvent{stream, e, 7}, kInvalidValue, "P130.7");
  s.run(EventQuery{{0x1234}}, kUndefined, "made up; not asked");
  const std::uint64_t id = s.ok(StreamGetId{stream, {}}, "").id.value;
  const StreamHandle other = s.ok(StreamCreate{}, "").stream;
  s.equal("ids differ", s.ok(StreamGetId{other, {}}, "").id.value != id, true);
  s.ok(StreamDestroy{other}, "");
  s.ok(EventDestroy{e}, "");
  s.run(EventQuery{e}, kUndefined, "destroyed; not asked");
}

void values(Smoke& s, StreamHandle stream) {
  const std::uint64_t host = s.ok(MemAllocHost{64, 0}, "").host;
  auto* word = reinterpret_cast<volatile std::uint64_t*>(static_cast<std::uintptr_t>(host));
  *word = 0;
  s.ok(StreamWriteValue64{stream, {host}, 0x1122334455, 0}, "");
  s.ok(StreamWaitValue32{stream, {host}, 5, 0}, "true already");
  s.ok(StreamSynchronize{stream}, "");
  s.equal("written", *word, std::uint64_t{0x1122334455});
  s.run(StreamWriteValue64{stream, {host}, 1, 1}, kInvalidValue, "P851.2: flags");
  s.run(StreamWriteValue64{stream, {0}, 1, 0}, kInvalidValue, "P879: null");
  s.ok(MemFreeHost{host}, "");
}

struct InFunction {
  cuda::CudaBackend* backend;
  DriverStatus reserve;
  DriverStatus query;
  EventHandle event;
};

void host_functions(Smoke& s, StreamHandle stream) {
  const EventHandle e = s.ok(EventCreate{}, "").event;
  InFunction seen{&s.backend(), kUnknown, kUnknown, e};
  const auto function = [](void* argument) {
    auto& in = *static_cast<InFunction*>(argument);
    MemAddressReserve reserve;
    reserve.size = g;
    in.reserve = in.backend->run(reserve);
    EventQuery query{in.event};
    in.query = in.backend->run(query);
  };
  s.ok(LaunchHostFunc{stream, function, &seen}, "");
  s.ok(StreamSynchronize{stream}, "");
  s.equal("reserve in a host function", seen.reserve, kNotPermitted);
  s.equal("event query in a host function", seen.query, kSuccess);
  s.ok(EventDestroy{e}, "");
}

void captures(Smoke& s, DevicePtr p, StreamHandle stream) {
  const StreamHandle other = s.ok(StreamCreate{kStreamNonBlocking, {}}, "").stream;
  s.ok(StreamBeginCapture{stream, CaptureMode::kGlobal}, "");
  s.equal("capturing", s.ok(StreamIsCapturing{stream, CaptureStatus::kNone}, "").status,
          CaptureStatus::kActive);
  const AllocationHandle h = s.ok(create_call(g), "S34").handle;
  s.ok(MemRelease{h}, "S34");
  s.ok(kernel(KernelKind::kTouch, p, g, stream), "a node");
  LaunchKernel look = kernel(KernelKind::kRead, p, g, other);
  look.landing = 30;
  s.ok(look, "beside a capture");
  s.ok(MemcpyDtoHAsync{nullptr, p, g, other, 31}, "beside a capture");
  s.equal("mode", s.ok(ThreadExchangeStreamCaptureMode{CaptureMode::kRelaxed, {}}, "").previous,
          CaptureMode::kGlobal);
  s.ok(StreamSynchronize{other}, "S60: relaxed");
  s.ok(ThreadExchangeStreamCaptureMode{CaptureMode::kGlobal, {}}, "");
  s.ok(TakeLanding{30, {}}, "");
  s.ok(TakeLanding{31, {}}, "");
  s.equal("capturing", s.ok(StreamIsCapturing{stream, CaptureStatus::kNone}, "").status,
          CaptureStatus::kActive);
  s.ok(GraphDestroy{s.ok(StreamEndCapture{stream, {}}, "").graph}, "");
  s.ok(StreamBeginCapture{stream, CaptureMode::kGlobal}, "");
  s.run(StreamQuery{other}, kStreamCaptureUnsupported, "S34");
  s.run(StreamEndCapture{stream, {}}, kStreamCaptureInvalidated, "P104.14");
  s.ok(StreamDestroy{other}, "");
}

}  // namespace

void streams(Smoke& s) {
  const StreamHandle stream = s.ok(StreamCreate{kStreamNonBlocking, {}}, "").stream;
  const DevicePtr p = map_chunks(s.backend(), 2 * g);
  kernels(s, p, stream);
  gates(s, p, stream);
  events(s, stream);
  values(s, stream);
  host_functions(s, stream);
  captures(s, p, stream);
  s.ok(StreamSynchronize{stream}, "");
  unmap_chunks(s.backend(), p, 2 * g);
  s.ok(StreamDestroy{stream}, "");
}

}  // namespace granule::smoke
