// Pools for memory that does not grow: the driver's stream-ordered pool, and exact-size recycling
// over synchronous allocations.
#pragma once

#include <cstdint>
#include <utility>

#include <granule/backend_api/backend.hpp>
#include <granule/backend_api/export.hpp>
#include <granule/backend_api/result.hpp>
#include <granule/resource.hpp>
#include <granule/stream.hpp>

namespace granule {

namespace detail {
class PoolCore;  // shared state of either kind; core/src/pool_core.hpp
struct PoolRecord;
}  // namespace detail

/// A block of a pool. Move-only; the pool's state lives as long as its blocks. One thread at a
/// time.
class GRANULE_EXPORT PoolBuffer {
 public:
  PoolBuffer() = default;
  PoolBuffer(PoolBuffer&& other) noexcept
      : core_(std::exchange(other.core_, nullptr)),
        record_(std::exchange(other.record_, nullptr)) {}
  PoolBuffer& operator=(PoolBuffer&& other) noexcept;
  /// As drop(); what cannot be freed is parked and reported.
  ~PoolBuffer();

  DevicePtr ptr() const;
  /// Bytes asked for; 0 if closed.
  std::uint64_t size() const;
  bool is_closed() const { return record_ == nullptr; }
  const Stream& stream() const;

  /// Frees the block in the order of its stream, or of `stream`. Does not wait. Closing twice does
  /// nothing. Errors: capturing (the stream captures), driver (the free was not tried: a context or
  /// a stream that is none); the block is then still open. A free that was tried and refused is
  /// never tried again, since its address may be somebody else's by then: the block is closed, and
  /// the failure sink told that it leaks (release_failed).
  Status close();
  Status close(const Stream& stream);
  /// What the destructor does: where a close would be an error, the block is kept, reported once,
  /// and freed by a later call on the pool.
  Status drop();

 private:
  friend class detail::PoolCore;
  PoolBuffer(detail::PoolCore* core, detail::PoolRecord* record) : core_(core), record_(record) {}
  detail::PoolCore* core_ = nullptr;      // counted
  detail::PoolRecord* record_ = nullptr;  // owned; null: closed
};

/// Options of a StreamOrderedPool. Sizes in bytes.
struct PoolOptions {
  DeviceId device;
  /// Bind the device's default pool instead of owning one. What it was set to is put back when the
  /// last handle and block are gone, and memory is trimmed to what was found.
  bool bind_default = false;
  /// Release threshold: idle memory the driver keeps at a synchronize. kNoLimit keeps all.
  std::uint64_t threshold = kNoLimit;
  /// Owned pools: bound on reserved memory (the driver rounds it up to 32 MiB). 0: none.
  std::uint64_t max_size = 0;
};

/// What the driver counts of a pool, in bytes.
struct PoolUsage {
  std::uint64_t reserved = 0;
  std::uint64_t reserved_high = 0;
  std::uint64_t used = 0;
  std::uint64_t used_high = 0;
};

/// When the driver may hand a freed block to another stream.
enum class ReusePolicy : std::uint8_t { kFollowEvents, kOpportunistic, kInternalDependencies };

/// The driver's stream-ordered pool (driver contract, section 17). A cheap, copyable handle.
/// Thread-safe. Needs no current context. Calls are made in relaxed capture mode, so that a
/// capture on another stream is never disturbed.
class GRANULE_EXPORT StreamOrderedPool {
 public:
  /// Errors: invalid_argument (no such device), unsupported (no pools, attribute 115), driver.
  static Result<StreamOrderedPool> create(Backend& backend, const PoolOptions& options,
                                          const Environment& environment = {});
  StreamOrderedPool(const StreamOrderedPool& other) noexcept;
  StreamOrderedPool(StreamOrderedPool&& other) noexcept;
  StreamOrderedPool& operator=(StreamOrderedPool other) noexcept;
  ~StreamOrderedPool();

  /// A block of `size` bytes, ordered on `stream`; does not wait. Size 0 is invalid_argument,
  /// though the driver answers it with success and null. After a refusal the pool is trimmed: the
  /// driver may have let it take the whole device (S42).
  /// Errors: invalid_argument, capturing, out_of_memory, driver.
  Result<PoolBuffer> allocate(const Stream& stream, std::uint64_t size);
  /// The same without an owner; give it back with free.
  Result<DevicePtr> allocate_raw(const Stream& stream, std::uint64_t size);
  /// Frees a block of allocate_raw in the order of `stream`. Null is a no-op.
  /// Errors: capturing, driver.
  Status free(const Stream& stream, DevicePtr ptr);

  /// The driver's counters.
  Result<PoolUsage> usage() const;
  /// Takes both high marks down to the present values.
  Status reset_high();
  /// Gives idle memory back, whole 32 MiB pieces, while at least `keep` bytes stay reserved.
  Status trim(std::uint64_t keep);
  Status set_threshold(std::uint64_t bytes);
  Status set_reuse(ReusePolicy policy, bool on);
  /// Gives a peer access to the whole pool, or takes it away. Only none and read-write are offered
  /// by the driver. Errors: invalid_argument (the owner, no such device, out of reach), driver.
  Status set_peer_access(DeviceId peer, Access access);
  /// Frees parked blocks whose capture has ended.
  CollectResult collect();
  /// Announces that `stream` is about to be destroyed: blocks of it are then freed behind the work
  /// it had. Errors: capturing, driver, out_of_memory (host).
  Status forget(const Stream& stream);
  /// The driver's pool. Valid while a handle or a block lives.
  PoolHandle handle() const;

 private:
  explicit StreamOrderedPool(detail::PoolCore* core) : core_(core) {}
  detail::PoolCore* core_ = nullptr;
};

/// Options of a RecyclingPool.
struct RecyclerOptions {
  DeviceId device;
  /// Bound on all memory that it holds, idle blocks included. Bytes.
  std::uint64_t limit = kNoLimit;
};

/// Exact-size buckets over cuMemAlloc: a closed block serves the next request of its size, on its
/// own stream at once, on another once its last work is done. Warm pairs make no driver call but
/// capture queries. A cheap, copyable handle. Thread-safe. Needs no current context.
class GRANULE_EXPORT RecyclingPool {
 public:
  /// Errors: invalid_argument (no such device), driver.
  static Result<RecyclingPool> create(Backend& backend, const RecyclerOptions& options,
                                      const Environment& environment = {});
  RecyclingPool(const RecyclingPool& other) noexcept;
  RecyclingPool(RecyclingPool&& other) noexcept;
  RecyclingPool& operator=(RecyclingPool other) noexcept;
  ~RecyclingPool();

  /// A block of exactly `size` bytes, usable on any stream at once. Errors: invalid_argument
  /// (size 0), out_of_memory (device or budget, after idle blocks were given back), driver.
  Result<PoolBuffer> allocate(const Stream& stream, std::uint64_t size);
  /// Gives idle blocks whose work is done back until at most `keep` idle bytes are left. The
  /// driver's cuMemFree waits for the whole device. Errors: driver.
  Status trim(std::uint64_t keep);
  /// Announces that `stream` is about to be destroyed, as StreamOrderedPool::forget.
  Status forget(const Stream& stream);
  /// Bytes held in idle blocks and in all.
  std::uint64_t cached() const;
  std::uint64_t held() const;

 private:
  explicit RecyclingPool(detail::PoolCore* core) : core_(core) {}
  detail::PoolCore* core_ = nullptr;
};

}  // namespace granule
