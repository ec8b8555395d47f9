// The driver's whole state. One plain struct a kind of object; the functions over them are in one
// header a subject (vmm.hpp, streams.hpp, ...). Copying a State copies a machine.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <granule/backend_api/call.hpp>
#include <granule/model/config.hpp>
#include <granule/model/ledger.hpp>
#include <granule/model/model.hpp>

#include "address_space.hpp"
#include "contents.hpp"
#include "pool.hpp"

namespace granule::model {

inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kNone = UINT64_MAX;
inline constexpr std::size_t kMaxDevices = 15;  // access slots: devices, then the host
inline constexpr std::size_t kHostSlot = 15;

// ---- physical memory, handles, mappings -------------------------------------------------------

/// Physical memory. It lives while handles, mappings or open descriptors of it do.
struct Allocation {
  std::uint64_t number = 0;  // never used twice; 0: slot is free
  std::uint64_t size = 0;
  AllocationProperties properties;  // as granted
  std::uint32_t live_values = 0;    // handle slots with references or mappings
  std::uint32_t descriptors = 0;
  std::uint64_t mapped_in = 0;  // base of the reservation that it was mapped in last
  bool unmappable = false;      // made for another usage than mapping
  Contents contents;
};

/// One handle value. Imports have their own for the same allocation.
struct HandleSlot {
  std::uint32_t allocation = 0;  // index
  std::uint32_t references = 0;
  std::uint32_t mappings = 0;
  bool imported = false;
  std::uint64_t block_id = 0;       // MEMORY_BLOCK_ID
  AllocationProperties properties;  // kept after release: stale data is readable
  bool live() const { return references != 0 || mappings != 0; }
};

struct Mapping {
  std::uint64_t size = 0;
  std::uint32_t handle = 0;  // slot
  std::uint64_t buffer_id = 0;
  std::array<std::uint8_t, kMaxDevices + 1> access{};  // by device; kHostSlot: the host
};

struct Reservation {
  std::uint64_t size = 0;
  bool busy = false;                                     // quirk: cannot be freed
  std::vector<std::pair<Location, std::uint64_t>> owed;  // quirk: memory that returns with it
};

struct OpenDescriptor {
  std::uint32_t allocation = 0;
  HandleType type = HandleType::kPosixFd;
};

// ---- plain and pinned memory -------------------------------------------------------------------

/// 2 MiB blocks under cuMemAlloc memory: one large piece, or small ones in steps of 512 bytes.
struct PlainBlock {
  std::uint64_t size = 0;
  std::int32_t device = 0;
  bool small = false;
  std::map<std::uint64_t, std::uint64_t> pieces;  // small: offset -> rounded size
};

struct PlainMemory {
  std::uint64_t size = 0;   // as asked
  std::uint64_t block = 0;  // base of its block
  std::int32_t device = 0;
  ContextHandle context;
  std::uint64_t buffer_id = 0;
  Contents contents;
  StreamPoint freed{UINT64_MAX, 0};  // its free on a stream, once that has run
};

struct PinnedMemory {
  std::uint64_t size = 0;
  ContextHandle context;
  std::uint64_t buffer_id = 0;
  Contents contents;
  std::shared_ptr<std::uint8_t> real;  // with Config::real_pinned
};

// ---- streams ------------------------------------------------------------------------------------

enum class WorkKind : std::uint8_t {
  kMarker,  // an event record, or anything without effect
  kGate,    // closed until OpenGate
  kWait,    // waits for points of other streams
  kSpin,    // lasts, touches nothing
  kFill,    // memset, or a kernel that writes
  kRead,    // a copy to the host, or a kernel that reads
  kTouch,   // a kernel that reads and writes back
  kCopy,    // device to device
  kHostFunction,
  kWriteValue,
  kWaitValue,
  kFreePlain,  // the stream-ordered free of plain memory at `dst`
};

/// A set of points, one a stream: what is ordered before something.
class Clock {
 public:
  std::uint64_t at(std::uint64_t stream) const;
  void raise(std::uint64_t stream, std::uint64_t position);
  void join(const Clock& other);
  /// Nothing in `other` goes further.
  bool includes(const Clock& other) const;
  const std::vector<StreamPoint>& points() const { return points_; }

