// What a sweep asks of answers, and the table of codes.
#include "sweep/verdict.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "sweep/codes.hpp"

namespace granule::prop::sweep {
namespace {

Answer ok() { return {Reply::Kind::kOk, "", "", false}; }
Answer error(std::string_view word, std::string_view detail, bool reported = false) {
  return {Reply::Kind::kError, word, detail, reported};
}

Fault map_fault(DriverStatus status, std::uint64_t times = 1) {
  Fault fault;
  fault.point.kind = kind_of<MemMap>;
  fault.status = status;
  fault.times = times;
  return fault;
}

TEST(FirstError, IsTheOneOfTheFault) {
  const Fault fault = map_fault(DriverStatus::kUnknown);
  EXPECT_FALSE(judge_one(fault, {ok()}, {error("driver", "CUDA_ERROR_UNKNOWN")}));
  EXPECT_FALSE(judge_one(fault, {ok()}, {ok()}));
  const auto wrong = judge_one(fault, {ok()}, {error("driver", "CUDA_ERROR_INVALID_VALUE")});
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->statement, 0u);
  EXPECT_EQ(wrong->expected.size(), 2u);  // ok, or the fault's
}

TEST(FirstError, WantOfMemoryIsTakenWhereTheFaultWasReported) {
  const Fault fault = map_fault(DriverStatus::kUnknown);
  EXPECT_TRUE(judge_one(fault, {ok()}, {error("out_of_memory", "device")}));
  EXPECT_FALSE(judge_one(fault, {ok()}, {error("out_of_memory", "device", true)}));
}

TEST(FirstError, SaysNothingWhereTheProgramFailsAnyway) {
  const Fault fault = map_fault(DriverStatus::kUnknown);
  EXPECT_FALSE(judge_one(fault, {error("closed", "")}, {error("closed", "")}));
}

TEST(FirstError, StaysFirstWhenTheUndoFailsToo) {
  const Fault first = map_fault(DriverStatus::kOutOfMemory);
  Fault second = map_fault(DriverStatus::kUnknown);
  second.point.kind = kind_of<MemUnmap>;
  const Answer alone = error("out_of_memory", "device");
  EXPECT_FALSE(judge_two(first, second, {ok()}, {alone}, {alone}));
  EXPECT_TRUE(judge_two(first, second, {ok()}, {alone}, {error("driver", "CUDA_ERROR_UNKNOWN")}));
  EXPECT_TRUE(judge_two(first, second, {ok()}, {alone}, {ok()}));
  // The first fault alone was got over: the second one's error is the first.
  EXPECT_FALSE(judge_two(first, second, {ok()}, {ok()}, {error("driver", "CUDA_ERROR_UNKNOWN")}));
}

TEST(NotReady, PassesUnnoticedEightTimes) {
  EXPECT_TRUE(map_fault(DriverStatus::kNotReady, 8).is_passing());
  EXPECT_FALSE(map_fault(DriverStatus::kNotReady, 9).is_passing());
  const Fault fault = map_fault(DriverStatus::kNotReady, 8);
  EXPECT_FALSE(judge_one(fault, {ok()}, {ok()}));
  EXPECT_TRUE(judge_one(fault, {ok()}, {error("driver", "CUDA_ERROR_NOT_READY")}));
}

TEST(Codes, AreFailuresAndNoQuestions) {
  for (std::size_t i = 0; i < kCallCount; ++i) {
    const auto codes = plausible_codes(static_cast<CallKind>(i));
    ASSERT_FALSE(codes.empty());
    for (const DriverStatus code : codes) {
      EXPECT_NE(code, DriverStatus::kSuccess);
      EXPECT_NE(code, DriverStatus::kNotReady);
      EXPECT_EQ(std::count(codes.begin(), codes.end(), code), 1);
    }
  }
}

TEST(Faults, StandWhereTheirNumbersCountFrom) {
  EXPECT_EQ(original_of(3, {}), 3u);
  EXPECT_EQ(original_of(2, {2}), std::nullopt);
  EXPECT_EQ(original_of(1, {2}), 1u);
  EXPECT_EQ(original_of(3, {2}), 2u);
  EXPECT_EQ(original_of(2, {2, 2}), std::nullopt);
  EXPECT_EQ(original_of(3, {2, 2}), std::nullopt);
  EXPECT_EQ(original_of(4, {2, 2}), 2u);
  EXPECT_EQ(original_of(4, {2, 3}), std::nullopt);
  EXPECT_EQ(original_of(3, {2, 3}), 2u);
}

}  // namespace
}  // namespace granule::prop::sweep
