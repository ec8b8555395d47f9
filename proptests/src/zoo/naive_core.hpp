// A growable-buffer resource written the naive way: a buffer knows an address and a size, tables
// of the resource know what lies there, and everything is undone by hand, call by call. Without a
// mistake planted it is correct, though it keeps nothing idle and defers nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <granule/prop/target.hpp>

#include "naive_driver.hpp"

namespace granule::prop::zoo {

/// Physical memory.
struct NaiveChunk {
  AllocationHandle handle;  // null: suspended
  std::uint64_t size = 0;
  std::uint32_t uses = 0;  // mappings
  AccessEntries access;
  HandleType handle_type = HandleType::kNone;
  bool rdma = false;
  bool charged = false;
  bool from_grow = false;
};

struct NaiveMapping {
  std::uint64_t size = 0;
  std::uint64_t chunk = 0;    // number
  std::uint64_t space = 0;    // base
  std::uint32_t holders = 0;  // buffers, parked ranges and holders that cover it
  bool mapped = true;         // false: suspended
  bool quarantined = false;
};

/// Reserved addresses.
struct NaiveSpace {
  std::uint64_t size = 0;
  std::uint64_t first_size = 0;  // bytes of the first buffer there
  std::uint32_t mappings = 0;
  bool moved_from = false;
  bool freed = false;  // while its buffer is suspended
};

/// What a buffer knows.
struct NaiveState {
  std::uint64_t base = 0;
  std::uint64_t size = 0;
  std::uint64_t known_size = 0;  // before it grew in place
  Stream primary;
  std::vector<Stream> further;
  void* record = nullptr;  // stands for a library's own host memory
  void* backup = nullptr;
  bool closed = false;
  bool suspended = false;
};
using NaiveStatePtr = std::shared_ptr<NaiveState>;

/// Steps to undo, newest first, unless all went well.
class Rollback {
 public:
  Rollback() = default;
  Rollback(const Rollback&) = delete;
  Rollback& operator=(const Rollback&) = delete;
  ~Rollback() {
    while (!steps_.empty()) {
      steps_.back()();
      steps_.pop_back();
    }
  }
  void add(std::function<void()> step) { steps_.push_back(std::move(step)); }
  void commit() { steps_.clear(); }

 private:
  std::vector<std::function<void()>> steps_;
};

class NaiveCore {
 public:
  static Result<std::shared_ptr<NaiveCore>> create(const TargetContext& context,
                                                   const VmmOptions& options, Mistake mistake);
  ~NaiveCore();

  Result<NaiveStatePtr> allocate(const Stream& stream, std::uint64_t size,
                                 const AllocateOptions& options);
  struct Grown {
    NaiveStatePtr state;
    Placement placement = Placement::kAlias;
  };
  Result<Grown> grow(const NaiveStatePtr& input, std::uint64_t size, const GrowOptions& options);
  Result<ResizeResult> resize(NaiveState& state, std::uint64_t size, const GrowOptions& options);
  Result<std::uint64_t> shrink(NaiveState& state, std::uint64_t size);
  Result<bool> could_extend(const NaiveState& state);
  Status close(NaiveState& state, const Stream* stream);
  Status drop(NaiveState& state, bool may_stay);
  Status used_on(NaiveState& state, const Stream& stream);
  Result<NaiveStatePtr> hold(const NaiveState& state);
  Status suspend(const std::vector<NaiveState*>& states, bool backup);
  Status resume(const std::vector<NaiveState*>& states);
  Result<std::vector<Descriptor>> export_chunks(const NaiveState& state);
  Status close_descriptors(std::vector<Descriptor>& descriptors);
  Status grant(DeviceId device, Access access);
  Status forget(const Stream& stream);
  void reap_parked();
  Statistics statistics() const;

 private:
  NaiveCore(const TargetContext& context, const VmmOptions& options, Mistake mistake);
  bool is(Mistake mistake) const { return driver_.is(mistake); }

  // naive_core.cpp: creation, checks, options
  Status set_up();
  VmmOptions merged(const GrowOptions& call) const;
  AccessEntries entries_of(const VmmOptions& options) const;
  std::optional<std::uint64_t> round_up(std::uint64_t size) const;
  Status check_size(std::uint64_t size) const;
  Status usable(const NaiveState& state) const;
  Result<NaiveStatePtr> new_state(const Stream& stream);
  void free_record(NaiveState& state);
  void report(FailureKind kind, const Error& error, std::uint64_t base, std::uint64_t size);

