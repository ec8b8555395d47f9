// The follower: a backend that asks a device and a model the same, call by call, takes over what
// the device may choose and reports what it may not.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <granule/backend_api/backend.hpp>
#include <granule/backends/origin.hpp>
#include <granule/model/model.hpp>

#include "model_error.hpp"
#include "rename.hpp"

namespace granule::gpu {

/// How far the last free memory that can be had may differ from the model's figure, and how much a
/// driver may hold for itself.
inline constexpr std::uint64_t kOwnMemorySlack = std::uint64_t{64} << 20;

/// One answer of the device that the model does not allow.
struct Divergence {
  std::uint64_t number = 0;  // of the call, from 1
  CallOrigin origin = CallOrigin::kProgram;
  std::string call;   // as the device was asked and answered, in text form
  std::string model;  // the model's answer to the same
  std::string field;  // "status", the name of an output, or "free memory"
  std::string device_says;
  std::string model_says;
  /// What stays the same from run to run: "cuMemMap status CUDA_SUCCESS CUDA_ERROR_INVALID_VALUE".
  std::string signature;
};
std::string to_text(const Divergence& divergence);

bool is_pool_allocation(const Call& call);
/// Calls whose effect depends on which frees have run: pool allocations, the end of a stream; and
/// gates, behind which no query tells any more.
bool shows_frees(const Call& call);

/// From here on the text of each call is put into `buffer` before the device is asked, so that
/// whoever survives the process can read what it was doing. Null: not any more.
void log_calls_to(char* buffer, std::size_t size);
/// What the device is asked next, for that buffer.
void log_call(const std::string& text);

/// Executes calls on `device` and steps `oracle` behind it. Calls that the oracle says would block
/// for ever or are undefined are never started: the oracle's answer is given. Thread-safe as far as
/// host functions and one caller at a time need it.
class Follower final : public Backend {
 public:
  /// The oracle must be a fresh machine like the device; its schedule is made lazy.
  Follower(Backend& device, model::DriverState& oracle, ModelError error = {});
  ~Follower() override;

  DriverStatus execute(Call& call) noexcept override;

  /// From here on a pool with live blocks is not destroyed: this driver dies of it some calls
  /// later. The answer is kUndefined, and no call is made.
  void spare_pools() { spare_pools_ = true; }
  /// The logical thread that the calls that follow belong to.
  void set_thread(std::uint32_t number) { thread_ = model::ThreadId{number}; }

  /// Asks for the physical bytes of the pool that a successful allocation came from; nothing where
  /// that cannot be said. Used where the model does not know how far the device has come.
  using LookAtPool = std::function<std::optional<std::uint64_t>(const Call& allocation)>;
  /// `streams`: before such an allocation the device is also asked which streams are done.
  void set_look(LookAtPool look, bool streams) {
    look_ = std::move(look);
    look_at_streams_ = streams;
  }
  /// What was seen around a pool allocation that was answered, and before a stream or a pool is
  /// destroyed.
  struct Look {
    std::vector<StreamHandle> done;  // the device's, before it
    std::optional<std::uint64_t> reserved;
  };
  const std::vector<Look>& looks() const { return looks_; }

  /// Compares the free memory of a device, as its driver says, with the oracle's.
  void compare_free(std::int32_t device, std::uint64_t free);
  /// Is it as the oracle says?
  bool agrees_on_free(std::int32_t device, std::uint64_t free);
  /// Asks the device how far its streams have come, where that is not known. True if any is done:
  /// free memory may then be another.
  bool look_for_progress();
  /// A harness that finds a difference of its own.
  void report(const Divergence& divergence);
  std::vector<Divergence> take_divergences();
  bool diverged() const { return any_; }

  std::uint64_t calls() const { return calls_; }
  /// Answers that were the device's to choose, where the oracle alone would have said otherwise.
  std::uint64_t followed() const { return followed_; }
  /// Calls that were not started.
  std::uint64_t withheld() const { return withheld_; }
  /// True once the device has answered with a sticky error.
  bool sticky() const { return sticky_; }
  /// True once the driver was short of what the model has no figures for.
  bool fell_short() const { return fell_short_; }
  /// True once a wait was given up because a held stream holds up others.
  bool held_up() const { return held_up_; }
  const Renamer& names() const { return names_; }
  /// Gives back what the device still holds for the calls so far, whatever became of the oracle.
  /// `primary` is a context of the device, to work in; null: only what needs none.
  void give_everything_back(ContextHandle primary);

