// Random calls, right and wrong ones, under every policy: the totals equal a recount, copies of a
// state go on alike, and everything can be given back.
#include "machine.hpp"
#include "state.hpp"

namespace granule::model {
namespace {

struct Random {
  std::uint64_t state;
  std::uint64_t next() {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return state >> 33;
  }
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
};

class Walk {
 public:
  Walk(const Config& config, std::uint64_t seed) : m(config), random{seed} {
    for (int i = 0; i < 3; ++i) streams.push_back(m.stream(i == 0 ? 0u : 1u));
  }

  void one() {
    switch (random.below(14)) {
      case 0:
        reserve();
        return;
      case 1:
        m.call(MemAddressFree{some_base(), some_size()});
        return;
      case 2:
      case 3:
        if (const auto h = m.create(some_size()); m.status == DriverStatus::kSuccess) {
          handles.push_back(h);
        }
        return;
      case 4:
      case 5:
        m.map(some_address(), some_size(), some_handle());
        return;
      case 6:
        m.unmap(some_address(), some_size());
        return;
      case 7:
      case 8:
        m.access(some_address(), some_size(), random.below(2) ? Access::kReadWrite : Access::kRead);
        return;
      case 9:
        drop_handle();
        return;
      case 10:
        plain();
        return;
      case 11:
        m.fill(some_address(), 0x11, 1 + random.below(kG), some_stream());
        return;
      case 12:
        m.call(CloseGate{some_stream()});
        m.event_on(some_stream());
        m.call(OpenGate{some_stream()});
        return;
      default:
        random.below(2) ? m.sync(some_stream()) : m.sync();
        return;
    }
  }

  void give_everything_back() {
    m.state.open_all_gates();
    m.state.drain();
    for (const MappingView& mapping : m.state.mappings()) {
      EXPECT_EQ(m.unmap(DevicePtr{mapping.base}, mapping.size), DriverStatus::kSuccess);
    }
    for (const ReservationView& one : m.state.reservations()) {
      EXPECT_EQ(m.call(MemAddressFree{DevicePtr{one.base}, one.size}), DriverStatus::kSuccess);
    }
    for (const HandleView& value : m.state.handles()) {
      for (std::uint64_t i = 0; i < value.references; ++i) {
        EXPECT_EQ(m.release(value.handle), DriverStatus::kSuccess);
      }
    }
  }

  Machine m;
  Random random;
  std::vector<StreamHandle> streams;
  std::vector<DevicePtr> bases;
  std::vector<AllocationHandle> handles;
  std::vector<DevicePtr> plains;

 private:
  std::uint64_t some_size() { return (1 + random.below(3)) * kG; }
  StreamHandle some_stream() { return streams[random.below(streams.size())]; }
  DevicePtr some_base() {
    return bases.empty() ? DevicePtr{kG} : bases[random.below(bases.size())];
  }
  DevicePtr some_address() { return plus(some_base(), random.below(4) * kG); }
  AllocationHandle some_handle() {
    return handles.empty() ? AllocationHandle{} : handles[random.below(handles.size())];
  }
  void reserve() {
    const std::uint64_t size = random.below(4) == 0 ? 20 * kG : some_size() + kG;
    const DevicePtr hint = random.below(2) ? plus(some_base(), kG * random.below(20)) : DevicePtr{};
    const DevicePtr v = m.reserve(size, 0, hint);
    if (m.status == DriverStatus::kSuccess) bases.push_back(v);
  }
  void drop_handle() {
    if (handles.empty()) return;
    const std::size_t i = random.below(handles.size());
    const AllocationHandle h = handles[i];
    handles.erase(handles.begin() + static_cast<std::ptrdiff_t>(i));
    m.release(h);
  }
  void plain() {
    if (plains.empty() || random.below(2) == 0) {
      const DevicePtr x = m.made(MemAlloc{1 + random.below(3 * kG), {}}).ptr;
      if (m.status == DriverStatus::kSuccess) plains.push_back(x);
    } else if (m.call(MemFree{plains.back()}) == DriverStatus::kSuccess) {
      plains.pop_back();
    }
  }
};

/// Recounts what the ledger counts as it goes.
void expect_straight_books(const DriverState& driver) {
  const State& state = driver.raw();
  const Ledger ledger = driver.ledger();
  std::uint64_t reserved = 0;
  for (const auto& [base, one] : state.reservations) reserved += one.size;
  std::uint64_t mapped = 0;
  std::uint64_t last = 0;
  for (const auto& [base, mapping] : state.mappings) {
    EXPECT_GE(base, last);
    last = base + mapping.size;
    mapped += mapping.size;
  }
  std::uint64_t references = 0;
  std::uint64_t mappings = 0;
  for (const HandleSlot& value : state.handles) {
    references += value.references;
    mappings += value.mappings;
  }
  std::uint64_t held = 0;
  std::uint64_t allocations = 0;
  for (const Allocation& memory : state.allocations) {
    if (memory.number == 0) continue;
    held += memory.size;
    ++allocations;
  }
  std::uint64_t blocks = 0;
  for (const auto& [base, block] : state.plain_blocks) blocks += block.size;
  EXPECT_EQ(ledger.reservations, state.reservations.size());
  EXPECT_EQ(ledger.reserved_bytes, reserved);
  EXPECT_EQ(ledger.mappings, state.mappings.size());
  EXPECT_EQ(ledger.mappings, mappings);
  EXPECT_EQ(ledger.mapped_bytes, mapped);
  EXPECT_EQ(ledger.handle_references, references);
  EXPECT_EQ(ledger.allocations, allocations);
  EXPECT_EQ(ledger.allocated_bytes, held);
  EXPECT_EQ(driver.total_bytes(0) - driver.free_bytes(0), held + blocks);
}

std::vector<Config> every_policy() {
  std::vector<Config> all;
  for (const Verdict verdict : {Verdict::kExact, Verdict::kPortable, Verdict::kAdversarial}) {
    for (const Schedule schedule : {Schedule::kLazy, Schedule::kEager, Schedule::kSeeded}) {
      for (const Placement placement :
           {Placement::kObserved, Placement::kFresh, Placement::kAdversarial}) {
        Config config = with_verdict(verdict);
        config.schedule = schedule;
        config.placement = placement;
        config.devices[0].memory = 24 * kG;
        all.push_back(config);
      }
    }
  }
  return all;
}

TEST(Books, are_straight_after_random_calls_and_everything_comes_back) {
  std::uint64_t seed = 1;
  for (const Config& config : every_policy()) {
    for (int round = 0; round < 8; ++round) {
      Walk walk(config, ++seed);
      for (int i = 0; i < 250; ++i) {
        walk.one();
        if (i % 50 == 0) expect_straight_books(walk.m.state);
      }
      walk.give_everything_back();
      expect_straight_books(walk.m.state);
      EXPECT_EQ(walk.m.state.ledger().reservations, 0u);
      EXPECT_EQ(walk.m.state.ledger().allocations, 0u);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(Books, a_copy_goes_on_like_its_original) {
  std::uint64_t seed = 100;
  for (const Config& config : every_policy()) {
    Walk walk(config, ++seed);
    for (int i = 0; i < 150; ++i) walk.one();
    Walk other = walk;
    for (int i = 0; i < 150; ++i) {
      walk.one();
      other.one();
      ASSERT_EQ(walk.m.status, other.m.status);
    }
    EXPECT_EQ(walk.m.state.ledger(), other.m.state.ledger());
    EXPECT_EQ(walk.m.state.violations().size(), other.m.state.violations().size());
  }
}

}  // namespace
}  // namespace granule::model
