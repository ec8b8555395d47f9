// Fault rules, recordings, poison detection, lockstep and counting host memory.
#include <gtest/gtest.h>

#include <thread>

#include <granule/backends/check.hpp>
#include <granule/backends/count.hpp>
#include <granule/backends/fault.hpp>
#include <granule/backends/record.hpp>

#include "fake_backend.hpp"

namespace granule {
namespace {

using test::FakeBackend;

MemAlloc alloc_of(std::uint64_t size) {
  MemAlloc call;
  call.size = size;
  return call;
}

TEST(Fault, NthMatchingCallIsRefusedBeforeItIsMade) {
  FakeBackend inner;
  fault::FaultBackend backend(inner);
  const std::size_t rule =
      backend.add({.call = kind_of<MemAlloc>, .nth = 2, .status = DriverStatus::kOutOfMemory});
  MemAlloc first = alloc_of(1);
  MemAlloc second = alloc_of(2);
  MemAlloc third = alloc_of(3);
  CtxSynchronize other;
  EXPECT_EQ(backend.run(first), DriverStatus::kSuccess);
  EXPECT_EQ(backend.run(other), DriverStatus::kSuccess);
  EXPECT_EQ(backend.run(second), DriverStatus::kOutOfMemory);
  EXPECT_EQ(second.ptr.value, kPoison64);
  EXPECT_EQ(second.size, 2u) << "inputs stay";
  EXPECT_EQ(backend.run(third), DriverStatus::kSuccess);
  EXPECT_EQ(inner.seen.size(), 3u);
  EXPECT_EQ(backend.fired(rule), 1u);
  EXPECT_EQ(backend.seen(rule), 3u);
}

TEST(Fault, AllFromTheNthOnFailUntilCleared) {
  FakeBackend inner;
  fault::FaultBackend backend(inner);
  backend.add({.nth = 3, .times = fault::FaultRule::kAlways});
  for (int i = 1; i <= 10; ++i) {
    MemAlloc call = alloc_of(1);
    EXPECT_EQ(backend.run(call) == DriverStatus::kSuccess, i < 3);
  }
  backend.clear();
  MemAlloc call = alloc_of(1);
  EXPECT_EQ(backend.run(call), DriverStatus::kSuccess);
  EXPECT_EQ(backend.fired_in_all(), 8u);
}

TEST(Fault, NotReadySeveralTimesThenItWorks) {
  FakeBackend inner;
  fault::FaultBackend backend(inner);
  backend.add({.call = kind_of<MemUnmap>, .times = 3, .status = DriverStatus::kNotReady});
  MemUnmap call;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(backend.run(call), DriverStatus::kNotReady);
  EXPECT_EQ(backend.run(call), DriverStatus::kSuccess);
}

TEST(Fault, DoneButReportedFailedLeavesAnOrphan) {
  FakeBackend inner(0x5000);
  fault::FaultBackend backend(inner);
  backend.add({.call = kind_of<MemAlloc>,
               .status = DriverStatus::kUnknown,
               .timing = fault::Timing::kAfter});
  MemAlloc call = alloc_of(64);
  EXPECT_EQ(backend.run(call), DriverStatus::kUnknown);
  EXPECT_EQ(call.ptr.value, kPoison64);
  EXPECT_EQ(inner.seen.size(), 1u);
  const auto orphans = backend.take_orphans();
  ASSERT_EQ(orphans.size(), 1u);
  EXPECT_EQ(std::get<MemAlloc>(orphans[0].actual).ptr.value, 0x5000u);
  EXPECT_TRUE(backend.take_orphans().empty());
}

TEST(Fault, ContextsAreLostRightBeforeTheCallWhichIsMade) {
  for (const fault::Timing timing : {fault::Timing::kSticky, fault::Timing::kSurfacing}) {
    FakeBackend inner;
    fault::FaultBackend backend(inner);
    std::vector<std::pair<DriverStatus, bool>> lost;
    backend.set_lose_contexts([&](DriverStatus status, bool at_once) {
      EXPECT_EQ(inner.seen.size(), 1u) << "before the second call";
      lost.emplace_back(status, at_once);
    });
    backend.add({.nth = 2, .status = DriverStatus::kLaunchFailed, .timing = timing});
    MemAlloc call = alloc_of(1);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(backend.run(call), DriverStatus::kSuccess);
    const bool at_once = timing == fault::Timing::kSticky;
    EXPECT_EQ(lost,
              (std::vector<std::pair<DriverStatus, bool>>{{DriverStatus::kLaunchFailed, at_once}}));
    const auto kind = at_once ? fault::FaultClass::kSticky : fault::FaultClass::kSurfacing;
    EXPECT_EQ(backend.fired_by_class()[static_cast<std::size_t>(kind)], 1u);
    EXPECT_TRUE(backend.take_orphans().empty());
  }
}

TEST(Fault, WhatFiredIsCountedByClass) {
  FakeBackend inner(0x5000);
  fault::FaultBackend backend(inner);
  const auto count = [&](fault::FaultClass kind) {
    return backend.fired_by_class()[static_cast<std::size_t>(kind)];
  };
  backend.add({.call = kind_of<MemAlloc>});
  backend.add({.call = kind_of<MemUnmap>, .times = 2, .status = DriverStatus::kNotReady});
  backend.add({.call = kind_of<MemFree>, .timing = fault::Timing::kAfter});
  backend.add({.call = kind_of<MemCreate>, .condition = fault::Condition::kRdma});
  backend.set_ignore_hints(true);
  MemAlloc alloc = alloc_of(1);
  MemUnmap unmap;
  MemFree free;
  MemCreate create;
  create.properties.rdma = 1;
  MemAddressReserve reserve;
  reserve.hint = DevicePtr{0x1000};
  for (int i = 0; i < 3; ++i) {
    backend.run(alloc);
    backend.run(unmap);
    backend.run(free);
    backend.run(create);
    backend.run(reserve);
  }
  EXPECT_EQ(count(fault::FaultClass::kRefused), 1u);
  EXPECT_EQ(count(fault::FaultClass::kNotReady), 2u);
  EXPECT_EQ(count(fault::FaultClass::kDone), 1u);
  EXPECT_EQ(count(fault::FaultClass::kProperty), 1u);
  EXPECT_EQ(count(fault::FaultClass::kHint), 3u);
}

TEST(Fault, CallThatFailsByItselfIsNoInjectedFailure) {
  FakeBackend inner;
  fault::FaultBackend backend(inner);
  const auto rule = backend.add({.timing = fault::Timing::kAfter});
  inner.next_status = DriverStatus::kInvalidValue;
  MemAlloc call = alloc_of(1);
  EXPECT_EQ(backend.run(call), DriverStatus::kInvalidValue);
  EXPECT_EQ(backend.fired(rule), 0u);
  EXPECT_TRUE(backend.take_orphans().empty());
  EXPECT_EQ(call.ptr.value, kPoison64);
}

TEST(Fault, HarnessCallsAreNeitherCountedNorFailed) {
  FakeBackend inner;
  fault::FaultBackend backend(inner);
  backend.add({.nth = 2});
  MemAlloc call = alloc_of(1);
  EXPECT_EQ(backend.run(call), DriverStatus::kSuccess);
  {
    const OriginScope scope(CallOrigin::kHarness);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(backend.run(call), DriverStatus::kSuccess);
  }
  const OriginScope scope(CallOrigin::kProgram);
  Pause pause;
  CloseDescriptor close;
  EXPECT_EQ(backend.run(pause), DriverStatus::kSuccess) << "no driver call";
  EXPECT_EQ(backend.run(close), DriverStatus::kSuccess) << "no driver call";
  EXPECT_EQ(backend.run(call), DriverStatus::kUnknown);
  EXPECT_EQ(backend.counted_calls(), 2u);
}

TEST(Fault, AnswerWithoutEffectIsNotCounted) {
  FakeBackend inner;
  fault::FaultBackend backend(inner);
  const auto rule = backend.add({.call = kind_of<MemFree>, .nth = 2});
  MemFree call;
  inner.next_status = DriverStatus::kWouldBlock;
  EXPECT_EQ(backend.run(call), DriverStatus::kWouldBlock);
  EXPECT_EQ(backend.seen(rule), 0u);
  EXPECT_EQ(backend.counted_calls(), 0u);
  EXPECT_EQ(backend.run(call), DriverStatus::kSuccess);
  EXPECT_EQ(backend.run(call), DriverStatus::kUnknown);
}

TEST(Fault, RdmaConditionLooksAtTheProperties) {
  FakeBackend inner;
  fault::FaultBackend backend(inner);
  backend.add({.call = kind_of<MemCreate>,
               .condition = fault::Condition::kRdma,
               .times = fault::FaultRule::kAlways,
               .status = DriverStatus::kNotSupported});
  MemCreate plain;
  MemCreate rdma;
  rdma.properties.rdma = 1;
  EXPECT_EQ(backend.run(plain), DriverStatus::kSuccess);
  EXPECT_EQ(backend.run(rdma), DriverStatus::kNotSupported);
  EXPECT_EQ(backend.run(plain), DriverStatus::kSuccess);
}

TEST(Fault, IgnoredHintIsGrantedElsewhere) {
  FakeBackend inner(0x1000);
  fault::FaultBackend backend(inner);
  backend.set_ignore_hints(true);
  MemAddressReserve call;
  call.size = 0x1000;
  call.hint = {0x1000};  // just where the inner backend would put it by itself
  EXPECT_EQ(backend.run(call), DriverStatus::kSuccess);
  EXPECT_EQ(call.ptr.value, 0x2000u);
  EXPECT_EQ(call.hint.value, 0x1000u);
  ASSERT_EQ(inner.seen.size(), 3u);
  EXPECT_EQ(std::get<MemAddressFree>(inner.seen[2]).ptr.value, 0x1000u);
}

TEST(Record, CountsAndKeepsWhatWasCalled) {
  FakeBackend inner;
  record::RecordBackend backend(inner);
  MemAlloc call = alloc_of(7);
  backend.run(call);
  {
    const OriginScope scope(CallOrigin::kHarness);
    const ThreadScope thread(4);
    backend.run(call);
  }
  inner.next_status = DriverStatus::kOutOfMemory;
  backend.run(call);
  EXPECT_EQ(backend.calls(kind_of<MemAlloc>), 2u);
  EXPECT_EQ(backend.calls_in_all(), 2u);
  backend.mark();
  EXPECT_EQ(backend.calls(kind_of<MemAlloc>), 0u);
  const auto entries = backend.take();
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[1].thread, 4u);
  EXPECT_EQ(entries[1].origin, CallOrigin::kHarness);
  EXPECT_EQ(entries[2].status, DriverStatus::kOutOfMemory);
  EXPECT_TRUE(backend.entries().empty());
  const std::string line = record::to_text(entries[1]);
  EXPECT_EQ(line, "@4 harness cuMemAlloc size=7 => CUDA_SUCCESS ptr=0x2000");
  const auto back = record::entry_from_text(line);
  ASSERT_TRUE(back);
  EXPECT_EQ(record::to_text(*back), line);
  EXPECT_FALSE(record::entry_from_text("@x harness cuMemAlloc"));
  EXPECT_FALSE(record::entry_from_text("cuMemAlloc size=7"));
}

TEST(Record, ThreadsAreNumberedByFirstAppearance) {
  FakeBackend inner;
  record::RecordBackend backend(inner);
  CtxSynchronize call;
  backend.run(call);
  std::thread([&] {
    CtxSynchronize mine;
    backend.run(mine);
  }).join();
  const auto entries = backend.entries();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].thread, 0u);
  EXPECT_EQ(entries[1].thread, 1u);
}

