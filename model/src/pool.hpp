// Stream-ordered pools as pure bookkeeping: windows of addresses, physical pieces, live blocks,
// freed blocks and who may have them. Driver contract, section 17.
// A copyable value; everything it must know of streams and of device memory comes in by PoolWorld.
#pragma once

#include <cstdint>
#include <granule/backend_api/calls_vmm.hpp>
#include <granule/backend_api/checked.hpp>
#include <granule/backend_api/status.hpp>
#include <granule/backend_api/types.hpp>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "pool_space.hpp"

namespace granule::model {

/// What pools ask of the rest of the model.
class PoolWorld {
 public:
  virtual ~PoolWorld() = default;
  /// Whether the operation at `point` has been executed.
  virtual bool has_run(const StreamPoint& point) const = 0;
  /// Whether the next operation of `stream` is ordered behind `point` by events or by the null
  /// stream's rules, as far as the driver knows from the calls made.
  virtual bool follows(std::uint64_t stream, const StreamPoint& point) const = 0;
  /// Takes physical memory at a place; false, without effect, if it is not to be had.
  virtual bool take(const Location& place, std::uint64_t bytes) = 0;
  /// Gives physical memory back.
  virtual void give(const Location& place, std::uint64_t bytes) = 0;
  /// Bytes of addresses that a pool gets, in whole units of 64 MiB: twice the device memory.
  virtual std::uint64_t window_size() const = 0;
  /// Where windows may begin; 32 TiB from there on are theirs.
  virtual std::uint64_t first_window() const { return std::uint64_t{0x600000000000}; }
  /// Takes addresses for a window; false, without effect, if something lies there.
  virtual bool claim(const AddressRange& window) = 0;
  /// The pool of a window is gone, its addresses are free.
  virtual void unclaim(const AddressRange& window) = 0;
};

/// Which of the places that the rules allow serves a request: a policy input.
struct PoolPlacement {
  enum class Kind : std::uint8_t {
    kLowest,  // the lowest fitting address, as observed
    kPick,    // candidate number `value`, modulo their count
    kFollow,  // the address `value`, if it is allowed; else the lowest
  };
  Kind kind = Kind::kLowest;
  std::uint64_t value = 0;
};

struct PoolRequest {
  std::uint64_t size = 0;  // bytes
  StreamPoint at;          // the asking stream and the place of the allocation in its order
  PoolPlacement placement;
};

struct PoolGrant {
  DriverStatus status = DriverStatus::kSuccess;
  DevicePtr ptr;                   // null for a request of 0 bytes and after a failure
  std::vector<StreamPoint> waits;  // what the asking stream has to wait for (internal dependencies)
};

/// A block that has been allocated and not freed.
struct PoolBlock {
  std::uint64_t size = 0;  // bytes asked for
  std::uint64_t span = 0;  // bytes taken: `size` rounded up to kPoolUnit
  StreamPoint made;
  std::uint64_t id = 0;  // never used twice
};

struct Pool {
  Pool(PoolHandle handle, const AllocationProperties& properties, std::uint64_t max_size,
       AddressRange window);

  PoolHandle handle;
  AllocationProperties properties;
  std::uint64_t max_size = 0;  // as asked; 0: no bound
  AddressRange window;
  bool is_default = false;
  bool destroyed = false;
  bool follow_events = true;
  bool opportunistic = true;
  bool internal_dependencies = true;
  std::uint64_t threshold = 0;
  std::uint64_t reserved_high = 0;
  std::uint64_t used = 0;
  std::uint64_t used_high = 0;
  std::map<std::int32_t, Access> peers;  // devices other than the pool's own, when granted

  FreeMap free;
  SpanSet backed;                           // offsets with physical memory, whole pieces
  std::map<std::uint64_t, PoolBlock> live;  // by offset
  std::set<std::uint64_t> streams;          // that have asked of or given to this pool

  std::uint64_t reserved() const { return backed.total(); }
  /// The bound of reserved(): max_size rounded up to pieces; the largest number if none.
  std::uint64_t limit() const;
  const Location& place() const { return properties.location; }
  Access access_of(const Location& who) const;
};

/// A block and where it lies, for queries and checks of ranges.
struct PoolPlace {
  const Pool* pool = nullptr;
  const PoolBlock* block = nullptr;
  AddressRange range;  // start and size asked
  AddressRange piece;  // the physical piece under its first byte
};

/// Memory that a captured allocation stands for. It never becomes real: nothing launches graphs.
struct GraphBlock {
  std::uint64_t size = 0;
  std::uint64_t capture = 0;  // the capture that it was made in
};

/// All pools of the process.
class PoolState {
 public:
  /// A deviating driver: the threshold falls back to 0 when an empty pool grows.
  void forget_thresholds(bool on) { forget_thresholds_ = on; }

