// Copies, fills, kernels and stream memory operations: the calls and their checks.
#include <algorithm>

#include "calls.hpp"
#include "host_reach.hpp"
#include "memory_range.hpp"
#include "streams.hpp"

namespace granule::model {
namespace {

/// A stream that work can be put on, or a status; or part of a capture.
struct Target {
  DriverStatus status = DriverStatus::kSuccess;
  std::uint64_t stream = kNone;
  std::int32_t device = 0;
  bool captured = false;
  bool in_context = true;  // the calling thread has one
};

Target target_of(State& state, ThreadId thread, StreamHandle handle) {
  Target target;
  const ResolvedStream found = resolve_stream(state, thread, handle);
  target.status = found.status;
  if (target.status != DriverStatus::kSuccess) return target;
  target.status = check_null_stream(state, found.number);
  target.stream = found.number;
  target.device = state.streams[found.number].device;
  target.captured = is_capturing(state, found.number);
  target.in_context = current_context(state, thread) != 0;
  return target;
}

/// Puts checked work on its stream, or into its capture.
DriverStatus submit(State& state, const Target& target, Work work) {
  if (target.captured) {
    add_capture_node(state, target.stream);
  } else {
    enqueue(state, target.stream, std::move(work));
  }
  return DriverStatus::kSuccess;
}

/// The forms without Async that return early run at once where nothing is in their way, as they
/// were seen to; the worst driver lets them wait.
DriverStatus submit_early(State& state, const Target& target, Work work) {
  const bool idle =
      state.config.verdict != Verdict::kAdversarial && blocking_streams_idle(state, target.stream);
  enqueue(state, target.stream, std::move(work));
  if (idle) {
    const StreamPoint last = tail(state, target.stream);
    run_to(state, last);
    observe(state, last, false);
  }
  return DriverStatus::kSuccess;
}

enum class By : std::uint8_t { kFill, kCopy };

/// Measured: without a current context a copy reaches no further than one mapping (fills do).
bool is_out_of_reach(State& state, const Target& target, DevicePtr ptr, std::uint64_t size) {
  if (target.in_context) return false;
  const auto mapping = mapping_at(state, ptr.value);
  return mapping != state.mappings.end() &&
         mapping->first + mapping->second.size < ptr.value + size;
}

bool usable(State& state, const Target& target, DevicePtr ptr, std::uint64_t size, bool write,
            By by) {
  if (size == 0) return true;
  const std::uint64_t capture = state.streams[target.stream].capture;
  if (capture != 0 && state.pools.is_captured({ptr.value, size}, capture)) return true;
  if (by == By::kCopy && is_out_of_reach(state, target, ptr, size)) return false;
  return check_range(state, ptr.value, size, target.device, write, true, by == By::kCopy).ok();
}

Work fill_work(DevicePtr ptr, std::uint64_t size, Bytes bytes) {
  Work work;
  work.kind = WorkKind::kFill;
  work.dst = ptr.value;
  work.size = size;
  work.bytes = std::move(bytes);
  return work;
}

DriverStatus fill(State& state, ThreadId thread, DevicePtr ptr, std::uint64_t size, Bytes bytes,
                  StreamHandle stream, bool early) {
  const Target target = target_of(state, thread, stream);
  if (target.status != DriverStatus::kSuccess) return target.status;
  // Measured: where it becomes a node of a capture, nobody looks at the range.
  if (!target.captured && !usable(state, target, ptr, size, true, By::kFill))
    return DriverStatus::kInvalidValue;
  if (size == 0) return DriverStatus::kSuccess;
  Work work = fill_work(ptr, size, std::move(bytes));
  return early ? submit_early(state, target, std::move(work))
               : submit(state, target, std::move(work));
}

/// Copies from pageable memory up to this size are taken at the call.
constexpr std::uint64_t kStagedAtOnce = std::uint64_t{64} << 10;

Bytes bytes_of(const HostSource& source, std::uint64_t size) {
  if (source.data == nullptr || source.uniform) return Bytes::uniform(source.pattern);
  return Bytes::literal(source.data, size);
}

/// A copy that the host waits for, with all that the null stream waits for.
DriverStatus submit_and_wait(State& state, const Target& target, Work work) {
  const Device& device = state.devices[static_cast<std::size_t>(target.device)];
  if (device.pending_fault == DriverStatus::kSuccess && !next_can_run(state, target.stream)) {
    return DriverStatus::kWouldBlock;
  }
  enqueue(state, target.stream, std::move(work));
  const StreamPoint last = tail(state, target.stream);
  run_to(state, last);
  state.now = std::max(state.now, state.streams[target.stream].last_finish);
  if (device.pending_fault != DriverStatus::kSuccess) {
    make_sticky(state, target.device);
    return device.sticky;
  }
  observe(state, last, false);
  return DriverStatus::kSuccess;
}

/// A copy that the host waits for, with what is before it on its own stream: which can run.
DriverStatus submit_and_wait_for_stream(State& state, const Target& target, Work work) {
  submit(state, target, std::move(work));
  return wait_for_point(state, target.device, tail(state, target.stream));
}

DriverStatus copy_on_device(State& state, ThreadId thread, DevicePtr dst, DevicePtr src,
                            std::uint64_t size, StreamHandle stream, bool early) {
  const Target target = target_of(state, thread, stream);
  if (target.status != DriverStatus::kSuccess) return target.status;
  if (!usable(state, target, dst, size, true, By::kCopy))
    return refuse_copy(state, dst, size, true);
  if (!usable(state, target, src, size, false, By::kCopy))
    return refuse_copy(state, src, size, false);
  if (size == 0) return DriverStatus::kSuccess;
  Work work;
  work.kind = WorkKind::kCopy;
  work.dst = dst.value;
  work.src = src.value;
  work.size = size;
  // Measured: the CPU copies from host memory to host memory, whoever has access, and waits first.
  if (!target.captured && is_all_of_host(state, src, size) && is_all_of_host(state, dst, size)) {
    if (host_reach(state, dst, size, Access::kRead) != HostReach::kNone &&
        host_reach(state, src, size, Access::kRead) != HostReach::kNone &&
        (dies_of_copy(state, dst, size, true) || dies_of_copy(state, src, size, false)))
      return DriverStatus::kUndefined;
    if (early) return submit_and_wait(state, target, std::move(work));
    if (!next_can_run(state, target.stream)) return DriverStatus::kWouldBlock;
    return submit_and_wait_for_stream(state, target, std::move(work));
  }
  return early ? submit_early(state, target, std::move(work))
               : submit(state, target, std::move(work));
}

bool is_pinned(const State& state, const void* host, std::uint64_t size) {
  if (host == nullptr) return true;
  const auto address = reinterpret_cast<std::uint64_t>(host);
  auto it = state.pinned.upper_bound(address);
  if (it == state.pinned.begin()) return false;
  --it;
  return address - it->first < it->second.size && size <= it->second.size - (address - it->first);
}

}  // namespace

// ---- the calls ----------------------------------------------------------------------------------

DriverStatus run_call(State& state, ThreadId thread, MemsetD8& call) {
  return fill(state, thread, call.ptr, call.size, Bytes::uniform(call.value), {}, true);
}
DriverStatus run_call(State& state, ThreadId thread, MemsetD8Async& call) {
  return fill(state, thread, call.ptr, call.size, Bytes::uniform(call.value), call.stream, false);
}
DriverStatus run_call(State& state, ThreadId thread, MemsetD32& call) {
  if (call.size % 4 != 0 || call.ptr.value % 4 != 0) return DriverStatus::kInvalidValue;
  return fill(state, thread, call.ptr, call.size, Bytes::words(call.value), {}, true);
}
DriverStatus run_call(State& state, ThreadId thread, MemsetD32Async& call) {
  if (call.size % 4 != 0 || call.ptr.value % 4 != 0) return DriverStatus::kInvalidValue;
  return fill(state, thread, call.ptr, call.size, Bytes::words(call.value), call.stream, false);
}

DriverStatus run_call(State& state, ThreadId thread, MemcpyHtoD& call) {
  const Target target = target_of(state, thread, {});
  if (target.status != DriverStatus::kSuccess) return target.status;
  if (!usable(state, target, call.dst, call.size, true, By::kCopy))
    return refuse_copy(state, call.dst, call.size, true);
  if (call.size == 0) return DriverStatus::kSuccess;
  if (!is_pinned(state, call.src.data, call.size) && dies_of_copy(state, call.dst, call.size, true))
    return DriverStatus::kUndefined;
  return submit_and_wait(state, target,
                         fill_work(call.dst, call.size, bytes_of(call.src, call.size)));
}

DriverStatus run_call(State& state, ThreadId thread, MemcpyHtoDAsync& call) {
  // The source is read only once the destination has been found usable.
  const Target target = target_of(state, thread, call.stream);
  if (target.status != DriverStatus::kSuccess) return target.status;
  if (!usable(state, target, call.dst, call.size, true, By::kCopy))
    return refuse_copy(state, call.dst, call.size, true);
  if (call.size == 0) return DriverStatus::kSuccess;
  const bool pinned = is_pinned(state, call.src.data, call.size);
  if (!target.captured && !pinned && dies_of_copy(state, call.dst, call.size, true))
    return DriverStatus::kUndefined;
  // Measured: what is too large to be staged at the call (two such copies fit, but not of 4 MiB)
  // waits for room until the stream gets there.
  const bool staged = call.size <= kStagedAtOnce || pinned;
  if (!target.captured && !staged && !next_can_run(state, target.stream))
    return DriverStatus::kWouldBlock;
  return submit(state, target, fill_work(call.dst, call.size, bytes_of(call.src, call.size)));
}

DriverStatus run_call(State& state, ThreadId thread, MemcpyDtoH& call) {
  const Target target = target_of(state, thread, {});
  if (target.status != DriverStatus::kSuccess) return target.status;
  if (!usable(state, target, call.src, call.size, false, By::kCopy))
    return refuse_copy(state, call.src, call.size, false);
  if (call.size == 0) return DriverStatus::kSuccess;
  if (!is_pinned(state, call.dst, call.size) && dies_of_copy(state, call.src, call.size, false))
    return DriverStatus::kUndefined;
  Work work;
  work.kind = WorkKind::kRead;
  work.to_host = true;
  work.src = call.src.value;
  work.size = call.size;
  work.host = call.dst;
  work.landing = kNone;
  const DriverStatus done = submit_and_wait(state, target, std::move(work));
  if (done != DriverStatus::kSuccess) return done;
  const auto landed = state.landings.find(kNone);
  if (landed != state.landings.end()) {
    call.found = landed->second;
    state.landings.erase(landed);
  }
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId thread, MemcpyDtoHAsync& call) {
  const Target target = target_of(state, thread, call.stream);
  if (target.status != DriverStatus::kSuccess) return target.status;
  if (!usable(state, target, call.src, call.size, false, By::kCopy))
    return refuse_copy(state, call.src, call.size, false);
  if (call.size == 0) {
    if (call.landing != 0) state.landings[call.landing] = ByteSummary{};
    return DriverStatus::kSuccess;
  }
  const bool waits = !target.captured && !is_pinned(state, call.dst, call.size);
  if (waits && dies_of_copy(state, call.src, call.size, false)) return DriverStatus::kUndefined;
  if (waits && !next_can_run(state, target.stream)) return DriverStatus::kWouldBlock;
  Work work;
  work.kind = WorkKind::kRead;
  work.to_host = true;
  work.src = call.src.value;
  work.size = call.size;
  work.host = call.dst;
  work.landing = call.landing;
  if (call.landing != 0) state.landings.erase(call.landing);
  return waits ? submit_and_wait_for_stream(state, target, std::move(work))
               : submit(state, target, std::move(work));
}

DriverStatus run_call(State& state, ThreadId thread, MemcpyDtoD& call) {
  return copy_on_device(state, thread, call.dst, call.src, call.size, {}, true);
}
DriverStatus run_call(State& state, ThreadId thread, MemcpyDtoDAsync& call) {
  return copy_on_device(state, thread, call.dst, call.src, call.size, call.stream, false);
}

DriverStatus run_call(State& state, ThreadId thread, Memcpy& call) {
  const Target target = target_of(state, thread, {});
  if (target.status != DriverStatus::kSuccess) return target.status;
  if (call.size == 0) return DriverStatus::kSuccess;
  for (const DevicePtr ptr : {call.dst, call.src}) {
    if (segment_at(state, ptr.value, target.device, true).kind != MemoryKind::kNothing) continue;
    violate(state, ViolationKind::kUnmappedUse,
            "cuMemcpy at " + hex(ptr.value) + ", where nothing is mapped: taken for host memory");
    return DriverStatus::kUndefined;
  }
  return copy_on_device(state, thread, call.dst, call.src, call.size, {}, true);
}

DriverStatus run_call(State& state, ThreadId thread, LaunchKernel& call) {
  const Target target = target_of(state, thread, call.stream);
  if (target.status != DriverStatus::kSuccess) return target.status;
  Work work;
  work.kernel = true;
  work.duration = call.duration_ns;
  work.size = call.size;
  work.landing = call.landing;
  switch (call.kind) {
    case KernelKind::kSpin:
      work.kind = WorkKind::kSpin;
      break;
    case KernelKind::kWrite:
      work.kind = WorkKind::kFill;
      work.dst = call.ptr.value;
      work.bytes = Bytes::uniform(call.value);
      break;
    case KernelKind::kRead:
      work.kind = WorkKind::kRead;
      work.src = call.ptr.value;
      break;
    case KernelKind::kTouch:
      work.kind = WorkKind::kTouch;
      work.dst = call.ptr.value;
      break;
    default:
      return DriverStatus::kInvalidValue;
  }
  if (work.kind != WorkKind::kSpin && work.size == 0) work.kind = WorkKind::kSpin;
  // Pool memory stays backed after its free: a kernel on a freed block is seen here only.
  if (work.kind != WorkKind::kSpin && state.pools.window_at(call.ptr) != nullptr &&
      !check_range(state, call.ptr.value, call.size, target.device, false, true).mapped) {
    violate(
        state, ViolationKind::kUnmappedUse,
        "a kernel launched on pool memory at " + hex(call.ptr.value) + " that is not allocated");
  }
  if (call.landing != 0) state.landings.erase(call.landing);
  return submit(state, target, std::move(work));
}

namespace {
/// Stream memory operations take pinned, plain and mapped memory, never a pool's.
bool takes_value(State& state, const Target& target, DevicePtr ptr, std::uint64_t size) {
  if (ptr.value == 0 || ptr.value % size != 0) return false;
  const Segment segment = segment_at(state, ptr.value, target.device, true);
  return segment.kind != MemoryKind::kNothing && segment.kind != MemoryKind::kPool &&
         segment.access != 0 && ptr.value + size <= segment.base + segment.size;
}
}  // namespace

DriverStatus run_call(State& state, ThreadId thread, StreamWriteValue64& call) {
  const Target target = target_of(state, thread, call.stream);
  if (target.status != DriverStatus::kSuccess) return target.status;
  if (call.flags != 0 || !takes_value(state, target, call.ptr, 8)) {
    return DriverStatus::kInvalidValue;
  }
  Work work;
  work.kind = WorkKind::kWriteValue;
  work.dst = call.ptr.value;
  work.size = 8;
  work.value = call.value;
  return submit(state, target, std::move(work));
}

DriverStatus run_call(State& state, ThreadId thread, StreamWaitValue32& call) {
  constexpr std::uint32_t kFlush = 1u << 30;
  const Target target = target_of(state, thread, call.stream);
  if (target.status != DriverStatus::kSuccess) return target.status;
  if ((call.flags & ~kFlush) > 3 || !takes_value(state, target, call.ptr, 4)) {
    return DriverStatus::kInvalidValue;
  }
  if ((call.flags & kFlush) != 0) return DriverStatus::kNotSupported;
  Work work;
  work.kind = WorkKind::kWaitValue;
  work.dst = call.ptr.value;
  work.size = 4;
  work.value = call.value;
  work.flags = call.flags;
  return submit(state, target, std::move(work));
}

DriverStatus run_call(State& state, ThreadId, TakeLanding& call) {
  const auto it = state.landings.find(call.landing);
  if (it == state.landings.end()) return DriverStatus::kNotReady;
  call.found = it->second;
  state.landings.erase(it);
  return DriverStatus::kSuccess;
}

}  // namespace granule::model
