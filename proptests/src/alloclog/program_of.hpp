// An application's allocation log as a program.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "alloclog.hpp"

namespace granule::alloclog {

struct ProgramOptions {
  /// Of a `resource NAME ...` statement; a device is added where there are several.
  std::string resource = "vmm";
  /// Each thread of the log in a block of its own; else all in the order of the log.
  bool thread_blocks = false;
  /// Stream 0 is the per-thread default stream rather than the legacy one.
  bool per_thread_default = false;
  /// Streams that the application made wait for the legacy stream, and it for them.
  bool blocking_streams = false;
  /// Statements behind the setup, at most.
  std::uint64_t limit = UINT64_MAX;
  /// For the comment in front.
  std::string source;
};

/// What in a log is not an allocation followed by its free.
enum class Oddity : std::uint8_t {
  kUnknownFree,  // of a pointer that the log does not allocate: it begins in the middle
  kDoubleFree,
  kOtherSize,  // a free that tells another size than the allocation
  kNoFree,     // allocated again without a free between
  kFailure,    // an allocation that failed
  kEmpty,      // an allocation of 0 bytes, where the resource has none
};
inline constexpr std::size_t kOddities = 6;

struct Written {
  std::string text;  // of the program
  std::uint64_t allocations = 0;
  std::uint64_t frees = 0;
  std::uint64_t live = 0;        // buffers at the end
  std::uint64_t live_bytes = 0;  // the most at any time, as the log asked for them
  std::uint64_t left_out = 0;    // events behind the limit
  std::uint32_t devices = 0;
  std::uint32_t streams = 0;
  std::uint32_t threads = 0;
  std::array<std::uint64_t, kOddities> oddities{};
  std::vector<std::string> examples;  // of oddities, with their places; some of each kind
};

/// The program: devices and streams as they appear, a buffer for each allocation, named in order,
/// and a close for its free. It is legal whatever the log says: what cannot be said is counted.
Written program_of(const Trace& trace, const ProgramOptions& options);

}  // namespace granule::alloclog
