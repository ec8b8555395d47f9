// VirtualMemoryResource: growable buffers over the driver's virtual memory management calls.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include <granule/backend_api/backend.hpp>
#include <granule/backend_api/export.hpp>
#include <granule/backend_api/sync.hpp>
#include <granule/buffer.hpp>
#include <granule/failure_sink.hpp>
#include <granule/options.hpp>
#include <granule/share.hpp>
#include <granule/stream.hpp>

namespace granule {

/// What surrounds a resource. All members outlive the resource and its buffers.
struct Environment {
  Runtime runtime;              // mutex, clock, host memory
  FailureSink* sink = nullptr;  // null: stderr_failure_sink()
};

/// What a resource holds, in bytes, at one moment. Chunks count once however often they are mapped.
struct Statistics {
  std::uint64_t live = 0;     // physical memory that open buffers hold
  std::uint64_t mapped = 0;   // bytes of mappings (a moved buffer with its input open counts twice)
  std::uint64_t cached = 0;   // idle physical memory kept for reuse
  std::uint64_t retired = 0;  // ranges behind unfinished work (deferred frees)
  std::uint64_t parked = 0;   // ranges kept for a capture, or because a wait failed
  std::uint64_t quarantined = 0;  // mappings that the driver would not unmap
  std::uint64_t charged = 0;      // physical memory against the limit
  std::uint64_t reserved = 0;     // addresses
  // Counts.
  std::uint64_t reservations = 0;
  std::uint64_t handles = 0;
  std::uint64_t mappings = 0;
  std::uint64_t buffers = 0;              // open ones, holders included
  std::uint64_t leaked_reservations = 0;  // reported: the driver refused to free them
  std::uint64_t leaked_handles = 0;       // reported: the driver refused to release them
  std::uint64_t leaked_handle_bytes = 0;
  // What the worker has done so far.
  std::uint64_t worker_ranges = 0;  // pending ranges given back
  std::uint64_t worker_bytes = 0;   // committed ahead
};

/// What a resource turned out to be.
struct Properties {
  Location location;
  std::uint64_t granularity = 0;  // bytes
  bool rdma = false;              // asked for in new chunks
  bool rdma_dropped = false;      // was a wish and the driver refused it
};

/// A sum of what one collect did.
struct CollectResult {
  std::uint64_t ranges = 0;   // given back
  std::uint64_t pending = 0;  // still waiting for work or for the end of a capture
};

/// Where an address lies.
struct BufferView {
  DevicePtr ptr;           // of the buffer
  std::uint64_t size = 0;  // bytes that it shows
  ChunkView chunk;         // the one with the address; its handle is null while suspended
};

/// Makes and grows buffers. A cheap, copyable handle on shared state that lives until the last
/// handle and the last buffer are gone. Thread-safe. Needs no current context and leaves the
/// caller's unchanged (I12).
class GRANULE_EXPORT VirtualMemoryResource {
 public:
  /// Checks the options against the machine (validate) and asks for the granularity.
  /// `backend` and `environment` outlive the resource and its buffers.
  /// Errors: invalid_argument, unsupported (the first violation), those of the driver calls,
  /// out_of_memory (host).
  static Result<VirtualMemoryResource> create(Backend& backend, const VmmOptions& options,
                                              const Environment& environment = {});
  VirtualMemoryResource(const VirtualMemoryResource& other) noexcept;
  VirtualMemoryResource(VirtualMemoryResource&& other) noexcept;
  VirtualMemoryResource& operator=(VirtualMemoryResource other) noexcept;
  ~VirtualMemoryResource();

  /// A buffer of `size` bytes rounded up to granules, usable at once on any stream; its release is
  /// ordered on `stream`. Size 0: an empty buffer and no driver call.
  /// Errors: overflow; out_of_memory (what ran out is in Error::exhausted; a size beyond the
  /// device's memory or the limit is refused before any driver call); invalid_argument;
  /// capturing (zero, for a stream that captures); driver.
  Result<Buffer> allocate(const Stream& stream, std::uint64_t size,
                          const AllocateOptions& options = {});

  /// Gives `access` to a further device: for every chunk there is and for those to come (I10).
  /// Only widens. All or nothing. Where the device has read access already and gets write access,
  /// its work on open buffers has to be done first: any change of access can end work that uses the
  /// range (driver contract, section 11); idle memory is then given back and pending frees waited
  /// for. Errors: invalid_argument, capturing, driver.
  Status grant(DeviceId device, Access access);

