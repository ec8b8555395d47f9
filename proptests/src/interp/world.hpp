// Everything that a running program has made, and the ways to make calls in its name.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <granule/backends/check.hpp>
#include <granule/backends/count.hpp>
#include <granule/backends/fault.hpp>
#include <granule/backends/origin.hpp>
#include <granule/prop/machine.hpp>
#include <granule/prop/program.hpp>
#include <granule/prop/run.hpp>
#include <granule/prop/target.hpp>

#include "reply.hpp"
#include "shadow.hpp"
#include "tap.hpp"
#include "timeline.hpp"

namespace granule::prop::sched {
class CrossingMemory;
class Scheduler;
class ThreadedBackend;
}  // namespace granule::prop::sched

namespace granule::prop {

/// A stream that the program named. Default streams of one device share their lane.
struct StreamObject {
  StreamHandle handle;
  StreamKind kind = StreamKind::kCreated;
  std::int32_t device = 0;
  Lane lane = kHostLane;
  std::optional<Stream> bound;
  /// Resources were told that it goes, and then it stayed: they look at none of its later work.
  bool announced = false;
};

/// An event, made by `record` or by cuEventCreate.
struct EventObject {
  EventHandle handle;
  Clock clock;  // what was done before the last record
  bool recorded = false;
};

/// A value of the driver that the program named: an address, a handle, a descriptor, ...
struct RawObject {
  enum class Kind : std::uint8_t {
    kReservation,
    kHandle,
    kDescriptor,
    kPlain,
    kPinned,
    kBlock,
    kPool,
    kContext,
    kDeadStream,
  };
  Kind kind = Kind::kReservation;
  std::uint64_t value = 0;
};

struct ResourceObject {
  std::shared_ptr<TargetResource> target;
  TargetOptions options;
  std::vector<AccessEntry> access;  // promised to every chunk: own, peers, grants
  std::int32_t device = 0;          // whose legacy stream stands in for a missing `on`
  std::vector<Segment> released;    // whose work may go on although the memory is given back
  bool gave_a_wish_up = false;  // memory with the optional property was refused, and plain given
};

/// What streams wait for before they touch bytes that the library had ordered on one of them.
struct Readiness {
  EventHandle event;  // null: usable at once
  Clock clock;
  std::vector<Lane> lanes;  // lanes that are behind it
};

/// Sums over all vmm resources.
struct Figures {
  std::int64_t live = 0;
  std::int64_t mapped = 0;
  std::int64_t charged = 0;
  std::int64_t open = 0;  // buffers and holders
  std::size_t resources = 0;
};

/// A chunk that may be larger than what buffers show of it.
struct ChunkFacts {
  std::weak_ptr<Extent> extent;     // of the bytes that came into sight later
  std::vector<AccessEntry> access;  // promised to it when it was made, and granted since
  const ResourceObject* resource = nullptr;
  // `extent`, once it was imported: others may yet come to see it.
  std::shared_ptr<Extent> shared = nullptr;
};

struct BufferObject {
  std::unique_ptr<TargetBuffer> buffer;
  std::shared_ptr<ResourceObject> resource;
  std::string stream;             // name of the stream it was allocated for; empty: legacy
  Lane lane = kHostLane;          // of that stream
  std::vector<Segment> segments;  // empty while suspended without backup: see `suspended`
  bool suspended = false;
  bool backed_up = false;
  std::vector<ChunkFacts> put_away;  // while suspended: its chunks, in address order
  Readiness ready;
  std::vector<Lane> named;  // further streams that the library was told of, for this buffer
};

struct HolderObject {
  std::unique_ptr<TargetHolder> holder;
  std::shared_ptr<ResourceObject> resource;
  std::string stream;
  Lane lane = kHostLane;
  std::vector<Segment> segments;
};

struct BundleObject {
  std::unique_ptr<TargetBundle> bundle;
  std::vector<Segment> segments;
  Readiness ready;  // as of the exported buffer
};

struct DecoyObject {
  DevicePtr base;
  std::uint64_t size = 0;
};
struct HoleObject {
  DevicePtr base;
  std::uint64_t size = 0;
  DevicePtr keeper;  // what makes the 32 MiB block of the hole part-used; null: nothing
  std::uint64_t keeper_size = 0;
};

using Object = std::variant<StreamObject, EventObject, RawObject, std::shared_ptr<ResourceObject>,
                            BufferObject, HolderObject, BundleObject, DecoyObject, HoleObject>;

/// Counts reports of the library.
class SinkCounter final : public FailureSink {
 public:
  void report(const FailureReport& report) noexcept override;
  std::vector<FailureReport> reports;
};

/// A read whose answer is still to come.
struct Landing {
  std::uint64_t number = 0;
  std::uint8_t byte = 0;
  std::size_t statement = 0;
};

/// A buffer as a caller sees it, to tell whether a failed operation changed something.
struct Visible {
  std::string name;
  std::uint64_t base = 0;
  std::uint64_t size = 0;
  bool closed = false;
  bool suspended = false;
  friend bool operator==(const Visible&, const Visible&) = default;
};

/// Numbers of threads that the library starts, as the machine counts threads.
inline constexpr std::uint32_t kLibraryThread = 1000;

/// A thread of the program.
struct ThreadState {
  std::uint32_t number = 0;
  bool started = false;
};

class World {
 public:
  /// `chooses` picks the host thread that runs; null: one thread. It outlives the world.
  World(const Program& wanted, const RunOptions& asked, sched::Scheduler* chooses = nullptr);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  const Program& program;
  const RunOptions& options;
  RunReport report;

