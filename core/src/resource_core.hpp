// ResourceCore: the shared state of a VirtualMemoryResource and all operations on it.
// One mutex guards the records of objects.hpp; it is never held across a driver call, a wait or a
// report. What an operation is at work on it pins by a count, so that nothing goes away meanwhile.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <granule/resource.hpp>

#include "driver.hpp"
#include "host_objects.hpp"
#include "objects.hpp"
#include "stream_order.hpp"

namespace granule::detail {

class AccessHold;
class ChainRef;
class RecordHold;
class ReservationRef;

/// An operation reaps at most this many pending ranges on its way, so that its time is bounded.
inline constexpr std::uint64_t kReapsPerOperation = 8;
/// A close must not take long: it gives back as many as it adds.
inline constexpr std::uint64_t kReapsPerClose = 1;

/// Mappings that other threads may add while a grant is under way.
inline constexpr std::size_t kGrantSpare = 64;

/// Alignment of the host memory that keeps the contents of suspended buffers.
inline constexpr std::size_t kBackupAlignment = 4096;

/// The entries of cuMemSetAccess that the options ask for. At most one each for the memory's own
/// side and each peer; empty if nobody is to have access.
AccessEntries access_entries(const VmmOptions& options);
// Adds to `entries` what grants gave: the entries by which `now` is wider than `asked`. False if
// there is no room.
bool add_granted(AccessEntries& entries, const AccessEntries& now, const AccessEntries& asked);

class ResourceCore {
 public:
  static Result<ResourceCore*> create(Backend& backend, const VmmOptions& options,
                                      const Environment& environment);
  void ref() noexcept { refs_.fetch_add(1, std::memory_order_relaxed); }
  void unref() noexcept;

  // allocate.cpp
  Result<Buffer> allocate(const Stream& stream, std::uint64_t size, const AllocateOptions& options);
  // grow.cpp
  Result<GrowResult> grow(const Record& input, std::uint64_t size, const GrowOptions& options);
  Result<bool> could_extend(const Record& record);
  std::uint64_t capacity(const Record& record);
  // resize.cpp
  Result<ResizeResult> resize(Record& record, std::uint64_t size, const GrowOptions& options,
                              bool may_move);
  Result<std::uint64_t> shrink(Record& record, std::uint64_t size);
  // release.cpp
  void drop_backup(Record& record) noexcept;
  Status close(Record*& record, const Stream* stream);
  /// Ends the record whatever happens, but for a would_block where `may_stay`.
  Status drop(Record*& record, bool may_stay);
  Status used_on(Record& record, const Stream& stream);
  Result<Record*> share(const Record& input);
  Result<RangeHolder> hold(const Record& input);
  // pending.cpp
  CollectResult collect(std::uint64_t budget_ns, std::uint64_t most_ranges);
  Status forget(const Stream& stream);
  // cache.cpp
  Status trim(std::uint64_t keep);
  // grant.cpp
  Status grant(DeviceId device, Access access);
  // worker.cpp
  /// Brackets an operation on an open record: the worker leaves it alone meanwhile.
  void begin_work(const Record& record);
  void end_work(const Record& record);
  // suspend.cpp
  Status suspend(std::span<Buffer* const> buffers, bool backup);
  Status resume(std::span<Buffer* const> buffers);
  // share.cpp
  Result<std::vector<ChunkView>> chunks(const Record& record);
  Result<SharedBuffer> export_record(const Record& record);
  Result<Buffer> import_shared(const Stream& stream, const SharedBuffer& shared);
  // audit.cpp
  Statistics statistics();
  std::string check_invariants();
  void for_each_mapping(
      const std::function<void(const VirtualMemoryResource::MappingView&)>& visit);
  void for_each_range(const std::function<void(const VirtualMemoryResource::RangeView&)>& visit);
  std::optional<BufferView> buffer_at(std::uint64_t address);

  Properties properties();
  std::uint64_t granularity() const { return granularity_; }

 private:
  friend class AccessHold;
  friend class ChainRef;
  friend class RecordHold;
  friend class ReservationRef;
  using Lock = std::unique_lock<SeamMutex>;

  ResourceCore(Backend& backend, const VmmOptions& options, const Environment& environment);
  ~ResourceCore();
  void shut_down() noexcept;
  void abandon() noexcept;

  Status may_write(DeviceId device);
  Status clear(const Stream& stream, std::uint64_t base, std::uint64_t size);

