// Where reservations land and which values handles get: the observed policy and its variants.
#include "address_space.hpp"
#include "machine.hpp"

namespace granule::model {
namespace {

constexpr std::uint64_t kBlock = 16 * kG;

TEST(Placement, large_reservations_are_first_fit_from_the_bottom_and_block_aligned) {
  Machine m;
  const DevicePtr a = m.reserve(kBlock);
  const DevicePtr b = m.reserve(2 * kBlock);
  EXPECT_EQ(a.value, 0x302000000u);
  EXPECT_EQ(b.value, a.value + kBlock);
  m.call(MemAddressFree{a, kBlock});
  EXPECT_EQ(m.reserve(kBlock), a);
}

TEST(Placement, small_reservations_are_packed_in_the_latest_block_in_part_use) {
  Machine m;
  const DevicePtr a = m.reserve(2 * kG);
  const DevicePtr big = m.reserve(kBlock + kG);
  EXPECT_EQ(m.reserve(kG), plus(big, kBlock + kG));
  EXPECT_EQ(m.reserve(15 * kG).value % kBlock, 0u);
  EXPECT_EQ(a.value, 0x302000000u);
}

TEST(Placement, aligned_hints_of_a_block_or_more_are_honoured_and_look_upward) {
  Machine m;
  const DevicePtr hole{0x700000000};
  EXPECT_EQ(m.reserve(kBlock, 0, hole), hole);
  EXPECT_EQ(m.reserve(kBlock, 0, hole), plus(hole, kBlock));
  EXPECT_EQ(m.reserve(kBlock, 0, plus(hole, 2 * kBlock + kG)), plus(hole, 3 * kBlock));
}

TEST(Placement, small_hints_work_inside_part_used_blocks_and_miss_elsewhere) {
  Machine m;
  const DevicePtr a = m.reserve(kG);
  EXPECT_EQ(m.reserve(kG, 0, plus(a, kG)), plus(a, kG));
  const DevicePtr far = m.reserve(kG, 0, DevicePtr{0x800000000});
  EXPECT_EQ(far.value, 0x800000000u);  // no block in part use lies above
  EXPECT_EQ(m.reserve(kG, 0, DevicePtr{0x700000000}), plus(far, kG));
}

TEST(Placement, without_hints_every_reserve_lands_elsewhere) {
  Machine m;
  m.state.set_ignore_hints(true);
  const DevicePtr a = m.reserve(kG);
  EXPECT_NE(m.reserve(kG, 0, plus(a, kG)), plus(a, kG));
  EXPECT_NE(m.reserve(kBlock, 0, DevicePtr{0x700000000}).value, 0x700000000u);
}

TEST(Placement, an_adversarial_driver_gives_freed_addresses_back_and_honours_no_hint) {
  Machine m(with_verdict(Verdict::kAdversarial));
  const DevicePtr a = m.reserve(4 * kG);
  m.call(MemAddressFree{a, 4 * kG});
  EXPECT_EQ(m.reserve(2 * kG), a);
  EXPECT_NE(m.reserve(kG, 0, plus(a, 2 * kG)), plus(a, 2 * kG));
}

TEST(Placement, a_fresh_placement_never_uses_an_address_twice) {
  Config config;
  config.placement = Placement::kFresh;
  Machine m(config);
  DevicePtr last{};
  for (int i = 0; i < 50; ++i) {
    const DevicePtr v = m.reserve(3 * kG);
    EXPECT_GT(v.value, last.value);
    last = v;
    m.call(MemAddressFree{v, 3 * kG});
  }
}

TEST(Placement, a_followed_driver_says_where) {
  Machine m;
  m.state.force_next_reserve(0x7a0000000000);
  m.state.force_next_handle(0x55aa12340);
  EXPECT_EQ(m.reserve(kG).value, 0x7a0000000000u);
  const AllocationHandle h = m.create(kG);
  EXPECT_EQ(h.value, 0x55aa12340u);
  const DevicePtr v = m.reserve(kG);
  EXPECT_EQ(m.map(v, kG, h), DriverStatus::kSuccess);
  EXPECT_EQ(m.state.mapping_at(v.value)->handle, h);
}

TEST(Placement, an_adversarial_driver_reuses_handle_values_at_once) {
  Machine m(with_verdict(Verdict::kAdversarial));
  const AllocationHandle h = m.create(kG);
  m.release(h);
  EXPECT_EQ(m.create(2 * kG), h);
}

TEST(Placement, addresses_run_out_and_come_back) {
  Machine m;
  std::vector<DevicePtr> all;
  for (;;) {
    const DevicePtr v = m.reserve(std::uint64_t{1} << 40);
    if (m.status != DriverStatus::kSuccess) break;
    all.push_back(v);
  }
  EXPECT_EQ(m.status, DriverStatus::kOutOfMemory);
  EXPECT_GT(all.size(), 100u);
  m.call(MemAddressFree{all[5], std::uint64_t{1} << 40});
  EXPECT_EQ(m.reserve(std::uint64_t{1} << 40), all[5]);
}

}  // namespace
}  // namespace granule::model
