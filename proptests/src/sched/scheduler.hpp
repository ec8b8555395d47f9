// A scheduler for the host threads of one run: fibres of which exactly one runs, and which change
// only where the library passes the sync seam. Which one runs next a Policy says, so that a run is
// a function of its program and its seed. It also keeps what each thread knows of the others, by
// vector clocks over the seam, and says who waits for what when nobody can go on.
#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <granule/backend_api/sync.hpp>

#include "clock.hpp"
#include "fibre.hpp"
#include "policy.hpp"

namespace granule::prop::sched {

/// Something that is wrong between threads.
struct ThreadFinding {
  std::string signature;
  std::string message;
};

/// The names that a statement reads and changes: statements of several threads run at once only
/// where none changes what another names.
struct NameClaim {
  std::vector<std::string> reads;
  std::vector<std::string> changes;
  bool alone = false;  // nothing else may be under way
  friend bool operator==(const NameClaim&, const NameClaim&) = default;
};

/// Used by one OS thread. What is made over it must be gone before it is.
class Scheduler final : public SyncHooks {
 public:
  explicit Scheduler(std::unique_ptr<Policy> policy);
  ~Scheduler() override;

  /// Runs `main` as thread 0 until it and all it joined have ended. Called once. If the threads got
  /// stuck, their stacks are abandoned and stuck() says why: whatever they worked on must then be
  /// left alone for good. An exception that leaves a thread does the same, and is rethrown.
  void run(std::function<void()> main);
  /// After run() has failed: the scheduler and its stacks are kept for good by whoever knows it.
  void abandon();
  bool is_stuck() const { return stuck_.has_value(); }
  const ThreadFinding& stuck() const { return *stuck_; }

  /// A new thread, ready to run.
  ThreadIndex start(std::string name, std::function<void()> body);
  void join(ThreadIndex thread);
  ThreadIndex current() const { return current_; }
  std::size_t threads() const { return threads_.size(); }
  /// Told of every change of threads, before the other one goes on.
  std::function<void(ThreadIndex from, ThreadIndex to)> on_change;

  /// A crossing: another thread may be made to run.
  void cross(bool between_statements = false);
  /// While true nobody is made to give way, and locks order nothing: what a harness looks at stays
  /// as it is, and its looking is no synchronisation of the library's.
  void pin(bool on) { pinned_ = on; }
  /// The present thread's driver call would block. True: try it again; false: it cannot end.
  bool await_driver();
  /// A driver call was made: what would have blocked before may go on.
  void driver_moved() { ++driver_moves_; }

  /// Waits until the claim is free of conflicts and takes it. One claim a thread at a time.
  void take(NameClaim claim);
  void give_back();
  /// Other threads that hold claims now.
  std::size_t others_busy() const;
  /// Claims that were ever taken.
  std::uint64_t claims() const { return claims_; }

  /// Lets the library's own threads go on until each of them waits. Finished threads count.
  void settle();
  bool library_rests() const;
  bool is_of_library(ThreadIndex thread) const { return threads_[thread].of_library; }
  /// As settle, if the policy says so. True if they rest.
  bool may_settle();
  /// How often one of the library's own threads was made to run.
  std::uint64_t library_turns() const { return library_turns_; }

  /// What a thread knows.
  HostClock& clock(ThreadIndex thread) { return threads_[thread].clock; }
  const std::string& name(ThreadIndex thread) const { return threads_[thread].name; }
  void find(std::string signature, std::string message);
  std::vector<ThreadFinding> take_findings();
  /// A finding if the present thread holds a lock while it does that.
  void expect_no_lock(std::string_view what);

  // SyncHooks
  void lock(const void* mutex) override;
  void unlock(const void* mutex) override;
  void wait(const void* condition, const void* mutex) override;
  bool wait_for(const void* condition, const void* mutex, std::uint64_t timeout_ns) override;
  void notify_all(const void* condition) override;
  void yield_point() override;
  std::uint64_t now_ns() override;
  std::uint64_t start_thread(void (*body)(void*), void* argument) override;
  void join_thread(std::uint64_t thread) override;

 private:
  enum class State : std::uint8_t {
    kReady,
    kLock,
    kCondition,
    kDriver,
    kClaim,
    kJoin,
    kSettle,
    kDone
  };
  struct Thread {
    std::string name;
    std::function<void()> body;
    std::unique_ptr<Fibre> fibre;
    Scheduler* scheduler = nullptr;
    ThreadIndex number = 0;
    State state = State::kReady;
    const void* waits_for = nullptr;        // kLock, kCondition
    std::optional<std::uint64_t> deadline;  // kCondition
    bool timed_out = false;
    std::uint64_t driver_moves = 0;  // kDriver: seen when it was asked
    bool driver_hopeless = false;
    ThreadIndex joins = 0;  // kJoin
    NameClaim claim;
    bool busy = false;  // holds its claim
    bool of_library = false;
    HostClock clock;
  };
  struct Mutex {
    const void* address = nullptr;
    std::optional<ThreadIndex> owner;
    HostClock clock;
  };

  static void enter(void* thread);
  Mutex& mutex_of(const void* address);
  void acquire(const void* mutex);
  void hand_back(const void* mutex);
  bool can_go_on(const Thread& thread) const;
  bool conflicts(const NameClaim& claim, ThreadIndex thread) const;
  void gather();
  bool wake_somebody();
  void block();
  void change_to(ThreadIndex next);
  template <class Visitor>
  static void for_each_claimed(const NameClaim& claim, Visitor&& visit);
  void give_up(std::string signature, const std::string& message);
  [[noreturn]] void leave();
  std::string who_waits() const;

  static constexpr std::uint64_t kMostCrossings = 400'000;

  std::unique_ptr<Policy> policy_;
  Fibre outside_;
  std::deque<Thread> threads_;
  ThreadIndex current_ = 0;
  std::vector<ThreadIndex> ready_;  // scratch of gather
  std::vector<Mutex> mutexes_;      // in order of first use
  /// What those knew that read or changed a name: the program's own order between its threads.
  struct NameClocks {
    HostClock readers;
    HostClock changers;
  };
  std::map<std::string, NameClocks, std::less<>> names_;
  std::uint64_t now_ns_ = 1;
  std::uint64_t driver_moves_ = 0;
  std::uint64_t crossings_ = 0;
  bool pinned_ = false;
  std::uint64_t claims_ = 0;
  std::uint64_t library_turns_ = 0;
  std::vector<ThreadFinding> findings_;
  std::optional<ThreadFinding> stuck_;
  std::exception_ptr escaped_;
};

/// Host memory at whose every allocation another thread may be made to run.
class CrossingMemory final : public HostMemory {
 public:
  CrossingMemory(Scheduler& scheduler, HostMemory& inner) : scheduler_(scheduler), inner_(inner) {}
  void* allocate(std::size_t size, std::size_t alignment) noexcept override {
    scheduler_.cross();
    return inner_.allocate(size, alignment);
  }
  void deallocate(void* block, std::size_t size, std::size_t alignment) noexcept override {
    inner_.deallocate(block, size, alignment);
  }

 private:
  Scheduler& scheduler_;
  HostMemory& inner_;
};

}  // namespace granule::prop::sched