  /// Gives idle memory back until no more than `keep` bytes of it are left.
  Status trim(std::uint64_t keep);
  /// Gives back every pending range whose work is done and every parked one whose capture has
  /// ended. Stops taking up new ranges once `budget_ns` have passed. Never waits.
  CollectResult collect(std::uint64_t budget_ns = UINT64_MAX);
  /// Announces that `stream` is about to be destroyed: what buffers and pending frees need of it
  /// is recorded now. No operation on a buffer that is ordered on it is under way meanwhile; what
  /// the resource is doing with ranges that nobody owns any more is waited for.
  /// Errors: capturing, driver, out_of_memory (host).
  Status forget(const Stream& stream);

  /// Gives the physical memory of all the buffers back and keeps their addresses; with `backup`
  /// the contents are kept in host memory. All or none. Suspending a suspended buffer does nothing.
  /// Errors: closed; wrong_resource; invalid_argument (a chunk is shared; Error::object is the
  /// buffer's address); capturing; the error of a failed wait; out_of_memory (host); driver.
  Status suspend(std::span<Buffer* const> buffers, bool backup);
  /// Undoes suspend, at the same addresses. All or none. Not suspended: does nothing.
  /// With a backup the contents are copied back on the buffers' own streams, and waited for.
  /// Errors: closed, wrong_resource, out_of_memory, driver; with a backup capturing, and the error
  /// of a failed wait.
  Status resume(std::span<Buffer* const> buffers);

  /// One descriptor for each chunk of `buffer`. Errors: closed, suspended, wrong_resource,
  /// unsupported (no handle type was asked for, or a chunk was imported), driver.
  Result<SharedBuffer> export_buffer(const Buffer& buffer);
  /// Maps all chunks of `shared` in one new range, with this resource's access.
  /// Errors: invalid_argument (a size that is no whole granule), overflow, out_of_memory, driver.
  Result<Buffer> import_buffer(const Stream& stream, const SharedBuffer& shared);

  /// True if the open buffer was made by this resource.
  bool owns(const Buffer& buffer) const { return buffer.core_ == core_ && !buffer.is_closed(); }
  /// The open buffer or holder that shows the byte at `address`; of several that share it, the
  /// largest. Takes time in proportion to the open buffers. None: nobody shows that byte.
  std::optional<BufferView> buffer_at(DevicePtr address) const;
  Properties properties() const;
  Statistics statistics() const;
  /// Walks everything and compares: structure, counts, sums (I1 to I4, I10, I11, I14, I15, as far
  /// as they show without asking the driver). Returns the first broken invariant in words, or an
  /// empty string. Only at a quiet moment.
  std::string check_invariants() const;
  /// Calls visit(view) for every mapping, ascending in each reservation, for pictures and ledgers.
  struct MappingView {
    DevicePtr base;
    std::uint64_t size = 0;
    DevicePtr reservation;
    std::uint64_t reservation_size = 0;
    AllocationHandle handle;
    bool mapped = false;  // false: suspended
    bool quarantined = false;
    const AccessEntries* access = nullptr;  // the promised access; valid during the call
  };
  void for_each_mapping(const std::function<void(const MappingView&)>& visit) const;
  /// Who has a range: a buffer or holder, a free behind unfinished work, a free kept for a capture
  /// or because a wait failed, or the cache (the figures of Statistics say the same in sums).
  enum class RangeState : std::uint8_t { kOpen, kRetired, kParked, kIdle };
  struct RangeView {
    DevicePtr base;
    std::uint64_t size = 0;       // bytes that its buffer shows, or showed
    std::uint64_t committed = 0;  // bytes of its mappings, from `base` on
    RangeState state = RangeState::kOpen;
    bool suspended = false;
  };
  /// Calls visit(view) for every range there is; ranges that share memory come one by one. `visit`
  /// runs under the resource's lock and calls nothing of it. Thread-safe.
  void for_each_range(const std::function<void(const RangeView&)>& visit) const;
  /// Calls visit(stream) for every stream that a release of `buffer` now would wait for.
  void for_each_stream(const Buffer& buffer, const std::function<void(const Stream&)>& visit) const;

 private:
  explicit VirtualMemoryResource(detail::ResourceCore* core) : core_(core) {}
  detail::ResourceCore* core_ = nullptr;  // counted
};

}  // namespace granule
