// granule sim as a command: exit codes, reports, faults, suppressions, recordings, the sweep; over
// a small C allocator that nobody here calls from inside.
#include <gtest/gtest.h>

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#if defined(__has_feature)
#define GRANULE_HAS_FEATURE(x) __has_feature(x)
#else
#define GRANULE_HAS_FEATURE(x) 0
#endif

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    GRANULE_HAS_FEATURE(address_sanitizer) || GRANULE_HAS_FEATURE(thread_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

struct Ran {
  int exit_code = 0;
  std::string output;  // stdout and stderr
};

Ran run(const std::string& command) {
  Ran ran;
  FILE* pipe = popen(("{ " + command + "; } 2>&1").c_str(), "r");
  if (pipe == nullptr) return ran;
  std::array<char, 512> part{};
  while (std::fgets(part.data(), part.size(), pipe) != nullptr) ran.output += part.data();
  const int status = pclose(pipe);
  ran.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return ran;
}

Ran sim(const std::string& arguments) { return run(GRANULE_COMMAND " sim " + arguments); }

const std::string kCareless = "-- " GRANULE_CHUNKS;
const std::string kCareful = "-- " GRANULE_CHUNKS " careful";
const std::string kFault = "--fail 'cuMemSetAccess nth=2 with CUDA_ERROR_UNKNOWN' ";

bool has(const Ran& ran, const std::string& text) {
  return ran.output.find(text) != std::string::npos;
}

std::string scratch(const std::string& name) { return testing::TempDir() + "granule-" + name; }

TEST(Sim, ARightProgramIsCleanAndKeepsItsExitCode) {
  const Ran right = sim(kCareless);
  EXPECT_EQ(right.exit_code, 0) << right.output;
  EXPECT_TRUE(has(right, "0 leaks, 0 misuses")) << right.output;
  const Ran undone = sim(kFault + kCareful);
  EXPECT_EQ(undone.exit_code, 1) << undone.output;
  EXPECT_TRUE(has(undone, "fault delivered: cuMemSetAccess")) << undone.output;
}

TEST(Sim, AFaultShowsWhatIsNotUndone) {
  const Ran ran = sim(kFault + kCareless);
  EXPECT_EQ(ran.exit_code, 42) << ran.output;
  for (const char* finding : {"leak.reservation@", "leak.handle@", "leak.mapping@",
                              "misuse.bad_address_free@", "1 handle reference, 2 MiB"})
    EXPECT_TRUE(has(ran, finding)) << finding << "\n" << ran.output;
  EXPECT_TRUE(has(ran, "chunk_add") || has(ran, "main")) << ran.output;
}

TEST(Sim, ReportOnlyAndSuppressionsKeepTheExitCode) {
  EXPECT_EQ(sim("--report-only " + kFault + kCareless).exit_code, 1);
  const std::string file = scratch("suppress");
  std::ofstream(file) << "# known\nleak.*\nmisuse.bad_address_free@* # the same\n";
  const Ran ran = sim("--suppress " + file + " " + kFault + kCareless);
  EXPECT_EQ(ran.exit_code, 1) << ran.output;
  EXPECT_TRUE(has(ran, "4 suppressed")) << ran.output;
}

TEST(Sim, JsonHoldsTheSameFindings) {
  const Ran ran = sim("--json - " + kFault + kCareless + " 2>/dev/null");
  EXPECT_TRUE(has(ran, "\"open\":4")) << ran.output;
  EXPECT_TRUE(has(ran, "\"kind\":\"mapping\"")) << ran.output;
}

TEST(Sim, ARecordingIsAProgramThatFailsAsTheRunDid) {
  const std::string file = scratch("recorded.granule");
  sim("--record " + file + " " + kFault + kCareless);
  const Ran bad = run(GRANULE_COMMAND " replay " + file);
  EXPECT_EQ(bad.exit_code, 42) << bad.output;
  EXPECT_TRUE(has(bad, "still held")) << bad.output;
  sim("--record " + file + " " + kCareless);
  const Ran good = run(GRANULE_COMMAND " replay --strict " + file);
  EXPECT_EQ(good.exit_code, 0) << good.output;
}

TEST(Sim, TheSweepFindsTheMissingUndoAndPrintsItsProgram) {
  const Ran careless = sim("--sweep " + kCareless);
  EXPECT_EQ(careless.exit_code, 42) << careless.output;
  EXPECT_TRUE(has(careless, "12 fault points, 3 with findings")) << careless.output;
  EXPECT_TRUE(has(careless, "fail cuMemSetAccess nth=1 with CUDA_ERROR_UNKNOWN"))
      << careless.output;
  EXPECT_TRUE(has(careless, "expect leak none")) << careless.output;
  const Ran careful = sim("--sweep " + kCareful);
  EXPECT_EQ(careful.exit_code, 0) << careful.output;
  EXPECT_TRUE(has(careful, "12 fault points, 0 with findings")) << careful.output;
}

TEST(Sim, SmallMemoryRunsOut) {
  // 64 chunks of 2 MiB fit a large device, not one of 64 MiB; what was made is given back.
  EXPECT_EQ(sim(kCareful + " 64").exit_code, 0);
  const Ran ran = sim("--memory 64MiB " + kCareful + " 64");
  EXPECT_EQ(ran.exit_code, 1) << ran.output;
  EXPECT_TRUE(has(ran, "0 leaks, 0 misuses")) << ran.output;
}

TEST(Sim, EveryDriverIsFineWithARightProgram) {
  for (const char* driver : {"exact", "portable", "adversarial"})
    for (const char* profile : {"h200", "a100", "laptop"}) {
      const Ran ran =
          sim(std::string("--driver ") + driver + " --profile " + profile + " " + kCareless);
      EXPECT_EQ(ran.exit_code, 0) << driver << " " << profile << "\n" << ran.output;
      EXPECT_FALSE(has(ran, "not understood")) << ran.output;
    }
}

/// granule watch where the driver of the system is a copy of the simulated one.
Ran watch(const std::string& arguments) {
  const std::string folder = scratch("real-driver");
  run("mkdir -p " + folder + " && cp -L " GRANULE_DRIVER " " + folder + "/libcuda.so.1");
  return run("LD_LIBRARY_PATH=" + folder + " " GRANULE_COMMAND " watch " + arguments);
}

TEST(Watch, ReportsWhatPassesToTheDriverBehind) {
  if (kSanitized) GTEST_SKIP() << "sanitizers do not go with RTLD_DEEPBIND";
  const Ran right = watch(kCareless);
  EXPECT_EQ(right.exit_code, 0) << right.output;
  EXPECT_TRUE(has(right, "ok\n")) << right.output;
  EXPECT_TRUE(has(right, "0 leaks, 0 misuses")) << right.output;
  const Ran wrong = watch(kFault + kCareless);
  EXPECT_EQ(wrong.exit_code, 42) << wrong.output;
  for (const char* finding : {"leak.reservation@", "leak.handle@", "leak.mapping@",
                              "misuse.bad_address_free@", "1 handle reference, 2 MiB"})
    EXPECT_TRUE(has(wrong, finding)) << finding << "\n" << wrong.output;
}

TEST(Watch, WithoutADriverTheMachineIsUnfit) {
  if (run("ldconfig -p | grep -q libcuda.so.1").exit_code == 0) GTEST_SKIP() << "it has a driver";
  const Ran ran = run(GRANULE_COMMAND " watch " + kCareless);
  EXPECT_EQ(ran.exit_code, 3) << ran.output;
}

TEST(Sim, UsageErrors) {
  EXPECT_EQ(sim("").exit_code, 2);
  EXPECT_EQ(sim("--driver none -- true").exit_code, 2);
  EXPECT_EQ(sim("--fail 'cuMemMap nth=zero' -- true").exit_code, 2);
  EXPECT_EQ(sim("--memory much -- true").exit_code, 2);
  const Ran other = sim("-- true");
  EXPECT_EQ(other.exit_code, 0) << other.output;
  EXPECT_TRUE(has(other, "no process reported")) << other.output;
}

}  // namespace
