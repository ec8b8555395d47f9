// The text of calls: every kind there and back, awkward values, malformed lines.
#include <gtest/gtest.h>

#include <type_traits>

#include <granule/backends/record.hpp>
#include <granule/backends/trace.hpp>

#include "fake_backend.hpp"

namespace granule::trace {
namespace {

/// Fills every member with a value of its own, derived from `seed`.
Call filled(CallKind kind, std::uint64_t seed) {
  Call call = make_call(kind);
  std::uint64_t next = seed;
  std::visit(
      [&](auto& c) {
        for_each_field(c, [&](const auto&, auto& member) {
          using T = std::remove_cvref_t<decltype(member)>;
          next = next * 6364136223846793005ull + 1442695040888963407ull;
          const std::uint64_t value = next >> 17;
          if constexpr (std::is_same_v<T, AccessEntries>) {
            for (std::uint64_t i = 0; i < value % 17; ++i)
              member.push({{static_cast<LocationType>(i % 6), static_cast<std::int32_t>(i) - 2},
                           static_cast<Access>((value >> i) % 4)});
          } else if constexpr (std::is_same_v<T, AllocationProperties>) {
            member.type = static_cast<std::uint32_t>(value % 3);
            member.handle_types = static_cast<HandleType>(value % 10);
            member.location = {static_cast<LocationType>(value % 6), 3};
            member.rdma = static_cast<std::uint8_t>(value % 2);
            member.compression = static_cast<std::uint8_t>(value % 5);
            member.usage = static_cast<std::uint16_t>(value);
          } else if constexpr (std::is_same_v<T, Location>) {
            member = {static_cast<LocationType>(value % 7), -1};
          } else if constexpr (std::is_same_v<T, HostSource>) {
            member = {nullptr, static_cast<std::uint8_t>(value), value % 3 != 0};
          } else if constexpr (std::is_same_v<T, ByteSummary>) {
            member = {static_cast<ByteSummary::Kind>(value % 4), static_cast<std::uint8_t>(value)};
          } else if constexpr (std::is_pointer_v<T>) {
            member = reinterpret_cast<T>(static_cast<std::uintptr_t>(value));
          } else if constexpr (std::is_enum_v<T>) {
            member = static_cast<T>(value % 30);
          } else if constexpr (std::is_integral_v<T>) {
            member = static_cast<T>(value);
          } else {
            member.value = static_cast<decltype(member.value)>(value);
          }
        });
      },
      call);
  return call;
}

bool same_outputs(const Call& a, const Call& b) {
  return std::visit(
      [&](const auto& left) {
        const auto& right = *std::get_if<std::remove_cvref_t<decltype(left)>>(&b);
        bool same = true;
        for_each_field(left, [&](const auto& field, const auto& member) {
          if (is_output(field.role) && !(member == right.*(field.member))) same = false;
        });
        return same;
      },
      a);
}

TEST(Trace, EveryCallSurvivesTheWayThereAndBack) {
  for (std::size_t i = 0; i < kCallCount; ++i) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      const Call call = filled(static_cast<CallKind>(i), seed);
      const std::string line = to_text(call, DriverStatus::kSuccess);
      const auto back = from_text(line);
      ASSERT_TRUE(back) << line;
      EXPECT_EQ(back->status, DriverStatus::kSuccess);
      EXPECT_TRUE(same_inputs(call, back->call)) << line;
      EXPECT_TRUE(same_outputs(call, back->call)) << line;
      EXPECT_EQ(to_text(back->call, back->status), line);
    }
  }
}

TEST(Trace, FailedCallComesBackWithPoisonedOutputs) {
  for (std::size_t i = 0; i < kCallCount; ++i) {
    Call call = filled(static_cast<CallKind>(i), 7);
    const auto back = from_text(to_text(call, DriverStatus::kOutOfMemory));
    ASSERT_TRUE(back);
    EXPECT_EQ(back->status, DriverStatus::kOutOfMemory);
    poison_outputs(call);
    EXPECT_TRUE(same_inputs(call, back->call));
    EXPECT_TRUE(same_outputs(call, back->call));
  }
}

TEST(Trace, PoisonItselfHasAText) {
  for (std::size_t i = 0; i < kCallCount; ++i) {
    Call call = make_call(static_cast<CallKind>(i));
    poison_outputs(call);
    const std::string line = to_text(call, DriverStatus::kSuccess);
    const auto back = from_text(line);
    ASSERT_TRUE(back) << line;
    EXPECT_EQ(to_text(back->call, back->status), line);
  }
}

TEST(Trace, LinesReadAsInTheDriversDocumentation) {
  MemMap map;
  map.ptr = {0x200000};
  map.size = 2097152;
  map.handle = {0x1};
  EXPECT_EQ(to_text(Call(map), DriverStatus::kSuccess),
            "cuMemMap ptr=0x200000 size=2097152 offset=0 handle=0x1 flags=0 => CUDA_SUCCESS");
  MemSetAccess access;
  access.access.push({device_location({0}), Access::kReadWrite});
  access.access.push({{LocationType::kHost, 0}, Access::kRead});
  EXPECT_EQ(to_text(Call(access)), "cuMemSetAccess ptr=0x0 size=0 access=device:0/rw,host:0/r");
}

TEST(Trace, StatusWithoutNameIsKeptAsNumber) {
  const auto back = from_text(to_text(Call(CtxSynchronize{}), static_cast<DriverStatus>(4711)));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->status, static_cast<DriverStatus>(4711));
}

TEST(Trace, MalformedLinesAreRefused) {
  for (const char* line :
       {"", "cuNoSuchCall", "cuMemFree", "cuMemUnmap ptr=0x1 ptr=0x1", "cuMemUnmap ptr=zebra",
        "cuMemUnmap ptr=0x", "cuMemUnmap size=-1", "cuMemUnmap size=18446744073709551616",
        "cuMemUnmap size", "cuMemUnmap => ", "cuMemUnmap => CUDA_NO_SUCH_CODE",
        "cuMemUnmap => CUDA_SUCCESS => CUDA_SUCCESS", "cuMemAlloc ptr=0x1",
        "cuMemAlloc => CUDA_SUCCESS size=1", "cuMemSetAccess access=", "cuMemSetAccess access=x/r",
        "cuMemCreate properties=device:0,colour:1"}) {
    if (std::string_view(line) == "cuMemFree") {
      EXPECT_TRUE(from_text(line)) << "arguments may be left out";
    } else {
      EXPECT_FALSE(from_text(line)) << line;
    }
  }
}

TEST(Trace, BackendWritesALineForEachCall) {
  test::FakeBackend inner;
  std::vector<std::string> lines;
  TraceBackend trace(inner, [&](std::string_view line) { lines.emplace_back(line); });
  MemAlloc alloc;
  alloc.size = 4096;
  EXPECT_EQ(trace.run(alloc), DriverStatus::kSuccess);
  inner.next_status = DriverStatus::kOutOfMemory;
  trace.run(alloc);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "cuMemAlloc size=4096 => CUDA_SUCCESS ptr=0x1000");
  EXPECT_EQ(lines[1], "cuMemAlloc size=4096 => CUDA_ERROR_OUT_OF_MEMORY");
}

}  // namespace
}  // namespace granule::trace
