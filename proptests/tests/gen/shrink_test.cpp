// The shrinker, on made-up failures and on the canary.
#include <granule/prop/shrink.hpp>

#include <algorithm>

#include <gtest/gtest.h>
#include <granule/prop/campaign.hpp>
#include <granule/prop/generate.hpp>
#include <granule/prop/text.hpp>
#include <granule/prop/zoo.hpp>

namespace granule::prop {
namespace {

/// Fails if the program has a grow and, before it, two allocations.
Judgement two_allocations_and_a_grow(const Program& program) {
  std::size_t allocations = 0;
  for (std::size_t i = 0; i < program.statements.size(); ++i) {
    const Verb verb = program.statements[i].verb;
    allocations += verb == Verb::kAllocate ? 1 : 0;
    if (verb == Verb::kGrow && allocations >= 2) return {"found", i};
  }
  return {};
}

TEST(Shrink, LeavesWhatFailsAndNoMore) {
  GenerateOptions options;
  options.always.add(Feature::kGrow);
  int found = 0;
  for (std::uint64_t index = 0; index < 40; ++index) {
    const Program program = generate(23, index, options);
    if (two_allocations_and_a_grow(program).signature.empty()) continue;
    const ShrinkResult small = shrink(program, two_allocations_and_a_grow);
    EXPECT_TRUE(small.minimal);
    EXPECT_EQ(small.program.statements.size(), 3u) << to_text(small.program);
    for (const Statement& s : small.program.statements)
      EXPECT_TRUE(simpler_forms(s).empty()) << to_text(s);
    ++found;
  }
  EXPECT_GT(found, 5);
}

TEST(Shrink, AProgramThatDoesNotFailIsLeftAlone) {
  const Program program = generate(1, 1);
  const ShrinkResult same = shrink(program, [](const Program&) { return Judgement{}; });
  EXPECT_EQ(same.program, program);
  EXPECT_TRUE(same.signature.empty());
  EXPECT_FALSE(same.minimal);
}

TEST(Shrink, StopsWhenToldTo) {
  const Program program = generate(23, 1);
  ShrinkOptions options;
  options.max_runs = 3;
  const ShrinkResult result = shrink(
      program,
      [](const Program&) {
        return Judgement{"always", 0};
      },
      options);
  EXPECT_LE(result.runs, 5u);
  EXPECT_FALSE(result.minimal);
}

TEST(Shrink, SimplerFormsComeToAnEnd) {
  for (std::uint64_t index = 0; index < 100; ++index)
    for (Statement s : generate(31, index).statements) {
      int steps = 0;
      for (auto simpler = simpler_forms(s); !simpler.empty(); simpler = simpler_forms(s)) {
        for (const Statement& form : simpler) {
          const auto back = simpler_forms(form);
          ASSERT_EQ(std::find(back.begin(), back.end(), s), back.end()) << to_text(form);
        }
        s = simpler.front();  // the boldest; the smallest would go granule by granule
        ASSERT_LT(++steps, 200) << to_text(s);
      }
    }
}

TEST(Shrink, SimplerFormsAreLegalText) {
  for (std::uint64_t index = 0; index < 60; ++index)
    for (const Statement& s : generate(37, index).statements)
      for (Statement& simpler : simpler_forms(s)) {
        simpler.thread.clear();
        const std::string text = "granule 1\n" + to_text(simpler) + "\n";
        const ParseResult parsed = parse(text, "t");
        ASSERT_TRUE(parsed.ok()) << text << to_text(parsed.errors[0]);
      }
}

TEST(Shrink, PlainNamesRunTheSame) {
  const Program program = generate(41, 2);
  const Program plain = with_plain_names(program);
  ASSERT_EQ(plain.statements.size(), program.statements.size());
  EXPECT_EQ(with_plain_names(plain), plain);
}

/// No single statement can be left out, and no argument made simpler.
void expect_minimal(const Program& program, const Judge& judge, const std::string& signature) {
  for (std::size_t i = 0; i < program.statements.size(); ++i) {
    Program without = program;
    without.statements.erase(without.statements.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_NE(judge(without).signature, signature) << to_text(program.statements[i]);
    for (const Statement& simpler : simpler_forms(program.statements[i])) {
      Program changed = program;
      changed.statements[i] = simpler;
      EXPECT_NE(judge(changed).signature, signature) << to_text(simpler);
    }
  }
}

TEST(Shrink, CanaryIsFoundAndProvenMinimal) {
  CampaignOptions options;
  options.programs = 2000;
  options.run.target = zoo_target("canary");
  ASSERT_TRUE(options.run.target);
  const CampaignResult result = run_campaign(options);
  ASSERT_EQ(result.failures.size(), 1u);
  const std::uint64_t index = result.failures[0].index;
  RunOptions run = campaign_run(options, index);
  const Judge judge = judge_by_run(run);
  const ShrinkResult small = shrink(campaign_program(options, index), judge);
  EXPECT_EQ(small.signature, result.failures[0].signature);
  EXPECT_TRUE(small.minimal);
  EXPECT_LE(small.program.statements.size(), 7u) << to_text(small.program);
  expect_minimal(small.program, judge, small.signature);
  EXPECT_EQ(shrink(campaign_program(options, index), judge).program, small.program);
}

}  // namespace
}  // namespace granule::prop
