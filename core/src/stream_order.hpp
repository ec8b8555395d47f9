// StreamOrder: capture queries, waits and markers on single streams, for whatever gives memory
// back in stream order. Holds the events, for reuse by context.
#pragma once

#include <atomic>

#include "driver.hpp"
#include "host_objects.hpp"
#include "objects.hpp"

namespace granule::detail {

enum class CaptureVerdict : std::uint8_t {
  kClear,     // nothing captures here
  kCaptures,  // the stream itself captures: no call on it but captured work
  kDisturbs,  // a default stream whose use would end somebody's capture
};

/// True for what a driver says of a call that a capture forbids.
bool is_capture_status(DriverStatus status);

/// Thread-safe. `mutex` guards the free list and the counts of markers; it is never held across a
/// driver call.
class StreamOrder {
 public:
  StreamOrder(const Driver& driver, SeamMutex& mutex) : driver_(driver), mutex_(mutex) {}

  /// Asks before anything else is done on the stream. No call for streams bound as never
  /// capturing, and none where a marker stands for the stream.
  Result<CaptureVerdict> capture_verdict(const StreamUse& use) const;
  /// Waits for the marker or the stream. The caller has set relaxed capture mode.
  Status wait_for(const StreamUse& use) const;
  /// Records an event that stands for all work queued on the stream so far; nothing if there is
  /// one.
  Status set_marker(StreamUse& use);
  /// Whether the marker is reached; `done` remembers. The error may be sticky.
  Result<bool> reached(StreamUse& use) const;
  /// Makes `stream` wait for the marker of `use`.
  Status order_behind(const StreamUse& use, const Stream& stream);
  /// Before work is put on a default stream: its context lives as long as the resource.
  Status keep_context(const Stream& stream);
  void drop_marker(StreamUse& use) noexcept;
  /// With the mutex held: one more use of the same marker.
  void share_marker(StreamUse& use) const {
    if (use.marker) ++use.marker->refs;
  }
  /// Destroys the events, with `failed` told of every refusal.
  template <class Failed>
  void destroy_events(Failed&& failed) noexcept {
    while (!free_.empty()) {
      Marker& marker = free_.front();
      free_.pop_front();
      EventDestroy destroy{marker.event};
      const DriverStatus status = driver_.call(destroy);
      if (status != DriverStatus::kSuccess && !is_sticky(status))
        failed(driver_error(status, kind_of<EventDestroy>));
      release_context(marker);
      unmake(driver_.runtime(), &marker);
    }
  }

 private:
  void release_context(const Marker& marker) const noexcept;
  Result<Marker*> take_marker(ContextHandle context, const Stream& stream);

  Driver driver_;
  SeamMutex& mutex_;
  intrusive::list<Marker> free_;
  std::atomic<std::uint64_t> kept_contexts_{0};  // bit n: the primary one of device n
};

}  // namespace granule::detail