  // chunks.cpp: physical memory behind the budget gate, and its release.
  Status acquire(Chunk& chunk);
  Status charge(std::uint64_t size);
  void uncharge(std::uint64_t size);
  void drop_chunk(Chunk* chunk) noexcept;
  void pass_on_charge(const Chunk& chunk);
  Status check_size(std::uint64_t size) const;
  AccessList* access_for(const GrowOptions* call, Error* error);
  AccessList* intern(const AccessEntries& entries);
  void drop_access(AccessList* list);

  // mappings.cpp: addresses, mappings, chains.
  Result<ReservationRef> reserve(std::uint64_t size, std::uint64_t alignment, std::uint64_t hint);
  void drop_reservation(Reservation* reservation) noexcept;
  Status map_chunk(Mapping& mapping);
  Status clear_place(Mapping& mapping);
  void take_back_map(Mapping& mapping) noexcept;
  Status map_once(Mapping& mapping, const AccessEntries& entries);
  DriverStatus unmap(Mapping& mapping) noexcept;
  void quarantine(Mapping& mapping, const Error& why) noexcept;
  void unmap_or_quarantine(Mapping& mapping) noexcept;
  void destroy_mapping(Mapping* mapping) noexcept;
  void drop_chain(Mapping* last) noexcept;
  ChainRef pin(Mapping* last);

  // extend.cpp: adding one chunk to a chain.
  struct Extension;
  struct ExtendRequest;
  Result<Extension> extend(ExtendRequest request);
  Result<Extension> extend_with_wish(const ExtendRequest& request, bool make_room);
  Result<Extension> extend_once(const ExtendRequest& request, bool rdma);
  Result<ChainRef> extend_in_place(const ExtendRequest& request, bool rdma, bool* refused);
  Result<ChainRef> draft_chunks(ChainRef below, Reservation& reservation, std::uint64_t base,
                                const ExtendRequest& request, bool rdma, bool* refused);
  Status map_drafted(Reservation& reservation, std::uint64_t from, std::uint64_t to);
  Result<ChainRef> add_chunks(Reservation& reservation, std::uint64_t base,
                              const ExtendRequest& request, bool rdma, bool* refused);
  Result<ChainRef> move_chain(const ExtendRequest& request, bool rdma);
  Result<ChainRef> first_chunk(const ExtendRequest& request, bool rdma);
  Status draft_move(const ExtendRequest& request, Reservation& target, ChainRef* top);
  bool claim(Mapping& mapping);
  std::uint64_t room_for(const ExtendRequest& request);
  bool room_behind(const Mapping& last, std::uint64_t size, bool* at_end);
  // grow.cpp
  /// What take_committed changed; put back unless the operation keeps it.
  struct CommittedHold {
    explicit CommittedHold(ResourceCore& owner) : core(owner) {}
    CommittedHold(const CommittedHold&) = delete;
    CommittedHold& operator=(const CommittedHold&) = delete;
    ~CommittedHold();
    void keep() { mapping = nullptr; }
    ResourceCore& core;
    Mapping* mapping = nullptr;
    std::uint64_t before = 0;
  };
  Status take_committed(const Record& record, std::uint64_t end, CommittedHold* hold);
  static std::uint64_t grown_by(std::uint64_t size, std::uint32_t percent);
  std::uint64_t commit_target(std::uint64_t have, std::uint64_t size) const;
  static void set_shown(Record& record, std::uint64_t size);
  void show(Record& record, std::uint64_t size);
  Status usable(const Record& record) const;
  std::uint64_t promised(const Record& record);
  Result<ExtendRequest> plan_growth(const Record& record, std::uint64_t size,
                                    const GrowOptions& options);

  // waiting.cpp: captures, waits and markers of one record.
  Result<CaptureVerdict> capture_verdict(const Record& record);
  Status wait_for(const Record& record);
  Status set_markers(Record& record);
  void drop_new_markers(Record& record) noexcept;
  Result<bool> reached(const Record& record, StreamUse& use);
  Status refuse_if_capturing(const Record& record);

  // release.cpp
  Status close_open(Record*& record, const Stream* stream);
  Status drop_open(Record*& record, bool may_stay);
  Result<Record*> new_record(const Stream& stream);
  Status copy_uses(const Record& from, Record& to);
  void release_record(Record* record) noexcept;
  void end_use(Record& record, StreamUse& use) noexcept;
  void free_record(Record* record) noexcept;
  void set_aside(Record* record, RecordState state);
  void park(Record* record, const Error& why) noexcept;
  Status order_release(Record& record, bool* skipped);
  void end(Record*& record, bool skipped) noexcept;
  void enlist_open(Record& record);
  Buffer own(Record* record);
  Buffer make_buffer(Record* record);

  // resize.cpp
  struct Departure;
  static Status prepare_departure(void* departure);
  void depart(Departure& departure, Mapping* last, std::uint64_t base, std::uint64_t size) noexcept;