TEST(PoisonCheck, UseOfAFailedCallsOutputIsReportedAndRefused) {
  FakeBackend inner;
  fault::FaultBackend faults(inner);
  int reports = 0;
  check::PoisonCheckBackend backend(faults, [&](const Call&, CallOrigin) { ++reports; });
  faults.add({.call = kind_of<MemAlloc>});
  MemAlloc alloc = alloc_of(1);
  backend.run(alloc);
  MemFree free;
  free.ptr = alloc.ptr;
  EXPECT_EQ(backend.run(free), DriverStatus::kInvalidValue);
  EXPECT_EQ(reports, 1);
  MemsetD8 fill;
  fill.ptr = {alloc.ptr.value + 4096};
  EXPECT_EQ(backend.run(fill), DriverStatus::kInvalidValue) << "an offset does not launder it";
  EXPECT_EQ(reports, 2);
  fill.ptr = {0x1000};
  EXPECT_EQ(backend.run(fill), DriverStatus::kSuccess);
}

TEST(Lockstep, DifferentNamesOfTheSameObjectsAgree) {
  FakeBackend real(0x10000);
  FakeBackend model(0x7000000);
  std::vector<check::Difference> differences;
  check::LockstepBackend backend(
      real, model, [&](const check::Difference& difference) { differences.push_back(difference); });
  MemAddressReserve reserve;
  reserve.size = 0x1000;
  backend.run(reserve);
  MemCreate create;
  backend.run(create);
  MemMap map;
  map.ptr = {reserve.ptr.value + 0x800};
  map.handle = create.handle;
  EXPECT_EQ(backend.run(map), DriverStatus::kSuccess);
  EXPECT_TRUE(differences.empty());
  EXPECT_EQ(std::get<MemMap>(real.seen.back()).ptr.value, 0x10800u);
  EXPECT_EQ(std::get<MemMap>(model.seen.back()).ptr.value, 0x7000800u);
  EXPECT_EQ(std::get<MemMap>(model.seen.back()).handle.value, 0x7001000u);
  model.next_status = DriverStatus::kInvalidValue;
  EXPECT_EQ(backend.run(map), DriverStatus::kSuccess) << "the caller sees the real answer";
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].field, "status");
  EXPECT_EQ(differences[0].number, 4u);
}