 private:
  std::vector<StreamPoint> points_;  // ascending by stream
};

/// One queued stream operation. Its position is its place in the stream's order, from 1 up.
struct Work {
  WorkKind kind = WorkKind::kMarker;
  bool kernel = false;      // faults instead of failing; its range was not checked at the call
  bool open = false;        // kGate: opened
  bool running = false;     // kHostFunction: in progress
  bool cut = false;         // its memory was unmapped or narrowed while it could be running
  bool to_host = false;     // kRead: a copy to the host
  std::uint32_t flags = 0;  // kWaitValue
  std::uint64_t opened_at = 0;
  std::uint64_t enqueued_at = 0;  // virtual time
  std::uint64_t duration = 0;
  std::uint64_t dst = 0;
  std::uint64_t src = 0;
  std::uint64_t size = 0;
  std::uint64_t landing = 0;
  void* host = nullptr;
  void (*function)(void*) = nullptr;
  void* argument = nullptr;
  std::uint64_t value = 0;
  std::uint64_t host_epoch = 0;     // what the host had seen when it was enqueued
  Bytes bytes;                      // kFill
  std::vector<StreamPoint> points;  // kWait
  Clock order;                      // kWait: all that is before those points
};

/// First in, first out; an empty one owns no memory.
class WorkQueue {
 public:
  bool empty() const { return head_ == items_.size(); }
  std::size_t size() const { return items_.size() - head_; }
  Work& front() { return items_[head_]; }
  const Work& front() const { return items_[head_]; }
  Work& operator[](std::size_t i) { return items_[head_ + i]; }
  const Work& operator[](std::size_t i) const { return items_[head_ + i]; }
  void push_back(Work work) { items_.push_back(std::move(work)); }
  void pop_front();
  void clear();
  auto begin() { return items_.begin() + static_cast<std::ptrdiff_t>(head_); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin() + static_cast<std::ptrdiff_t>(head_); }
  auto end() const { return items_.end(); }

 private:
  std::vector<Work> items_;
  std::size_t head_ = 0;
};

enum class StreamKind : std::uint8_t { kNonBlocking, kBlocking, kLegacy, kPerThread };

/// A stream's order of work: positions 1..submitted were enqueued, 1..ran have run.
struct Stream {
  std::uint64_t handle = 0;  // 0 for default streams
  StreamKind kind = StreamKind::kNonBlocking;
  std::uint64_t context = 0;  // ContextHandle value
  std::uint32_t thread = 0;   // kPerThread
  std::int32_t device = 0;
  bool destroyed = false;
  DriverStatus fault = DriverStatus::kSuccess;  // its head faulted: nothing behind it runs
  WorkQueue queue;                              // positions ran+1 .. submitted
  std::uint64_t ran = 0;
  std::uint64_t seen = 0;         // the host knows, by any means, that these have run
  std::uint64_t synced = 0;       // the host has waited for these
  std::uint64_t last_finish = 0;  // virtual time
  Clock order;                    // what the next operation enqueued is ordered behind
  Clock run_order;                // the same of the operation that runs next
  std::vector<std::pair<std::uint64_t, std::uint64_t>> seen_at;  // (host epoch, position)
  std::uint64_t capture = 0;  // number of the capture it is part of; 0: none
  std::uint64_t closed_gates = 0;
  std::uint64_t capture_nodes = 0;
  std::uint32_t queries = 0;  // NOT_READY answers since it last moved
  std::uint64_t submitted() const { return ran + queue.size(); }
};

struct Event {
  std::uint64_t context = 0;
  std::int32_t device = 0;
  bool recorded = false;
  std::uint64_t capture = 0;  // recorded into this capture
  std::uint64_t capture_node = 0;
  StreamPoint point;
  Clock order;  // what the recording is ordered behind, itself included
};

struct Capture {
  CaptureMode mode = CaptureMode::kGlobal;
  CaptureStatus status = CaptureStatus::kActive;
  std::uint32_t thread = 0;
  std::uint64_t origin = 0;  // stream
  std::int32_t device = 0;
  std::uint64_t context = 0;
  bool ended = false;
  std::map<std::uint64_t, std::uint64_t> forked;  // stream -> last node that was joined
  std::uint64_t pool_nodes = 0;
};

// ---- contexts and threads -----------------------------------------------------------------------

struct Context {
  std::int32_t device = 0;
  bool primary = false;
  bool active = false;
  std::uint64_t retains = 0;           // primary
  std::uint64_t legacy = kNone;        // stream
  std::vector<std::uint64_t> streams;  // all that live, have work, or work unseen; ascending
  std::map<std::uint32_t, std::uint64_t> per_thread;  // thread -> stream
};

struct HostThread {
  std::vector<std::uint64_t> contexts;  // stack, current last
  CaptureMode capture_mode = CaptureMode::kGlobal;
};

struct Device {
  DeviceConfig config;
  std::uint64_t total = 0;
  std::uint64_t free = 0;
  DriverStatus pending_fault = DriverStatus::kSuccess;  // happened, nobody was told
  DriverStatus sticky = DriverStatus::kSuccess;         // every call but VMM ones says so
  bool lost = false;                                    // what is queued has no effect any more
  bool dead = false;                                    // reset after a fault
  std::uint64_t primary = 0;                            // context handle
};

struct State {
  explicit State(Config config);

