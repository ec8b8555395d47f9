// Buffer: a growable range of device memory that owns its mappings.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <granule/backend_api/export.hpp>
#include <granule/backend_api/result.hpp>
#include <granule/options.hpp>
#include <granule/stream.hpp>

namespace granule {

namespace detail {
struct Record;       // what a buffer owns; core/src/objects.hpp
class ResourceCore;  // what all buffers of a resource share
}  // namespace detail

class Buffer;

/// How a grow or resize got its room.
enum class Placement : std::uint8_t {
  kAlias,  // the range covered the request already: no driver call
  kKept,   // room was added behind the range: same address
  kMoved,  // the chunks were mapped at a new address; no byte was copied
};
GRANULE_EXPORT std::string_view name_of(Placement placement) noexcept;

struct GrowResult;

/// What a resize did.
struct ResizeResult {
  Placement placement = Placement::kKept;
  DevicePtr old_ptr;
  DevicePtr new_ptr;
  std::uint64_t size = 0;  // bytes now
};

/// One chunk of a buffer, for registration and export.
struct ChunkView {
  DevicePtr base;
  std::uint64_t size = 0;  // bytes
  AllocationHandle handle;
};

/// One more holder of a buffer's range: keeps it mapped after the buffer has closed, and keeps it
/// from being suspended. Dropped like a buffer, ordered on the buffer's stream.
class RangeHolder;

/// A range of memory made by a VirtualMemoryResource. Move-only; the resource's state lives as
/// long as its buffers.
///
/// Sizes are bytes and always whole granules. Const operations may be called from many threads at
/// once; close, drop, resize, shrink, suspend, resume and move from one thread, alone.
/// A failed operation changes nothing that a caller can see (I5), idle memory apart.
class GRANULE_EXPORT Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept
      : core_(std::exchange(other.core_, nullptr)),
        record_(std::exchange(other.record_, nullptr)) {}
  /// Drops what this buffer held first.
  Buffer& operator=(Buffer&& other) noexcept;
  /// As drop(); failures go to the failure sink. A wait that cannot end parks the range.
  ~Buffer();

  /// The address of the first byte; null if empty or closed. Stable while the buffer is suspended.
  DevicePtr ptr() const;
  /// Bytes; 0 if empty or closed.
  std::uint64_t size() const;
  /// Bytes reserved from ptr() on without a hole behind the last chunk (size, if nothing is).
  std::uint64_t capacity() const;
  bool is_closed() const { return record_ == nullptr; }
  bool is_suspended() const;
  /// The stream that the release is ordered on; only if not closed.
  const Stream& stream() const;

  /// A new buffer of at least `size` bytes that sees the same bytes; this one stays open and
  /// untouched (I6). Within the range: an alias, no driver call. Else in place if the addresses
  /// behind can be had, else at a new address; no byte is copied.
  /// Errors: closed, suspended, overflow, invalid_argument, unsupported, out_of_memory, driver.
  Result<GrowResult> grow(std::uint64_t size, const GrowOptions& options = {}) const;
  /// Whether a grow by one granule could stay in place just now. May reserve and give back
  /// addresses. Errors: closed, suspended.
  Result<bool> could_extend() const;

  /// The same buffer, larger (as grow; a move gives the old addresses back in stream order) or
  /// smaller (as shrink). Errors: as grow; capturing, where memory or addresses would be given
  /// back on a stream that captures; the error of a wait that failed.
  Result<ResizeResult> resize(std::uint64_t size, const GrowOptions& options = {});
  /// resize that never moves: out_of_memory (addresses) where the room behind cannot be had.
  Result<ResizeResult> try_extend(std::uint64_t size, const GrowOptions& options = {});
  /// Gives whole chunks back from the end, at the same address; returns the new size, which is
  /// the end of the last chunk that reaches below `size`. Waits for the buffer's streams first
  /// (kSynchronize) or retires the chunks behind them (kDeferred). Errors: closed, suspended,
  /// capturing, the error of a failed wait.
  Result<std::uint64_t> shrink(std::uint64_t size);

  /// Ends the buffer in the order of its stream, or of `stream`, which replaces it. Closing twice
  /// does nothing. Errors: capturing (the stream itself captures), the error of a failed wait; the
  /// buffer is then still open. On a default stream whose use would disturb somebody's capture the
  /// range is parked: ok, reported once, given back by a later call.
  Status close();
  Status close(const Stream& stream);
  /// What the destructor does, with its outcome: parks where it may not wait. The only error is
  /// driver:would_block, from a backend that can tell that a wait would never end.
  Status drop();

  /// Tells that work on `stream` uses the buffer: its release then waits for that stream too, also
  /// a close that names another one. The result of a later grow is another buffer, to be told
  /// itself. Errors: closed, out_of_memory (host).
  Status used_on(const Stream& stream);
  /// One more holder of the range. Errors: closed, suspended, out_of_memory (host).
  Result<RangeHolder> hold() const;

  /// All chunks in address order, those committed ahead of the size too.
  /// Errors: closed, suspended, out_of_memory (host).
  Result<std::vector<ChunkView>> chunks() const;
  /// Calls visit(ChunkView) for each of them. Errors: as chunks.
  template <class Visitor>
  Status for_each_chunk(Visitor&& visit) const {
    const Result<std::vector<ChunkView>> all = chunks();
    if (!all) return all.status();
    for (const ChunkView& chunk : *all) visit(chunk);
    return {};
  }

 private:
  friend class detail::ResourceCore;
  friend class VirtualMemoryResource;
  friend class RangeHolder;
  Buffer(detail::ResourceCore* core, detail::Record* record) : core_(core), record_(record) {}

  detail::ResourceCore* core_ = nullptr;  // counted
  detail::Record* record_ = nullptr;      // owned; null: closed
};

/// What a grow gives.
struct GrowResult {
  Buffer buffer;
  Placement placement = Placement::kAlias;
};

class GRANULE_EXPORT RangeHolder {
 public:
  RangeHolder() = default;
  RangeHolder(RangeHolder&&) noexcept = default;
  RangeHolder& operator=(RangeHolder&&) noexcept = default;
  ~RangeHolder() = default;
  /// As Buffer::drop.
  Status drop() { return held_.drop(); }

 private:
  friend class Buffer;
  friend class detail::ResourceCore;
  explicit RangeHolder(Buffer held) : held_(std::move(held)) {}
  Buffer held_;
};

}  // namespace granule
