// The interpreter's own idea of contents and order: intervals, happens-before, unordered writes.
#include <gtest/gtest.h>

#include "interp/shadow.hpp"

namespace granule::prop {
namespace {

TEST(Timeline, EventsAndWaitsCarryKnowledge) {
  Timeline time;
  const Lane s = time.add_lane(Timeline::Kind::kNonBlocking, 0);
  const Lane t = time.add_lane(Timeline::Kind::kNonBlocking, 0);
  const Stamp first = time.enqueue(s);
  EXPECT_FALSE(time.settle(t).covers(first));
  const Clock event = time.settle(s);
  const Stamp second = time.enqueue(s);
  time.wait(t, event);
  EXPECT_TRUE(time.settle(t).covers(first));
  EXPECT_FALSE(time.settle(t).covers(second));
  time.host_learns(time.settle(s));
  EXPECT_TRUE(time.settle(t).covers(second));
}

TEST(Timeline, TheLegacyStreamJoinsBlockingOnes) {
  Timeline time;
  const Lane legacy = time.add_lane(Timeline::Kind::kLegacy, 0);
  const Lane blocking = time.add_lane(Timeline::Kind::kBlocking, 0);
  const Lane free = time.add_lane(Timeline::Kind::kNonBlocking, 0);
  const Stamp a = time.enqueue(blocking);
  const Stamp b = time.enqueue(free);
  EXPECT_TRUE(time.settle(legacy).covers(a));
  EXPECT_FALSE(time.settle(legacy).covers(b));
  const Stamp c = time.enqueue(legacy);
  EXPECT_TRUE(time.settle(blocking).covers(c));
}

std::vector<Known> known(const std::shared_ptr<Extent>& extent, std::uint64_t size,
                         const Timeline& time) {
  return known_of({{extent, 0, size, {}}}, 0, size, time.host());
}

TEST(Shadow, AWriteCutsAndMergesRuns) {
  Timeline time;
  const Lane s = time.add_lane(Timeline::Kind::kNonBlocking, 0);
  const auto extent = std::make_shared<Extent>(100);
  const auto write = [&](std::uint64_t from, std::uint64_t to, std::uint8_t value) {
    const Stamp op = time.enqueue(s);
    extent->write(from, to, value, op, time.settle(s), time.host());
  };
  write(0, 100, 1);
  write(40, 60, 2);
  const auto runs = known(extent, 100, time);
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[1].from, 40u);
  EXPECT_EQ(runs[1].value, std::uint8_t{2});
  EXPECT_FALSE(runs[1].settled);
  write(0, 100, 3);
  EXPECT_EQ(known(extent, 100, time).size(), 1u);
  time.host_learns_all();
  EXPECT_TRUE(known(extent, 100, time)[0].settled);
}

TEST(Shadow, UnorderedWritesStayUnknownUntilOneComesAfterBoth) {
  Timeline time;
  const Lane s = time.add_lane(Timeline::Kind::kNonBlocking, 0);
  const Lane t = time.add_lane(Timeline::Kind::kNonBlocking, 0);
  const auto extent = std::make_shared<Extent>(10);
  const auto write = [&](Lane lane, std::uint8_t value) {
    const Stamp op = time.enqueue(lane);
    extent->write(0, 10, value, op, time.settle(lane), time.host());
  };
  write(s, 1);
  write(t, 2);
  EXPECT_FALSE(known(extent, 10, time)[0].value);
  write(s, 3);  // behind the first, not behind the second
  EXPECT_FALSE(known(extent, 10, time)[0].value);
  time.host_learns_all();
  write(s, 4);
  EXPECT_EQ(known(extent, 10, time)[0].value, std::uint8_t{4});
}

TEST(Shadow, AWriteBesideACopySpoilsWhatWasCopied) {
  Timeline time;
  const Lane s = time.add_lane(Timeline::Kind::kNonBlocking, 0);
  const Lane t = time.add_lane(Timeline::Kind::kNonBlocking, 0);
  const auto source = std::make_shared<Extent>(10);
  const auto target = std::make_shared<Extent>(10);
  const Stamp fill = time.enqueue(s);
  source->write(0, 10, std::uint8_t{1}, fill, time.settle(s), time.host());
  const Stamp copy = time.enqueue(s);
  target->write(0, 10, std::uint8_t{1}, copy, time.settle(s), time.host());
  source->add_reader({0, 10, copy});
  EXPECT_EQ(known(target, 10, time)[0].value, std::uint8_t{1});
  const Stamp race = time.enqueue(t);
  const auto hit = source->write(0, 10, std::uint8_t{2}, race, time.settle(t), time.host());
  ASSERT_EQ(hit.size(), 1u);
  target->spoil(hit[0]);
  EXPECT_FALSE(known(target, 10, time)[0].value);
}

}  // namespace
}  // namespace granule::prop