  Config config;
  bool initialized = false;
  std::uint64_t calls = 0;
  std::uint64_t now = 0;  // virtual nanoseconds
  std::uint64_t random = 0;
  std::uint64_t host_epoch = 1;
  std::uint32_t quirk_not_ready = 0;
  std::vector<Device> devices;

  // VMM
  AddressSpace addresses;
  std::optional<AddressSpace> own_addresses;  // Config::own_base
  /// Where plain memory and pool windows lie.
  AddressSpace& plain_addresses() { return own_addresses ? *own_addresses : addresses; }
  std::map<std::uint64_t, Reservation> reservations;
  std::map<std::uint64_t, Mapping> mappings;
  std::vector<Allocation> allocations;
  std::vector<std::uint32_t> free_allocations;
  std::vector<HandleSlot> handles;
  std::deque<std::uint32_t> dead_handles;                        // slots, released last at the back
  std::unordered_map<std::uint64_t, std::uint32_t> odd_handles;  // values that were forced
  std::vector<std::uint64_t> odd_values;  // their values, by slot, 0: regular
  std::map<std::int32_t, OpenDescriptor> descriptors;
  std::uint64_t next_allocation = 1;
  std::uint64_t next_id = 1;  // buffer and block ids
  std::deque<std::uint64_t> forced_reserves;
  std::deque<std::uint64_t> forced_handles;
  std::deque<std::uint64_t> forced_pool_blocks;
  std::optional<bool> forced_grant;

  // plain and pinned memory
  std::map<std::uint64_t, PlainBlock> plain_blocks;
  std::map<std::uint64_t, PlainMemory> plain;
  std::map<std::uint64_t, PlainMemory> dying_plain;  // freed on a stream, the free has not run
  std::map<std::uint64_t, PinnedMemory> pinned;
  std::map<std::uint64_t, std::uint64_t> host_words;
  std::uint64_t next_pinned = 0;

  // pools
  PoolState pools;
  std::map<std::uint64_t, Contents> pool_contents;  // by window base

  // streams
  std::vector<Stream> streams;  // never shrinks; a stream's number is its index
  std::map<std::uint64_t, std::uint64_t> stream_handles;  // live handle -> number
  std::vector<std::uint64_t> dead_stream_handles;
  std::vector<std::uint64_t> busy_streams;  // with work that has not run, ascending
  std::uint64_t next_stream_handle = 0;
  std::map<std::uint64_t, Event> events;
  std::uint64_t next_event = 0;
  std::vector<std::uint64_t> dead_events;
  std::map<std::uint64_t, Capture> captures;  // by number
  std::uint64_t next_capture = 1;
  std::uint64_t active_captures = 0;  // not ended
  std::map<std::uint64_t, std::uint64_t> graphs;
  std::uint64_t next_graph = 0;
  std::map<std::uint64_t, ByteSummary> landings;
  std::deque<std::pair<StreamPoint, Clock>> free_orders;  // of pool blocks, the newest last
  std::uint64_t pending_memory_work = 0;                  // queued items that touch memory
  std::uint64_t possible_blocks = 0;  // queued gates that are closed, value waits, host functions

  // contexts and threads
  std::map<std::uint64_t, Context> contexts;
  std::uint64_t next_context = 0;
  std::map<std::uint32_t, HostThread> threads;

  Ledger ledger;
  std::vector<Violation> violations;
  HostFunctionRunner* runner = nullptr;
  bool dry = false;  // a trial: host memory is not written
};

// ---- used everywhere ----------------------------------------------------------------------------

void violate(State& state, ViolationKind kind, std::string message);
std::string hex(std::uint64_t value);
/// The next number of the state's own generator.
std::uint64_t next_random(State& state);
/// What of a device's free memory a request can have: one granule and the remainder are out of
/// reach (driver contract, S25).
std::uint64_t usable_memory(const State& state, std::int32_t device);
/// Takes memory at a place, emptying idle pool memory if need be (not for pools' own requests).
bool take_memory(State& state, const Location& place, std::uint64_t bytes, bool empty_pools);
void give_memory(State& state, const Location& place, std::uint64_t bytes);

}  // namespace granule::model
