// B1: allocate and close one size again and again; deferred closes with work in flight; suspend.
#include <optional>
#include <thread>

#include "gpu.hpp"

namespace granule::bench {
namespace {

constexpr int kInner = 64;  // pairs a sample, so that the clock's own price does not count

template <class F>
void pairs(const std::string& name, F&& pair) {
  Samples samples;
  for (int warm = 0; warm < 100; ++warm) pair();
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t start = now_ns();
    for (int k = 0; k < kInner; ++k) pair();
    samples.add((now_ns() - start) / kInner);
  }
  samples.print(name);
}

void touch(Gpu& gpu, DevicePtr ptr, std::uint64_t size) {
  LaunchKernel kernel;
  kernel.kind = KernelKind::kTouch;
  kernel.ptr = ptr;
  kernel.size = size;
  kernel.stream = gpu.raw;
  call(*gpu.backend, kernel);
}

void spin_for_50_ms(Gpu& gpu) {
  LaunchKernel spin;
  spin.duration_ns = 50'000'000;
  spin.stream = gpu.raw;
  call(*gpu.backend, spin);
}

/// The driver calls of a close that does not block, with work in flight, alone: is the stream being
/// captured, a marker behind its work, and in relaxed mode a look at the oldest marker.
void floor_deferred(Gpu& gpu) {
  Backend& backend = *gpu.backend;
  std::vector<EventHandle> events;
  for (int i = 0; i < 250; ++i) events.push_back(call(backend, EventCreate{}).event);
  const DevicePtr touched = call(backend, MemAlloc{2 * kMiB, {}}).ptr;
  Samples closes;
  for (int round = 0; round < 40; ++round) {
    for (std::size_t i = 0; i < events.size(); ++i) touch(gpu, touched, 2 * kMiB);
    spin_for_50_ms(gpu);
    for (const EventHandle event : events)
      time_once(closes, [&] {
        call(backend, StreamIsCapturing{gpu.raw, CaptureStatus::kNone});
        const CaptureMode before =
            call(backend, ThreadExchangeStreamCaptureMode{CaptureMode::kRelaxed, {}}).previous;
        EventQuery look{events.front()};
        (void)backend.run(look);  // not ready, as a rule
        call(backend, ThreadExchangeStreamCaptureMode{before, {}});
        call(backend, EventRecord{event, gpu.raw});
      });
    call(backend, StreamSynchronize{gpu.raw});
  }
  for (const EventHandle event : events) call(backend, EventDestroy{event});
  call(backend, MemFree{touched});
  Samples::head("deferred close with 50 ms of work in flight (10,000 frees of 2 MiB)");
  closes.print("floor: the same driver calls, bare");
}

// A close that does not block, with a kernel of 50 ms in flight, and 10,000 frees that never fault.
void deferred(Gpu& gpu, bool worker) {
  Backend& backend = *gpu.backend;
  VmmOptions options;
  options.free = FreePolicy::kDeferred;
  options.worker = worker;
  std::optional<VirtualMemoryResource> resource(
      must(VirtualMemoryResource::create(backend, options)));
  const std::uint64_t free_before = gpu.free_bytes();
  Samples first_closes;
  Samples closes;
  Samples collects;
  for (int round = 0; round <= 40; ++round) {
    std::vector<Buffer> buffers;
    for (int i = 0; i < 250; ++i) buffers.push_back(must(resource->allocate(gpu.asked, 2 * kMiB)));
    for (Buffer& buffer : buffers) touch(gpu, buffer.ptr(), buffer.size());
    spin_for_50_ms(gpu);
    // The first closes make the events that later ones use again.
    Samples& these = round == 0 ? first_closes : closes;
    for (Buffer& buffer : buffers) time_once(these, [&] { must(buffer.close()); });
    buffers.clear();
    call(backend, StreamSynchronize{gpu.raw});
    while (resource->statistics().retired != 0) {
      if (worker) {
        std::this_thread::yield();
      } else {
        time_once(collects, [&] { resource->collect(200'000); });
      }
    }
  }
  resource.reset();  // joins the worker, whatever it was in the middle of
  first_closes.print(worker ? "first closes, a worker gives back" : "first closes");
  closes.print(worker ? "close, a worker gives back" : "close");
  if (!worker) collects.print("collect with a budget of 200 us");
  std::printf("bytes left over: %lld\n",
              static_cast<long long>(free_before) - static_cast<long long>(gpu.free_bytes()));
}

}  // namespace

void run_deferred(Gpu& gpu) {
  floor_deferred(gpu);
  deferred(gpu, false);
  deferred(gpu, true);
}

void run_warm(Gpu& gpu) {
  Backend& backend = *gpu.backend;
  for (const std::uint64_t size : {2 * kMiB, 64 * kMiB, 512 * kMiB}) {
    Samples::head(("B1 warm pair of " + size_text(size)).c_str());
    VmmOptions options;
    options.cache = kGiB;
    auto resource = must(VirtualMemoryResource::create(backend, options));
    const auto pair = [&](const Stream& stream) {
      Buffer a = must(resource.allocate(stream, size));
      must(a.close());
    };
    pairs("granule, stream bound as never capturing", [&] { pair(gpu.stream); });
    pairs("granule, with capture queries", [&] { pair(gpu.asked); });
    const auto pool = call(backend, MemPoolCreate{});
    call(backend, MemPoolSetAttribute{pool.pool, PoolAttribute::kReleaseThreshold, UINT64_MAX});
    pairs("driver: cuMemAllocFromPoolAsync, cuMemFreeAsync", [&] {
      const auto block = call(backend, MemAllocFromPoolAsync{size, pool.pool, gpu.raw, {}});
      call(backend, MemFreeAsync{block.ptr, gpu.raw});
    });
    call(backend, StreamSynchronize{gpu.raw});
    call(backend, MemPoolDestroy{pool.pool});
    pairs("driver: cuStreamIsCapturing alone", [&] {
      call(backend, StreamIsCapturing{gpu.raw, CaptureStatus::kNone});
    });
  }
}

// B7: physical memory back and forth at the same addresses.
void run_suspend(Gpu& gpu) {
  Backend& backend = *gpu.backend;
  auto resource = must(VirtualMemoryResource::create(backend, {}));
  const std::uint64_t free_before = gpu.free_bytes();
  std::vector<Buffer> buffers;
  std::vector<Buffer*> set;
  for (int i = 0; i < 64; ++i) buffers.push_back(must(resource.allocate(gpu.stream, 64 * kMiB)));
  for (Buffer& buffer : buffers) set.push_back(&buffer);
  Samples down;
  Samples up;
  for (int i = 0; i < 100; ++i) {
    time_once(down, [&] { must(resource.suspend(set, false)); });
    time_once(up, [&] { must(resource.resume(set)); });
  }
  Samples::head("B7 suspend and resume, 64 buffers of 64 MiB, 100 cycles");
  down.print("suspend all");
  up.print("resume all");
  buffers.clear();
  std::printf("bytes left over: %lld\n",
              static_cast<long long>(free_before) - static_cast<long long>(gpu.free_bytes()));
}

}  // namespace granule::bench