  // Pools. Calls about a pool that does not exist or is destroyed find null.
  /// Null if there are no addresses left. The properties are taken as they are.
  PoolHandle create(const AllocationProperties& properties, std::uint64_t max_size,
                    PoolWorld& world);
  PoolHandle default_pool(DeviceId device, PoolWorld& world);
  PoolHandle current_pool(DeviceId device, PoolWorld& world);
  void set_current(DeviceId device, PoolHandle pool);
  DriverStatus destroy(PoolHandle pool, PoolWorld& world);
  Pool* find(PoolHandle pool);
  const Pool* find(PoolHandle pool) const;

  DriverStatus set_attribute(PoolHandle pool, PoolAttribute attribute, std::uint64_t value);
  DriverStatus get_attribute(PoolHandle pool, PoolAttribute attribute, std::uint64_t& value) const;
  DriverStatus trim(PoolHandle pool, std::uint64_t keep, PoolWorld& world);

  // Blocks.
  PoolGrant allocate(PoolHandle pool, const PoolRequest& request, PoolWorld& world);
  /// Stream-ordered free; INVALID_VALUE unless `ptr` is the start of a live block.
  DriverStatus free_ordered(DevicePtr ptr, const StreamPoint& at);
  /// cuMemFree of a block: ordered behind nothing, never counted.
  DriverStatus free_now(DevicePtr ptr, PoolWorld& world);

  // Nodes of captures.
  DevicePtr allocate_captured(std::uint64_t size, std::uint64_t capture);
  /// INVALID_VALUE unless `ptr` was made, and not freed, in the same capture.
  DriverStatus free_captured(DevicePtr ptr, std::uint64_t capture);
  /// Whether all of the range lies in one block of that capture.
  bool is_captured(const AddressRange& range, std::uint64_t capture) const;
  void end_capture(std::uint64_t capture);

  // What the host has come to know.
  /// The host waited for `stream` up to `position`, or destroyed it with all of it done.
  void observed(std::uint64_t stream, std::uint64_t position, PoolWorld& world);
  /// The stream exists no more.
  void forget_stream(std::uint64_t stream);
  /// Takes the idle memory of every pool at `place`, as a request under pressure does. Returns the
  /// bytes given back.
  std::uint64_t release_idle(const Location& place, PoolWorld& world);

  // Queries.
  /// The live block that holds the byte at `address`.
  std::optional<PoolPlace> block_at(DevicePtr address) const;
  /// The pool, alive or not, in whose window `address` lies.
  const Pool* window_at(DevicePtr address) const;
  /// Whether all of the range has physical memory now, live or not.
  bool is_backed(const AddressRange& range) const;
  const std::map<std::uint64_t, Pool>& pools() const { return pools_; }
  std::uint64_t live_blocks() const;
  /// Pools made by `create` and not destroyed.
  std::uint64_t made_pools() const;

 private:
  Pool* owner_of(DevicePtr ptr);
  bool grow(Pool& pool, Span target, PoolWorld& world);
  static std::vector<Span> idle_pieces(const Pool& pool, Span except);
  bool back(Pool& pool, Span piece_range, PoolWorld& world);
  void release_down_to(Pool& pool, std::uint64_t floor, bool keep_at_least, Span except,
                       PoolWorld& world);
  void shrink_to_threshold(Pool& pool, PoolWorld& world);
  void erase_if_spent(std::uint64_t handle, PoolWorld& world);
  std::optional<AddressRange> claim_window(PoolWorld& world) const;
  void move_window(Pool& pool, std::uint64_t address, PoolWorld& world);

  bool forget_thresholds_ = false;
  std::uint64_t next_handle_ = 0x5001;
  std::uint64_t next_block_ = std::uint64_t{1} << 32;  // apart from other buffer ids
  std::map<std::uint64_t, Pool> pools_;                // by handle, destroyed ones with memory too
  std::map<std::uint64_t, std::uint64_t> windows_;     // base -> handle
  std::map<std::uint64_t, GraphBlock> captured_;       // by address
  std::uint64_t next_captured_ = std::uint64_t{1} << 47;  // above all other addresses
  std::map<std::int32_t, PoolHandle> defaults_;           // by device
  std::map<std::int32_t, PoolHandle> current_;            // by device, where it is not the default
};

}  // namespace granule::model
