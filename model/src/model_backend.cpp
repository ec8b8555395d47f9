// The model behind the Backend interface: one mutex, logical threads, host functions.
#include <atomic>
#include <utility>
#include <vector>

#include <granule/model/model.hpp>

namespace granule::model {
namespace {

std::atomic<std::uint64_t> next_serial{1};

/// The logical thread of this OS thread, for each backend that it has called.
struct ThreadTable {
  std::uint64_t last_serial = 0;
  ThreadId last;
  std::vector<std::pair<std::uint64_t, ThreadId>> known;
};
thread_local ThreadTable table;

}  // namespace

ModelBackend::ModelBackend(Config config)
    : state_(std::move(config)), serial_(next_serial.fetch_add(1)) {
  state_.set_runner(this);
}
ModelBackend::~ModelBackend() = default;

void ModelBackend::set_thread(ThreadId thread) {
  table.last_serial = serial_;
  table.last = thread;
  for (auto& [serial, known] : table.known) {
    if (serial == serial_) {
      known = thread;
      return;
    }
  }
  table.known.emplace_back(serial_, thread);
}

ThreadId ModelBackend::current_thread() {
  if (in_host_function_) return kHostFunctionThread;
  if (table.last_serial == serial_) return table.last;
  for (const auto& [serial, known] : table.known) {
    if (serial != serial_) continue;
    table.last_serial = serial_;
    table.last = known;
    return known;
  }
  set_thread(ThreadId{next_thread_++});
  return table.last;
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
