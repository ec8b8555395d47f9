// Sampling of large reads.
#include "read_plan.hpp"

namespace granule::cuda {
namespace {

constexpr std::uint64_t kSeam = std::uint64_t{2} << 20;  // mappings meet at multiples of this
constexpr std::uint64_t kWidestEdge = 64 << 10;
constexpr std::uint64_t kNarrowestEdge = 512;
constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;

}  // namespace

ReadPlan plan_read(std::uint64_t source, std::uint64_t size, std::uint64_t full_limit) noexcept {
  ReadPlan plan;
  if (size <= full_limit || size < 4 * kSeam) {
    plan.pieces[0] = {source, size, size, 1};
    plan.count = 1;
    plan.bytes = size;
    return plan;
  }
  const std::uint64_t end = source + size;
  std::uint64_t edge = kWidestEdge;
  while (edge > kNarrowestEdge && (size / kSeam + 2) * 2 * edge > kMostBytes) edge /= 2;
  // Seams whose two sides lie wholly inside; a nearer one is covered by the first or last piece.
  const std::uint64_t first = (source + edge + kSeam - 1) / kSeam * kSeam;
  const std::uint64_t last = (end - edge) / kSeam * kSeam;
  plan.pieces[0] = {source, 2 * edge, 2 * edge, 1};
  plan.pieces[1] = {first - edge, 2 * edge, kSeam, (last - first) / kSeam + 1};
  plan.pieces[2] = {end - 2 * edge, 2 * edge, 2 * edge, 1};
  plan.count = 3;
  for (const ReadPiece& piece : plan.pieces) plan.bytes += piece.bytes();
  return plan;
}

}  // namespace granule::cuda
