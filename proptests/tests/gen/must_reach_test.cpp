// Lists of cells: what they name, what is wrong with them, and when they are reached.
#include <gtest/gtest.h>

#include <granule/prop/cells.hpp>
#include <granule/prop/must_reach.hpp>

namespace granule::prop {
namespace {

constexpr std::uint32_t kOk = 0;
constexpr std::uint32_t kHeldWithTwoOpen = 4 | 2;

CampaignResult one_cell() {
  CampaignResult result;
  result.cells.add(pack_cell(Verb::kClose, kOk, kHeldWithTwoOpen));
  return result;
}

bool reached(std::string_view line) {
  const WantedCells wanted = parse_wanted_cells(line);
  EXPECT_TRUE(wanted.errors.empty()) << line;
  return is_reached(wanted.cells.at(0), one_cell());
}

TEST(MustReach, NamesOperationOutcomeAndState) {
  EXPECT_TRUE(reached("close => ok"));
  EXPECT_FALSE(reached("close => moved"));
  EXPECT_FALSE(reached("drop => ok"));
  EXPECT_TRUE(reached("close => ok when held open=2 no-capture"));
  EXPECT_FALSE(reached("close => ok when open=1"));
  EXPECT_FALSE(reached("close => ok when capture"));
  EXPECT_FALSE(reached("close => ok when no-held"));
}

TEST(MustReach, OneSpellingOfSeveralOperationsIsAnyOfThem) {
  CampaignResult result;
  result.cells.add(pack_cell(Verb::kResourcePool, kOk, 0));
  EXPECT_TRUE(is_reached(parse_wanted_cells("resource => ok").cells.at(0), result));
}

TEST(MustReach, SaysWhatIsWrongInWhichLine) {
  const WantedCells wanted = parse_wanted_cells(
      "# a comment\nclsoe => ok\nclose => fine\n\nclose\nclose => ok when happy\n"
      "close => ok when held no-held\n");
  EXPECT_EQ(wanted.errors, (std::vector<std::string>{
                               "line 2: `clsoe` is no operation", "line 3: `fine` is no outcome",
                               "line 5: expected `OPERATION => OUTCOME`",
                               "line 6: `happy` is no state", "line 7: there is no such state"}));
}

TEST(MustReach, AClassOfFaultsMustHaveStruck) {
  CampaignResult result;
  const WantedCell wanted = parse_wanted_cells("fault sticky").cells.at(0);
  EXPECT_FALSE(is_reached(wanted, result));
  result.fired_by_class[static_cast<std::size_t>(fault::FaultClass::kSticky)] = 1;
  EXPECT_TRUE(is_reached(wanted, result));
  EXPECT_EQ(parse_wanted_cells("fault unheard").errors,
            std::vector<std::string>{"line 1: expected `fault CLASS`"});
}

TEST(MustReach, WhatWasReachedIsAList) {
  EXPECT_EQ(reached_cells(one_cell()), "close => ok  # 1 states\n");
}

}  // namespace
}  // namespace granule::prop
