// What a snapshot says of buffers that grew, moved, are suspended, shared, put aside or crossed
// into the next reservation, and of memory that no reservation holds.
#include "told.hpp"

namespace granule::prop {
namespace {

constexpr std::uint64_t kG = std::uint64_t{2} << 20;

std::string memory_of(const Row& row) {
  std::string text;
  for (const Piece& piece : row.pieces) text += piece.memory + std::to_string(piece.mapped);
  return text;
}

std::string names_of(const Row& row) {
  std::string text;
  for (const Viewer& viewer : row.viewers)
    text += viewer.name + ":" + amount_text(viewer.base - row.base, kG) + "+" +
            amount_text(viewer.size, kG) + (viewer.suspended ? "s " : " ");
  return text;
}

TEST(Snapshot, ABufferThatGrewInPlaceSharesItsRowWithItsInput) {
  const Told t = told("resource r vmm\na = allocate r 2g capacity=4g\nb = grow a 3g => kept\n");
  ASSERT_EQ(t.end().rows.size(), 1u);
  const Row& row = t.end().rows[0];
  EXPECT_EQ(row.size, 4 * kG);
  EXPECT_EQ(memory_of(row), "A1B1");
  EXPECT_EQ(names_of(row), "a:0g+2g b:0g+3g ");
  EXPECT_EQ(row.pieces[0].use, Use::kOpen);
  EXPECT_EQ(row.pieces[0].access, std::vector<Access>{Access::kReadWrite});
}

TEST(Snapshot, ABufferThatMovedHasTheSameMemoryAtTwoPlaces) {
  const Told t =
      told("resource r vmm\na = allocate r 1g\ndecoy d after a 1g\nb = grow a 2g => moved\n");
  ASSERT_EQ(t.end().rows.size(), 3u);
  EXPECT_EQ(memory_of(t.end().rows[0]), "A2");
  EXPECT_EQ(names_of(t.end().rows[1]), "d:0g+1g ");
  EXPECT_EQ(memory_of(t.end().rows[2]), "A2B1");
  EXPECT_EQ(names_of(t.end().rows[2]), "b:0g+2g ");
}

TEST(Snapshot, ARangeThatCrossesIntoTheNextReservationIsInBothRows) {
  const Told t =
      told("resource r vmm\nhole h 8g\na = allocate r 1g at=h => ok\nb = grow a 2g => kept\n");
  std::size_t seen = 0;
  for (const Row& row : t.end().rows)
    for (const Viewer& viewer : row.viewers) seen += viewer.name == "b" ? 1 : 0;
  EXPECT_EQ(seen, 2u);
  for (const Row& row : t.end().rows)
    for (const Piece& piece : row.pieces) EXPECT_EQ(piece.use, Use::kOpen);
}

TEST(Snapshot, ASuspendedBufferKeepsItsAddressesAndNoMemory) {
  const Told t = told("resource r vmm\na = allocate r 2g\nsuspend a => ok\n");
  ASSERT_EQ(t.end().rows.size(), 1u);
  EXPECT_TRUE(t.end().rows[0].pieces.empty());
  EXPECT_EQ(names_of(t.end().rows[0]), "a:0g+2gs ");
}

TEST(Snapshot, AnImportedBufferSeesTheSameMemory) {
  const Told t = told(
      "needs feature=posix_fd\nresource r vmm handle=posix_fd\na = allocate r 1g\n"
      "e = export a => ok\nb = import r e => ok\n");
  ASSERT_EQ(t.end().rows.size(), 2u);
  EXPECT_EQ(memory_of(t.end().rows[0]), "A2");
  EXPECT_EQ(memory_of(t.end().rows[1]), "A2");
}

TEST(Snapshot, RangesThatNoBufferHasAnyMoreAreToldApart) {
  const Told t = told(
      "stream s\nresource r vmm free=deferred\nresource c vmm cache=8g\n"
      "a = allocate r 1g on s\nb = allocate c 1g\nx = allocate c 1g\nholder k of x\n"
      "hold s\nuse a on s\nclose a => ok\nclose b => ok\nclose x => ok\n");
  ASSERT_EQ(t.end().rows.size(), 3u);
  EXPECT_EQ(t.end().rows[0].pieces[0].use, Use::kRetired);
  EXPECT_EQ(names_of(t.end().rows[0]), "pending:0g+1g ");
  EXPECT_EQ(t.end().rows[1].pieces[0].use, Use::kIdle);
  EXPECT_EQ(names_of(t.end().rows[1]), "idle:0g+1g ");
  EXPECT_EQ(t.end().rows[2].pieces[0].use, Use::kOpen);
  EXPECT_EQ(names_of(t.end().rows[2]), "held:0g+1g ");
}

TEST(Snapshot, WhatTheDriverWouldNotUnmapIsQuarantined) {
  const Told t = told(
      "resource r vmm\na = allocate r 1g\n"
      "fail cuMemUnmap times=all with CUDA_ERROR_UNKNOWN\nclose a\nno_faults\n");
  ASSERT_EQ(t.end().rows.size(), 1u);
  EXPECT_EQ(t.end().rows[0].pieces.at(0).use, Use::kQuarantined);
}

TEST(Snapshot, AccessIsToldForEveryDevice) {
  const Told t = told(
      "device 1 memory=1GiB\ndevice 2 memory=1GiB\nresource r vmm peers=1\na = allocate r 1g\n"
      "grant r 2 r\n");
  EXPECT_EQ(t.end().accessors.size(), 3u);
  const std::vector<Access> expected{Access::kReadWrite, Access::kReadWrite, Access::kRead};
  EXPECT_EQ(t.end().rows.at(0).pieces.at(0).access, expected);
}

TEST(Snapshot, PlainMemoryAndPoolBlocksHaveRowsOfTheirOwn) {
  const Told t = told(
      "stream s\np = cuMemAlloc 4096\nq = cuMemPoolCreate\n"
      "x = cuMemAllocFromPoolAsync 512 q on s\n");
  ASSERT_EQ(t.end().rows.size(), 2u);
  EXPECT_EQ(t.end().rows[0].kind, Row::Kind::kPlain);
  EXPECT_EQ(t.end().rows[0].size, 4096u);
  EXPECT_EQ(t.end().rows[0].viewers.at(0).name, "p");
  EXPECT_EQ(t.end().rows[1].kind, Row::Kind::kPool);
  EXPECT_EQ(t.end().rows[1].viewers.at(0).name, "x");
}

TEST(Snapshot, MemoryThatIsMappedNowhereIsTold) {
  const Told t = told(
      "resource r vmm\na = allocate r 1g\nh = cuMemCreate 3g\nv = cuMemAddressReserve 1g\n"
      "k = cuMemCreate 1g\ncuMemMap v 1g k\ncuMemRelease k\n");
  ASSERT_EQ(t.end().loose.size(), 1u);
  EXPECT_EQ(t.end().loose[0].memory, "B");
  EXPECT_EQ(loose_text(t.end()), "mapped nowhere, kept by handles: B 3g");
  EXPECT_NE(draw(t.end()).find("kept by handles: B 3g"), std::string::npos);
  EXPECT_NE(svg_of(t.story).find("kept by handles: B 3g"), std::string::npos);
}

TEST(Snapshot, NamesOfMemoryGoOnBehindZ) {
  EXPECT_EQ(memory_name(1), "A");
  EXPECT_EQ(memory_name(26), "Z");
  EXPECT_EQ(memory_name(27), "AA");
  EXPECT_EQ(memory_name(53), "BA");
  EXPECT_EQ(memory_name(26 + 26 * 26 + 1), "AAA");
}

TEST(Snapshot, OfARunUnderASchedulerNobodyIsAskedInTheMiddleOfAnOperation) {
  RunOptions options;
  options.interleave.how = Interleave::kRandom;
  std::size_t known = 0;
  std::size_t unknown = 0;
  for (options.thread_seed = 1; options.thread_seed < 20; ++options.thread_seed) {
    const Told t = told(
        "resource r vmm cache=8g\nthread t {\n  a = allocate r 1g\n  close a\n}\n"
        "thread u {\n  b = allocate r 1g\n  close b\n}\n",
        options);
    EXPECT_TRUE(t.story.report.ok());
    EXPECT_EQ(t.story.steps.size(), 5u);
    EXPECT_TRUE(t.end().uses_known);
    for (const Snapshot& shot : t.story.pictures) ++(shot.uses_known ? known : unknown);
  }
  EXPECT_GT(known, 0u);
  EXPECT_GT(unknown, 0u);
}

}  // namespace
}  // namespace granule::prop
