// B2: growing 32 buffers from 2 MiB to 256 MiB, against the bare driver calls of the same case.
// B3: churn of 20,000 operations.
#include <random>

#include "gpu.hpp"

namespace granule::bench {
namespace {

constexpr std::uint64_t kFirst = 2 * kMiB;
constexpr std::uint64_t kLast = 256 * kMiB;

std::vector<std::uint64_t> sizes(bool doubling) {
  std::vector<std::uint64_t> list;
  for (std::uint64_t size = doubling ? 2 * kFirst : 32 * kMiB; size <= kLast;
       size = doubling ? 2 * size : size + 32 * kMiB)
    list.push_back(size);
  return list;
}

void grow_all(Gpu& gpu, const std::string& name, const VmmOptions& options, bool doubling,
              bool capacity) {
  auto resource = must(VirtualMemoryResource::create(*gpu.backend, options));
  const std::uint64_t free_before = gpu.free_bytes();
  AllocateOptions at_first;
  if (capacity) at_first.capacity = kLast;
  std::vector<Buffer> buffers;
  for (int i = 0; i < 32; ++i)
    buffers.push_back(must(resource.allocate(gpu.stream, kFirst, at_first)));
  Samples grows;
  int moved = 0;
  for (const std::uint64_t size : sizes(doubling))
    for (Buffer& buffer : buffers)
      time_once(grows, [&] {
        if (must(buffer.resize(size)).placement == Placement::kMoved) ++moved;
      });
  const double held = static_cast<double>(free_before - gpu.free_bytes());
  grows.print(name);
  std::printf("    memory over live %.3f, moved %d of %zu, bytes copied 0\n",
              held / static_cast<double>(32 * kLast), moved, grows.size());
}

/// The calls that a grow within reserved room makes, alone: create, map, access.
void floor_in_place(Gpu& gpu, bool doubling) {
  Backend& backend = *gpu.backend;
  struct Range {
    DevicePtr at;
    std::uint64_t size;
  };
  std::vector<Range> ranges;
  std::vector<std::pair<AllocationHandle, AddressRange>> made;
  const auto commit = [&](std::uint64_t at, std::uint64_t size) {
    MemCreate create;
    create.size = size;
    const AllocationHandle handle = call(backend, create).handle;
    call(backend, MemMap{DevicePtr{at}, size, 0, handle, 0});
    AccessEntries access;
    access.push({device_location({0}), Access::kReadWrite});
    call(backend, MemSetAccess{DevicePtr{at}, size, access});
    made.push_back({handle, {at, size}});
  };
  for (int i = 0; i < 32; ++i) {
    MemAddressReserve reserve;
    reserve.size = kLast;
    ranges.push_back({call(backend, reserve).ptr, kFirst});
    commit(ranges.back().at.value, kFirst);
  }
  Samples grows;
  for (const std::uint64_t size : sizes(doubling))
    for (Range& range : ranges) {
      time_once(grows, [&] { commit(range.at.value + range.size, size - range.size); });
      range.size = size;
    }
  grows.print("floor: bare create, map, access");
  for (const auto& [handle, place] : made) {
    call(backend, MemUnmap{DevicePtr{place.base}, place.size});
    call(backend, MemRelease{handle});
  }
  for (const Range& range : ranges) call(backend, MemAddressFree{range.at, kLast});
}

struct Operation {
  std::uint64_t size = 0;  // 0: free
  std::size_t index = 0;   // free: which of the live ones; the last takes its place
};

/// The trace of B3: a plain function of the generator mt19937_64 seeded with 42.
std::vector<Operation> churn_trace(std::uint64_t* live_peak) {
  constexpr std::uint64_t kBound = 8 * kGiB;
  std::mt19937_64 random(42);
  std::vector<Operation> trace;
  std::vector<std::uint64_t> live;
  std::uint64_t bytes = 0;
  while (trace.size() < 20'000) {
    bool allocate = live.empty() || (bytes < kBound && random() % 2 == 1);
    std::uint64_t size = 0;
    if (allocate) {
      size = 1 + (random() >> 38);  // uniform in 1 B..64 MiB
      if (bytes + size > kBound) allocate = false;
    }
    if (allocate) {
      live.push_back(size);
      bytes += size;
      *live_peak = std::max(*live_peak, bytes);
      trace.push_back({size, 0});
      continue;
    }
    const std::size_t index = static_cast<std::size_t>(random() % live.size());
    bytes -= live[index];
    live[index] = live.back();
    live.pop_back();
    trace.push_back({0, index});
  }
  return trace;
}

void churn(Gpu& gpu, const std::vector<Operation>& trace, std::uint64_t live_peak,
           std::uint64_t cache, std::uint32_t fit) {
  VmmOptions options;
  options.cache = cache;
  options.fit_percent = fit;
  auto resource = must(VirtualMemoryResource::create(*gpu.backend, options));
  std::uint64_t peak = 0;
  std::uint64_t took = 0;
  for (int round = 0; round < 2; ++round) {  // the first warms the cache
    std::vector<Buffer> live;
    live.reserve(4096);
    std::uint64_t n = 0;
    took = 0;
    for (const Operation& op : trace) {
      const std::uint64_t start = now_ns();
      if (op.size != 0) {
        live.push_back(must(resource.allocate(gpu.stream, op.size)));
      } else {
        std::swap(live[op.index], live.back());
        must(live.back().close());
        live.pop_back();
      }
      took += now_ns() - start;
      if (++n % 16 == 0) peak = std::max(peak, resource.statistics().charged);
    }
  }
  std::printf(
      "cache %-8s fit %3u%% %8.0f ns an operation, memory %.2f GiB = %.3f of the live peak\n",
      size_text(cache).c_str(), fit, static_cast<double>(took) / static_cast<double>(trace.size()),
      static_cast<double>(peak) / static_cast<double>(kGiB),
      static_cast<double>(peak) / static_cast<double>(live_peak));
  std::fflush(stdout);
}

}  // namespace

void run_growth(Gpu& gpu) {
  for (const bool doubling : {true, false}) {
    Samples::head(doubling ? "B2 32 buffers 2 to 256 MiB by doubling"
                           : "B2 32 buffers 2 to 256 MiB in steps of 32 MiB");
    floor_in_place(gpu, doubling);
    grow_all(gpu, "exact, with capacity", {}, doubling, true);
    grow_all(gpu, "exact, no capacity", {}, doubling, false);
    for (const std::uint64_t ahead : {32 * kMiB, 128 * kMiB, 512 * kMiB}) {
      VmmOptions options;
      options.commit_ahead = ahead;
      grow_all(gpu, "commit ahead " + size_text(ahead) + ", with capacity", options, doubling,
               true);
    }
    VmmOptions by_worker;
    by_worker.commit_ahead = 128 * kMiB;
    by_worker.worker = true;
    grow_all(gpu, "a worker commits ahead 128 MiB, with capacity", by_worker, doubling, true);
    for (const std::uint32_t slack : {25u, 100u}) {
      VmmOptions options;
      options.slack_percent = slack;
      grow_all(gpu, "slack " + std::to_string(slack) + "%, with capacity", options, doubling, true);
    }
  }
}

void run_churn(Gpu& gpu) {
  std::uint64_t live_peak = 0;
  const std::vector<Operation> trace = churn_trace(&live_peak);
  std::printf("\nB3 churn of %zu operations, live peak %.2f GiB\n", trace.size(),
              static_cast<double>(live_peak) / static_cast<double>(kGiB));
  for (const std::uint64_t cache : {kGiB / 2, kGiB, 2 * kGiB, 4 * kGiB})
    for (const std::uint32_t fit : {0u, 10u, 25u, 50u}) churn(gpu, trace, live_peak, cache, fit);
}

}  // namespace granule::bench
