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
  // Pools and recyclers are the core's. A call that was made and reported as failed leaves the
  // naive tables behind the driver for good. The rest keeps the programs to one device, one
  // resource and streams of their own, where a find can only be the resource's.
  for (const Feature left_out :
       {Feature::kPools, Feature::kRecycler, Feature::kFaultsAfter, Feature::kSecondDevice,
        Feature::kDefaultStreams, Feature::kSuspend, Feature::kResources, Feature::kGrant})
    options.generate.features.remove(left_out);
  constexpr std::uint64_t kPrograms = 3000;
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