TEST(CountingHostMemory, CountsAndFailsTheNth) {
  count::CountingHostMemory memory;
  memory.fail(2, 2);
  void* first = memory.allocate(10, 8);
  EXPECT_EQ(memory.allocate(20, 8), nullptr);
  EXPECT_EQ(memory.allocate(20, 8), nullptr);
  void* second = memory.allocate(30, 256);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second) % 256, 0u);
  EXPECT_EQ(memory.live_blocks(), 2u);
  EXPECT_EQ(memory.live_bytes(), 40u);
  EXPECT_EQ(memory.failed(), 2u);
  memory.deallocate(first, 10, 8);
  memory.deallocate(second, 30, 256);
  EXPECT_EQ(memory.live_blocks(), 0u);
  EXPECT_EQ(memory.live_bytes(), 0u);
  EXPECT_EQ(memory.peak_bytes(), 40u);
  EXPECT_TRUE(memory.take_misuses().empty());
}

TEST(CountingHostMemory, NoticesMisuse) {
  count::CountingHostMemory memory;
  void* block = memory.allocate(10, 8);
  memory.deallocate(block, 10, 8);
  memory.deallocate(block, 10, 8);
  void* other = memory.allocate(10, 8);
  memory.deallocate(other, 11, 16);
  EXPECT_EQ(memory.take_misuses(),
            (std::vector{count::HostMisuse::kDoubleFree, count::HostMisuse::kWrongSize,
                         count::HostMisuse::kWrongAlignment}));
  for (int i = 0; i < 1000; ++i) memory.deallocate(memory.allocate(100, 16), 100, 16);
  EXPECT_EQ(memory.live_blocks(), 0u);
}

TEST(Count, SeveralHostAllocationsCanBeChosenToFail) {
  count::CountingHostMemory memory;
  memory.fail(2);
  memory.fail(4, 2);
  std::vector<bool> given;
  for (int i = 0; i < 6; ++i) {
    void* const block = memory.allocate(8, 8);
    given.push_back(block != nullptr);
    memory.deallocate(block, 8, 8);
  }
  EXPECT_EQ(given, (std::vector<bool>{true, false, true, false, false, true}));
  EXPECT_EQ(memory.failed(), 3u);
}

}  // namespace
}  // namespace granule
