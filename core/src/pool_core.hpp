// PoolCore: what both kinds of pools share: counted state, block records, stream order, parking.
#pragma once

#include <atomic>
#include <mutex>

#include <granule/pool.hpp>

#include "context_scope.hpp"
#include "driver.hpp"
#include "host_objects.hpp"
#include "objects.hpp"
#include "stream_order.hpp"

namespace granule::detail {

/// A block, open, parked or idle.
struct PoolRecord : ListHook, SetHook {
  DevicePtr ptr;
  std::uint64_t size = 0;
  StreamUse use;  // the stream it is freed on
};
struct PoolRecordBySize {
  using type = std::uint64_t;
  std::uint64_t operator()(const PoolRecord& record) const { return record.size; }
};

class PoolCore {
 public:
  PoolCore(const PoolCore&) = delete;
  PoolCore& operator=(const PoolCore&) = delete;
  void ref() noexcept { refs_.fetch_add(1, std::memory_order_relaxed); }
  void unref() noexcept;

  /// Ends an open block by the rules of PoolBuffer::close. On success `record` is null.
  Status close(PoolRecord*& record, const Stream* stream);
  /// By those of PoolBuffer::drop.
  void drop(PoolRecord*& record) noexcept;
  /// Frees parked blocks whose streams no longer capture.
  CollectResult collect();
  /// Records what blocks need of a stream that is about to be destroyed.
  Status forget(const Stream& stream);

 protected:
  using Lock = std::unique_lock<SeamMutex>;
  PoolCore(Backend& backend, const Environment& environment);
  virtual ~PoolCore() = default;

  /// Gives the block back in the order of its stream, which does not capture. On success the
  /// record is the implementation's.
  virtual Status give_back(PoolRecord* record) = 0;
  /// Nobody but parked blocks is left.
  virtual void shut_down() noexcept = 0;
  virtual void destroy() noexcept = 0;
  /// With mutex_ held: the implementation's own records, if it keeps any.
  virtual intrusive::list<PoolRecord>* kept() { return nullptr; }

  Status refuse_if_capturing(const StreamUse& use) const;
  PoolBuffer make_buffer(PoolRecord* record) {
    ref();
    const Lock lock(mutex_);
    open_.push_back(*record);
    return PoolBuffer(this, record);
  }
  void free_record(PoolRecord* record) noexcept;
  void report(FailureKind kind, const Error& error, DevicePtr ptr, std::uint64_t size) noexcept;
  /// Leaks what is still parked, and says so.
  void abandon_parked() noexcept;
  /// With mutex_ held. Between the two a block is in no list although nobody owns it: forget()
  /// waits, and so does whoever finds no room.
  void enter_transit() { ++in_transit_; }
  void leave_transit();
  /// Transits that have ended, once none is under way.
  std::uint64_t await_transits(Lock& lock);
  std::uint64_t transits() {
    Lock lock(mutex_);
    return await_transits(lock);
  }

  const Driver driver_;
  FailureSink& sink_;
  mutable SeamMutex mutex_;
  StreamOrder order_;

 private:
  std::atomic<std::uint32_t> refs_{1};
  SeamCondition changed_;  // the last transit has ended
  // Guarded by mutex_:
  intrusive::list<PoolRecord> open_;
  intrusive::list<PoolRecord> parked_;
  std::uint32_t in_transit_ = 0;
  std::uint64_t transits_ = 0;  // that have ended
};

/// Makes a C in host memory from the seam; null if there is none.
template <class C, class... Args>
C* make_pool_core(const Environment& environment, Args&&... args) {
  void* block = environment.runtime.host_memory().allocate(sizeof(C), alignof(C));
  return block ? ::new (block) C(std::forward<Args>(args)...) : nullptr;
}

template <class C>
void destroy_pool_core(C* core, Runtime runtime) noexcept {
  core->~C();
  runtime.host_memory().deallocate(core, sizeof(C), alignof(C));
}

}  // namespace granule::detail