  // worker.cpp
  Status start_worker();
  void stop_worker() noexcept;
  static void run_worker(void* core);
  void work() noexcept;
  void wake_worker();
  std::uint64_t commit_ahead() noexcept;
  Record* next_to_extend();
  bool extend_ahead(const ExtendRequest& request) noexcept;

  // cache.cpp
  void enlist_idle(Record& record);
  void delist_idle(Record& record);
  bool cacheable(const Record& record) const;
  bool enlist_closed(Record& record);
  bool keep_idle(Record* record);
  bool keep_warm(Record& record);
  Status evict_to(std::uint64_t keep);
  Result<bool> evict_oldest();
  bool ordered_already(const Record& record, const Stream& stream) const;
  Status order_behind(Record& record, const Stream& stream);
  void enter_transit(const Record& record);
  bool may_use(const StreamUse& use);
  Record* pick_idle(const Stream& stream, std::uint64_t size, std::uint64_t capacity,
                    std::uint32_t pass);
  Record* take_idle(const Stream& stream, std::uint64_t size, std::uint64_t capacity);
  void settle_on(Record& record, const Stream& stream) noexcept;

  // pending.cpp
  bool try_reap(Record& record, RecordState was);
  template <class Wanted>
  CollectResult reap_wanted(std::uint64_t budget_ns, std::uint64_t tries, Wanted&& wanted);
  bool reap_in_the_way(const Mapping& last, std::uint64_t size);
  void finish_reap(Record* record) noexcept;
  void reap_on_the_way(std::uint64_t most = kReapsPerOperation);
  void note_given_back();
  std::uint64_t given_back();
  void leave_transit(std::uint64_t idle_bytes);
  Result<bool> wait_oldest();
  template <class Attempt>
  auto with_room(Attempt&& attempt, bool addresses_too = true) -> decltype(attempt());
  Error explain(Error error);

  // grant.cpp
  Mapping* next_to_grant(const AccessEntry& granted);
  Status grant_all(const AccessEntry& granted, std::size_t room);
  Status widen_lists(const AccessEntry& granted);
  void revoke(const AccessEntry& granted, ChainRef* reached, std::size_t count) noexcept;

  // backup.cpp
  Status queue_copies(const Record& record, const Stream& stream, bool to_host);
  Status queue_copy(const Record& record, const AddressRange& part, const Stream& stream,
                    bool to_host);
  Status copy_and_wait(Record& record, bool to_host);
  Status may_copy(const Record& record);
  Status begin_copy(Record& record);
  void end_copy(Record& record) noexcept;
  Status settle_copy(Record& record);
  Status take_backup(Record& record);

  // suspend.cpp
  class SetAtWork;
  static Record* record_of(const Buffer& buffer);
  Status check_set(std::span<Buffer* const> buffers) const;
  Status check_for_suspend(Record& record);
  Status ready_for_copies(std::span<Buffer* const> buffers);
  void restore(Record& record, Mapping& mapping) noexcept;
  Status quiesce();
  Status unmap_all(std::span<Buffer* const> buffers);
  void remap(Record& record) noexcept;
  void give_back_chunks(Record& record) noexcept;
  Status bring_back(Record& record);
  void take_down(Record& record) noexcept;
  template <class Visitor>
  static void for_each_in_chain(const Record& record, Visitor&& visit) {
    for (Mapping* mapping = record.last; mapping; mapping = mapping->prev) visit(*mapping);
  }

  // audit.cpp
  void count_all_links();
  // share.cpp
  static Result<std::vector<Mapping*>> mappings_of(const Record& record);
  Chunk* holder_of(std::uint64_t origin);
  std::uint64_t unmet_bytes(const Record& record);
  Result<ChainRef> import_chunk(const SharedBuffer::Chunk& shared, HandleType type,
                                Reservation& reservation, ChainRef below, std::uint64_t base);

  void report(FailureKind kind, const Error& error, std::uint64_t base,
              std::uint64_t size) noexcept;

  const Driver driver_;
  const VmmOptions options_;
  FailureSink& sink_;
  SystemCaps caps_;
  AllocationProperties properties_;  // of new chunks, rdma apart
  std::uint64_t granularity_ = 0;
  std::uint64_t alignment_ = 0;           // of whole reservations
  std::uint64_t max_chunk_ = UINT64_MAX;  // whole granules
  std::atomic<std::uint32_t> refs_{1};

