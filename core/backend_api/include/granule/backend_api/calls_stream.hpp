// Streams, events, captures, host functions, launches and stream memory operations.
// Driver contract, sections 16, 22 and 23.
#pragma once

#include <granule/backend_api/field.hpp>
#include <granule/backend_api/types.hpp>

namespace granule {

struct StreamCreate {
  static constexpr CallInfo info{"cuStreamCreate", CallFamily::kStream};
  std::uint32_t flags = kStreamDefault;
  StreamHandle stream;  // out
  static constexpr auto fields() {
    using C = StreamCreate;
    return std::tuple{in("flags", &C::flags), makes("stream", &C::stream, ObjectKind::kStream)};
  }
};

struct StreamDestroy {
  static constexpr CallInfo info{"cuStreamDestroy", CallFamily::kStream};
  StreamHandle stream;
  static constexpr auto fields() {
    return std::tuple{drops("stream", &StreamDestroy::stream, ObjectKind::kStream)};
  }
};

struct StreamQuery {
  static constexpr CallInfo info{"cuStreamQuery", CallFamily::kStream};
  StreamHandle stream;
  static constexpr auto fields() { return std::tuple{on_stream("stream", &StreamQuery::stream)}; }
};

struct StreamSynchronize {
  static constexpr CallInfo info{"cuStreamSynchronize", CallFamily::kStream};
  StreamHandle stream;
  static constexpr auto fields() {
    return std::tuple{on_stream("stream", &StreamSynchronize::stream)};
  }
};

struct StreamWaitEvent {
  static constexpr CallInfo info{"cuStreamWaitEvent", CallFamily::kStream};
  StreamHandle stream;
  EventHandle event;
  std::uint32_t flags = 0;
  static constexpr auto fields() {
    using C = StreamWaitEvent;
    return std::tuple{on_stream("stream", &C::stream), uses("event", &C::event, ObjectKind::kEvent),
                      in("flags", &C::flags)};
  }
};

/// The context a stream belongs to; for a default stream the current context.
struct StreamGetCtx {
  static constexpr CallInfo info{"cuStreamGetCtx", CallFamily::kStream};
  StreamHandle stream;
  ContextHandle context;  // out
  static constexpr auto fields() {
    using C = StreamGetCtx;
    return std::tuple{on_stream("stream", &C::stream), out("context", &C::context)};
  }
};

struct StreamGetId {
  static constexpr CallInfo info{"cuStreamGetId", CallFamily::kStream, 12000};
  StreamHandle stream;
  StreamId id;  // out
  static constexpr auto fields() {
    using C = StreamGetId;
    return std::tuple{on_stream("stream", &C::stream), out("id", &C::id)};
  }
};

struct StreamIsCapturing {
  static constexpr CallInfo info{"cuStreamIsCapturing", CallFamily::kStream};
  StreamHandle stream;
  CaptureStatus status = CaptureStatus::kNone;  // out
  static constexpr auto fields() {
    using C = StreamIsCapturing;
    return std::tuple{on_stream("stream", &C::stream), out("status", &C::status)};
  }
};

struct StreamBeginCapture {
  static constexpr CallInfo info{"cuStreamBeginCapture", CallFamily::kStream};
  StreamHandle stream;
  CaptureMode mode = CaptureMode::kGlobal;
  static constexpr auto fields() {
    using C = StreamBeginCapture;
    return std::tuple{on_stream("stream", &C::stream), in("mode", &C::mode)};
  }
};

struct StreamEndCapture {
  static constexpr CallInfo info{"cuStreamEndCapture", CallFamily::kStream};
  StreamHandle stream;
  GraphHandle graph;  // out
  static constexpr auto fields() {
    using C = StreamEndCapture;
    return std::tuple{on_stream("stream", &C::stream),
                      makes("graph", &C::graph, ObjectKind::kGraph)};
  }
};

struct GraphDestroy {
  static constexpr CallInfo info{"cuGraphDestroy", CallFamily::kStream};
  GraphHandle graph;
  static constexpr auto fields() {
    return std::tuple{drops("graph", &GraphDestroy::graph, ObjectKind::kGraph)};
  }
};

/// Sets the calling thread's capture mode and returns the one it had.
struct ThreadExchangeStreamCaptureMode {
  static constexpr CallInfo info{"cuThreadExchangeStreamCaptureMode", CallFamily::kStream};
  CaptureMode mode = CaptureMode::kGlobal;
  CaptureMode previous = CaptureMode::kGlobal;  // out
  static constexpr auto fields() {
    using C = ThreadExchangeStreamCaptureMode;
    return std::tuple{in("mode", &C::mode), out("previous", &C::previous)};
  }
};

struct EventCreate {
  static constexpr CallInfo info{"cuEventCreate", CallFamily::kStream};
  std::uint32_t flags = 2;  // CU_EVENT_DISABLE_TIMING
  EventHandle event;        // out
  static constexpr auto fields() {
    using C = EventCreate;
    return std::tuple{in("flags", &C::flags), makes("event", &C::event, ObjectKind::kEvent)};
  }
};

struct EventDestroy {
  static constexpr CallInfo info{"cuEventDestroy", CallFamily::kStream};
  EventHandle event;
  static constexpr auto fields() {
    return std::tuple{drops("event", &EventDestroy::event, ObjectKind::kEvent)};
  }
};

struct EventRecord {
  static constexpr CallInfo info{"cuEventRecord", CallFamily::kStream};
  EventHandle event;
  StreamHandle stream;
  static constexpr auto fields() {
    using C = EventRecord;
    return std::tuple{uses("event", &C::event, ObjectKind::kEvent), on_stream("on", &C::stream)};
  }
};

struct EventQuery {
  static constexpr CallInfo info{"cuEventQuery", CallFamily::kStream};
  EventHandle event;
  static constexpr auto fields() {
    return std::tuple{uses("event", &EventQuery::event, ObjectKind::kEvent)};
  }
};

struct EventSynchronize {
  static constexpr CallInfo info{"cuEventSynchronize", CallFamily::kStream};
  EventHandle event;
  static constexpr auto fields() {
    return std::tuple{uses("event", &EventSynchronize::event, ObjectKind::kEvent)};
  }
};

/// Calls function(argument) on a driver thread, in stream order. The function may make only the
/// few driver calls that section 16 lists.
struct LaunchHostFunc {
  static constexpr CallInfo info{"cuLaunchHostFunc", CallFamily::kStream};
  StreamHandle stream;
  void (*function)(void*) = nullptr;
  void* argument = nullptr;
  static constexpr auto fields() {
    using C = LaunchHostFunc;
    return std::tuple{on_stream("on", &C::stream), in("function", &C::function),
                      in("argument", &C::argument)};
  }
};

/// What the kernels of the interface do. A backend brings its own code for them.
enum class KernelKind : std::uint8_t {
  kSpin,   // runs for duration_ns, touches nothing
  kWrite,  // writes `value` to every byte
  kRead,   // reads every byte; what it found is put under `landing`, if that is not 0
  kTouch,  // reads every byte and writes the same back
};

struct LaunchKernel {
  static constexpr CallInfo info{"cuLaunchKernel", CallFamily::kStream};
  KernelKind kind = KernelKind::kSpin;
  std::uint8_t value = 0;
  DevicePtr ptr;
  std::uint64_t size = 0;         // bytes
  std::uint64_t duration_ns = 0;  // at least this long (0: as long as it takes)
  StreamHandle stream;
  std::uint64_t landing = 0;
  static constexpr auto fields() {
    using C = LaunchKernel;
    return std::tuple{in("kind", &C::kind),       in("value", &C::value),
                      address("ptr", &C::ptr),    bytes("size", &C::size),
                      in("for", &C::duration_ns), on_stream("on", &C::stream),
                      in("landing", &C::landing)};
  }
};

struct StreamWriteValue64 {
  static constexpr CallInfo info{"cuStreamWriteValue64", CallFamily::kStream};
  StreamHandle stream;
  DevicePtr ptr;
  std::uint64_t value = 0;
  std::uint32_t flags = 0;
  static constexpr auto fields() {
    using C = StreamWriteValue64;
    return std::tuple{on_stream("on", &C::stream), address("ptr", &C::ptr), in("value", &C::value),
                      in("flags", &C::flags)};
  }
};

struct StreamWaitValue32 {
  static constexpr CallInfo info{"cuStreamWaitValue32", CallFamily::kStream};
  StreamHandle stream;
  DevicePtr ptr;
  std::uint32_t value = 0;
  std::uint32_t flags = 0;  // 0: GEQ, 1: EQ, 2: AND
  static constexpr auto fields() {
    using C = StreamWaitValue32;
    return std::tuple{on_stream("on", &C::stream), address("ptr", &C::ptr), in("value", &C::value),
                      in("flags", &C::flags)};
  }
};

}  // namespace granule
