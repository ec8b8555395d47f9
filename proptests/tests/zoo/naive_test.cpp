// The naive resource without a mistake keeps every invariant, so that what is found on a specimen
// is its planted defect.
#include <gtest/gtest.h>

#include <granule/prop/campaign.hpp>
#include <granule/prop/text.hpp>
#include <granule/prop/zoo.hpp>

namespace granule::prop {
namespace {

TEST(Naive, GeneratedProgramsAreClean) {
  CampaignOptions options;
  options.seed = 2906;
  options.run.target = zoo_target("naive");
  // The other kinds of resources are the core's.
  options.generate.features.remove(Feature::kPools).remove(Feature::kRecycler);
  constexpr std::uint64_t kPrograms = 250;
  for (std::uint64_t index = 0; index < kPrograms; ++index) {
    const Program program = campaign_program(options, index);
    const RunReport report = run(program, campaign_run(options, index));
    ASSERT_NE(report.status, RunStatus::kFailed) << "program " << index << "\n"
                                                 << describe(program, *report.failure) << "\n"
                                                 << to_text(program);
  }
}

}  // namespace
}  // namespace granule::prop
