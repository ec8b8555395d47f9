// Happens-before between the host and the lanes (streams) of a program, by vector clocks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace granule::prop {

using Lane = std::uint32_t;
inline constexpr Lane kHostLane = 0;

/// One operation: number `count` of its lane.
struct Stamp {
  Lane lane = kHostLane;
  std::uint32_t count = 0;
  friend bool operator==(const Stamp&, const Stamp&) = default;
};

/// What has happened, as far as somebody knows: so many operations of each lane.
class Clock {
 public:
  bool covers(const Stamp& stamp) const {
    return stamp.lane < seen_.size() && seen_[stamp.lane] >= stamp.count;
  }
  void join(const Clock& other) {
    if (seen_.size() < other.seen_.size()) seen_.resize(other.seen_.size(), 0);
    for (std::size_t i = 0; i < other.seen_.size(); ++i)
      seen_[i] = std::max(seen_[i], other.seen_[i]);
  }
  void add(const Stamp& stamp) {
    if (seen_.size() <= stamp.lane) seen_.resize(stamp.lane + 1, 0);
    seen_[stamp.lane] = std::max(seen_[stamp.lane], stamp.count);
  }

 private:
  std::vector<std::uint32_t> seen_;
};

/// The clocks of the host and of all lanes.
class Timeline {
 public:
  enum class Kind : std::uint8_t { kNonBlocking, kBlocking, kLegacy };

  Timeline() : lanes_(1) {}

  Lane add_lane(Kind kind, std::int32_t device) {
    lanes_.push_back({kind, device, 0, {}});
    return static_cast<Lane>(lanes_.size() - 1);
  }
  /// Work is queued on the lane: behind what the lane and the host know.
  Stamp enqueue(Lane lane) {
    settle(lane);
    Entry& entry = lanes_[lane];
    const Stamp stamp{lane, ++entry.count};
    entry.clock.add(stamp);
    return stamp;
  }
  /// What work queued on the lane now would know.
  const Clock& settle(Lane lane) {
    Entry& entry = lanes_[lane];
    entry.clock.join(lanes_[kHostLane].clock);
    if (entry.kind == Kind::kLegacy) {
      for (const Entry& other : lanes_)
        if (other.kind == Kind::kBlocking && other.device == entry.device)
          entry.clock.join(other.clock);
    } else if (entry.kind == Kind::kBlocking) {
      for (const Entry& other : lanes_)
        if (other.kind == Kind::kLegacy && other.device == entry.device)
          entry.clock.join(other.clock);
    }
    return entry.clock;
  }
  /// What the work queued on the lane so far knows: unlike settle, nothing that only later work
  /// would wait for. A wait for the lane waits for no more than this.
  Clock queued(Lane lane) const {
    Clock clock = lanes_[lane].clock;
    clock.join(lanes_[kHostLane].clock);
    return clock;
  }
  void wait(Lane lane, const Clock& event) { lanes_[lane].clock.join(event); }
  void host_learns(const Clock& clock) { lanes_[kHostLane].clock.join(clock); }
  void host_learns_all() {
    for (Lane lane = 1; lane < lanes_.size(); ++lane)
      lanes_[kHostLane].clock.join(lanes_[lane].clock);
  }
  Kind kind(Lane lane) const { return lanes_[lane].kind; }
  std::int32_t device(Lane lane) const { return lanes_[lane].device; }
  const Clock& host() const { return lanes_[kHostLane].clock; }

 private:
  struct Entry {
    Kind kind = Kind::kNonBlocking;
    std::int32_t device = 0;
    std::uint32_t count = 0;
    Clock clock;
  };
  std::vector<Entry> lanes_;
};

}  // namespace granule::prop
