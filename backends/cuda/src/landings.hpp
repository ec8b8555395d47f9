// Results of asynchronous reads: where they arrive in pinned memory, and when they are there.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <granule/backend_api/types.hpp>

#include "contexts.hpp"

namespace granule::cuda {

/// AND and OR of bytes: enough to tell one value throughout from several.
struct ByteFold {
  std::uint8_t all = 0xFF;
  std::uint8_t any = 0;
  void add(const std::byte* bytes, std::uint64_t size);
  ByteSummary summary() const;
};

/// A read on its way. A kernel's result arrives in `words` words of the cell; a copy's bytes in
/// the buffer, with the first word of the cell set behind them.
struct Arrival {
  std::shared_ptr<ContextState> state;
  std::uint32_t* cell = nullptr;
  std::uint32_t words = 0;
  std::byte* buffer = nullptr;
  std::uint64_t capacity = 0;
  std::uint64_t size = 0;
};

/// The reads whose results nobody has fetched yet, by landing number. Thread-safe.
class Landings {
 public:
  /// Room for a kernel's `words` result words, or for `bytes` copied ones.
  DriverStatus prepare(std::shared_ptr<ContextState> state, std::uint32_t words,
                       std::uint64_t bytes, Arrival* out);
  /// The read is queued under this number; an older one of the number is dropped.
  void expect(std::uint64_t landing, const Arrival& arrival);
  /// Nothing was queued: the room may be used again at once.
  static void cancel(const Arrival& arrival);
  /// The result; kNotReady before it has arrived, kInvalidValue for a number that nobody expects.
  DriverStatus take(std::uint64_t landing, ByteSummary* out);

 private:
  static bool arrived(const Arrival& arrival);
  static ByteSummary result(const Arrival& arrival);
  void sweep();

  std::mutex mutex_;
  std::map<std::uint64_t, Arrival> expected_;
  std::vector<Arrival> dropped_;  // still on their way, not wanted any more
};

}  // namespace granule::cuda