  mutable SeamMutex mutex_;
  StreamOrder order_;
  SeamCondition changed_;  // a pending record changed hands or went; a grant or a transit ended
  SeamCondition worker_wakes_;
  SeamThread worker_;
  // Guarded by mutex_:
  AccessList* access_ = nullptr;  // of new chunks; counted
  intrusive::list<AccessList> access_lists_;
  intrusive::list<Reservation> reservations_;
  RecordList open_;
  RecordList pending_;  // retired, parked or being reaped; oldest first
  RecordList idle_;     // oldest first
  RecordsBySize idle_by_size_;
  std::uint64_t cached_ = 0;   // bytes of idle_
  std::uint64_t leaving_ = 0;  // bytes of idle ranges off the list that may come back
  std::uint64_t charged_ = 0;
  std::uint64_t given_back_ = 0;  // ranges, or parts of them, whose memory went back
  std::uint64_t leaked_handle_bytes_ = 0;
  std::uint64_t leaked_handles_ = 0;
  std::uint64_t leaked_reservations_ = 0;
  // Records whose streams an operation on no buffer is looking at, unlocked: reaped out of a park,
  // evicted, or on their way from the idle list to a buffer. forget() waits for them.
  std::uint32_t in_transit_ = 0;
  std::uint64_t worker_ranges_ = 0;
  std::uint64_t worker_bytes_ = 0;
  bool worker_stops_ = false;
  bool worker_has_news_ = false;
  const Mapping* worker_extends_ = nullptr;  // the last mapping of the range it is extending
  std::uint32_t passes_ = 0;                 // searches of the cache so far
  std::uint32_t walk_ = 0;                   // number of the last walk that marks chunks
  std::uint32_t grant_ = 0;                  // number of the last grant
  bool granting_ = false;
  bool rdma_dropped_ = false;
};

/// An operation on an open buffer, for as long as it lives.
class AtWork {
 public:
  AtWork(ResourceCore& core, const Record& record) : core_(core), record_(record) {
    core_.begin_work(record_);
  }
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;
  ~AtWork() { core_.end_work(record_); }

 private:
  ResourceCore& core_;
  const Record& record_;
};

/// A counted hold on an access list; null is fine.
class AccessHold {
 public:
  AccessHold(ResourceCore& core, AccessList* list) : core_(core), list_(list) {}
  AccessHold(const AccessHold&) = delete;
  AccessHold& operator=(const AccessHold&) = delete;
  ~AccessHold() {
    const std::unique_lock<SeamMutex> lock(core_.mutex_);
    core_.drop_access(list_);
  }

 private:
  ResourceCore& core_;
  AccessList* list_;
};

/// Owns a record that no buffer has yet, with its share of a range.
class RecordHold {
 public:
  RecordHold(ResourceCore& core, Record* record) : core_(core), record_(record) {}
  RecordHold(const RecordHold&) = delete;
  RecordHold& operator=(const RecordHold&) = delete;
  ~RecordHold() {
    if (record_) core_.release_record(record_);
  }
  Record* operator->() const { return record_; }
  Record* get() const { return record_; }
  Record* release() { return std::exchange(record_, nullptr); }

 private:
  ResourceCore& core_;
  Record* record_;
};

/// A counted hold on a chain's last mapping; dropping the last one unmaps. The undo log.
class ChainRef {
 public:
  ChainRef() = default;
  ChainRef(ResourceCore& core, Mapping* last) : core_(&core), last_(last) {}
  ChainRef(ChainRef&& other) noexcept
      : core_(other.core_), last_(std::exchange(other.last_, nullptr)) {}
  ChainRef& operator=(ChainRef&& other) noexcept {
    std::swap(core_, other.core_);
    std::swap(last_, other.last_);
    return *this;
  }
  ~ChainRef() {
    if (last_) core_->drop_chain(last_);
  }
  Mapping* get() const { return last_; }
  Mapping* operator->() const { return last_; }
  Mapping* release() { return std::exchange(last_, nullptr); }

 private:
  ResourceCore* core_ = nullptr;
  Mapping* last_ = nullptr;
};

/// A counted hold on a reservation.
class ReservationRef {
 public:
  ReservationRef(ResourceCore& core, Reservation* reservation)
      : core_(&core), reservation_(reservation) {}
  ReservationRef(ReservationRef&& other) noexcept
      : core_(other.core_), reservation_(std::exchange(other.reservation_, nullptr)) {}
  ReservationRef& operator=(ReservationRef&&) = delete;
  ~ReservationRef() {
    if (reservation_) core_->drop_reservation(reservation_);
  }
  Reservation* get() const { return reservation_; }
  Reservation* operator->() const { return reservation_; }
  Reservation& operator*() const { return *reservation_; }

 private:
  ResourceCore* core_;
  Reservation* reservation_;
};

}  // namespace granule::detail
