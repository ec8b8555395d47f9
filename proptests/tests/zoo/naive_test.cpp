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
  // A call that was made and reported as failed leaves the naive tables behind the driver for good,
  // so does the undo of a grant that fails too; a suspended buffer whose resume fails may be lost,
  // and no lock guards the tables.
  for (const Feature left_out :
       {Feature::kFaultsAfter, Feature::kGrant, Feature::kSuspend, Feature::kThreads})
    options.generate.features.remove(left_out);
  constexpr std::uint64_t kPrograms = 10000;
  for (std::uint64_t index = 0; index < kPrograms; ++index) {
    const Program program = campaign_program(options, index);
    const RunReport report = run(program, campaign_run(options, index));
    ASSERT_NE(report.status, RunStatus::kFailed) << "program " << index << "\n"
                                                 << describe(program, *report.failure) << "\n"
                                                 << to_text(program);
  }
}

Program parsed(const char* text) {
  ParseResult result = parse(text, "naive");
  EXPECT_TRUE(result.ok());
  return result.document.programs.at(0);
}

// Found by campaigns: each failed without a mistake.
TEST(Naive, ProgramsThatFailedAreClean) {
  RunOptions options;
  options.target = zoo_target("naive");
  for (const char* text : {
           "granule 1\ndevice 1\nresource r vmm location=device:1\na = allocate r 1g zero\n",
           "granule 1\nresource r vmm\na = allocate r 0\nb = grow a 0\ngrant r 0 rw\n"
           "c = grow b 1g self_access=none\n",
           "granule 1\nstream s\nresource r vmm\na = allocate r 1g on s\nused a on s\n"
           "b = allocate r 1g\nfill a 0x11 on s\ncopy b a 1g on s\nstream s2\nclose a on s2\n",
       }) {
    const Program program = parsed(text);
    const RunReport report = run(program, options);
    EXPECT_EQ(report.status, RunStatus::kClean)
        << (report.failure ? describe(program, *report.failure) : report.unmet);
  }
}

// What fails without the defect as well is no find of it.
TEST(Naive, FailureOfTheBaselineIsNoFind) {
  const Program program =
      parsed("granule 1\nresource r vmm\nhole h 8g\na = allocate r 1g at=h\nb = grow a 2g\n");
  RunOptions options;
  options.target = zoo_target("2887");
  options.baseline = zoo_target("naive");
  const RunReport found = run(program, options);
  ASSERT_EQ(found.status, RunStatus::kFailed) << "the program does not show the defect";
  options.baseline = options.target;
  const RunReport excused = run(program, options);
  EXPECT_EQ(excused.status, RunStatus::kUnmet);
  EXPECT_FALSE(excused.failure.has_value());
  EXPECT_NE(excused.unmet.find(found.failure->signature), std::string::npos) << excused.unmet;
}

}  // namespace
}  // namespace granule::prop
