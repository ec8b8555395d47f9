// Options of a virtual memory resource and their validation, which needs no GPU.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include <granule/backend_api/backend.hpp>
#include <granule/backend_api/export.hpp>
#include <granule/backend_api/result.hpp>

namespace granule {

/// An optional property of memory: not asked for, asked for and dropped if refused, or insisted on.
enum class Wish : std::uint8_t { kNo, kIfPossible, kRequired };

/// When a close gives the memory back.
enum class FreePolicy : std::uint8_t {
  kSynchronize,  // the close waits for the buffer's streams
  kDeferred,     // the close returns; the range goes when its streams have passed a marker
};

/// Kind of allocation. Managed memory cannot be mapped by these calls on current drivers.
enum class AllocationType : std::uint8_t { kPinned, kManaged };

inline constexpr std::uint64_t kNoLimit = UINT64_MAX;

/// Options of a VirtualMemoryResource. A plain value; sizes in bytes.
struct VmmOptions {
  /// Where the physical memory lies. kHostNumaCurrent is resolved to the node of the thread that
  /// makes the resource (the driver refuses it in cuMemCreate).
  Location location = {LocationType::kDevice, 0};
  AllocationType type = AllocationType::kPinned;
  /// For export only; growing needs none. Device memory only.
  HandleType handle_type = HandleType::kNone;
  GranularityKind granularity = GranularityKind::kRecommended;
  /// Alignment of whole reservations: 0 or a power of two; below a granule it is raised to one.
  std::uint64_t alignment = 0;
  /// Further devices that may use the memory. Duplicates and the owner are dropped.
  std::vector<DeviceId> peers;
  /// Access of the owner (device or host side); kNone: no entry at all.
  Access self_access = Access::kReadWrite;
  /// Access of each peer; kNone with peers is a contradiction.
  Access peer_access = Access::kReadWrite;
  /// GPUDirect RDMA (device attribute 110). Device memory only.
  Wish rdma = Wish::kNo;
  FreePolicy free = FreePolicy::kSynchronize;
  /// Bound on all physical memory that the resource holds, idle memory included.
  std::uint64_t limit = kNoLimit;
  /// Bound on the idle memory kept for reuse, in whole mapped ranges. 0: none is kept.
  std::uint64_t cache = 0;
  /// An idle range up to this much larger (percent) may serve; the rest is committed ahead.
  std::uint32_t fit_percent = 0;
  // Growth policy. By default exactly the bytes asked for are committed, so that accounting is
  // plain. Memory committed ahead serves later growth without a driver call. It belongs to the
  // buffer that reaches furthest: a second grow of the same input, whose memory ahead was taken by
  // the first, is invalid_argument. Where the memory is not to be had at once, none is taken ahead.
  /// Bytes committed beyond the size, each time memory is committed.
  std::uint64_t commit_ahead = 0;
  /// Each growth commits at least this much of what there is (percent).
  std::uint32_t slack_percent = 0;
  /// Bound on one chunk; larger requests are made of several. 0: none. The driver's price is per
  /// mapping, so few and large chunks are cheap.
  std::uint64_t max_chunk = 0;
  /// A thread of the resource's own that gives back what is pending and commits memory ahead, so
  /// that the threads of the program need not. With it, allocate and close leave pending ranges to
  /// it, and `commit_ahead` bytes are committed behind a buffer in its own addresses after the
  /// operation that used them up, where nobody is at work on it. Started and joined with the
  /// resource; reports to the failure sink (kWorkerFailed), which must not end the resource. Memory
  /// ahead that it cannot have it goes without.
  bool worker = false;
  /// How often the worker looks at ranges that are pending; less often while none gets done.
  std::uint64_t worker_interval_ns = 1'000'000;
};

/// Options of one grow or resize; what is not set follows the resource. They govern the chunk that
/// is added and nothing else; they are checked even if no chunk is added.
struct GrowOptions {
  std::optional<Access> self_access{};
  std::optional<Access> peer_access{};
  std::optional<std::vector<DeviceId>> peers{};
  std::optional<Wish> rdma{};
  /// Addresses to reserve if the range has to move.
  std::optional<std::uint64_t> capacity{};
  std::optional<HandleType> handle_type{};  // only if equal to the resource's
  std::optional<Location> location{};       // only if equal to the resource's
};

/// Options of one allocation.
struct AllocateOptions {
  /// Addresses to reserve, so that growth up to it keeps the pointer. A promise: what cannot be
  /// reserved is out of memory (addresses). Below `size` it is raised to it.
  std::uint64_t capacity = 0;
  /// Where to try first; a hint is not a promise. A multiple of the granularity.
  DevicePtr at{};
  /// Clear the memory, ordered on the stream.
  bool zero = false;
};

/// An attribute that an older driver may not know: INVALID_VALUE from the query means unknown,
/// and then the driver decides when it is used.
enum class Support : std::uint8_t { kNo, kYes, kUnknown };

/// What validation needs to know of one device.
struct DeviceCaps {
  Support vmm = Support::kUnknown;        // attribute 102
  Support posix_fd = Support::kUnknown;   // 103
  Support win32_kmt = Support::kUnknown;  // 105
  Support fabric = Support::kUnknown;     // 128
  Support rdma = Support::kUnknown;       // 110 (not 116, which is about other memory)
  Support host_numa = Support::kUnknown;  // 141
  Support host = Support::kUnknown;       // 145
  std::int32_t host_numa_id = 0;          // 134; -1 is taken as 0
  std::uint64_t total_memory = 0;         // bytes; 0: unknown
};

/// What validation needs to know of the machine. A plain value, so that validation can be tested
/// with made-up machines.
struct SystemCaps {
  std::int32_t device_count = 0;
  DeviceCaps device;                      // of the location, or device 0 for host memory
  std::vector<DeviceId> reachable_peers;  // devices that may be named as peers
  std::int32_t current_numa_node = 0;     // of the calling thread
};

/// Asks the driver for what validation needs. Errors: those of the driver calls, but not an
/// INVALID_VALUE of an attribute query, which is "unknown"; a device that is not there leaves
/// `device` unknown. Thread-safe if the backend is.
GRANULE_EXPORT Result<SystemCaps> query_caps(Backend& backend, const VmmOptions& options);

/// All that is wrong with a set of options; empty if nothing is.
struct Violations {
  static constexpr std::size_t kCapacity = 16;
  std::array<Error, kCapacity> errors;
  std::size_t count = 0;
  bool empty() const { return count == 0; }
  void add(const Error& error) {
    if (count < kCapacity) errors[count++] = error;
  }
};

/// Checks options against a machine; returns every violation, the most telling first. Pure.
GRANULE_EXPORT Violations validate(const VmmOptions& options, const SystemCaps& caps);
/// The same for one grow of a resource made with `options`.
GRANULE_EXPORT Violations validate(const GrowOptions& call, const VmmOptions& options,
                                   const SystemCaps& caps);

}  // namespace granule