  /// A host function on its way through the device.
  struct HostCall {
    Follower* follower = nullptr;
    void (*function)(void*) = nullptr;
    void* argument = nullptr;
  };

 private:
  struct Try {
    Call call;
    DriverStatus status = DriverStatus::kSuccess;
    std::string field;  // what differs from the device; empty: nothing
  };

  bool may_be_undefined(const Call& call) const;
  bool withhold(Call& call, DriverStatus& status);
  void force_choices(const Call& device);
  std::uint64_t oracle_pool(const Call& call, model::ThreadId thread);
  Try attempt(const Call& device, DriverStatus status, const Call& asked, model::ThreadId thread);
  void follow(const Call& device, DriverStatus status, const Call& asked, model::ThreadId thread);
  bool retry(Try& tried, const Call& device, DriverStatus status, const Call& asked,
             model::ThreadId thread, const model::DriverState& before);
  void settle(const Call& device, const Try& tried, model::ThreadId thread);
  bool retry_grant(Try& tried, const Call& device, DriverStatus status, const Call& asked,
                   model::ThreadId thread, const model::DriverState& before);
  std::uint64_t most_free() const;
  /// Calls `ask` with mutex_, which the caller holds once, free: the device's own lock comes first
  /// where it runs host functions that call back.
  template <class Ask>
  auto unlocked(Ask&& ask) {
    mutex_.unlock();
    auto answer = ask();
    mutex_.lock();
    return answer;
  }
  bool is_held_up(const Call& call);
  bool may_be_short(const Call& call) const;
  void look_at_streams(const Call& call, model::ThreadId thread);
  void ask_streams(model::ThreadId thread);
  std::uint64_t wanted_free(std::int32_t device);
  void look_at_pool(const Call& device, bool unsettled);
  std::uint64_t oracle_reserved(model::ThreadId thread);
  Call without_own_memory(const Call& device, model::ThreadId thread);
  void note_pool(const Call& device, const Call& oracle);
  void note_live(const Call& device);
  void record(const Call& device, DriverStatus status, const Try& tried, model::ThreadId thread);
  DriverStatus ask_device(Call& call);

  Backend& device_;
  model::DriverState& oracle_;
  const ModelError error_;
  mutable std::recursive_mutex mutex_;  // host functions call back in
  Renamer names_;
  model::ThreadId thread_{0};
  std::map<std::uint64_t, std::uint64_t> references_;      // live references by device handle value
  using Objects = std::map<std::uint64_t, std::uint64_t>;  // device value -> size, or 1
  std::map<ObjectKind, Objects> live_;                     // all other kinds
  std::map<std::uint64_t, std::uint64_t> pool_shift_;      // oracle pool -> device minus oracle
  std::uint64_t pool_in_use_ = 0;                          // oracle pool of the call in progress
  LookAtPool look_;
  std::optional<std::uint64_t> reserved_;  // by the device, behind the call in progress
  bool fell_short_ = false;
  bool held_up_ = false;
  bool spare_pools_ = false;
  bool look_at_streams_ = false;
  std::vector<StreamHandle> done_;  // seen before the call in progress
  std::vector<Look> looks_;
  std::uint32_t captures_ = 0;             // begun and not ended: nothing may be asked then
  std::set<std::uint64_t> refused_pools_;  // oracle pools that refused a request
  std::vector<StreamHandle> streams_;      // the oracle's, live
  std::deque<HostCall> host_calls_;
  std::vector<Divergence> divergences_;
  /// What the driver itself holds more (negative) or less of a device than at the start.
  std::map<std::int32_t, std::int64_t> own_memory_;
  bool own_memory_moves_ = false;  // it has been short of memory, or a context came or went
  bool other_calls_ = false;       // since free memory was compared: not only mapping work
  std::uint64_t calls_ = 0;
  std::uint64_t followed_ = 0;
  std::uint64_t withheld_ = 0;
  bool any_ = false;
  bool sticky_ = false;
};

/// A model configuration for following: all its own choices out of the way.
model::Config following(model::Config config);

}  // namespace granule::gpu
