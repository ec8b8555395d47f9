// Contexts, streams, events, captures, kernels and what holds a stream, as C.
#include "c_writer.hpp"

namespace granule::gpu {

void CWriter::call(const Init&) { emit("cuInit(0)"); }

void CWriter::call(const DeviceGetAttribute& c) {
  emit("cuDeviceGetAttribute(&i1, (CUdevice_attribute)" + plain(c.attribute) + ", " +
       std::to_string(c.device.value) + ")");
  beside("attribute", "%d", "i1", std::to_string(c.value));
}

void CWriter::call(const CtxSetCurrent& c) { emit("cuCtxSetCurrent(" + context(c.context) + ")"); }

void CWriter::call(const CtxPushCurrent& c) {
  emit("cuCtxPushCurrent(" + context(c.context) + ")");
}

void CWriter::call(const CtxPopCurrent&) { emit("cuCtxPopCurrent(&popped)"); }

void CWriter::call(const CtxSynchronize&) { emit("cuCtxSynchronize()"); }

void CWriter::call(const CtxCreate& c) {
  emit("cuCtxCreate_v4(" + slot(ObjectKind::kContext, c.context.value) + ", 0, " +
       std::to_string(c.flags) + ", " + std::to_string(c.device.value) + ")");
}

void CWriter::call(const CtxDestroy& c) { emit("cuCtxDestroy(" + context(c.context) + ")"); }

void CWriter::call(const DevicePrimaryCtxRetain& c) {
  emit("cuDevicePrimaryCtxRetain(" + slot(ObjectKind::kContext, c.context.value) + ", " +
       std::to_string(c.device.value) + ")");
}

void CWriter::call(const DevicePrimaryCtxRelease& c) {
  emit("cuDevicePrimaryCtxRelease(" + std::to_string(c.device.value) + ")");
}

void CWriter::call(const DevicePrimaryCtxReset& c) {
  emit("cuDevicePrimaryCtxReset(" + std::to_string(c.device.value) + ")");
}

void CWriter::call(const CloseGate& c) { emit("hold(" + stream(c.stream) + ")"); }

void CWriter::call(const OpenGate& c) { line("let_go(" + stream(c.stream) + ");"); }

void CWriter::call(const Pause& c) {
  line("usleep(" + std::to_string(c.duration_ns / 1000) + ");");
}

void CWriter::call(const StreamCreate& c) {
  emit("cuStreamCreate(" + slot(ObjectKind::kStream, c.stream.value) + ", " +
       std::to_string(c.flags) + ")");
}

void CWriter::call(const StreamDestroy& c) { emit("cuStreamDestroy(" + stream(c.stream) + ")"); }

void CWriter::call(const StreamQuery& c) { emit("cuStreamQuery(" + stream(c.stream) + ")"); }

void CWriter::call(const StreamSynchronize& c) {
  emit("cuStreamSynchronize(" + stream(c.stream) + ")");
}

void CWriter::call(const StreamWaitEvent& c) {
  emit("cuStreamWaitEvent(" + stream(c.stream) + ", " + event(c.event) + ", " +
       std::to_string(c.flags) + ")");
}

void CWriter::call(const StreamIsCapturing& c) {
  emit("cuStreamIsCapturing(" + stream(c.stream) + ", &status)");
  beside("status", "%d", "(int)status", plain(c.status));
}

void CWriter::call(const StreamBeginCapture& c) {
  emit("cuStreamBeginCapture(" + stream(c.stream) + ", (CUstreamCaptureMode)" + plain(c.mode) +
       ")");
}

void CWriter::call(const StreamEndCapture& c) {
  emit("cuStreamEndCapture(" + stream(c.stream) + ", " + slot(ObjectKind::kGraph, c.graph.value) +
       ")");
}

void CWriter::call(const GraphDestroy& c) {
  emit("cuGraphDestroy(" + value(ObjectKind::kGraph, c.graph.value) + ")");
}

void CWriter::call(const ThreadExchangeStreamCaptureMode& c) {
  line("mode = (CUstreamCaptureMode)" + plain(c.mode) + ";");
  emit("cuThreadExchangeStreamCaptureMode(&mode)");
}

void CWriter::call(const EventCreate& c) {
  emit("cuEventCreate(" + slot(ObjectKind::kEvent, c.event.value) + ", " + std::to_string(c.flags) +
       ")");
}

void CWriter::call(const EventDestroy& c) { emit("cuEventDestroy(" + event(c.event) + ")"); }

void CWriter::call(const EventRecord& c) {
  emit("cuEventRecord(" + event(c.event) + ", " + stream(c.stream) + ")");
}

void CWriter::call(const EventQuery& c) { emit("cuEventQuery(" + event(c.event) + ")"); }

void CWriter::call(const EventSynchronize& c) {
  emit("cuEventSynchronize(" + event(c.event) + ")");
}

// What the function did was recorded call by call: it stands where it ran.
void CWriter::call(const LaunchHostFunc& c) {
  emit("cuLaunchHostFunc(" + stream(c.stream) + ", host_function, 0)");
}

void CWriter::call(const LaunchKernel& c) {
  emit("kernel(" + plain(c.kind) + ", " + ptr(c.ptr) + ", " + number(c.size) + ", " +
       number(c.duration_ns) + ", " + std::to_string(c.value) + ", " + stream(c.stream) + ")");
}

void CWriter::call(const StreamWriteValue64& c) {
  emit("cuStreamWriteValue64(" + stream(c.stream) + ", " + word(c.ptr) + ", " + number(c.value) +
       ", " + std::to_string(c.flags) + ")");
}

void CWriter::call(const StreamWaitValue32& c) {
  emit("cuStreamWaitValue32(" + stream(c.stream) + ", " + word(c.ptr) + ", " +
       std::to_string(c.value) + "u, " + std::to_string(c.flags) + ")");
}

}  // namespace granule::gpu
