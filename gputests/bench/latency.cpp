// B5: what each driver call costs by size and threads, and whether mapping work on one thread
// disturbs launches on another.
#include <atomic>
#include <thread>

#include "gpu.hpp"

namespace granule::bench {
namespace {

struct Prices {
  Samples reserve, create, map, access, change, get_access, retain, release_one, unmap, unmap_bare,
      release, address_free;
};

AccessEntries entries(Access access) {
  AccessEntries list;
  list.push({device_location({0}), access});
  return list;
}

template <class C>
C timed(Backend& backend, Samples& samples, C c) {
  time_once(samples, [&] { must(backend.run(c), C::info.name); });
  return c;
}

void one_life(Backend& backend, std::uint64_t size, Prices& prices) {
  MemCreate create;
  create.size = size;
  MemAddressReserve reserve;
  reserve.size = size;
  const DevicePtr at = timed(backend, prices.reserve, reserve).ptr;
  const AllocationHandle handle = timed(backend, prices.create, create).handle;
  MemMap map{at, size, 0, handle, 0};
  call(backend, map);
  timed(backend, prices.unmap_bare, MemUnmap{at, size});
  timed(backend, prices.map, map);
  timed(backend, prices.access, MemSetAccess{at, size, entries(Access::kReadWrite)});
  timed(backend, prices.change, MemSetAccess{at, size, entries(Access::kRead)});
  timed(backend, prices.get_access, MemGetAccess{device_location({0}), at, Access::kNone});
  timed(backend, prices.retain, MemRetainAllocationHandle{at, {}});
  timed(backend, prices.release_one, MemRelease{handle});
  timed(backend, prices.unmap, MemUnmap{at, size});
  timed(backend, prices.release, MemRelease{handle});
  timed(backend, prices.address_free, MemAddressFree{at, size});
}

void print_prices(Backend& backend) {
  for (const std::uint64_t size : {2 * kMiB, 32 * kMiB, 512 * kMiB, 4 * kGiB}) {
    const int rounds = size >= kGiB ? 40 : 200;
    Prices first;
    one_life(backend, size, first);
    Prices p;
    for (int i = 0; i < rounds; ++i) one_life(backend, size, p);
    Samples::head(
        ("driver calls, " + size_text(size) + ", one thread (cold first calls apart)").c_str());
    first.create.print("cuMemCreate, first of the size");
    first.access.print("cuMemSetAccess, first of the size");
    p.reserve.print("cuMemAddressReserve");
    p.create.print("cuMemCreate");
    p.map.print("cuMemMap");
    p.access.print("cuMemSetAccess, first");
    p.change.print("cuMemSetAccess, read-write to read");
    p.get_access.print("cuMemGetAccess");
    p.retain.print("cuMemRetainAllocationHandle");
    p.release_one.print("cuMemRelease, not the last");
    p.unmap.print("cuMemUnmap");
    p.unmap_bare.print("cuMemUnmap, access never set");
    p.release.print("cuMemRelease, last");
    p.address_free.print("cuMemAddressFree");
  }
}

/// create, reserve, map, access, unmap, release, free of `size` bytes.
void cycle(Backend& backend, std::uint64_t size, bool keep_memory, AllocationHandle kept) {
  AllocationHandle handle = kept;
  if (!keep_memory) {
    MemCreate create;
    create.size = size;
    handle = call(backend, create).handle;
  }
  MemAddressReserve reserve;
  reserve.size = size;
  const DevicePtr at = call(backend, reserve).ptr;
  call(backend, MemMap{at, size, 0, handle, 0});
  call(backend, MemSetAccess{at, size, entries(Access::kReadWrite)});
  call(backend, MemUnmap{at, size});
  if (!keep_memory) call(backend, MemRelease{handle});
  call(backend, MemAddressFree{at, size});
}

void print_threads(Backend& backend) {
  std::printf("\ncycles of create, map, access, unmap, release of 2 MiB a second, by threads\n");
  for (const int threads : {1, 2, 4, 8}) {
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> done{0};
    std::vector<std::thread> workers;
    const std::uint64_t start = now_ns();
    for (int t = 0; t < threads; ++t)
      workers.emplace_back([&] {
        while (!stop.load(std::memory_order_relaxed)) {
          cycle(backend, 2 * kMiB, false, {});
          done.fetch_add(1, std::memory_order_relaxed);
        }
      });
    std::this_thread::sleep_for(std::chrono::seconds(1));
    stop = true;
    for (std::thread& worker : workers) worker.join();
    const double seconds = static_cast<double>(now_ns() - start) / 1e9;
    std::printf("%d threads %10.0f\n", threads, static_cast<double>(done.load()) / seconds);
  }
}

/// Launches and waits on the main thread while `disturb` runs over and over on another.
template <class F>
void launches(Gpu& gpu, const std::string& name, F&& disturb) {
  std::atomic<bool> stop{false};
  const auto context = call(*gpu.backend, CtxGetCurrent{}).context;
  std::thread other([&] {
    call(*gpu.backend, CtxSetCurrent{context});
    while (!stop.load(std::memory_order_relaxed)) disturb();
  });
  Samples launch;
  Samples both;
  LaunchKernel kernel;
  kernel.stream = gpu.raw;
  const std::uint64_t end = now_ns() + 1'500'000'000;
  while (now_ns() < end) {
    const std::uint64_t start = now_ns();
    call(*gpu.backend, kernel);
    launch.add(now_ns() - start);
    call(*gpu.backend, StreamSynchronize{gpu.raw});
    both.add(now_ns() - start);
  }
  stop = true;
  other.join();
  launch.print("launch beside " + name);
  both.print("launch and wait beside " + name);
}

void print_disturbance(Gpu& gpu) {
  Backend& backend = *gpu.backend;
  Samples::head("a kernel launch on one thread while another works");
  launches(gpu, "nothing", [] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); });
  for (const std::uint64_t size : {2 * kMiB, 32 * kMiB, 512 * kMiB}) {
    MemCreate create;
    create.size = size;
    const AllocationHandle kept = call(backend, create).handle;
    launches(gpu, "map, access, unmap of " + size_text(size),
             [&] { cycle(backend, size, true, kept); });
    call(backend, MemRelease{kept});
    launches(gpu, "create to release of " + size_text(size),
             [&] { cycle(backend, size, false, {}); });
  }
  launches(gpu, "cuMemAlloc and cuMemFree of 2 MiB", [&] {
    call(backend, MemFree{call(backend, MemAlloc{2 * kMiB, {}}).ptr});
  });
}

}  // namespace

void run_latency(Gpu& gpu) {
  print_prices(*gpu.backend);
  print_threads(*gpu.backend);
  print_disturbance(gpu);
}

}  // namespace granule::bench
