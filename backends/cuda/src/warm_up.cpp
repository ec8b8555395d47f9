// Everything once, before a baseline of free memory is taken.
#include <array>
#include <utility>

#include "impl.hpp"

namespace granule::cuda {
namespace {

constexpr std::uint64_t kBytes = 4096;
constexpr std::size_t kStreams = 32;
constexpr std::uint64_t kWarmLanding = ~std::uint64_t{0};

// Makes calls until one fails; remembers which.
class Steps {
 public:
  explicit Steps(CudaBackend::Impl& impl) : impl_(impl) {}
  template <class C>
  C& operator()(C& call) {
    if (!error_.call.empty()) return call;
    Call any(call);
    const DriverStatus status = impl_.execute(any);
    call = *std::get_if<C>(&any);
    if (status != DriverStatus::kSuccess && status != DriverStatus::kUnavailable) {
      error_.driver = status;
      error_.call = C::info.name;
      error_.detail = "while warming up the device";
    }
    return call;
  }
  template <class C>
  C operator()(C&& call) {
    C copy = call;
    return (*this)(copy);
  }
  Status status() const { return error_.call.empty() ? Status() : Status(error_); }

 private:
  CudaBackend::Impl& impl_;
  Error error_;
};

// Streams take device memory that stays with the context, so more than a program needs at once.
void run_streams(Steps& step) {
  std::array<StreamHandle, kStreams> streams;
  for (std::size_t i = 0; i < kStreams; ++i) {
    StreamCreate make;
    make.flags = i % 2 == 0 ? kStreamNonBlocking : kStreamDefault;
    streams[i] = step(make).stream;
    LaunchKernel spin;
    spin.stream = streams[i];
    step(spin);
    step(StreamSynchronize{streams[i]});
  }
  for (const StreamHandle stream : streams) step(StreamDestroy{stream});
}

void run_kernels(Steps& step, DevicePtr ptr, StreamHandle stream) {
  for (const KernelKind kind :
       {KernelKind::kSpin, KernelKind::kWrite, KernelKind::kTouch, KernelKind::kRead}) {
    LaunchKernel launch;
    launch.kind = kind;
    launch.ptr = ptr;
    launch.size = kBytes;
    launch.duration_ns = 1000;
    launch.stream = stream;
    launch.landing = kind == KernelKind::kRead ? kWarmLanding : 0;
    step(launch);
  }
}

void run_copies(Steps& step, DevicePtr ptr, std::uint64_t host, StreamHandle stream) {
  step(MemsetD8{ptr, 1, kBytes});
  step(MemsetD8Async{ptr, 1, kBytes, stream});
  step(MemsetD32{ptr, 1, kBytes});
  step(MemsetD32Async{ptr, 1, kBytes, stream});
  step(MemcpyHtoD{ptr, {}, kBytes});
  step(MemcpyHtoDAsync{ptr, {}, kBytes, stream});
  step(MemcpyDtoD{ptr, {ptr.value + kBytes}, kBytes});
  step(MemcpyDtoDAsync{ptr, {ptr.value + kBytes}, kBytes, stream});
  step(MemcpyDtoH{nullptr, ptr, kBytes, {}});
  step(MemcpyDtoHAsync{nullptr, ptr, kBytes, stream, kWarmLanding});
  step(StreamWriteValue64{stream, {host}, 1, 0});
  step(StreamWaitValue32{stream, {host}, 1, 0});
  step(CloseGate{stream});
  step(OpenGate{stream});
  step(LaunchHostFunc{stream, [](void*) {}, nullptr});
}

void run_events(Steps& step, StreamHandle stream) {
  EventCreate make;
  const EventHandle event = step(make).event;
  step(EventRecord{event, stream});
  step(StreamWaitEvent{stream, event, 0});
  step(EventSynchronize{event});
  step(EventQuery{event});
  step(StreamSynchronize{stream});
  step(StreamQuery{stream});
  step(StreamBeginCapture{stream, CaptureMode::kThreadLocal});
  StreamEndCapture end{stream, {}};
  step(GraphDestroy{step(end).graph});
  step(EventDestroy{event});
}

void run_mapping(Steps& step, DeviceId device) {
  AllocationProperties properties;
  properties.location = device_location(device);
  MemGetAllocationGranularity unit;
  unit.properties = properties;
  const std::uint64_t size = step(unit).granularity;
  MemAddressReserve reserve;
  reserve.size = size;
  const DevicePtr base = step(reserve).ptr;
  MemCreate create;
  create.size = size;
  create.properties = properties;
  const AllocationHandle handle = step(create).handle;
  step(MemMap{base, size, 0, handle, 0});
  MemSetAccess access{base, size, {}};
  access.access.push({device_location(device), Access::kReadWrite});
  step(access);
  step(MemsetD8{base, 0, size});
  step(CtxSynchronize{});
  step(MemUnmap{base, size});
  step(MemRelease{handle});
  step(MemAddressFree{base, size});
}

void run_pool(Steps& step, DeviceId device, StreamHandle stream) {
  DeviceGetAttribute pools;
  pools.attribute = DeviceAttribute::kMemoryPoolsSupported;
  pools.device = device;
  if (step(pools).value == 0) return;
  MemAllocAsync alloc;
  alloc.size = kBytes;
  alloc.stream = stream;
  step(MemFreeAsync{step(alloc).ptr, stream});
  step(StreamSynchronize{stream});
  MemPoolCreate create;
  create.properties.location = device_location(device);
  const PoolHandle pool = step(create).pool;
  MemAllocFromPoolAsync from;
  from.size = kBytes;
  from.pool = pool;
  from.stream = stream;
  step(MemFreeAsync{step(from).ptr, stream});
  step(StreamSynchronize{stream});
  step(MemPoolDestroy{pool});
}

}  // namespace

Status CudaBackend::warm_up() {
  Steps step(*impl_);
  DeviceGetCount count;
  step(count);
  for (std::int32_t i = 0; i < count.count && step.status().ok(); ++i) {
    DevicePrimaryCtxRetain retain;
    retain.device = {i};
    step(retain);
    if (!step.status().ok()) break;
    impl_->warmed.push_back(i);
    const PushedContext pushed(impl_->driver, to_abi(retain.context));
    StreamCreate make_stream;
    make_stream.flags = kStreamNonBlocking;
    const StreamHandle stream = step(make_stream).stream;
    MemAlloc alloc;
    alloc.size = 2 * kBytes;
    const DevicePtr ptr = step(alloc).ptr;
    MemAllocHost pin;
    pin.size = kBytes;
    const std::uint64_t host = step(pin).host;
    run_streams(step);
    run_kernels(step, ptr, stream);
    run_copies(step, ptr, host, stream);
    step(CtxSynchronize{});
    step(TakeLanding{kWarmLanding, {}});
    run_events(step, stream);
    run_mapping(step, {i});
    run_pool(step, {i}, stream);
    step(CtxSynchronize{});
    step(MemFree{ptr});
    step(MemFreeHost{host});
    step(StreamDestroy{stream});
    step(MemGetInfo{});
  }
  return step.status();
}

}  // namespace granule::cuda
