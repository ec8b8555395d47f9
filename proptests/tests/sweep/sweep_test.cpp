// Sweeps: they reach what there is, find what is planted, and say so when they showed nothing.
#include <granule/prop/sweep.hpp>

#include <memory>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include <granule/backends/origin.hpp>
#include <granule/prop/shrink.hpp>
#include <granule/prop/text.hpp>
#include <granule/prop/zoo.hpp>

namespace granule::prop {
namespace {

Program program_of(std::string_view lines) {
  const ParseResult parsed = parse("granule 1\n" + std::string(lines), "test");
  EXPECT_TRUE(parsed.ok()) << (parsed.errors.empty() ? "" : to_text(parsed.errors[0]));
  return parsed.document.programs.at(0);
}

SweepSource source_of(const Program& program, const SweepBreadth& breadth = {}) {
  SweepSource source;
  source.programs = 1;
  source.program = [program](std::uint64_t) { return program; };
  source.breadth = [breadth](std::uint64_t) { return breadth; };
  return source;
}

SweepSource source_of(const Palette& palette) {
  SweepSource source;
  source.programs = palette.programs();
  source.program = [&palette](std::uint64_t number) { return palette.program(number); };
  source.breadth = [](std::uint64_t) {
    SweepBreadth breadth;
    breadth.pairs_up_to = 0;
    return breadth;
  };
  return source;
}

const Program& grow_program() {
  static const Program program = program_of(
      "stream s\n"
      "resource r vmm\n"
      "a = allocate r 1g on s\n"
      "decoy d after a 1g\n"
      "b = grow a 2g => moved\n"
      "expect reservations 3\n"
      "close a\n"
      "close b\n");
  return program;
}

std::string text_of(const SweepResult& result) {
  std::string text;
  for (const SweepViolation& violation : result.violations)
    text += violation.signature + ": " + violation.message + "\n" + to_text(violation.faulted);
  return text;
}

/// Hides from the fault injection that a call is the library's: no fault can fire.
class Hiding final : public Backend {
 public:
  explicit Hiding(Backend& inner) : inner_(inner) {}
  DriverStatus execute(Call& call) noexcept override {
    const OriginScope scope(CallOrigin::kHarness);
    return inner_.execute(call);
  }