  sched::Scheduler* const scheduler;  // null: the program's statements are whole

  std::unique_ptr<Machine> machine;
  std::unique_ptr<sched::ThreadedBackend> threaded;  // with a scheduler
  std::unique_ptr<fault::FaultBackend> faults;
  std::unique_ptr<check::PoisonCheckBackend> poison;
  std::unique_ptr<Backend> decorated;
  std::unique_ptr<Tap> tap;
  count::CountingHostMemory host_memory;
  std::unique_ptr<sched::CrossingMemory> crossing_memory;  // with a scheduler
  SinkCounter sink;

  std::map<std::string, Object, std::less<>> objects;
  Timeline timeline;
  SizeContext sizes;

  std::size_t statement = 0;  // index of the one that runs
  bool in_host_function = false;
  std::uint32_t present_thread = 0;  // as the machine counts
  std::map<std::string, ThreadState, std::less<>> threads;
  ContextHandle primary;
  bool without_context = false;              // `context never` or `no_init`
  bool any_bare_thread = false;              // `context none` has run
  std::vector<std::uint64_t> free_at_start;  // by device
  Tap::Counts marked;
  std::vector<Lane> legacy_lanes;     // by device; kHostLane: none yet
  std::vector<Lane> capturing_lanes;  // of streams that are part of a capture
  std::vector<std::string> held;      // names of streams behind a closed gate
  std::vector<Landing> landings;
  std::uint64_t next_landing = 1;
  std::vector<Finding> findings;               // all misuse so far
  std::map<std::uint64_t, ChunkFacts> chunks;  // by physical allocation; of resources with a policy
  std::vector<AllocationHandle> ballast;
  std::uint64_t stolen = 0;                            // how often another tenant took memory
  std::vector<std::shared_ptr<void>> late_host_calls;  // arguments of host functions not yet run
  std::map<std::int32_t, std::vector<EventHandle>> spare_events;  // the interpreter's, by device
  std::map<Lane, std::pair<EventHandle, Clock>> tails;  // last events of destroyed streams
  std::vector<std::uint64_t> plain;  // addresses of cuMemAlloc memory of the program
  std::vector<std::uint64_t> pinned;
  std::vector<std::uint64_t> blocks;  // pool blocks of the program
  std::vector<PoolHandle> pools;      // pools that the program made
  std::vector<ContextHandle> contexts;
  std::vector<Descriptor> descriptors;  // open ones that the program made with driver calls
  bool any_fault = false;               // a fault was armed
  bool fault_fired = false;  // also in a statement that would block, which takes its count back
  /// Did an injected fault fire so far? What none can explain must not happen.
  bool has_faulted() const {
    return fault_fired || faults->fired_in_all() != 0 || host_memory.failed() != 0;
  }
  /// Was a call made although it was reported as failed, so that the library and the driver may
  /// rightly differ in what they hold? Also a queued free, which no ledger shows before it runs.
  bool any_orphan() const;
  bool any_import = false;           // memory that is shared outside the budget
  std::uint64_t keepers = 0;         // reservations behind holes, which no check counts
  bool followed = false;             // on hardware: a place differed from what the program says
  std::uint64_t followed_count = 0;  // expectations replaced since
  bool misused = false;              // the program released what it still uses, untold
  bool last_failed = false;          // the last statement failed or would block
  bool context_lost = false;         // a primary context was reset: its memory went with it
  std::optional<Figures> figures;    // after the last statement, if nobody else was at work
  std::vector<Visible> visible;      // buffers after the last statement of the allocator
  std::size_t made_resources = 0;
  std::size_t gone_resources = 0;  // of those, at the last look
  Holdings lost;                   // leaked by resources that are gone, and reported
  bool sticky = false;             // a kernel fault: nothing can be checked at the end
  bool misled = false;  // that fault was injected: the work that it is said to have ended goes on

  Tap& driver() { return *tap; }
  /// The logical thread of the calls that follow.
  void set_thread(std::uint32_t number) {
    present_thread = number;
    machine->set_thread(number);
  }
  model::DriverState& oracle() { return machine->oracle(); }

  /// A call written in the program.
  template <class C>
  DriverStatus program_call(C& call) {
    const OriginScope scope(CallOrigin::kProgram);
    return tap->run(call);
  }
  /// A call of the interpreter's own: not counted, never failed on purpose.
  template <class C>
  DriverStatus harness_call(C& call) {
    const OriginScope scope(CallOrigin::kHarness);
    return tap->run(call);
  }

