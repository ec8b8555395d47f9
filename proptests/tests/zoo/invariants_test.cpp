// For each of the core's invariants (core/docs/DESIGN.md, section 2) a defect that breaks it, and
// the words in which the interpreter notices.
#include <set>
#include <string>

#include <gtest/gtest.h>

#include <granule/prop/text.hpp>
#include <granule/prop/zoo.hpp>

namespace granule::prop {
namespace {

struct Row {
  const char* invariant;
  const char* defect;
  const char* noticed;
};

constexpr Row kRows[] = {
    {"I1", "core-address-free-every-second", "counts 0 reservations, the driver holds 1"},
    {"I1", "core-reservations-rounded", "bytes of addresses"},
    {"I2", "2345", "CUDA_ERROR_INVALID_VALUE in cuMemAddressFree"},
    {"I3", "core-release-every-second", "counts 0 handles, the driver holds 1"},
    {"I4", "2344-1", "counts 0 handles, the driver holds 1"},
    {"I4", "core-unmap-every-third", "counts 0 mappings, the driver holds 1"},
    {"I5", "resume-half-way", "an operation that failed changed buffer a"},
    {"I6", "core-grow-consumes", "an operation changed buffer a"},
    {"I7", "core-wait-lost", "expected would_block, got ok"},
    {"I7", "core-used-ignored", "expected would_block, got ok"},
    {"I8", "core-captures-not-asked", "a capture was ended by an operation of the allocator"},
    {"I9", "2886-2", "not mapped"},
    {"I10", "mapping-without-access", "has access 0 instead of 3"},
    {"I10", "core-grant-ignored", "has access 0 instead of 3"},
    {"I11", "2907", "are no whole granules"},
    {"I12", "core-contexts-not-entered", "CUDA_ERROR_INVALID_CONTEXT"},
    {"I12", "core-contexts-not-left", "left another context current"},
    {"I13", "core-failed-unmap-believed", "counts 0 mappings, the driver holds 1"},
    {"I14", "growth-not-charged", "bytes of chunks"},
    {"I15", "core-holder-empty", "open buffers"},
};

class Invariants : public testing::TestWithParam<Row> {};

TEST_P(Invariants, ADefectThatBreaksItIsNoticed) {
  const ParseResult parsed =
      parse_file(std::string(GRANULE_ZOO) + "/" + GetParam().defect + ".granule");
  ASSERT_TRUE(parsed.ok());
  const Program& program = parsed.document.programs.at(0);
  RunOptions options;
  options.strict = true;
  for (const Specimen& specimen : specimens())
    if (specimen.name == GetParam().defect && specimen.machine) specimen.machine(options.machine);
  EXPECT_EQ(run(program, options).status, RunStatus::kClean) << "the core keeps it";
  options.target = zoo_target(GetParam().defect);
  const RunReport report = run(program, options);
  ASSERT_TRUE(report.failure.has_value());
  EXPECT_NE(report.failure->message.find(GetParam().noticed), std::string::npos)
      << report.failure->message;
}

TEST(InvariantsTable, NoneIsLeftOut) {
  std::set<std::string> named;
  for (const Row& row : kRows) named.insert(row.invariant);
  EXPECT_EQ(named.size(), 15u);
}

std::string row_name(const testing::TestParamInfo<Row>& info) {
  std::string name = std::string(info.param.invariant) + "_" + info.param.defect;
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, Invariants, testing::ValuesIn(kRows), row_name);

}  // namespace
}  // namespace granule::prop
