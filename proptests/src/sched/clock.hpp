// Vector clocks of host threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace granule::prop::sched {

/// How much of each host thread somebody knows of: a number of steps by thread.
class HostClock {
 public:
  std::uint32_t at(std::uint32_t thread) const {
    return thread < steps_.size() ? steps_[thread] : 0;
  }
  void raise(std::uint32_t thread, std::uint32_t steps) {
    if (steps_.size() <= thread) steps_.resize(thread + 1, 0);
    steps_[thread] = std::max(steps_[thread], steps);
  }
  void tick(std::uint32_t thread) { raise(thread, at(thread) + 1); }
  void join(const HostClock& other) {
    if (steps_.size() < other.steps_.size()) steps_.resize(other.steps_.size(), 0);
    for (std::size_t i = 0; i < other.steps_.size(); ++i)
      steps_[i] = std::max(steps_[i], other.steps_[i]);
  }
  /// The first thread that this knows something of which `later` does not; none: a large number.
  static constexpr std::uint32_t kNone = UINT32_MAX;
  std::uint32_t first_unknown_to(const HostClock& later) const {
    for (std::size_t i = 0; i < steps_.size(); ++i)
      if (steps_[i] > later.at(static_cast<std::uint32_t>(i))) return static_cast<std::uint32_t>(i);
    return kNone;
  }

 private:
  std::vector<std::uint32_t> steps_;
};

}  // namespace granule::prop::sched
