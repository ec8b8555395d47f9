// The sync seam: mutex, waiting, clock and host memory of the core, replaceable by a harness.
// The defaults are the std ones behind one predictable branch; a harness that chooses thread
// interleavings, counts or fails host allocations, or owns the clock installs its own Runtime.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>

#include <granule/backend_api/export.hpp>

namespace granule {

/// Host memory for the library's own records. Implementations must be thread-safe.
class GRANULE_EXPORT HostMemory {
 public:
  virtual ~HostMemory() = default;
  /// `size` bytes aligned to `alignment` (a power of two), or null if there are none. Never throws.
  virtual void* allocate(std::size_t size, std::size_t alignment) noexcept = 0;
  /// Gives back what allocate returned, with the same size and alignment. Never fails.
  virtual void deallocate(void* block, std::size_t size, std::size_t alignment) noexcept = 0;
};

/// What a harness does instead of std::mutex, std::condition_variable and the steady clock.
/// `mutex` and `condition` are only identities here. Implementations must be thread-safe.
class GRANULE_EXPORT SyncHooks {
 public:
  virtual ~SyncHooks() = default;
  virtual void lock(const void* mutex) = 0;
  virtual void unlock(const void* mutex) = 0;
  /// Gives `mutex` up, waits for a notify of `condition`, takes `mutex` again.
  virtual void wait(const void* condition, const void* mutex) = 0;
  /// As wait, but for at most `timeout_ns`; false if that passed without a notify.
  virtual bool wait_for(const void* condition, const void* mutex, std::uint64_t timeout_ns) = 0;
  virtual void notify_all(const void* condition) = 0;
  /// Runs body(argument) on a new thread; its number, for join_thread. 0: there is none to be had.
  virtual std::uint64_t start_thread(void (*body)(void*), void* argument) = 0;
  /// Waits for the end of that thread. Once for each.
  virtual void join_thread(std::uint64_t thread) = 0;
  /// A point at which another thread may be made to run: before each driver call of the core.
  virtual void yield_point() = 0;
  virtual std::uint64_t now_ns() = 0;
};

/// Host memory from ::operator new(std::nothrow); one object for the whole process.
GRANULE_EXPORT HostMemory& default_host_memory() noexcept;

/// The seam as it is handed to the core. Both members outlive everything made with it.
struct Runtime {
  SyncHooks* hooks = nullptr;    // null: std primitives
  HostMemory* memory = nullptr;  // null: default_host_memory()

  HostMemory& host_memory() const noexcept { return memory ? *memory : default_host_memory(); }
  /// Monotonic nanoseconds.
  std::uint64_t now_ns() const {
    if (hooks) return hooks->now_ns();
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                          std::chrono::steady_clock::now().time_since_epoch())
                                          .count());
  }
  void yield_point() const {
    if (hooks) hooks->yield_point();
  }
};

/// A mutex behind the seam; BasicLockable. Not recursive.
class GRANULE_EXPORT SeamMutex {
 public:
  explicit SeamMutex(const Runtime& runtime) : hooks_(runtime.hooks) {}
  void lock() {
    if (hooks_) {
      hooks_->lock(this);
    } else {
      mutex_.lock();
    }
  }
  void unlock() {
    if (hooks_) {
      hooks_->unlock(this);
    } else {
      mutex_.unlock();
    }
  }

 private:
  SyncHooks* hooks_;
  std::mutex mutex_;
};

/// A condition behind the seam, for use with a SeamMutex that the caller holds.
class GRANULE_EXPORT SeamCondition {
 public:
  explicit SeamCondition(const Runtime& runtime) : hooks_(runtime.hooks) {}
  void wait(SeamMutex& held) {
    if (hooks_) {
      hooks_->wait(this, &held);
    } else {
      condition_.wait(held);
    }
  }
  /// False if `timeout_ns` passed without a notify.
  bool wait_for(SeamMutex& held, std::uint64_t timeout_ns) {
    if (hooks_) return hooks_->wait_for(this, &held, timeout_ns);
    return condition_.wait_for(held, std::chrono::nanoseconds(timeout_ns)) ==
           std::cv_status::no_timeout;
  }
  void notify_all() {
    if (hooks_) {
      hooks_->notify_all(this);
    } else {
      condition_.notify_all();
    }
  }

 private:
  SyncHooks* hooks_;
  std::condition_variable_any condition_;
};

/// A thread behind the seam. Not copyable; join before it is destroyed. Used by one thread at a
/// time.
class GRANULE_EXPORT SeamThread {
 public:
  explicit SeamThread(const Runtime& runtime) : hooks_(runtime.hooks) {}
  SeamThread(const SeamThread&) = delete;
  SeamThread& operator=(const SeamThread&) = delete;
  ~SeamThread() = default;

  /// Runs body(argument) on a new thread. False if there is none to be had. Once.
  bool start(void (*body)(void*), void* argument) noexcept;
  bool is_started() const { return number_ != 0 || thread_.joinable(); }
  /// Waits for its end; nothing if it was not started.
  void join() noexcept;

 private:
  SyncHooks* hooks_;
  std::uint64_t number_ = 0;
  std::thread thread_;
};

}  // namespace granule
