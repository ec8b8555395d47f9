// Machines for the interpreter whose driver is followed by a model: the real one, or any backend.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <granule/backends/record.hpp>
#include <granule/prop/machine.hpp>

#include "follow.hpp"
#include "threads.hpp"

namespace granule::gpu {

/// A device behind a backend, followed by a model of its own.
class FollowingMachine final : public prop::Machine {
 public:
  struct Options {
    /// The device has primary contexts that its owner keeps; free memory is compared through them.
    bool compare_free = true;
    /// Sets the logical thread of the device; empty: OS threads of our own are used.
    std::function<void(std::uint32_t)> set_device_thread;
    /// Whether the process has no context yet, and is to have none (`context never`).
    bool without_context = false;
    /// Whether cuInit is the program's to call.
    bool without_init = false;
    /// Keep every call with its answer.
    bool record = false;
    /// Differences are printed and the program goes on; what follows may come of the first.
    bool keep_going = false;
    /// For candidates of a shrinker: what is known to kill the process later is not done.
    bool careful = false;
    /// An error planted into the model (ModelError::names()); empty: none.
    std::string plant;
  };

  /// `config` describes the device as it is now: its `memory` is what is free.
  FollowingMachine(Backend& device, model::Config config, Options options);
  ~FollowingMachine() override;

  Backend& driver() override { return recorder_ ? static_cast<Backend&>(*recorder_) : follower_; }
  model::DriverState& oracle() override { return oracle_; }
  void set_thread(std::uint32_t number) override;
  bool is_model() const override { return false; }
  std::optional<prop::MachineFinding> after_statement() override;
  std::uint64_t followed() const override { return follower_.followed(); }

  Follower& follower() { return follower_; }
  /// The calls so far, with Options::record; once.
  std::vector<record::Entry> take_recording();

 private:
  void keep_primaries();
  void compare_free();
  std::optional<std::uint64_t> device_free(ContextHandle context);
  std::optional<std::uint64_t> look_at_pool(const Call& allocation);

  Options options_;
  Backend& device_;
  ThreadedBackend threads_;
  model::DriverState oracle_;
  Follower follower_;
  std::unique_ptr<record::RecordBackend> recorder_;
  std::vector<ContextHandle> primaries_;  // the device's, by ordinal; null: none
};

}  // namespace granule::gpu
