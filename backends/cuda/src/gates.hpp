// Gates: waits of a stream on a word of pinned host memory, opened by a store of the host.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <granule/backend_api/types.hpp>

#include "contexts.hpp"

namespace granule::cuda {

/// The closed gates. Each stream has a word of its own, so that gates open in any order; the
/// numbers on a word rise, so that it serves again. Thread-safe; open never waits for the driver.
class Gates {
 public:
  Gates(const Driver& driver, Contexts& contexts) : driver_(driver), contexts_(contexts) {}

  /// Queues the wait. Closing a closed gate changes nothing.
  DriverStatus close(StreamHandle stream);
  /// Lets the stream go on. Opening an open gate changes nothing.
  DriverStatus open(StreamHandle stream);
  /// The handle may come back for another stream: the gate stays closed, but is not that one's.
  void stream_gone(StreamHandle stream);
  /// Opens the gates of one context, before it goes.
  void open_in(abi::Context context);
  void open_all() noexcept;

 private:
  struct Gate {
    std::shared_ptr<ContextState> state;
    std::uint64_t stream;
    bool orphan;  // its stream was destroyed
    std::uint32_t* word;
    std::uint32_t number;
  };
  static void let_go(const Gate& gate);
  template <class Which>
  void open_where(Which which);

  const Driver& driver_;
  Contexts& contexts_;
  std::mutex mutex_;
  std::vector<Gate> closed_;
  std::vector<Gate> idle_;  // words to use again
};

}  // namespace granule::cuda
