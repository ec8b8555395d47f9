// Which bytes of a device range a summarising read copies to the host.
#pragma once

#include <array>
#include <cstdint>

namespace granule::cuda {

/// Rows of `width` bytes from `source`, `pitch` apart. One row: a plain copy.
struct ReadPiece {
  std::uint64_t source = 0;
  std::uint64_t width = 0;
  std::uint64_t pitch = 0;
  std::uint64_t rows = 0;
  std::uint64_t bytes() const { return width * rows; }
};

struct ReadPlan {
  std::array<ReadPiece, 3> pieces{};
  std::uint32_t count = 0;
  std::uint64_t bytes = 0;  // of all pieces
};

/// Everything, if `size` is at most `full_limit` or less than four times 2 MiB; else the first
/// and last bytes and those on both sides of every multiple of 2 MiB: up to 64 KiB each, less
/// where the sum would pass 64 MiB. source + size must not wrap.
ReadPlan plan_read(std::uint64_t source, std::uint64_t size, std::uint64_t full_limit) noexcept;

}  // namespace granule::cuda
