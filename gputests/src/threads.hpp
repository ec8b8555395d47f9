// A backend whose calls run on one OS thread a logical thread: a real driver keeps the current
// context and the capture mode by OS thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include <granule/backend_api/backend.hpp>

namespace granule::gpu {

/// Logical thread 0 is the thread that made this object; others get an OS thread when they are
/// first named. Calls from any further thread (host functions) run where they are.
class ThreadedBackend final : public Backend {
 public:
  explicit ThreadedBackend(Backend& inner) : inner_(inner), owner_(std::this_thread::get_id()) {}
  ~ThreadedBackend() override;

  DriverStatus execute(Call& call) noexcept override;
  /// The logical thread of the owner's calls that follow.
  void set_thread(std::uint32_t number);

 private:
  struct Worker {
    std::mutex mutex;
    std::condition_variable changed;
    Call* call = nullptr;  // to be made
    DriverStatus status = DriverStatus::kSuccess;
    bool stop = false;
    std::thread thread;
  };
  void serve(Worker& worker);

  Backend& inner_;
  const std::thread::id owner_;
  std::map<std::uint32_t, std::unique_ptr<Worker>> workers_;
  Worker* current_ = nullptr;  // null: the owner itself
};

}  // namespace granule::gpu
