// Cost of a model call in a steady state, at a given number of live mapped chunks. Each item is one
// call of a mix: create, map, set access, get access, unmap, release.
#include <benchmark/benchmark.h>

#include <granule/model/model.hpp>

namespace granule::model {
namespace {

constexpr std::uint64_t kGranule = std::uint64_t{2} << 20;

MemAddressReserve reserve_call(std::uint64_t size) {
  MemAddressReserve call;
  call.size = size;
  return call;
}

class Machine {
 public:
  explicit Machine(std::uint64_t live) : backend_(big()), live_(live) {
    run(Init{});
    room_ = run(reserve_call(2 * (live + 1) * kGranule)).ptr.value;
    for (std::uint64_t i = 0; i < live; ++i) add(i);
  }

  /// Replaces chunk number `i` by a new one: six calls.
  void replace(std::uint64_t i) {
    const DevicePtr at{room_ + 2 * i * kGranule};
    run(MemUnmap{at, kGranule});
    add(i);
  }

  std::uint64_t live() const { return live_; }

 private:
  static Config big() {
    Config config;
    config.devices[0].memory = std::uint64_t{1} << 40;
    return config;
  }
  template <class C>
  C run(C call) {
    backend_.run(call);
    return call;
  }
  void add(std::uint64_t i) {
    const DevicePtr at{room_ + 2 * i * kGranule};
    MemCreate create;
    create.size = kGranule;
    const AllocationHandle handle = run(create).handle;
    run(MemMap{at, kGranule, 0, handle, 0});
    MemSetAccess grant;
    grant.ptr = at;
    grant.size = kGranule;
    grant.access.push({device_location(DeviceId{0}), Access::kReadWrite});
    run(grant);
    run(MemGetAccess{device_location(DeviceId{0}), at, Access::kNone});
    run(MemRelease{handle});
  }

  ModelBackend backend_;
  std::uint64_t live_;
  std::uint64_t room_ = 0;
};

void call_mix(benchmark::State& bench) {
  Machine machine(static_cast<std::uint64_t>(bench.range(0)));
  std::uint64_t at = 0;
  for (auto unused : bench) {
    static_cast<void>(unused);
    machine.replace(at);
    at = (at + 7919) % machine.live();
  }
  bench.SetItemsProcessed(bench.iterations() * 6);
  bench.counters["per_call"] =
      benchmark::Counter(static_cast<double>(bench.iterations()) * 6,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(call_mix)->Name("model/call_mix")->RangeMultiplier(10)->Range(100, 100000);

void reserve_and_free(benchmark::State& bench) {
  ModelBackend backend;
  Init init;
  backend.run(init);
  for (std::int64_t i = 0; i < bench.range(0); ++i) {
    MemAddressReserve reserve = reserve_call(kGranule * static_cast<std::uint64_t>(1 + i % 24));
    backend.run(reserve);
  }
  for (auto unused : bench) {
    static_cast<void>(unused);
    MemAddressReserve reserve = reserve_call(20 * kGranule);
    backend.run(reserve);
    MemAddressFree release{reserve.ptr, reserve.size};
    backend.run(release);
  }
  bench.counters["per_call"] =
      benchmark::Counter(static_cast<double>(bench.iterations()) * 2,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(reserve_and_free)
    ->Name("model/reserve_and_free")
    ->RangeMultiplier(10)
    ->Range(100, 100000);

void copy_state(benchmark::State& bench) {
  DriverState state;
  Call init = Init{};
  step(state, ThreadId{0}, init);
  for (std::int64_t i = 0; i < bench.range(0); ++i) {
    Call reserve = reserve_call(kGranule);
    step(state, ThreadId{0}, reserve);
  }
  for (auto unused : bench) {
    static_cast<void>(unused);
    DriverState copy = state;
    benchmark::DoNotOptimize(copy);
  }
}
BENCHMARK(copy_state)->Name("model/copy_state")->Arg(10)->Arg(1000);

}  // namespace
}  // namespace granule::model
