// Each planted defect is shown by a program of its own: clean on the core, failing on the specimen.
#include <string>

#include <gtest/gtest.h>

#include <granule/prop/text.hpp>
#include <granule/prop/zoo.hpp>

namespace granule::prop {
namespace {

class Zoo : public testing::TestWithParam<Specimen> {
 protected:
  void SetUp() override {
    const std::string file =
        std::string(GRANULE_ZOO) + "/" + std::string(GetParam().name) + ".granule";
    ParseResult parsed = parse_file(file);
    for (const ParseError& error : parsed.errors) ADD_FAILURE() << to_text(error);
    ASSERT_EQ(parsed.document.programs.size(), 1u) << file;
    program_ = std::move(parsed.document.programs[0]);
  }

  RunReport run_on(const TargetFactory& target) const {
    RunOptions options;
    options.strict = true;
    if (GetParam().machine) GetParam().machine(options.machine);
    options.target = target;
    return run(program_, options);
  }

  void expect_clean(const TargetFactory& target) const {
    const RunReport report = run_on(target);
    EXPECT_EQ(report.status, RunStatus::kClean)
        << (report.failure ? describe(program_, *report.failure) : report.unmet);
  }

  Program program_;
};

TEST_P(Zoo, CoreIsClean) { expect_clean({}); }

TEST_P(Zoo, NaiveWithoutMistakeIsClean) {
  if (!GetParam().naive) GTEST_SKIP() << "a mutation of the core";
  expect_clean(zoo_target("naive"));
}

TEST_P(Zoo, SpecimenFails) {
  const RunReport report = run_on(GetParam().make());
  EXPECT_EQ(report.status, RunStatus::kFailed) << GetParam().plants;
  if (report.failure) RecordProperty("signature", report.failure->signature);
}

std::string test_name(const testing::TestParamInfo<Specimen>& info) {
  std::string name(info.param.name);
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, Zoo, testing::ValuesIn(specimens().begin(), specimens().end()),
                         test_name);

TEST(ZooRegistry, NamesAreUnique) {
  for (const Specimen& specimen : specimens()) {
    EXPECT_EQ(find_specimen(specimen.name), &specimen);
    EXPECT_FALSE(specimen.plants.empty());
    EXPECT_FALSE(specimen.observable.empty());
    EXPECT_TRUE(zoo_target(specimen.name));
  }
  EXPECT_EQ(find_specimen("no such"), nullptr);
  EXPECT_FALSE(zoo_target("no such"));
}

}  // namespace
}  // namespace granule::prop
