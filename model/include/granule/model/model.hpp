// The reference model: a driver state that can be copied, one step function, and a Backend over it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <granule/backend_api/backend.hpp>
#include <granule/backend_api/call.hpp>
#include <granule/backend_api/export.hpp>
#include <granule/model/config.hpp>
#include <granule/model/ledger.hpp>

namespace granule::model {

/// A logical host thread. Each has its own current context and capture mode.
struct ThreadId {
  std::uint32_t value = 0;
  friend constexpr auto operator<=>(const ThreadId&, const ThreadId&) = default;
};
/// The thread that host functions run on.
inline constexpr ThreadId kHostFunctionThread{0xffffffffu};

struct State;  // model/src/state.hpp

/// Called when a queued host function runs; it may call step on the same state, as
/// kHostFunctionThread. Without a runner host functions are taken as done.
class GRANULE_EXPORT HostFunctionRunner {
 public:
  virtual ~HostFunctionRunner() = default;
  virtual void run_host_function(void (*function)(void*), void* argument) = 0;
};

/// Everything a driver and its devices hold. A value: copies are independent (a copy has no
/// runner). Not thread-safe; see ModelBackend.
class GRANULE_EXPORT DriverState {
 public:
  explicit DriverState(Config config = {});
  DriverState(const DriverState& other);
  DriverState& operator=(const DriverState& other);
  DriverState(DriverState&&) noexcept;
  DriverState& operator=(DriverState&&) noexcept;
  ~DriverState();

  const Config& config() const;
  /// Switches that may change while the machine runs.
  void set_ignore_hints(bool on);
  void set_verdict(Verdict verdict);
  void set_schedule(Schedule schedule);
  void set_quirks(const Quirks& quirks);
  void set_runner(HostFunctionRunner* runner);

  // Policy inputs: what a followed driver chose. Each is used once, in order.
  /// The next successful reserve lands at `address` if that is free and aligned.
  void force_next_reserve(std::uint64_t address);
  /// The next new handle value (create or import) is `value`, if no live handle has it.
  void force_next_handle(std::uint64_t value);
  /// The next pool block lies at `address`, if the rules allow it.
  void force_next_pool_block(std::uint64_t address);
  /// The next request for device memory near the limit is granted, or refused as out of memory:
  /// how much of the last free memory can be had is the driver's affair.
  void force_next_grant(bool granted);
  /// Forgets what was forced and not used.
  void clear_forced();

  // Progress that a followed driver has shown. Nothing is observed by the host.
  /// Runs everything up to what the event recorded, if nothing holds it; whether it has run.
  bool advance_event(EventHandle event);
  /// Runs everything queued on a stream so far, if nothing holds it; whether it has run.
  bool advance_stream(ThreadId thread, StreamHandle stream);
  /// The same up to the last pool block that was freed on the stream.
  bool advance_frees(ThreadId thread, StreamHandle stream);
  /// An error of earlier work has killed the contexts of all devices: what is queued has no effect
  /// any more, and their calls answer `status`, at once or from the first one on that looks at
  /// work.
  void lose_contexts(DriverStatus status, bool at_once);
  /// Faults that happened and were not reported become the answer of their device's calls.
  void reveal_faults();

  /// Totals, with those of pools filled in.
  Ledger ledger() const;
  /// Free and total bytes of a device, as cuMemGetInfo would say; works in any state.
  std::uint64_t free_bytes(std::int32_t device) const;
  std::uint64_t total_bytes(std::int32_t device) const;
  std::uint64_t now_ns() const;  ///< virtual time
  std::uint64_t calls() const;   ///< calls made so far
  /// The largest single allocation that a create could have now, pools left alone.
  std::uint64_t largest_create(std::int32_t device) const;

  // Look-ups by address, O(log n).
  std::optional<ReservationView> reservation_at(std::uint64_t address) const;
  std::optional<MappingView> mapping_at(std::uint64_t address) const;
  /// Access of a device, or of the host, to a mapped address; nothing where nothing is mapped.
  std::optional<Access> access_at(std::uint64_t address, Location location) const;
  /// True if every byte is mapped and `location` has at least `access`.
  bool range_has_access(std::uint64_t address, std::uint64_t size, Location location,
                        Access access) const;
  /// How far the host itself reaches a range, for copies by the CPU.
  HostReach host_reach(std::uint64_t address, std::uint64_t size, Access need) const;
  /// What the bytes are once all work that can run has run; does not run anything.
  ByteSummary bytes_now(std::uint64_t address, std::uint64_t size) const;

  // Lists in ascending order, O(n).
  std::vector<ReservationView> reservations() const;
  std::vector<MappingView> mappings() const;
  std::vector<MappingView> mappings_in(std::uint64_t address, std::uint64_t size) const;
  std::vector<HandleView> handles() const;
  std::vector<BlockView> blocks() const;

  /// Whether the work that an event recorded has run. True for one never recorded.
  bool event_done(EventHandle event) const;
  /// True while a gate of any stream is closed.
  bool any_gate() const;
  /// Items queued that have not run, over all streams.
  std::uint64_t pending_work() const;
  /// Whether queued work that has not run touches any of these bytes.
  bool work_pending_on(std::uint64_t address, std::uint64_t size) const;
  /// Runs everything that is not held; the harness's end-of-program drain.
  void drain();
  /// Opens every closed gate, those of destroyed streams too.
  void open_all_gates();

  /// Host words that stream memory operations write and wait for.
  std::uint64_t host_word(std::uint64_t address) const;
  void set_host_word(std::uint64_t address, std::uint64_t value);

  const std::vector<Violation>& violations() const;
  std::vector<Violation> take_violations();
  /// For harnesses that find something wrong themselves.
  void add_violation(ViolationKind kind, std::string message);

  State& raw() { return *state_; }
  const State& raw() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

/// Executes one call. Deterministic: reads and writes nothing but its arguments and the host
/// memory that copies name. kWouldBlock means: no effect at all. kUndefined: the driver would
/// crash; a violation says why.
GRANULE_EXPORT DriverStatus step(DriverState& state, ThreadId thread, Call& call);

/// Whether step would answer kWouldBlock. Has no effect.
GRANULE_EXPORT bool would_block(const DriverState& state, ThreadId thread, const Call& call);

/// The model as a backend. Thread-safe: one mutex around each call.
class GRANULE_EXPORT ModelBackend final : public Backend, private HostFunctionRunner {
 public:
  explicit ModelBackend(Config config = {});
  ~ModelBackend() override;

  DriverStatus execute(Call& call) noexcept override;

  /// The logical thread of the calling OS thread for its next calls. Without it each OS thread
  /// gets a number of its own, in order of first call; the first is 0.
  void set_thread(ThreadId thread);
  bool would_block(const Call& call);
  std::vector<Violation> take_violations();

  /// Starts again as a fresh machine.
  void reset(Config config);
  /// Direct access for oracles; the caller sees to it that no call is in progress.
  DriverState& state() { return state_; }
  const DriverState& state() const { return state_; }

 private:
  void run_host_function(void (*function)(void*), void* argument) override;
  ThreadId current_thread();

  std::recursive_mutex mutex_;  // host functions call back in
  DriverState state_;
  std::uint64_t serial_;  // tells backends apart in a thread's cache
  std::vector<std::pair<std::thread::id, ThreadId>> threads_;
  std::uint32_t next_thread_ = 0;
  bool in_host_function_ = false;
};

}  // namespace granule::model
