// What must happen before what between host threads: whoever unmaps, releases, frees or records
// again has to know, by a lock or by waiting for a stream, of everything that others did with that
// object before. That the calls came in a good order this time is not enough.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>

#include <granule/backend_api/backend.hpp>
#include <granule/backend_api/call.hpp>

#include "scheduler.hpp"

namespace granule::prop::sched {

/// Looks at calls that succeeded.
class HostOrder {
 public:
  explicit HostOrder(Scheduler& scheduler) : scheduler_(scheduler) {}

  /// `of_library`: the library made the call; only such calls are held to the rule.
  void learn(const Call& call, bool of_library);
  /// The present thread was handed these bytes: it must know of all that was done to their
  /// mappings.
  void expect_known(std::uint64_t base, std::uint64_t size);

 private:
  struct Trace {
    HostClock known;  // the last step of each thread that did something with the object
    CallKind last{};  // the last call
    std::uint32_t references = 0;
    std::uint64_t size = 0;  // of a reservation or a mapping
  };
  using Traces = std::map<std::uint64_t, Trace>;

  Traces& of(ObjectKind kind) { return traces_[static_cast<std::size_t>(kind)]; }
  void touch(Trace& trace, CallKind call);
  void expect_all_known(const Trace& trace, ObjectKind kind, CallKind call);
  void make(ObjectKind kind, std::uint64_t value, CallKind call, std::uint64_t size = 0);
  void use(ObjectKind kind, std::uint64_t value, CallKind call);
  void drop(ObjectKind kind, std::uint64_t value, CallKind call);
  void use_reservation(std::uint64_t address, CallKind call);
  void learn_objects(const Call& call);
  void learn_places(const Call& call);
  void learn_order(const Call& call, bool of_library);
  HostClock& stream_clock(StreamHandle stream) { return streams_[stream.value]; }
  void know_streams(StreamHandle stream, HostClock& clock);

  Scheduler& scheduler_;
  std::array<Traces, 16> traces_;
  std::map<std::uint64_t, HostClock> streams_;  // what was known to whoever queued work there
  std::map<std::uint64_t, HostClock> events_;
};

/// Right around the driver of a run: lets a thread wait where the model says that a call would
/// block, and shows HostOrder what succeeded.
class ThreadedBackend final : public Backend {
 public:
  ThreadedBackend(Backend& inner, Scheduler& scheduler)
      : inner_(inner), scheduler_(scheduler), order_(scheduler) {}
  DriverStatus execute(Call& call) noexcept override;
  HostOrder& order() { return order_; }
  /// That memory was made by a thread of the library's own, wherever it is mapped by now.
  bool is_of_worker(AllocationHandle handle) const;
  /// It was made by another thread of the program.
  bool is_of_another(AllocationHandle handle) const;

 private:
  void learn_maker(const Call& call);

  Backend& inner_;
  Scheduler& scheduler_;
  HostOrder order_;
  std::map<std::uint64_t, ThreadIndex> makers_;  // of memory, by handle
};

}  // namespace granule::prop::sched
