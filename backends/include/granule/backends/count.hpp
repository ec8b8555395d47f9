// Host memory that counts what the library holds, fails a chosen allocation and notices misuse.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include <granule/backend_api/export.hpp>
#include <granule/backend_api/sync.hpp>

namespace granule::count {

/// What a caller of HostMemory did wrong.
enum class HostMisuse : std::uint8_t {
  kDoubleFree,
  kWrongSize,       // given back with another size than it was allocated with
  kWrongAlignment,  // or with another alignment
  kForeign,         // a block that this object never gave out
};

/// Counts and fails allocations. A freed block is filled with 0xDB and held back for a while, so
/// that a second free of it is noticed. Thread-safe. Destroying it frees what it holds back, not
/// what is still live.
/// A request of more than 4 GiB is refused, on every machine alike.
class GRANULE_EXPORT CountingHostMemory final : public HostMemory {
 public:
  static constexpr std::uint64_t kAlways = UINT64_MAX;

  CountingHostMemory() = default;
  CountingHostMemory(const CountingHostMemory&) = delete;
  CountingHostMemory& operator=(const CountingHostMemory&) = delete;
  ~CountingHostMemory() override;

  void* allocate(std::size_t size, std::size_t alignment) noexcept override;
  void deallocate(void* block, std::size_t size, std::size_t alignment) noexcept override;

  /// From here on, the nth allocation (from 1) and the times - 1 after it return null, beside those
  /// that earlier calls made fail.
  void fail(std::uint64_t nth, std::uint64_t times = 1);
  void clear_faults();

  /// Allocations asked for so far, failed ones included.
  std::uint64_t allocations() const;
  /// Allocations that fail() made fail.
  std::uint64_t failed() const;
  std::uint64_t live_blocks() const;
  std::uint64_t live_bytes() const;
  /// The most bytes that were live at once.
  std::uint64_t peak_bytes() const;
  /// What was done wrong since the last take, in order.
  std::vector<HostMisuse> take_misuses();

 private:
  struct Header;
  struct Failing {
    std::uint64_t first = 0;  // number of the first allocation to fail
    std::uint64_t times = 0;
  };
  static constexpr std::size_t kHeldBack = 64;

  static Header* header_of(void* block) noexcept;
  static void free_block(Header* header) noexcept;

  mutable std::mutex mutex_;
  std::uint64_t allocations_ = 0;
  std::uint64_t failed_ = 0;
  std::vector<Failing> failing_;
  std::uint64_t live_blocks_ = 0;
  std::uint64_t live_bytes_ = 0;
  std::uint64_t peak_bytes_ = 0;
  std::array<Header*, kHeldBack> held_back_{};  // ring of freed blocks
  std::size_t next_held_ = 0;
  std::vector<HostMisuse> misuses_;
};

}  // namespace granule::count
