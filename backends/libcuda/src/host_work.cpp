// Host functions, and the thread that lets them run.
#include "host_work.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "entry.hpp"

namespace granule::libcuda {
namespace {

using Work = std::function<void()>;

/// Counts host functions that have not run. While there are any, virtual time passes with real
/// time, so that a client that waits by means of its own is not left waiting.
class Progress {
 public:
  static Progress& get() {
    static auto* const progress = new Progress;
    return *progress;
  }
  void begin() {
    const std::lock_guard lock(mutex_);
    if (!started_) std::thread([this] { run(); }).detach();
    started_ = true;
    ++pending_;
    wake_.notify_one();
  }
  void end() {
    const std::lock_guard lock(mutex_);
    --pending_;
  }

 private:
  void run() {
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [this] { return pending_ > 0; });
      }
      constexpr std::chrono::milliseconds kStep{2};
      std::this_thread::sleep_for(kStep);
      Pause pause;
      pause.duration_ns = std::chrono::nanoseconds(kStep).count();
      ask(pause);
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::int64_t pending_ = 0;
  bool started_ = false;
};

void run_work(void* argument) {
  const std::unique_ptr<Work> work(static_cast<Work*>(argument));
  (*work)();
  Progress::get().end();
}

std::mutex facts_mutex;
std::map<std::uint64_t, unsigned>& streams() {
  static auto* const map = new std::map<std::uint64_t, unsigned>;
  return *map;
}
std::map<std::uint64_t, EventFacts>& events() {
  static auto* const map = new std::map<std::uint64_t, EventFacts>;
  return *map;
}

}  // namespace

abi::Result launch_host_work(StreamHandle stream, Work work) try {
  StreamIsCapturing capturing;
  capturing.stream = stream;
  const bool captured = ask(capturing) == kOk && capturing.status != CaptureStatus::kNone;
  auto owned = std::make_unique<Work>(std::move(work));
  LaunchHostFunc call;
  call.stream = stream;
  call.function = run_work;
  call.argument = owned.get();
  if (!captured) Progress::get().begin();
  const abi::Result result = submit(call);
  if (result == kOk) {
    // In a capture it never runs and stays with the graph.
    static_cast<void>(owned.release());
  } else if (!captured) {
    Progress::get().end();
  }
  return result;
} catch (const std::exception&) {  // no thread, no memory
  return static_cast<int>(DriverStatus::kOperatingSystem);
}

void remember_stream(std::uint64_t stream, unsigned flags) {
  const std::lock_guard lock(facts_mutex);
  streams()[stream] = flags;
}
unsigned stream_flags(std::uint64_t stream) {
  const std::lock_guard lock(facts_mutex);
  const auto it = streams().find(stream);
  return it == streams().end() ? 0 : it->second;
}

void remember_event(std::uint64_t event, unsigned flags) {
  const std::lock_guard lock(facts_mutex);
  events()[event] = {flags, false, 0};
}
void remember_record(std::uint64_t event) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const std::lock_guard lock(facts_mutex);
  EventFacts& facts = events()[event];
  facts.recorded = true;
  facts.at_ns =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}
void forget_event(std::uint64_t event) {
  const std::lock_guard lock(facts_mutex);
  events().erase(event);
}
EventFacts event_facts(std::uint64_t event) {
  const std::lock_guard lock(facts_mutex);
  const auto it = events().find(event);
  return it == events().end() ? EventFacts{} : it->second;
}

}  // namespace granule::libcuda
