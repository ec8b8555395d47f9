// Copies, fills and kernels: the check at the call, and what happens when the work runs.
#include <algorithm>
#include <cstring>

#include "calls.hpp"
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

bool usable(State& state, const Target& target, DevicePtr ptr, std::uint64_t size, bool write) {
  if (size == 0) return true;
  const std::uint64_t capture = state.streams[target.stream].capture;
  if (capture != 0 && state.pools.is_captured({ptr.value, size}, capture)) return true;
  return check_range(state, ptr.value, size, target.device, write, true).ok();
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
  if (!usable(state, target, ptr, size, true)) return DriverStatus::kInvalidValue;
  if (size == 0) return DriverStatus::kSuccess;
  Work work = fill_work(ptr, size, std::move(bytes));
  return early ? submit_early(state, target, std::move(work))
               : submit(state, target, std::move(work));
}

Bytes bytes_of(const HostSource& source, std::uint64_t size) {
  if (source.data == nullptr || source.uniform) return Bytes::uniform(source.pattern);
  return Bytes::literal(source.data, size);
}

/// A copy that the host waits for, with all that the null stream waits for.
DriverStatus submit_and_wait(State& state, const Target& target, Work work) {
  const Device& device = state.devices[static_cast<std::size_t>(target.device)];
  if (device.pending_fault == DriverStatus::kSuccess &&
      !blocking_streams_can_run(state, target.stream)) {
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

DriverStatus copy_on_device(State& state, ThreadId thread, DevicePtr dst, DevicePtr src,
                            std::uint64_t size, StreamHandle stream, bool early) {
  const Target target = target_of(state, thread, stream);
  if (target.status != DriverStatus::kSuccess) return target.status;
  if (!usable(state, target, dst, size, true) || !usable(state, target, src, size, false)) {
    return DriverStatus::kInvalidValue;
  }
  if (size == 0) return DriverStatus::kSuccess;
  Work work;
  work.kind = WorkKind::kCopy;
  work.dst = dst.value;
  work.src = src.value;
  work.size = size;
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

// ---- when it runs -------------------------------------------------------------------------------

/// The bytes that a reader of one object finds, with those of unordered writers unknown.
template <class Visit>
void read_bytes(State& state, std::uint64_t stream, const Work& work, const Segment& segment,
                std::uint64_t begin, std::uint64_t end, Visit&& visit) {
  if (segment.real != nullptr) {
    visit(begin, end, Bytes::literal(segment.real + (begin - segment.base), end - begin));
    return;
  }
  const std::uint64_t shift = segment.base - segment.offset;
  segment.contents->visit(
      begin - shift, end - shift,
      [&](std::uint64_t from, std::uint64_t to, const Bytes& bytes, const StreamPoint& writer) {
        visit(from + shift, to + shift,
              is_before(state, writer, stream, work) ? bytes : Bytes::unknown());
      });
}

void write_bytes(State& state, std::uint64_t stream, const Work& work, StreamPoint self,
                 std::uint64_t address, std::uint64_t size, const Bytes& bytes) {
  const std::int32_t device = state.streams[stream].device;
  visit_range(state, address, size, device,
              [&](const Segment& segment, std::uint64_t begin, std::uint64_t end) {
                const Bytes part = bytes.from(begin - address);
                if (segment.real != nullptr) {
                  store(part, end - begin, segment.real + (begin - segment.base));
                  return;
                }
                const std::uint64_t shift = segment.base - segment.offset;
                std::vector<std::pair<std::uint64_t, std::uint64_t>> contested;
                segment.contents->visit(begin - shift, end - shift,
                                        [&](std::uint64_t from, std::uint64_t to, const Bytes&,
                                            const StreamPoint& writer) {
                                          if (!is_before(state, writer, stream, work)) {
                                            contested.emplace_back(from, to);
                                          }
                                        });
                segment.contents->write(begin - shift, end - shift, part, self);
                for (const auto& [from, to] : contested) {
                  segment.contents->write(from, to, Bytes::unknown(), self);
                }
              });
}

struct ReadPiece {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  Bytes bytes;
};

std::vector<ReadPiece> read_all(State& state, std::uint64_t stream, const Work& work,
                                std::uint64_t address, std::uint64_t size) {
  std::vector<ReadPiece> pieces;
  const std::int32_t device = state.streams[stream].device;
  visit_range(state, address, size, device,
              [&](const Segment& segment, std::uint64_t begin, std::uint64_t end) {
                read_bytes(state, stream, work, segment, begin, end,
                           [&](std::uint64_t from, std::uint64_t to, const Bytes& bytes) {
                             pieces.push_back({from, to, bytes});
                           });
              });
  return pieces;
}

void finish_read(State& state, std::uint64_t stream, const Work& work) {
  if (work.landing == 0 && work.host == nullptr) return;
  Summary summary;
  for (const ReadPiece& piece : read_all(state, stream, work, work.src, work.size)) {
    summary.add(piece.bytes, piece.end - piece.begin);
    if (work.host != nullptr) {
      store(piece.bytes, piece.end - piece.begin,
            static_cast<std::uint8_t*>(work.host) + (piece.begin - work.src));
    }
  }
  if (work.landing != 0) state.landings[work.landing] = summary.result();
}

void finish_touch(State& state, std::uint64_t stream, const Work& work, StreamPoint self) {
  for (const ReadPiece& piece : read_all(state, stream, work, work.dst, work.size)) {
    write_bytes(state, stream, work, self, piece.begin, piece.end - piece.begin, piece.bytes);
  }
}

void finish_copy(State& state, std::uint64_t stream, const Work& work, StreamPoint self) {
  for (const ReadPiece& piece : read_all(state, stream, work, work.src, work.size)) {
    write_bytes(state, stream, work, self, work.dst + (piece.begin - work.src),
                piece.end - piece.begin, piece.bytes);
  }
}

/// Judges the range that work is about to use; reports and returns the fault.
DriverStatus judge(State& state, std::uint64_t stream, const Work& work, std::uint64_t address,
                   bool write) {
  const std::int32_t device = state.streams[stream].device;
  const RangeCheck check = check_range(state, address, work.size, device, write, false);
  const DriverStatus fault =
      work.to_host ? DriverStatus::kLaunchFailed : DriverStatus::kIllegalAddress;
  if (check.ok() && !work.cut) return DriverStatus::kSuccess;
  const std::string what = work.kernel ? "a kernel" : work.to_host ? "a copy" : "a copy or fill";
  if (check.ok()) {
    violate(state, ViolationKind::kUnmappedUse,
            what + " at " + hex(address) + " whose memory or access was taken while it could run");
    return fault;
  }
  if (!check.mapped) {
    violate(state, ViolationKind::kUnmappedUse,
            what + " ran at " + hex(check.bad) + ", where nothing is mapped");
    if (check.plain_overshoot && work.kernel) return DriverStatus::kSuccess;
    return fault;
  }
  violate(
      state, ViolationKind::kNoAccess,
      what + " ran at " + hex(check.bad) + " without the access to " + (write ? "write" : "read"));
  return fault;
}

void write_word(State& state, std::uint64_t stream, const Work& work, StreamPoint self) {
  state.host_words[work.dst & ~std::uint64_t{7}] = work.value;
  std::uint8_t bytes[8];
  for (unsigned i = 0; i < 8; ++i) bytes[i] = static_cast<std::uint8_t>(work.value >> (8 * i));
  write_bytes(state, stream, work, self, work.dst, 8, Bytes::literal(bytes, 8));
}

}  // namespace

DriverStatus perform(State& state, std::uint64_t stream, const Work& work, StreamPoint self) {
  DriverStatus fault = DriverStatus::kSuccess;
  switch (work.kind) {
    case WorkKind::kFill:
      fault = judge(state, stream, work, work.dst, true);
      if (fault == DriverStatus::kSuccess) {
        write_bytes(state, stream, work, self, work.dst, work.size, work.bytes);
      }
      return fault;
    case WorkKind::kRead:
      fault = judge(state, stream, work, work.src, false);
      if (fault == DriverStatus::kSuccess) finish_read(state, stream, work);
      return fault;
    case WorkKind::kTouch:
      fault = judge(state, stream, work, work.dst, true);
      if (fault == DriverStatus::kSuccess) finish_touch(state, stream, work, self);
      return fault;
    case WorkKind::kCopy:
      fault = judge(state, stream, work, work.src, false);
      if (fault == DriverStatus::kSuccess) fault = judge(state, stream, work, work.dst, true);
      if (fault == DriverStatus::kSuccess) finish_copy(state, stream, work, self);
      return fault;
    case WorkKind::kWriteValue:
      fault = judge(state, stream, work, work.dst, true);
      if (fault == DriverStatus::kSuccess) write_word(state, stream, work, self);
      return fault == DriverStatus::kSuccess ? fault : DriverStatus::kLaunchFailed;
    default:
      return DriverStatus::kSuccess;
  }
}

bool value_is_there(const State& state, const Work& work) {
  std::uint64_t word = 0;
  const auto pinned = state.pinned.upper_bound(work.dst);
  const bool below = pinned != state.pinned.begin();
  const auto holder = below ? std::prev(pinned) : state.pinned.end();
  if (holder != state.pinned.end() && holder->second.real != nullptr &&
      work.dst - holder->first + 4 <= holder->second.size) {
    std::uint32_t half = 0;
    std::memcpy(&half, holder->second.real.get() + (work.dst - holder->first), 4);
    word = half;
  } else {
    const auto it = state.host_words.find(work.dst & ~std::uint64_t{7});
    if (it != state.host_words.end()) word = it->second;
    if (work.dst % 8 == 4) word >>= 32;
  }
  const auto now = static_cast<std::uint32_t>(word);
  const auto wanted = static_cast<std::uint32_t>(work.value);
  switch (work.flags) {
    case 0:
      return static_cast<std::int32_t>(now - wanted) >= 0;
    case 1:
      return now == wanted;
    case 2:
      return (now & wanted) != 0;
    default:
      return ~(now | wanted) != 0;
  }
}

namespace {
bool overlaps(const Work& work, std::uint64_t base, std::uint64_t size) {
  const auto meets = [&](std::uint64_t at) {
    return at != 0 && at < base + size && base < at + work.size;
  };
  return touches_memory(work) && (meets(work.dst) || meets(work.src));
}
}  // namespace

void cut_pending_work(State& state, std::uint64_t base, std::uint64_t size, std::int32_t device) {
  for (const std::uint64_t number : state.busy_streams) {
    Stream& stream = state.streams[number];
    if (device >= 0 && stream.device != device) continue;
    for (std::size_t i = 0; i < stream.queue.size(); ++i) {
      if (!overlaps(stream.queue[i], base, size)) continue;
      if (!can_run(state, {number, stream.ran + i + 1})) break;
      stream.queue[i].cut = true;
    }
  }
}

bool has_unordered_work(const State& state, std::uint64_t stream, std::uint64_t base,
                        std::uint64_t size) {
  for (const std::uint64_t number : state.busy_streams) {
    if (number == stream) continue;
    const Stream& busy = state.streams[number];
    for (std::size_t i = 0; i < busy.queue.size(); ++i) {
      if (!overlaps(busy.queue[i], base, size)) continue;
      if (stream == kNone || !is_ordered_behind(state, stream, {number, busy.ran + i + 1})) {
        return true;
      }
    }
  }
  return false;
}

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
  if (!usable(state, target, call.dst, call.size, true)) return DriverStatus::kInvalidValue;
  if (call.size == 0) return DriverStatus::kSuccess;
  return submit_and_wait(state, target,
                         fill_work(call.dst, call.size, bytes_of(call.src, call.size)));
}

DriverStatus run_call(State& state, ThreadId thread, MemcpyHtoDAsync& call) {
  if (call.size == 0) return fill(state, thread, call.dst, 0, Bytes{}, call.stream, false);
  return fill(state, thread, call.dst, call.size, bytes_of(call.src, call.size), call.stream,
              false);
}

DriverStatus run_call(State& state, ThreadId thread, MemcpyDtoH& call) {
  const Target target = target_of(state, thread, {});
  if (target.status != DriverStatus::kSuccess) return target.status;
  if (!usable(state, target, call.src, call.size, false)) return DriverStatus::kInvalidValue;
  if (call.size == 0) return DriverStatus::kSuccess;
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
  if (!usable(state, target, call.src, call.size, false)) return DriverStatus::kInvalidValue;
  if (call.size == 0) {
    if (call.landing != 0) state.landings[call.landing] = ByteSummary{};
    return DriverStatus::kSuccess;
  }
  const bool waits = !target.captured && !is_pinned(state, call.dst, call.size);
  if (waits && !can_run(state, tail(state, target.stream))) return DriverStatus::kWouldBlock;
  Work work;
  work.kind = WorkKind::kRead;
  work.to_host = true;
  work.src = call.src.value;
  work.size = call.size;
  work.host = call.dst;
  work.landing = call.landing;
  if (call.landing != 0) state.landings.erase(call.landing);
  submit(state, target, std::move(work));
  if (!waits) return DriverStatus::kSuccess;
  return wait_for_point(state, target.device, tail(state, target.stream));
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
