// What a driver call costs on the simulated driver, a creating one with its call site included.
// Prints nanoseconds a call, the median of several rounds.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

#include <granule/backends/driver_abi.hpp>

extern "C" int cuGetProcAddress_v2(const char*, void**, int, unsigned long long, int*);

namespace {

namespace abi = granule::abi;

constexpr std::size_t kGranule = std::size_t{2} << 20;

abi::FunctionTable load() {
  abi::FunctionTable table;
  auto* slot = reinterpret_cast<unsigned char*>(&table);
  for (const abi::FunctionName& wanted : abi::kFunctionNames) {
    void* found = nullptr;
    int why = 0;
    cuGetProcAddress_v2(wanted.name, &found, wanted.version, 0, &why);
    std::memcpy(slot, &found, sizeof(found));
    slot += sizeof(found);
  }
  return table;
}

/// Median over rounds of the mean time of `calls` calls in each of `count` runs.
template <class Run>
void measure(const char* name, int calls, Run&& run) {
  using Clock = std::chrono::steady_clock;
  constexpr int kRounds = 15;
  constexpr int kCount = 2000;
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = Clock::now();
    for (int i = 0; i < kCount; ++i) run();
    const std::chrono::duration<double, std::nano> took = Clock::now() - start;
    rounds.push_back(took.count() / kCount / calls);
  }
  std::nth_element(rounds.begin(), rounds.begin() + kRounds / 2, rounds.end());
  std::printf("%-44s %8.0f ns a call\n", name, rounds[kRounds / 2]);
}

}  // namespace

int main() {
  const abi::FunctionTable cu = load();
  abi::Context context = nullptr;
  abi::Stream stream = nullptr;
  cu.cuInit(0);
  cu.cuDevicePrimaryCtxRetain(&context, 0);
  cu.cuCtxSetCurrent(context);
  cu.cuStreamCreate(&stream, 1);
  abi::MemAllocationProp properties;
  properties.type = 1;
  properties.location = {1, 0};
  const abi::MemAccessDesc access{{1, 0}, 3};
  abi::DevicePtr ptr = 0;
  abi::AllocationHandle handle = 0;
  cu.cuMemAddressReserve(&ptr, kGranule, 0, 0, 0);
  cu.cuMemCreate(&handle, kGranule, &properties, 0);
  cu.cuMemMap(ptr, kGranule, 0, handle, 0);
  cu.cuMemSetAccess(ptr, kGranule, &access, 1);

  std::size_t free = 0;
  std::size_t total = 0;
  measure("cuMemGetInfo", 1, [&] { cu.cuMemGetInfo(&free, &total); });
  measure("cuMemSetAccess", 1, [&] { cu.cuMemSetAccess(ptr, kGranule, &access, 1); });
  measure("cuMemsetD8Async, then a wait", 2, [&] {
    cu.cuMemsetD8Async(ptr, 1, kGranule, stream);
    cu.cuStreamSynchronize(stream);
  });
  measure("cuMemAddressReserve with site, and its free", 2, [&] {
    abi::DevicePtr made = 0;
    cu.cuMemAddressReserve(&made, kGranule, 0, 0, 0);
    cu.cuMemAddressFree(made, kGranule);
  });
  measure("cuMemCreate with site, and its release", 2, [&] {
    abi::AllocationHandle made = 0;
    cu.cuMemCreate(&made, kGranule, &properties, 0);
    cu.cuMemRelease(made);
  });
  measure("cuMemAlloc with site, and its free", 2, [&] {
    abi::DevicePtr made = 0;
    cu.cuMemAlloc(&made, kGranule);
    cu.cuMemFree(made);
  });
  cu.cuMemUnmap(ptr, kGranule);
  cu.cuMemRelease(handle);
  cu.cuMemAddressFree(ptr, kGranule);
  return 0;
}
