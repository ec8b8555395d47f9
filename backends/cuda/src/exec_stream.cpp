// Streams, events, captures, host functions, kernels and stream memory operations.
#include "impl.hpp"

namespace granule::cuda {

DriverStatus CudaBackend::Impl::call(StreamCreate& c) {
  abi::Stream stream = to_abi(c.stream);
  const DriverStatus status = invoke(driver->cuStreamCreate, &stream, c.flags);
  c.stream.value = to_value(stream);
  return status;
}

DriverStatus CudaBackend::Impl::call(StreamDestroy& c) {
  const DriverStatus status = invoke(driver->cuStreamDestroy, to_abi(c.stream));
  if (status == DriverStatus::kSuccess) gates.stream_gone(c.stream);
  return status;
}

DriverStatus CudaBackend::Impl::call(StreamQuery& c) {
  return invoke(driver->cuStreamQuery, to_abi(c.stream));
}

DriverStatus CudaBackend::Impl::call(StreamSynchronize& c) {
  return invoke(driver->cuStreamSynchronize, to_abi(c.stream));
}

DriverStatus CudaBackend::Impl::call(StreamWaitEvent& c) {
  return invoke(driver->cuStreamWaitEvent, to_abi(c.stream), to_abi(c.event), c.flags);
}

DriverStatus CudaBackend::Impl::call(StreamGetCtx& c) {
  abi::Context context = to_abi(c.context);
  const DriverStatus status = invoke(driver->cuStreamGetCtx, to_abi(c.stream), &context);
  c.context.value = to_value(context);
  return status;
}

DriverStatus CudaBackend::Impl::call(StreamGetId& c) {
  unsigned long long id = c.id.value;
  const DriverStatus status = invoke(driver->cuStreamGetId, to_abi(c.stream), &id);
  c.id.value = id;
  return status;
}

DriverStatus CudaBackend::Impl::call(StreamIsCapturing& c) {
  int capturing = static_cast<int>(c.status);
  const DriverStatus status = invoke(driver->cuStreamIsCapturing, to_abi(c.stream), &capturing);
  c.status = static_cast<CaptureStatus>(capturing);
  return status;
}

DriverStatus CudaBackend::Impl::call(StreamBeginCapture& c) {
  return invoke(driver->cuStreamBeginCapture, to_abi(c.stream), static_cast<int>(c.mode));
}

DriverStatus CudaBackend::Impl::call(StreamEndCapture& c) {
  abi::Graph graph = to_abi(c.graph);
  const DriverStatus status = invoke(driver->cuStreamEndCapture, to_abi(c.stream), &graph);
  c.graph.value = to_value(graph);
  return status;
}

DriverStatus CudaBackend::Impl::call(GraphDestroy& c) {
  return invoke(driver->cuGraphDestroy, to_abi(c.graph));
}

DriverStatus CudaBackend::Impl::call(ThreadExchangeStreamCaptureMode& c) {
  int mode = static_cast<int>(c.mode);
  const DriverStatus status = invoke(driver->cuThreadExchangeStreamCaptureMode, &mode);
  c.previous = static_cast<CaptureMode>(mode);
  return status;
}

DriverStatus CudaBackend::Impl::call(EventCreate& c) {
  abi::Event event = to_abi(c.event);
  const DriverStatus status = invoke(driver->cuEventCreate, &event, c.flags);
  c.event.value = to_value(event);
  return status;
}

DriverStatus CudaBackend::Impl::call(EventDestroy& c) {
  return invoke(driver->cuEventDestroy, to_abi(c.event));
}

DriverStatus CudaBackend::Impl::call(EventRecord& c) {
  return invoke(driver->cuEventRecord, to_abi(c.event), to_abi(c.stream));
}

DriverStatus CudaBackend::Impl::call(EventQuery& c) {
  return invoke(driver->cuEventQuery, to_abi(c.event));
}

DriverStatus CudaBackend::Impl::call(EventSynchronize& c) {
  return invoke(driver->cuEventSynchronize, to_abi(c.event));
}

DriverStatus CudaBackend::Impl::call(LaunchHostFunc& c) {
  return invoke(driver->cuLaunchHostFunc, to_abi(c.stream), c.function, c.argument);
}

DriverStatus CudaBackend::Impl::launch(const LaunchKernel& c, ContextState& state,
                                       std::uint32_t* results) {
  abi::Function function = nullptr;
  const DriverStatus status = state.function(c.kind, &function);
  if (status != DriverStatus::kSuccess) return status;
  const PushedContext pushed(driver, state.context());
  if (pushed.status() != DriverStatus::kSuccess) return pushed.status();
  std::uint64_t ptr = c.ptr.value;
  std::uint64_t size = c.size;
  std::uint64_t duration = c.duration_ns;
  std::uint32_t value = c.value;
  std::uint64_t out = to_value(results);
  void* parameters[] = {&ptr, &size, &duration, &value, &out};
  const unsigned threads = c.kind == KernelKind::kSpin ? 1 : kThreadsPerBlock;
  return invoke(driver->cuLaunchKernel, function, blocks_for(c.kind, c.size), 1u, 1u, threads, 1u,
                1u, 0u, to_abi(c.stream), static_cast<void**>(parameters),
                static_cast<void**>(nullptr));
}

DriverStatus CudaBackend::Impl::call(LaunchKernel& c) {
  std::shared_ptr<ContextState> state;
  DriverStatus status = contexts.state_of(to_abi(c.stream), &state);
  if (status != DriverStatus::kSuccess) return status;
  if (c.kind != KernelKind::kRead || c.landing == 0) return launch(c, *state, nullptr);
  Arrival arrival;
  status = landings.prepare(state, blocks_for(c.kind, c.size), 0, &arrival);
  if (status != DriverStatus::kSuccess) return status;
  status = launch(c, *state, arrival.cell);
  if (status == DriverStatus::kSuccess) {
    landings.expect(c.landing, arrival);
  } else {
    Landings::cancel(arrival);
  }
  return status;
}

DriverStatus CudaBackend::Impl::mark_arrival(const Arrival& arrival, StreamHandle stream) {
  if (driver->cuStreamWriteValue32 != nullptr) {
    return invoke(driver->cuStreamWriteValue32, to_abi(stream),
                  abi::DevicePtr{to_value(arrival.cell)}, std::uint32_t{1}, 0u);
  }
  LaunchKernel write;
  write.kind = KernelKind::kWrite;
  write.value = 1;
  write.ptr.value = to_value(arrival.cell);
  write.size = 1;
  write.stream = stream;
  return launch(write, *arrival.state, nullptr);
}

DriverStatus CudaBackend::Impl::call(StreamWriteValue64& c) {
  return invoke(driver->cuStreamWriteValue64, to_abi(c.stream), to_abi(c.ptr), c.value, c.flags);
}

DriverStatus CudaBackend::Impl::call(StreamWaitValue32& c) {
  return invoke(driver->cuStreamWaitValue32, to_abi(c.stream), to_abi(c.ptr), c.value, c.flags);
}

}  // namespace granule::cuda
