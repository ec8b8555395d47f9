// Handing calls to the OS thread of a logical thread.
#include "threads.hpp"

namespace granule::gpu {

ThreadedBackend::~ThreadedBackend() {
  for (auto& [number, worker] : workers_) {
    {
      const std::lock_guard lock(worker->mutex);
      worker->stop = true;
    }
    worker->changed.notify_all();
    worker->thread.join();
  }
}

void ThreadedBackend::serve(Worker& worker) {
  std::unique_lock lock(worker.mutex);
  for (;;) {
    worker.changed.wait(lock, [&] { return worker.stop || worker.call != nullptr; });
    if (worker.call == nullptr) return;
    Call& call = *worker.call;
    lock.unlock();
    const DriverStatus status = inner_.execute(call);
    lock.lock();
    worker.status = status;
    worker.call = nullptr;
    worker.changed.notify_all();
  }
}

void ThreadedBackend::set_thread(std::uint32_t number) {
  if (number == 0) {
    current_ = nullptr;
    return;
  }
  std::unique_ptr<Worker>& worker = workers_[number];
  if (!worker) {
    worker = std::make_unique<Worker>();
    worker->thread = std::thread([this, raw = worker.get()] { serve(*raw); });
  }
  current_ = worker.get();
}

DriverStatus ThreadedBackend::execute(Call& call) noexcept {
  if (current_ == nullptr || std::this_thread::get_id() != owner_) return inner_.execute(call);
  Worker& worker = *current_;
  std::unique_lock lock(worker.mutex);
  worker.call = &call;
  worker.changed.notify_all();
  worker.changed.wait(lock, [&] { return worker.call == nullptr; });
  return worker.status;
}

}  // namespace granule::gpu
