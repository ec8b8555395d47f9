// Parts of the backend that need no driver: folds, read plans, kernel shapes.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels.hpp"
#include "landings.hpp"
#include "read_plan.hpp"

namespace granule::cuda {
namespace {

ByteSummary fold(const std::vector<unsigned char>& bytes) {
  ByteFold f;
  f.add(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
  return f.summary();
}

TEST(ByteFold, TellsOneValueFromSeveral) {
  using Kind = ByteSummary::Kind;
  EXPECT_EQ(fold({}).kind, Kind::kUnknown);
  EXPECT_EQ(fold(std::vector<unsigned char>(100, 0xA5)), (ByteSummary{Kind::kUniform, 0xA5}));
  EXPECT_EQ(fold(std::vector<unsigned char>(8, 0)), (ByteSummary{Kind::kUniform, 0}));
  EXPECT_EQ(fold(std::vector<unsigned char>(3, 0xFF)), (ByteSummary{Kind::kUniform, 0xFF}));
  for (std::size_t at : {0u, 7u, 8u, 99u}) {
    std::vector<unsigned char> bytes(100, 0xA5);
    bytes[at] = 0xA4;
    EXPECT_EQ(fold(bytes).kind, Kind::kMixed) << at;
  }
  EXPECT_EQ(fold({0xFF, 0x00}).kind, Kind::kMixed);
}

constexpr std::uint64_t kMiB = 1 << 20;

TEST(ReadPlan, ReadsSmallRangesWhole) {
  const ReadPlan plan = plan_read(0x1000, 8 * kMiB, 8 * kMiB);
  EXPECT_EQ(plan.count, 1u);
  EXPECT_EQ(plan.bytes, 8 * kMiB);
  EXPECT_EQ(plan_read(0, 7 * kMiB, 0).count, 1u);
  EXPECT_EQ(plan_read(0, 1 << 30, UINT64_MAX).count, 1u);
}

// Both sides of every seam inside the range, its first and its last byte, nothing outside.
void expect_covered(std::uint64_t source, std::uint64_t size) {
  const ReadPlan plan = plan_read(source, size, 0);
  const auto covers = [&](std::uint64_t address) {
    for (std::uint32_t i = 0; i < plan.count; ++i) {
      const ReadPiece& p = plan.pieces[i];
      if (address < p.source) continue;
      const std::uint64_t row = p.rows == 1 ? 0 : (address - p.source) / p.pitch;
      if (row < p.rows && address - p.source - row * p.pitch < p.width) return true;
    }
    return false;
  };
  EXPECT_TRUE(covers(source));
  EXPECT_TRUE(covers(source + size - 1));
  for (std::uint64_t seam = (source / (2 * kMiB) + 1) * 2 * kMiB; seam < source + size;
       seam += 2 * kMiB) {
    EXPECT_TRUE(covers(seam - 1)) << std::hex << source << ' ' << size << ' ' << seam;
    EXPECT_TRUE(covers(seam)) << std::hex << source << ' ' << size << ' ' << seam;
  }
  for (std::uint32_t i = 0; i < plan.count; ++i) {
    const ReadPiece& p = plan.pieces[i];
    EXPECT_GE(p.source, source);
    EXPECT_LE(p.source + (p.rows - 1) * p.pitch + p.width, source + size);
  }
  EXPECT_LE(plan.bytes, 80 * kMiB);
}

TEST(ReadPlan, CoversSeamsAndEnds) {
  for (const std::uint64_t base : {0ull, 1ull, 1ull << 20, 65535ull, 65536ull, 65537ull})
    for (const std::uint64_t size :
         {8 * kMiB, 8 * kMiB + 1, 9 * kMiB, 64 * kMiB - 1, 1024 * kMiB, 64 * 1024 * kMiB})
      expect_covered(0x302000000ull + base, size);
}

TEST(Kernels, TheModuleHasTheirEntryPoints) {
  const std::string module = kKernelModule;
  for (const KernelKind kind :
       {KernelKind::kSpin, KernelKind::kWrite, KernelKind::kRead, KernelKind::kTouch})
    EXPECT_NE(module.find(std::string(".entry ") + entry_point(kind)), std::string::npos);
  EXPECT_EQ(blocks_for(KernelKind::kSpin, 1 << 30), 1u);
  EXPECT_EQ(blocks_for(KernelKind::kRead, 0), 1u);
  EXPECT_EQ(blocks_for(KernelKind::kRead, 1 << 30), kMaxBlocks);
}

}  // namespace
}  // namespace granule::cuda
