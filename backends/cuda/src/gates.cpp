// Closing by cuStreamWaitValue32 (GEQ), opening by a store.
#include "gates.hpp"

#include <algorithm>
#include <utility>

#include "convert.hpp"

namespace granule::cuda {

DriverStatus Gates::close(StreamHandle stream) {
  std::shared_ptr<ContextState> state;
  DriverStatus status = contexts_.state_of(to_abi(stream), &state);
  if (status != DriverStatus::kSuccess) return status;
  status = state->prepare();
  if (status != DriverStatus::kSuccess) return status;
  Gate gate{state, stream.value, false, nullptr, 0};
  {
    const std::lock_guard lock(mutex_);
    for (const Gate& g : closed_)
      if (!g.orphan && g.stream == stream.value && g.state == state) return DriverStatus::kSuccess;
    const auto idle =
        std::find_if(idle_.begin(), idle_.end(), [&](const Gate& g) { return g.state == state; });
    if (idle != idle_.end()) {
      gate.word = idle->word;
      gate.number = idle->number;
      idle_.erase(idle);
    }
    closed_.reserve(closed_.size() + 1);
    idle_.reserve(closed_.size() + idle_.size() + 2);
  }
  if (gate.word == nullptr) {
    status = state->take_cell(&gate.word);
    if (status != DriverStatus::kSuccess) return status;
  }
  ++gate.number;
  {
    // Known before it is queued: if the call itself has to wait, another thread can open it.
    const std::lock_guard lock(mutex_);
    closed_.push_back(gate);
  }
  status = invoke(driver_->cuStreamWaitValue32, to_abi(stream), abi::DevicePtr{to_value(gate.word)},
                  gate.number, abi::kWaitValueGeq);
  if (status != DriverStatus::kSuccess)
    open_where([&](const Gate& g) { return g.word == gate.word; });
  return status;
}

void Gates::let_go(const Gate& gate) {
  if (!gate.state->gone()) __atomic_store_n(gate.word, gate.number, __ATOMIC_RELEASE);
}

template <class Which>
void Gates::open_where(Which which) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < closed_.size();) {
    if (!which(closed_[i])) {
      ++i;
      continue;
    }
    let_go(closed_[i]);
    if (!closed_[i].state->gone()) idle_.push_back(closed_[i]);
    closed_.erase(closed_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

DriverStatus Gates::open(StreamHandle stream) {
  // A default stream's gate is that of the current context, if there is one there.
  abi::Context current = nullptr;
  if (stream.value <= kPerThreadStream.value) invoke(driver_->cuCtxGetCurrent, &current);
  bool here = false;
  bool own = false;
  {
    const std::lock_guard lock(mutex_);
    for (const Gate& g : closed_) {
      if (g.stream != stream.value) continue;
      here = here || (current != nullptr && g.state->context() == current);
      own = own || !g.orphan;
    }
  }
  open_where([&](const Gate& g) {
    return g.stream == stream.value && (!here || g.state->context() == current) &&
           (!own || !g.orphan);
  });
  return DriverStatus::kSuccess;
}

void Gates::stream_gone(StreamHandle stream) {
  if (stream.value <= kPerThreadStream.value) return;
  const std::lock_guard lock(mutex_);
  for (Gate& g : closed_)
    if (g.stream == stream.value) g.orphan = true;
}

void Gates::open_in(abi::Context context) {
  open_where([&](const Gate& g) { return g.state->context() == context; });
}

void Gates::open_all() noexcept {
  open_where([](const Gate&) { return true; });
}

}  // namespace granule::cuda
