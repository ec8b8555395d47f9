// Sources of decisions: odometer, recording, replay, weights, the text of choices.
#include <granule/prop/choice.hpp>

#include <set>

#include <gtest/gtest.h>

namespace granule::prop {
namespace {

TEST(Odometer, RunsThroughEveryCombinationOnce) {
  OdometerChooser all;
  std::set<std::vector<std::uint64_t>> seen;
  do {
    std::vector<std::uint64_t> drawn{all.pick(3)};
    for (std::uint64_t i = 0; i < drawn[0]; ++i) drawn.push_back(all.pick(2));
    EXPECT_TRUE(seen.insert(drawn).second);
  } while (all.advance());
  EXPECT_EQ(seen.size(), 1u + 2u + 4u);
}

TEST(Odometer, NothingToDecideIsOneCombination) {
  OdometerChooser all;
  EXPECT_EQ(all.pick(1), 0u);
  EXPECT_FALSE(all.advance());
}

TEST(Replay, GivesWhatWasRecorded) {
  RandomChooser random{Rng(7, 3)};
  RecordingChooser recorder(random);
  std::vector<std::uint64_t> drawn;
  for (std::uint64_t i = 2; i < 40; ++i) drawn.push_back(recorder.pick(i));
  ReplayChooser replay(choices_from_text(to_text(recorder.choices())));
  for (std::uint64_t i = 2; i < 40; ++i) EXPECT_EQ(replay.pick(i), drawn[i - 2]);
  EXPECT_EQ(replay.pick(9), 0u) << "behind the end every choice is the first";
}

TEST(Replay, AnyNumbersAreLegal) {
  ReplayChooser replay(std::vector<std::uint64_t>{100, 5});
  EXPECT_LT(replay.pick(7), 7u);
  EXPECT_EQ(replay.pick(6), 5u);
}

TEST(Chooser, WeightsGiveEachItsShare) {
  RandomChooser random{Rng(1)};
  const std::uint32_t weights[] = {0, 1, 3};
  std::uint64_t counts[3] = {};
  for (int i = 0; i < 4000; ++i) ++counts[random.weighted(weights)];
  EXPECT_EQ(counts[0], 0u);
  EXPECT_NEAR(static_cast<double>(counts[1]), 1000, 150);
  const std::uint32_t none[] = {0, 0};
  EXPECT_EQ(random.weighted(none), 2u);
}

}  // namespace
}  // namespace granule::prop
