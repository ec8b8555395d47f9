// Reservations, physical memory, mappings and access answer as measured.
#include "machine.hpp"

namespace granule::model {
namespace {

using enum DriverStatus;

TEST(Vmm, memory_returns_at_the_last_of_handle_mapping_and_descriptor) {
  Machine m;
  const DevicePtr v = m.reserve(2 * kG);
  const AllocationHandle h = m.create(kG, HandleType::kPosixFd);
  EXPECT_EQ(m.free_change(), -static_cast<std::int64_t>(kG));
  const Descriptor f =
      m.made(MemExportToShareableHandle{h, HandleType::kPosixFd, 0, {}}).descriptor;
  const AllocationHandle k =
      m.made(MemImportFromShareableHandle{f, HandleType::kPosixFd, {}}).handle;
  EXPECT_NE(h, k);
  EXPECT_EQ(m.map(v, kG, h), kSuccess);
  EXPECT_EQ(m.map(plus(v, kG), kG, k), kSuccess);
  EXPECT_EQ(m.state.mapping_at(v.value)->allocation, m.state.mapping_at(v.value + kG)->allocation);
  m.release(h);
  m.release(k);
  EXPECT_EQ(m.unmap(v, 2 * kG), kSuccess);
  EXPECT_EQ(m.free_change(), -static_cast<std::int64_t>(kG));
  EXPECT_EQ(m.call(CloseDescriptor{f}), kSuccess);
  EXPECT_EQ(m.free_change(), 0);
  EXPECT_EQ(m.state.ledger().allocations, 0u);
}

TEST(Vmm, references_are_one_count_a_value) {
  Machine m;
  const DevicePtr v = m.reserve(kG);
  const AllocationHandle h = m.create(kG);
  m.map(v, kG, h);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(m.made(MemRetainAllocationHandle{plus(v, 12345), {}}).handle, h);
  }
  m.unmap(v, kG);
  for (int i = 0; i < 4; ++i) {
    EXPECT_NE(m.free_change(), 0);
    EXPECT_EQ(m.release(h), kSuccess);
  }
  EXPECT_EQ(m.free_change(), 0);
  EXPECT_EQ(m.release(h), kInvalidValue);
  EXPECT_EQ(m.count(ViolationKind::kDoubleRelease), 1);
}

TEST(Vmm, a_released_handle_maps_while_a_mapping_keeps_its_memory) {
  Machine m;
  const DevicePtr v = m.reserve(2 * kG);
  const AllocationHandle h = m.create(kG);
  m.map(v, kG, h);
  m.release(h);
  EXPECT_EQ(m.map(plus(v, kG), kG, h), kSuccess);
  m.unmap(v, 2 * kG);
  EXPECT_EQ(m.map(v, kG, h), kUndefined);
  EXPECT_EQ(m.map(v, kG, AllocationHandle{0x1234}), kUndefined);
}

TEST(Vmm, what_a_map_is_refused_for_comes_in_the_measured_order) {
  Machine m;
  const DevicePtr v = m.reserve(4 * kG);
  const AllocationHandle two = m.create(2 * kG);
  EXPECT_EQ(m.call(MemMap{{}, kG, 0, two, 0}), kInvalidValue);
  EXPECT_EQ(m.call(MemMap{v, kG, kG, two, 1}), kInvalidValue);
  EXPECT_EQ(m.call(MemMap{DevicePtr{1ull << 45}, kG, kG, two, 0}), kNotSupported);
  EXPECT_EQ(m.call(MemMap{plus(v, 4096), kG, 0, two, 0}), kNotSupported);
  EXPECT_EQ(m.call(MemMap{plus(v, 4096), 2 * kG, 0, two, 0}), kInvalidValue);
  EXPECT_EQ(m.map(v, 2 * kG, two), kSuccess);
  EXPECT_EQ(m.map(plus(v, kG), 2 * kG, two), kInvalidValue);
}

TEST(Vmm, an_unmap_that_cuts_a_mapping_changes_nothing) {
  Machine m;
  const DevicePtr v = m.reserve(4 * kG);
  const AllocationHandle one = m.create(kG);
  const AllocationHandle two = m.create(2 * kG);
  m.map(v, kG, one);
  m.map(plus(v, kG), 2 * kG, two);
  for (const auto& [at, size] : {std::pair{v, 2 * kG}, {plus(v, kG), kG}, {plus(v, 2 * kG), kG}}) {
    EXPECT_EQ(m.unmap(at, size), kInvalidValue);
  }
  EXPECT_EQ(m.state.ledger().mappings, 2u);
  EXPECT_EQ(m.unmap(v, 3 * kG), kSuccess);
  EXPECT_EQ(m.state.ledger().mapped_bytes, 0u);
}

TEST(Vmm, access_over_a_hole_stops_at_the_hole) {
  Machine m;
  const DevicePtr v = m.reserve(4 * kG);
  for (const std::uint64_t i : {0u, 1u, 3u}) m.map(plus(v, i * kG), kG, m.create(kG));
  EXPECT_EQ(m.access(v, 3 * kG, Access::kReadWrite), kInvalidValue);
  EXPECT_EQ(m.access(v, 4 * kG, Access::kReadWrite), kSuccess);
  EXPECT_EQ(m.access_of(plus(v, kG)), Access::kReadWrite);
  EXPECT_EQ(m.access_of(plus(v, 3 * kG)), Access::kNone);
  EXPECT_EQ(m.count(ViolationKind::kUnportable), 1);
}

TEST(Vmm, a_refused_host_grant_leaves_the_first_mapping_changed) {
  Machine m;
  const DevicePtr v = m.reserve(2 * kG);
  m.map(v, kG, m.create(kG));
  m.map(plus(v, kG), kG, m.create(kG));
  MemSetAccess both;
  both.ptr = v;
  both.size = 2 * kG;
  both.access.push({device_location(DeviceId{0}), Access::kReadWrite});
  both.access.push({{LocationType::kHost, 0}, Access::kReadWrite});
  EXPECT_EQ(m.call(both), kNotSupported);
  EXPECT_EQ(m.access_of(v), Access::kReadWrite);
  EXPECT_EQ(m.access_of(plus(v, kG)), Access::kNone);
}

TEST(Vmm, portable_and_adversarial_drivers_refuse_the_leniencies) {
  for (const Verdict verdict : {Verdict::kPortable, Verdict::kAdversarial}) {
    Machine m(with_verdict(verdict));
    const DevicePtr v = m.reserve(4 * kG);
    m.map(v, kG, m.create(kG));
    m.map(plus(v, 2 * kG), kG, m.create(kG));
    EXPECT_EQ(m.unmap(v, 3 * kG), kInvalidValue);
    EXPECT_EQ(m.access(v, 3 * kG, Access::kReadWrite), kInvalidValue);
    EXPECT_EQ(m.map(plus(v, 3 * kG), 2 * kG, m.create(2 * kG)), kInvalidValue);
    EXPECT_EQ(m.unmap(v, kG), kSuccess);
    EXPECT_TRUE(m.state.violations().empty());
  }
}

TEST(Vmm, a_create_stops_one_granule_before_the_end_of_memory) {
  Config config;
  config.devices[0].memory = 4 * kG + 4096;
  Machine m(config);
  m.create(4 * kG);
  EXPECT_EQ(m.status, kOutOfMemory);
  m.create(3 * kG);
  EXPECT_EQ(m.status, kSuccess);
  m.create(kG);
  EXPECT_EQ(m.status, kOutOfMemory);
  EXPECT_EQ(m.state.free_bytes(0), kG + 4096);
}

TEST(Vmm, memory_of_two_devices_is_charged_and_opened_apart) {
  Config config;
  config.devices.resize(2);
  Machine m(config);
  const DevicePtr v = m.reserve(kG);
  m.map(v, kG, m.create(kG, HandleType::kNone, device_location(DeviceId{1})));
  EXPECT_EQ(m.free_change(), 0);
  EXPECT_EQ(m.state.total_bytes(1) - m.state.free_bytes(1), kG);
  EXPECT_EQ(m.access(v, kG, Access::kReadWrite), kSuccess);
  EXPECT_EQ(m.access_of(v, device_location(DeviceId{1})), Access::kNone);
  PointerGetAttribute ordinal;
  ordinal.ptr = v;
  ordinal.attribute = PointerAttribute::kDeviceOrdinal;
  EXPECT_EQ(m.made(ordinal).value, 1u);
}

TEST(Vmm, poison_that_comes_back_is_reported) {
  Machine m;
  m.release(AllocationHandle{kPoison64});
  EXPECT_EQ(m.count(ViolationKind::kPoisonedUse), 1);
}

TEST(Vmm, quirks_change_what_other_drivers_do_otherwise) {
  Config config;
  config.quirks.memory_back_at_address_free = true;
  config.quirks.busy_after_bulk_unmap = true;
  Machine m(config);
  const DevicePtr v = m.buffer(1);
  m.unmap(v, kG);
  EXPECT_NE(m.free_change(), 0);
  EXPECT_EQ(m.call(MemAddressFree{v, kG}), kSuccess);
  EXPECT_EQ(m.free_change(), 0);
  const DevicePtr w = m.buffer(2);
  m.unmap(w, 2 * kG);
  EXPECT_EQ(m.call(MemAddressFree{w, 2 * kG}), kInvalidValue);
}

TEST(Vmm, not_ready_passes_after_so_many_times) {
  Config config;
  config.quirks.not_ready_times = 2;
  Machine m(config);
  m.create(kG);
  EXPECT_EQ(m.status, kNotReady);
  m.create(kG);
  EXPECT_EQ(m.status, kNotReady);
  m.create(kG);
  EXPECT_EQ(m.status, kSuccess);
}

// Memory of the host behind two mappings, of which the host reaches the first.
TEST(Vmm, the_cpu_dies_of_a_copy_where_the_host_reaches_a_part) {
  Machine m;
  const Location host{LocationType::kHostNuma, 0};
  const DevicePtr va = m.reserve(2 * kG);
  for (const std::uint64_t at : {std::uint64_t{0}, kG}) {
    const AllocationHandle memory = m.create(kG, HandleType::kNone, host);
    ASSERT_EQ(m.map({va.value + at}, kG, memory), DriverStatus::kSuccess);
  }
  ASSERT_EQ(m.access(va, 2 * kG, Access::kReadWrite), DriverStatus::kSuccess);
  ASSERT_EQ(m.access(va, kG, Access::kReadWrite, host), DriverStatus::kSuccess);
  std::vector<std::uint8_t> bytes(2 * kG);
  const auto out = [&](DevicePtr from, std::uint64_t size) {
    return m.call(MemcpyDtoHAsync{bytes.data(), from, size, {}, 0});
  };
  EXPECT_EQ(out(va, kG), DriverStatus::kSuccess) << "by the CPU";
  EXPECT_EQ(out({va.value + kG}, kG), DriverStatus::kSuccess) << "by the device";
  EXPECT_TRUE(m.state.take_violations().empty());
  EXPECT_EQ(out(va, 2 * kG), DriverStatus::kUndefined);
  EXPECT_EQ(m.state.take_violations().size(), 1u);
  EXPECT_EQ(m.call(MemcpyDtoHAsync{nullptr, va, 2 * kG, {}, 0}), DriverStatus::kSuccess)
      << "to pinned memory: by the device";
}

}  // namespace
}  // namespace granule::model
