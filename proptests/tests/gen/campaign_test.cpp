// Campaigns: the core is clean, the canary is not; results do not depend on the number of jobs.
#include <granule/prop/campaign.hpp>

#include <algorithm>

#include <gtest/gtest.h>
#include <granule/prop/cells.hpp>
#include <granule/prop/text.hpp>
#include <granule/prop/zoo.hpp>

namespace granule::prop {
namespace {

std::string first_failure(const CampaignOptions& options, const CampaignResult& result) {
  if (result.failures.empty()) return {};
  const std::uint64_t index = result.failures[0].index;
  return result.failures[0].signature + "\n" + to_text(campaign_program(options, index));
}

class CoreCampaign : public testing::TestWithParam<model::Verdict> {};

TEST_P(CoreCampaign, IsClean) {
  CampaignOptions options;
  options.programs = 3000;
  options.seed = 2;
  options.jobs = 2;
  options.run.machine.verdict = GetParam();
  const CampaignResult result = run_campaign(options);
  EXPECT_EQ(first_failure(options, result), "");
  EXPECT_EQ(result.programs, 3000u);
}

INSTANTIATE_TEST_SUITE_P(Drivers, CoreCampaign,
                         testing::Values(model::Verdict::kExact, model::Verdict::kPortable,
                                         model::Verdict::kAdversarial));

TEST(Campaign, SameSeedSameEverything) {
  CampaignOptions options;
  options.programs = 300;
  options.twice = true;
  const CampaignResult one = run_campaign(options);
  options.jobs = 3;
  const CampaignResult three = run_campaign(options);
  EXPECT_NE(one.digest, 0u);
  EXPECT_EQ(one.digest, three.digest);
  EXPECT_EQ(one.operations, three.operations);
  EXPECT_EQ(one.model_calls, three.model_calls);
  EXPECT_EQ(one.cells.count(), three.cells.count());
}

TEST(Campaign, ShardsTakeEachProgramOnce) {
  CampaignOptions options;
  options.twice = true;
  options.programs = 90;
  const std::uint64_t whole = run_campaign(options).digest;
  options.programs = 30;
  options.shards = 3;
  std::uint64_t sum = 0;
  for (options.shard = 0; options.shard < 3; ++options.shard) sum += run_campaign(options).digest;
  EXPECT_EQ(sum, whole);
}

TEST(Campaign, FirstFailureDoesNotDependOnJobs) {
  CampaignOptions options;
  options.programs = 2000;
  options.run.target = zoo_target("canary");
  const CampaignResult one = run_campaign(options);
  options.jobs = 4;
  const CampaignResult four = run_campaign(options);
  ASSERT_EQ(one.failures.size(), 1u);
  ASSERT_EQ(four.failures.size(), 1u);
  EXPECT_EQ(one.failures[0].index, four.failures[0].index);
  EXPECT_EQ(one.failures[0].signature, four.failures[0].signature);
}

TEST(Campaign, StopsAtOnceWhenInterrupted) {
  const std::atomic<bool> stop{true};
  CampaignOptions options;
  options.interrupted = &stop;
  EXPECT_EQ(run_campaign(options).programs, 0u);
}

}  // namespace
}  // namespace granule::prop
