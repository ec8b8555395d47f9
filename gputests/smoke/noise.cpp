// Where free memory goes that no allocation call explains: streams, events, kernels, copies.
#include <cstdio>
#include <string>
#include <vector>

#include "smoke.hpp"

namespace granule::smoke {
namespace {

// Prints how far free memory moved since the last look, if it did.
class FreeWatch {
 public:
  explicit FreeWatch(cuda::CudaBackend& backend) : backend_(backend) { last_ = now(); }
  void look(const std::string& what) {
    const std::uint64_t free = now();
    if (free != last_) {
      std::printf("  %-44s %+lld bytes\n", what.c_str(),
                  static_cast<long long>(free) - static_cast<long long>(last_));
    }
    last_ = free;
  }
  template <class C>
  C run(C call, const std::string& what) {
    const DriverStatus status = backend_.run(call);
    if (status != DriverStatus::kSuccess)
      std::printf("  %s: %s\n", what.c_str(), std::string(name_of(status)).c_str());
    look(what);
    return call;
  }
  std::uint64_t now() {
    MemGetInfo info;
    backend_.run(info);
    return info.free;
  }

 private:
  cuda::CudaBackend& backend_;
  std::uint64_t last_ = 0;
};

void use_streams(FreeWatch& watch, std::uint32_t flags, int count) {
  std::vector<StreamHandle> streams;
  for (int i = 1; i <= count; ++i) {
    const std::string number = std::to_string(i);
    streams.push_back(watch.run(StreamCreate{flags, {}}, "make stream " + number).stream);
    LaunchKernel spin;
    spin.stream = streams.back();
    watch.run(spin, "kernel on stream " + number);
    watch.run(StreamSynchronize{streams.back()}, "synchronize stream " + number);
  }
  for (const StreamHandle stream : streams) watch.run(StreamDestroy{stream}, "destroy a stream");
}

void use_copies(FreeWatch& watch, cuda::CudaBackend& backend) {
  constexpr std::uint64_t kSize = 64 * g;
  const DevicePtr p = map_chunks(backend, kSize);
  watch.look("map 64 chunks (expected)");
  watch.run(MemsetD8{p, 1, kSize}, "memset");
  watch.run(MemcpyHtoD{p, {nullptr, 2, true}, kSize}, "copy from pageable memory");
  watch.run(MemcpyHtoDAsync{p, {nullptr, 2, true}, kSize, {}}, "copy from pinned memory");
  watch.run(MemcpyDtoH{nullptr, p, g, {}}, "copy to pageable memory");
  watch.run(MemcpyDtoH{nullptr, p, kSize, {}}, "copy rows to pageable memory");
  watch.run(MemcpyDtoHAsync{nullptr, p, kSize, {}, 1}, "copy rows to pinned memory");
  watch.run(MemcpyDtoD{p, plus(p, g), g}, "copy on the device");
  watch.run(Memcpy{p, plus(p, g), g}, "copy, directions guessed");
  watch.run(CtxSynchronize{}, "synchronize");
  unmap_chunks(backend, p, kSize);
  watch.look("unmap 64 chunks (expected)");
}

void use_rest(FreeWatch& watch, cuda::CudaBackend& backend) {
  const StreamHandle stream = watch.run(StreamCreate{kStreamNonBlocking, {}}, "stream").stream;
  std::vector<EventHandle> events;
  for (int i = 0; i < 2000; ++i) {
    events.push_back(watch.run(EventCreate{}, "make event").event);
    watch.run(EventRecord{events.back(), stream}, "record event " + std::to_string(i));
  }
  watch.run(StreamSynchronize{stream}, "synchronize");
  for (const EventHandle event : events) watch.run(EventDestroy{event}, "destroy event");
  const DevicePtr p = map_chunks(backend, g);
  watch.look("map a chunk (expected)");
  for (const CaptureMode mode : {CaptureMode::kGlobal, CaptureMode::kRelaxed}) {
    watch.run(StreamBeginCapture{stream, mode}, "begin capture");
    LaunchKernel touch;
    touch.kind = KernelKind::kTouch;
    touch.ptr = p;
    touch.size = g;
    touch.stream = stream;
    watch.run(touch, "capture a kernel");
    watch.run(GraphDestroy{watch.run(StreamEndCapture{stream, {}}, "end capture").graph},
              "destroy graph");
  }
  watch.run(LaunchHostFunc{stream, [](void*) {}, nullptr}, "host function");
  watch.run(CloseGate{stream}, "close gate");
  for (int i = 0; i < 500; ++i) {
    LaunchKernel spin;
    spin.stream = stream;
    watch.run(spin, "kernel behind a gate");
  }
  watch.run(OpenGate{stream}, "open gate");
  watch.run(StreamSynchronize{stream}, "synchronize");
  unmap_chunks(backend, p, g);
  watch.look("unmap a chunk (expected)");
  const PoolHandle pool = watch.run(MemPoolCreate{}, "make pool").pool;
  const DevicePtr x = watch.run(MemAllocFromPoolAsync{g, pool, stream, {}}, "pool block").ptr;
  watch.run(MemFreeAsync{x, stream}, "free pool block");
  watch.run(StreamSynchronize{stream}, "synchronize (gives 32 MiB back)");
  watch.run(MemPoolDestroy{pool}, "destroy pool");
  watch.run(StreamDestroy{stream}, "destroy stream");
}

}  // namespace

void noise(cuda::CudaBackend& backend) {
  FreeWatch watch(backend);
  for (const char* when : {"first use", "again", "after warm_up"}) {
    std::printf("%s, %llu bytes free\n", when, static_cast<unsigned long long>(watch.now()));
    if (std::string(when) == "after warm_up") {
      const Status warm = backend.warm_up();
      watch.look(warm.ok() ? "warm_up" : "warm_up failed");
    }
    use_streams(watch, kStreamNonBlocking, 40);
    use_streams(watch, kStreamDefault, 40);
    use_copies(watch, backend);
    use_rest(watch, backend);
  }
  std::printf("end, %llu bytes free\n", static_cast<unsigned long long>(watch.now()));
}

}  // namespace granule::smoke