 private:
  Backend& inner_;
};

TEST(Sweep, FailsEveryPointOfAProgram) {
  const SweepResult result = run_sweep(source_of(grow_program()), {});
  EXPECT_EQ(text_of(result), "");
  EXPECT_FALSE(result.vacuous);
  EXPECT_EQ(result.counts.not_swept, 0u);
  EXPECT_GT(result.counts.call_points, 20u);
  EXPECT_GT(result.counts.host_points, 5u);
  EXPECT_GT(result.counts.pairs, 200u);
  EXPECT_GT(result.counts.runs, 5 * result.counts.points());
  EXPECT_EQ(result.counts.unfired, 0u);
}

TEST(Sweep, FaultsThatNeverFireShowNothing) {
  SweepOptions options;
  options.run.decorate = [](Backend& inner) { return std::make_unique<Hiding>(inner); };
  const SweepResult result = run_sweep(source_of(grow_program()), options);
  EXPECT_GT(result.counts.call_points, 20u);
  EXPECT_GT(result.counts.unfired, 0u);
  EXPECT_TRUE(result.vacuous);
}

TEST(Sweep, HasRunsOfEveryClassOfFaults) {
  const Program program = program_of(
      "stream s\n"
      "resource r vmm rdma\n"
      "a = allocate r 16g on s\n"
      "b = grow a 32g\n"
      "close a\n"
      "close b\n");
  SweepOptions options;
  options.every_class = true;
  const SweepResult result = run_sweep(source_of(program), options);
  EXPECT_EQ(text_of(result), "");
  EXPECT_FALSE(result.vacuous);
  for (std::size_t i = 0; i < fault::kFaultClasses; ++i)
    EXPECT_GT(result.counts.by_class[i], 0u) << name_of(static_cast<fault::FaultClass>(i));
}

TEST(Sweep, AClassWithoutARunShowsNothingOfIt) {
  SweepOptions options;
  options.every_class = true;  // the program asks for no property
  const SweepResult result = run_sweep(source_of(grow_program()), options);
  EXPECT_GT(result.counts.runs, 0u);
  EXPECT_TRUE(result.vacuous);
}

TEST(Sweep, PairsHoldTwoHostAllocations) {
  // Of one operation a second allocation is not reached: it needs another operation.
  const Program program = program_of("resource r vmm\na = allocate r 1g\nb = allocate r 1g\n");
  std::uint64_t both = 0;
  constexpr std::uint64_t kMost = 200;
  SweepBreadth breadth;
  breadth.calls = false;
  breadth.surroundings = false;
  for (std::uint64_t first = 1; first < 40; ++first)
    for (std::uint64_t second = 1; second < kMost; ++second) {
      const std::string text = to_text(sweep_program(program, breadth, {}, first << 32 | second));
      const std::size_t at = text.find("fail host_alloc");
      if (at == std::string::npos) break;  // no such run
      both += text.find("fail host_alloc", at + 1) != std::string::npos ? 1 : 0;
    }
  EXPECT_GT(both, 10u);
}

TEST(Sweep, CallsOfTheProgramAreNoPoints) {
  const Program program = program_of(
      "v = cuMemAddressReserve 4g\n"
      "h = cuMemCreate 2g\n"
      "cuMemMap v 2g h\n");
  const SweepResult result = run_sweep(source_of(program), {});
  EXPECT_EQ(result.counts.points(), 0u);
  EXPECT_EQ(result.counts.not_swept, 1u);
  EXPECT_TRUE(result.vacuous);
}

TEST(Sweep, CallsOfTheProgramCountButAreNotFailed) {
  const Program without = program_of("resource r vmm\na = allocate r 1g\nclose a\n");
  const Program with = program_of(
      "resource r vmm\n"
      "h = cuMemCreate 2g\n"
      "a = allocate r 1g\n"
      "cuMemRelease h\n"
      "close a\n");
  const SweepResult alone = run_sweep(source_of(without), {});
  const SweepResult mixed = run_sweep(source_of(with), {});
  EXPECT_EQ(alone.counts.call_points, mixed.counts.call_points);
  EXPECT_EQ(alone.counts.runs, mixed.counts.runs);
  EXPECT_EQ(mixed.counts.unfired, 0u);
}

TEST(Sweep, FaultsOfTheProgramItselfStay) {
  const Program program = program_of(
      "resource r vmm\n"
      "h = cuMemCreate 2g\n"
      "a = allocate r 1g\n"
      "fail cuMemCreate nth=1 with CUDA_ERROR_UNKNOWN\n"
      "b = allocate r 1g => error driver:CUDA_ERROR_UNKNOWN\n"
      "close a\n");
  const SweepResult result = run_sweep(source_of(program), {});
  EXPECT_EQ(text_of(result), "");
  EXPECT_FALSE(result.vacuous);
}

TEST(Sweep, FaultsInThreadsStandInFrontOfThem) {
  const Program program = program_of(
      "resource r vmm\n"
      "thread t1 {\n  a = allocate r 1g\n  close a\n}\n"
      "thread t2 {\n  b = allocate r 1g\n  close b\n}\n");
  const SweepResult result = run_sweep(source_of(program), {});
  EXPECT_EQ(text_of(result), "");
  EXPECT_FALSE(result.vacuous);
  EXPECT_GT(result.counts.call_points, 10u);
}

TEST(Sweep, PartsAndJobsChangeNothing) {
  const Palette palette(2);
  SweepOptions options;
  options.run.target = zoo_target("core-failed-unmap-believed");
  const SweepResult one = run_sweep(source_of(palette), options);
  options.jobs = 3;
  options.parts = 5;
  const SweepResult many = run_sweep(source_of(palette), options);
  EXPECT_EQ(one.counts.programs, many.counts.programs);
  EXPECT_EQ(one.counts.points(), many.counts.points());
  EXPECT_EQ(one.counts.runs, many.counts.runs);
  EXPECT_EQ(one.counts.violations, many.counts.violations);
  EXPECT_EQ(text_of(one), text_of(many));
  EXPECT_NE(one.counts.violations, 0u);
}

TEST(Sweep, AViolationIsAProgramThatFailsAlone) {
  SweepOptions options;
  options.run.target = zoo_target("core-failed-access-believed");
  const SweepResult result = run_sweep(source_of(grow_program()), options);
  ASSERT_FALSE(result.violations.empty());
  RunOptions run = options.run;
  for (const SweepViolation& violation : result.violations) {
    const Judgement again = judge_by_run(run)(violation.faulted);
    EXPECT_NE(again.signature, "") << to_text(violation.faulted);
    EXPECT_EQ(to_text(sweep_program(grow_program(), {}, options.run, violation.run)),
              to_text(violation.faulted));
  }
}

TEST(Sweep, EndsWhenInterrupted) {
  const std::atomic<bool> stop{true};
  SweepOptions options;
  options.interrupted = &stop;
  const SweepResult result = run_sweep(source_of(grow_program()), options);
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.counts.runs, 0u);
}

/// Defects that no program shows without a fault.
class SweptSpecimen : public testing::TestWithParam<const char*> {};

TEST_P(SweptSpecimen, IsFoundOnShortPrograms) {
  const Palette palette(3);
  SweepOptions options;
  plant(*find_specimen(GetParam()), options.run);
  options.first_only = true;
  options.each = false;
  const SweepResult result = run_sweep(source_of(palette), options);
  ASSERT_FALSE(result.violations.empty());
  EXPECT_NE(result.violations[0].run, 0u) << "found without a fault";
}

INSTANTIATE_TEST_SUITE_P(Zoo, SweptSpecimen,
                         testing::Values("O2", "not-ready-never", "core-failed-unmap-believed",
                                         "core-failed-access-believed", "2235-b"));

TEST(Palette, NoTwoProgramsAreTheSameUpToNames) {
  const Palette palette(4);
  std::set<std::string> seen;
  for (std::uint64_t i = 0; i < palette.programs(); ++i) {
    Program program = with_plain_names(palette.program(i));
    EXPECT_EQ(program.statements.size(), palette.length_of(i) + 2);
    program.name.clear();
    EXPECT_TRUE(seen.insert(to_text(program)).second) << to_text(program);
  }
}

TEST(Palette, HoldsEveryOperationAtItsPlace) {
  // allocate twice; then each but the two of the first buffer, which need two open ones.
  EXPECT_EQ(Palette(1).programs(), 2u);
  EXPECT_EQ(Palette(2).programs(), 2u + 2u * 8u);
  bool found = false;
  const Palette palette(4);
  for (std::uint64_t i = 0; i < palette.programs(); ++i) {
    const std::string text = to_text(palette.program(i));
    found = found || text.find(
                         "b1 = allocate r 1g capacity=4g on s\n"
                         "b2 = grow b1 2g\n"
                         "close b1\n"
                         "resize b2 3g\n") != std::string::npos;
  }
  EXPECT_TRUE(found);
}

TEST(Palette, TheCoreIsCleanWithAllFaults) {
  const Palette palette(3);
  const SweepResult result = run_sweep(source_of(palette), {});
  EXPECT_EQ(text_of(result), "");
  EXPECT_FALSE(result.vacuous);
}

}  // namespace
}  // namespace granule::prop