  // Operands.
  std::uint64_t eval(const Size& size) const { return size.evaluate(sizes); }
  /// A symbol with @ replaced by the number of the repeat in progress.
  std::string expand(std::string_view name) const;
  Object* find(std::string_view name);
  template <class T>
  T* find_as(std::string_view name) {
    Object* object = find(name);
    return object ? std::get_if<T>(object) : nullptr;
  }
  /// The value of NAME+OFFSET or of a number; nothing if the name is unknown.
  std::optional<std::uint64_t> address(const Address& address);
  /// The 64-bit value of an object, as `expect same` compares it.
  std::optional<std::uint64_t> value_of(std::string_view name);
  /// The event of a name or number operand.
  std::optional<EventHandle> event(const Address& address);
  StreamObject* stream_of(const Statement& s, std::string_view key = "on");
  std::optional<Location> location(const Place& place) const;

  // Objects.
  void bind(std::string_view name, Object object);
  void unbind(std::string_view name);
  void bind_raw(const Statement& s, RawObject::Kind kind, std::uint64_t value);
  Lane legacy_lane(std::int32_t device);
  bool is_capturing(Lane lane) const;

  /// True if the device's primary context was retained.
  bool used_device(std::int32_t device) const;
  /// A device's primary context, retained at first use.
  ContextHandle primary_of(std::int32_t device);
  /// An event of the interpreter's own in the current context; null if there is none to be had.
  /// An event of the interpreter's own; the device's context is current.
  EventHandle take_event(std::int32_t device);
  void give_event(std::int32_t device, EventHandle event) { spare_events[device].push_back(event); }

 private:
  std::vector<ContextHandle> primaries_;
};

/// Makes a device's primary context current for a moment, where it is not device 0's, or where the
/// thread has none. Driver calls of a program's own are made without one then (kStays).
class DeviceScope {
 public:
  enum class Bare : std::uint8_t { kGetsOne, kStays };
  DeviceScope(World& world, std::int32_t device, Bare bare = Bare::kGetsOne);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  World& world_;
  bool pushed_ = false;
};

using Handler = Reply (*)(World& world, const Statement& statement);
/// The handler of each verb.
Handler handler_of(Verb verb);
void add_setup_handlers(std::vector<Handler>& table);
void add_stream_handlers(std::vector<Handler>& table);
void add_vmm_handlers(std::vector<Handler>& table);
void add_memory_handlers(std::vector<Handler>& table);
void add_pool_handlers(std::vector<Handler>& table);
void add_event_handlers(std::vector<Handler>& table);
void add_fault_handlers(std::vector<Handler>& table);
void add_check_handlers(std::vector<Handler>& table);
void add_ledger_handlers(std::vector<Handler>& table);
void add_bytes_handlers(std::vector<Handler>& table);
void add_alloc_handlers(std::vector<Handler>& table);
void add_resource_handlers(std::vector<Handler>& table);
void add_place_handlers(std::vector<Handler>& table);

inline void set_handler(std::vector<Handler>& table, Verb verb, Handler handler) {
  table[static_cast<std::size_t>(verb)] = handler;
}

/// Runs one statement (not its repeats).
Reply execute(World& world, const Statement& statement);
/// True if the reply is one of the alternatives that the statement expects.
bool matches(World& world, const Statement& statement, const Reply& reply);

// Parts of a run, by subject.
/// Drops whatever a name holds, in the destructor's way; ok if it holds nothing that can be
/// dropped.
Reply drop_object(World& world, std::string_view name, bool unordered);
/// Orders unfinished work on these bytes before a release that is ordered on `stream`, with calls
/// of the interpreter's own. If that stream is not the one of `lane` any more, because it was
/// destroyed, nothing can be put behind it and the host waits: would_block if that cannot end. Work
/// on the lanes `named` to the library is left to it, while their streams live and do not capture.
DriverStatus order_before_release(World& world, const std::vector<Segment>& segments,
                                  const StreamObject& stream, Lane lane,
                                  const std::vector<Lane>& named = {});
/// The stream of that name, or the legacy stream of a device if the name is empty or unknown.
StreamObject stream_named(World& world, std::string_view name, std::int32_t device);
/// What the library, the program and live decoys hold, as `expect` counts it.
Holdings counted_holdings(const World& world);
/// Asks which streams are part of a capture now, by begin or by a wait.
void look_at_captures(World& world);
/// The core's stream value of a stream object.
Result<Stream> bound_stream(World& world, StreamObject& stream);
/// The first broken standing invariant after `statement`, or nothing.
std::optional<Failure> check_invariants(World& world, const Statement* statement, bool full);
/// Landings that have come in: nothing, or what was wrong.
std::optional<Failure> check_landings(World& world, bool all);
/// Gives everything back and compares with the start.
std::optional<Failure> finish(World& world);

}  // namespace granule::prop