  // naive_tables.cpp: single steps and their undoing by hand
  std::vector<std::uint64_t> view(std::uint64_t base, std::uint64_t size) const;
  Status charge(std::uint64_t size);
  Result<std::uint64_t> reserve(std::uint64_t size, std::uint64_t alignment, std::uint64_t hint);
  struct ChunkRequest {
    std::uint64_t size = 0;
    AccessEntries access;
    HandleType handle_type = HandleType::kNone;
    bool rdma = false;
    bool from_grow = false;
  };
  Result<std::uint64_t> create_chunk(const ChunkRequest& request);
  Status map(std::uint64_t base, std::uint64_t chunk, std::uint64_t space, bool with_access = true);
  Status set_access(std::uint64_t base, std::uint64_t size, const AccessEntries& access);
  DriverStatus unmap(std::uint64_t base, std::uint64_t size);
  void drop_mapping(std::uint64_t base, std::uint64_t size);
  void forget_mapping(std::uint64_t base);
  void leave_chunk(std::uint64_t chunk);
  void leave_space(std::uint64_t space);
  void free_space_if_unused(std::uint64_t space);
  void release_chunk_if_unused(std::uint64_t chunk);
  void drop_view(std::uint64_t base, std::uint64_t size);
  void forget_view(std::uint64_t base, std::uint64_t size);
  void hold_view(std::uint64_t base, std::uint64_t size);
  AllocationProperties properties_of(const ChunkRequest& request) const;

  // naive_grow.cpp
  struct Growth {
    std::uint64_t base = 0;  // of the range; size 0: there is none yet
    std::uint64_t size = 0;
    std::uint64_t add = 0;
    std::uint64_t capacity = 0;
    std::uint64_t hint = 0;
    VmmOptions options;    // of the new chunk
    bool of_call = false;  // options were given for this call
    std::function<Status()> before_move;
  };
  struct Extended {
    std::uint64_t base = 0;
    Placement placement = Placement::kMoved;
  };
  Result<Growth> plan(const NaiveState& state, std::uint64_t size, const GrowOptions& options);
  Result<Extended> extend(const Growth& growth);
  Result<Extended> extend_once(const Growth& growth, bool rdma);
  ChunkRequest chunk_request(const Growth& growth, bool rdma, bool in_place) const;
  Result<std::optional<std::uint64_t>> room_behind(const Growth& growth);
  Status add_chunk(const Growth& growth, bool rdma, std::uint64_t space, std::uint64_t base,
                   bool in_place, Rollback& rollback);
  Status map_old(const Growth& growth, std::uint64_t space, Rollback& rollback);
  void undo_by_mapping_again(const Growth& growth);
  Status unmap_early(const Growth& growth);
  void unmap_input(const Growth& growth);

  // naive_release.cpp
  Result<CaptureVerdict> capture_verdict(const NaiveState& state);
  Status refuse_if_capturing(const NaiveState& state);
  Status wait_for(const NaiveState& state);
  void park(NaiveState& state, const Error& why);
  void end(NaiveState& state);

  // naive_suspend.cpp
  Status check_for_suspend(const NaiveState& state);
  Status take_backup(NaiveState& state);
  void drop_backup(NaiveState& state);
  void take_down(NaiveState& state);
  Status bring_back(NaiveState& state, Rollback& rollback);

  NaiveDriver driver_;
  FailureSink* sink_;
  VmmOptions options_;
  SystemCaps caps_;
  std::uint64_t granularity_ = 0;
  std::uint64_t alignment_ = 0;
  std::vector<AccessEntry> grants_;
  bool rdma_dropped_ = false;
  bool peers_walked_ = false;
  bool in_drop_ = false;
  std::uint64_t charged_ = 0;
  std::uint64_t leaked_spaces_ = 0;
  std::uint64_t leaked_handles_ = 0;
  std::uint64_t leaked_handle_bytes_ = 0;
  std::uint64_t failures_ = 0;  // of giving something back
  std::uint64_t next_chunk_ = 1;
  std::map<std::uint64_t, NaiveChunk> chunks_;            // by number
  std::map<std::uint64_t, NaiveMapping> mappings_;        // by base
  std::map<std::uint64_t, NaiveSpace> spaces_;            // by base
  std::map<std::uint64_t, std::uint64_t> shared_totals_;  // of mutable ranges, by base
  std::vector<NaiveState*> open_;
  std::vector<NaiveStatePtr> parked_;
};

}  // namespace granule::prop::zoo
