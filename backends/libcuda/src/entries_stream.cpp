// Entry points: streams, captures, host functions and stream memory operations.
#include <memory>

#include "entry.hpp"
#include "host_work.hpp"

namespace granule::libcuda {
namespace {

abi::Result create(abi::Stream* stream, unsigned flags) {
  if (const abi::Result not_ready = ready_for(stream)) return not_ready;
  StreamCreate call;
  call.flags = flags;
  const abi::Result result = submit(call);
  if (result != kOk) return result;
  *stream = pointer_of<abi::Stream>(call.stream.value);
  remember_stream(call.stream.value, flags);
  return kOk;
}

/// OK if the stream exists.
abi::Result check_stream(abi::Stream stream) {
  if (const abi::Result not_ready = ready()) return not_ready;
  StreamGetCtx call;
  call.stream = stream_of(stream);
  return ask(call);
}

/// A number of the capture that cuStreamGetCaptureInfo wants; the model has one graph a capture.
abi::Result capture_info(abi::Stream stream, int* status, unsigned long long* id) {
  if (const abi::Result not_ready = ready_for(status)) return not_ready;
  StreamIsCapturing call;
  call.stream = stream_of(stream);
  const abi::Result result = submit(call);
  if (result != kOk) return result;
  *status = static_cast<int>(call.status);
  if (id != nullptr && *status != 0) *id = 1;
  return kOk;
}

}  // namespace

GRANULE_ENTRY(cuStreamCreate)(abi::Stream* stream, unsigned flags) { return create(stream, flags); }
GRANULE_ENTRY(cuStreamCreateWithPriority)(abi::Stream* stream, unsigned flags, int) {
  return create(stream, flags);
}
GRANULE_ENTRY(cuStreamDestroy_v2)(abi::Stream stream) {
  StreamDestroy call;
  call.stream = {value_of(stream)};
  return submit(call);
}
GRANULE_ENTRY(cuStreamDestroy)(abi::Stream stream) {
  return GRANULE_CALL(cuStreamDestroy_v2)(stream);
}

GRANULE_ENTRY(cuStreamQuery)(abi::Stream stream) {
  StreamQuery call;
  call.stream = stream_of(stream);
  return submit(call);
}
GRANULE_ENTRY(cuStreamSynchronize)(abi::Stream stream) {
  StreamSynchronize call;
  call.stream = stream_of(stream);
  return submit(call);
}
GRANULE_ENTRY(cuStreamWaitEvent)(abi::Stream stream, abi::Event event, unsigned flags) {
  StreamWaitEvent call;
  call.stream = stream_of(stream);
  call.event = {value_of(event)};
  call.flags = flags;
  return submit(call);
}

GRANULE_ENTRY(cuStreamGetCtx)(abi::Stream stream, abi::Context* context) {
  if (const abi::Result not_ready = ready_for(context)) return not_ready;
  StreamGetCtx call;
  call.stream = stream_of(stream);
  return submit_for(call, context,
                    [](const auto& c) { return pointer_of<abi::Context>(c.context.value); });
}
GRANULE_ENTRY(cuStreamGetCtx_v2)(abi::Stream stream, abi::Context* context, void** green) {
  const abi::Result result = GRANULE_CALL(cuStreamGetCtx)(stream, context);
  if (result == kOk && green != nullptr) *green = nullptr;
  return result;
}
GRANULE_ENTRY(cuStreamGetId)(abi::Stream stream, unsigned long long* id) {
  if (const abi::Result not_ready = ready_for(id)) return not_ready;
  StreamGetId call;
  call.stream = stream_of(stream);
  return submit_for(call, id, [](const auto& c) { return c.id.value; });
}
GRANULE_ENTRY(cuStreamGetFlags)(abi::Stream stream, unsigned* flags) {
  if (const abi::Result not_ready = ready_for(flags)) return not_ready;
  if (const abi::Result bad = check_stream(stream)) return bad;
  *flags = stream_flags(value_of(stream));
  return kOk;
}
GRANULE_ENTRY(cuStreamGetPriority)(abi::Stream stream, int* priority) {
  if (const abi::Result not_ready = ready_for(priority)) return not_ready;
  if (const abi::Result bad = check_stream(stream)) return bad;
  *priority = 0;
  return kOk;
}
GRANULE_ENTRY(cuStreamGetDevice)(abi::Stream stream, abi::Device* device) {
  if (const abi::Result not_ready = ready_for(device)) return not_ready;
  StreamGetCtx call;
  call.stream = stream_of(stream);
  if (const abi::Result bad = ask(call)) return bad;
  CtxPushCurrent push;
  push.context = call.context;
  if (const abi::Result bad = ask(push)) return bad;
  CtxGetDevice asked;
  const abi::Result result = ask(asked);
  CtxPopCurrent pop;
  ask(pop);
  if (result == kOk) *device = asked.device.value;
  return result;
}

// ---- captures

GRANULE_ENTRY(cuStreamIsCapturing)(abi::Stream stream, int* status) {
  return capture_info(stream, status, nullptr);
}
GRANULE_ENTRY(cuStreamGetCaptureInfo)(abi::Stream stream, int* status, unsigned long long* id) {
  return capture_info(stream, status, id);
}
GRANULE_ENTRY(cuStreamGetCaptureInfo_v2)
(abi::Stream stream, int* status, unsigned long long* id, abi::Graph* graph, const void** nodes,
 std::size_t* count) {
  const abi::Result result = capture_info(stream, status, id);
  if (result != kOk || *status == 0) return result;
  if (graph != nullptr) *graph = nullptr;
  if (nodes != nullptr) *nodes = nullptr;
  if (count != nullptr) *count = 0;
  return kOk;
}
GRANULE_ENTRY(cuStreamGetCaptureInfo_v3)
(abi::Stream stream, int* status, unsigned long long* id, abi::Graph* graph, const void** nodes,
 const void** edges, std::size_t* count) {
  if (edges != nullptr) *edges = nullptr;
  return GRANULE_CALL(cuStreamGetCaptureInfo_v2)(stream, status, id, graph, nodes, count);
}
GRANULE_ENTRY(cuStreamBeginCapture_v2)(abi::Stream stream, int mode) {
  StreamBeginCapture call;
  call.stream = stream_of(stream);
  call.mode = static_cast<CaptureMode>(mode);
  return submit(call);
}
GRANULE_ENTRY(cuStreamBeginCapture)(abi::Stream stream) {
  return GRANULE_CALL(cuStreamBeginCapture_v2)(stream, 0);
}
GRANULE_ENTRY(cuStreamEndCapture)(abi::Stream stream, abi::Graph* graph) {
  if (const abi::Result not_ready = ready_for(graph)) return not_ready;
  StreamEndCapture call;
  call.stream = stream_of(stream);
  return submit_for(call, graph,
                    [](const auto& c) { return pointer_of<abi::Graph>(c.graph.value); });
}
GRANULE_ENTRY(cuGraphDestroy)(abi::Graph graph) {
  GraphDestroy call;
  call.graph = {value_of(graph)};
  return submit(call);
}
GRANULE_ENTRY(cuThreadExchangeStreamCaptureMode)(int* mode) {
  if (const abi::Result not_ready = ready_for(mode)) return not_ready;
  if (*mode < 0 || *mode > 2) return kBadValue;
  ThreadExchangeStreamCaptureMode call;
  call.mode = static_cast<CaptureMode>(*mode);
  return submit_for(call, mode, [](const auto& c) { return static_cast<int>(c.previous); });
}

// ---- host functions

GRANULE_ENTRY(cuLaunchHostFunc)
(abi::Stream stream, abi::HostFunction function, void* argument) {
  if (const abi::Result not_ready = ready()) return not_ready;
  if (function == nullptr) return kBadValue;
  return launch_host_work(stream_of(stream), [function, argument] { function(argument); });
}
GRANULE_ENTRY(cuStreamAddCallback)
(abi::Stream stream, abi::StreamCallback callback, void* argument, unsigned flags) {
  if (const abi::Result not_ready = ready()) return not_ready;
  if (callback == nullptr || flags != 0) return kBadValue;
  return launch_host_work(stream_of(stream), [=] { callback(stream, kOk, argument); });
}

// ---- stream memory operations

GRANULE_ENTRY(cuStreamWriteValue64_v2)
(abi::Stream stream, abi::DevicePtr ptr, unsigned long long value, unsigned flags) {
  StreamWriteValue64 call;
  call.stream = stream_of(stream);
  call.ptr = {ptr};
  call.value = value;
  call.flags = flags;
  return submit(call);
}
GRANULE_ENTRY(cuStreamWaitValue32_v2)
(abi::Stream stream, abi::DevicePtr ptr, std::uint32_t value, unsigned flags) {
  StreamWaitValue32 call;
  call.stream = stream_of(stream);
  call.ptr = {ptr};
  call.value = value;
  call.flags = flags;
  return submit(call);
}

}  // namespace granule::libcuda
