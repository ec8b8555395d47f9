// The model behind the Backend interface: one mutex, logical threads, host functions.
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include <granule/model/model.hpp>

namespace granule::model {
namespace {

std::atomic<std::uint64_t> next_serial{1};

/// What the last backend that this OS thread has called answered.
struct LastThread {
  std::uint64_t serial = 0;
  ThreadId thread;
};
thread_local LastThread last;

}  // namespace

ModelBackend::ModelBackend(Config config)
    : state_(std::move(config)), serial_(next_serial.fetch_add(1)) {
  state_.set_runner(this);
}
ModelBackend::~ModelBackend() = default;

void ModelBackend::set_thread(ThreadId thread) {
  const std::lock_guard lock(mutex_);
  last = {serial_, thread};
  const auto here = std::this_thread::get_id();
  for (auto& [known, number] : threads_) {
    if (known != here) continue;
    number = thread;
    return;
  }
  threads_.emplace_back(here, thread);
}

// With mutex_ held.
ThreadId ModelBackend::current_thread() {
  if (in_host_function_) return kHostFunctionThread;
  if (last.serial == serial_) return last.thread;
  const auto here = std::this_thread::get_id();
  for (const auto& [known, number] : threads_) {
    if (known != here) continue;
    last = {serial_, number};
    return number;
  }
  set_thread(ThreadId{next_thread_++});
  return last.thread;
}

DriverStatus ModelBackend::execute(Call& call) noexcept {
  const std::lock_guard lock(mutex_);
  return step(state_, current_thread(), call);
}

bool ModelBackend::would_block(const Call& call) {
  const std::lock_guard lock(mutex_);
  return model::would_block(state_, current_thread(), call);
}

std::vector<Violation> ModelBackend::take_violations() {
  const std::lock_guard lock(mutex_);
  return state_.take_violations();
}

void ModelBackend::reset(Config config) {
  const std::lock_guard lock(mutex_);
  state_ = DriverState(std::move(config));
  state_.set_runner(this);
}

void ModelBackend::run_host_function(void (*function)(void*), void* argument) {
  const bool outer = std::exchange(in_host_function_, true);
  function(argument);
  in_host_function_ = outer;
}

}  // namespace granule::model
