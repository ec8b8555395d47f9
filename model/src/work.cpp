// Stream work on memory when it runs: the check, the bytes, and the fault.
#include <cstring>

#include "calls.hpp"
#include "memory_range.hpp"
#include "streams.hpp"

namespace granule::model {
namespace {

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
                  if (state.dry) return;
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
    if (work.host != nullptr && !state.dry) {
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
  const RangeCheck check =
      check_range(state, address, work.size, device, write, false, !work.kernel);
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
    case WorkKind::kFreePlain:
      plain_free_has_run(state, work.dst, self);
      return DriverStatus::kSuccess;
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

}  // namespace granule::model
