// The follower over a second model with other choices: agreement where the driver may choose,
// divergences where it may not.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <granule/prop/run.hpp>
#include <granule/prop/text.hpp>

#include "model_device.hpp"

namespace granule::gpu {
namespace {

namespace fs = std::filesystem;

prop::RunReport run_followed(const prop::Program& program, const std::string& plant = "",
                             bool strict = false) {
  prop::RunOptions options;
  options.strict = strict;
  options.make_machine = [&](const model::Config& config) {
    return make_model_machine(config, plant);
  };
  return prop::run(program, options);
}

prop::Program parsed(const std::string& text) {
  const prop::ParseResult result = prop::parse("granule 1\n" + text, "test.granule");
  EXPECT_TRUE(result.ok()) << (result.errors.empty() ? "" : prop::to_text(result.errors.front()));
  return result.document.programs.front();
}

std::vector<prop::Program> corpus(const char* folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".granule") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  std::vector<prop::Program> programs;
  for (const std::string& file : files) {
    prop::ParseResult result = prop::parse_file(file);
    for (prop::Program& program : result.document.programs) programs.push_back(std::move(program));
  }
  return programs;
}

/// Programs whose literal expectations name the model's own schedule or places.
void expect_no_divergence(const char* folder) {
  std::size_t ran = 0;
  for (const prop::Program& program : corpus(folder)) {
    const prop::RunReport report = run_followed(program);
    if (report.failure && report.failure->kind == prop::Failure::Kind::kDiverged)
      ADD_FAILURE() << program.name << ": " << prop::describe(program, *report.failure);
    ran += report.status == prop::RunStatus::kClean ? 1 : 0;
  }
  EXPECT_GT(ran, 50u);
}

TEST(Follower, AgreesOverThePrograms) { expect_no_divergence(GRANULE_PROGRAMS); }
TEST(Follower, AgreesOverTheCorpus) { expect_no_divergence(GRANULE_CORPUS); }
TEST(Follower, AgreesOverTheConformancePrograms) { expect_no_divergence(GRANULE_CONFORMANCE); }

TEST(Follower, TakesOverPlacesAndHandles) {
  const prop::Program program = parsed(
      "v = cuMemAddressReserve 4g\n"
      "h = cuMemCreate 2g\n"
      "cuMemMap v 2g h\n"
      "cuMemSetAccess v 2g device:0=rw\n"
      "cuMemsetD8 v 0x11 2g\n"
      "cuMemcpyDtoH v 2g => 0x11\n"
      "x = cuMemAlloc 4096\n"
      "cuMemsetD8 x 0x22 4096\n"
      "cuMemcpyDtoH x 4096 => 0x22\n"
      "cuMemFree x\n"
      "cuMemUnmap v 2g\n"
      "cuMemRelease h\n"
      "cuMemAddressFree v 4g\n");
  const prop::RunReport report = run_followed(program);
  EXPECT_EQ(report.status, prop::RunStatus::kClean)
      << (report.failure ? prop::describe(program, *report.failure) : "");
}

TEST(Follower, FollowsAQueryOfUnfinishedWork) {
  const prop::Program program = parsed(
      "stream s\n"
      "x = cuMemAlloc 1g\n"
      "cuMemsetD8 x 0x22 1g on s\n"
      "cuStreamQuery s\n"
      "cuStreamSynchronize s\n"
      "cuStreamQuery s => ok\n"
      "cuMemFree x\n");
  const prop::RunReport report = run_followed(program);
  EXPECT_EQ(report.status, prop::RunStatus::kClean)
      << (report.failure ? prop::describe(program, *report.failure) : "");
}

TEST(Follower, NeverStartsWhatWouldBlockOrCrash) {
  const prop::Program program = parsed(
      "stream s\n"
      "hold s\n"
      "cuStreamSynchronize s => would_block\n"
      "release s\n"
      "cuStreamSynchronize s => ok\n"
      "h = cuMemCreate 1g\n"
      "cuMemRelease h => ok\n"
      "cuMemRelease 0x1234567890 => undefined\n");
  const prop::RunReport report = run_followed(program);
  EXPECT_EQ(report.status, prop::RunStatus::kClean)
      << (report.failure ? prop::describe(program, *report.failure) : "");
}

struct Planted {
  const char* plant;
  const char* program;
  const char* signature;
};

class Plants : public testing::TestWithParam<Planted> {};

TEST_P(Plants, AreFound) {
  const prop::RunReport report = run_followed(parsed(GetParam().program), GetParam().plant);
  ASSERT_TRUE(report.failure.has_value());
  EXPECT_EQ(report.failure->kind, prop::Failure::Kind::kDiverged);
  EXPECT_EQ(report.failure->signature, GetParam().signature);
}

INSTANTIATE_TEST_SUITE_P(
    All, Plants,
    testing::Values(Planted{"unmap-refuses-holes", "v = cuMemAddressReserve 4g\ncuMemUnmap v 4g\n",
                            "diverged cuMemUnmap status CUDA_SUCCESS CUDA_ERROR_INVALID_VALUE"},
                    Planted{"access-of-all-mappings",
                            "v = cuMemAddressReserve 1g\nh = cuMemCreate 1g\ncuMemMap v 1g h\n"
                            "cuMemSetAccess v 1g device:0=r\ncuMemGetAccess v device:0\n",
                            "diverged cuMemGetAccess access"},
                    Planted{"create-costs-more", "h = cuMemCreate 1g\ncuMemGetInfo\n",
                            "diverged cuMemGetInfo free"},
                    Planted{"release-keeps-value",
                            "h = cuMemCreate 1g\nv = cuMemAddressReserve 1g\ncuMemMap v 1g h\n"
                            "k = cuMemRetainAllocationHandle v\ncuMemRelease h\n",
                            "diverged cuMemRelease status CUDA_SUCCESS CUDA_ERROR_INVALID_VALUE"}));

}  // namespace
}  // namespace granule::gpu
