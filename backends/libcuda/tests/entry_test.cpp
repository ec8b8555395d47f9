// Entry points: look-up by version, codes, descriptors, host functions, threads, self-checks.
#include <granule_sim.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "simulated.hpp"

namespace granule::libcuda::test {
namespace {

using Entry = SimulatedDriver;

void* find(const char* name, int version, unsigned long long flags, int& why) {
  void* found = nullptr;
  EXPECT_EQ(cuGetProcAddress_v2(name, &found, version, flags, &why), 0);
  return found;
}

TEST_F(Entry, LookUpGivesTheNewestFormThatTheVersionKnows) {
  int why = -1;
  void* const self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(self, nullptr);
  EXPECT_EQ(find("cuCtxCreate", 12000, 0, why), dlsym(self, "cuCtxCreate_v3"));
  EXPECT_EQ(find("cuCtxCreate", 13000, 0, why), dlsym(self, "cuCtxCreate_v4"));
  EXPECT_EQ(find("cuMemsetD8Async", 13000, 2, why), dlsym(self, "cuMemsetD8Async_ptsz"));
  EXPECT_EQ(find("cuMemCreate", 13000, 2, why), dlsym(self, "cuMemCreate"));
  EXPECT_EQ(find("cuMemCreate", 10000, 0, why), nullptr);
  EXPECT_EQ(why, abi::kProcAddressVersionNotSufficient);
  EXPECT_EQ(find("cuNoSuchThing", 13000, 0, why), nullptr);
  EXPECT_EQ(why, abi::kProcAddressNotFound);
  dlclose(self);
}

TEST_F(Entry, WhatIsNotSimulatedIsRefused) {
  int why = -1;
  using Create = int (*)(void**, const void*);
  const auto create = reinterpret_cast<Create>(find("cuArrayCreate", 13000, 0, why));
  ASSERT_NE(create, nullptr);
  void* array = nullptr;
  EXPECT_EQ(create(&array, nullptr), static_cast<int>(801));
}

TEST_F(Entry, ADescriptorIsRealAndItsCloseIsNoticed) {
  abi::AllocationHandle handle = 0;
  abi::MemAllocationProp properties = on_device();
  properties.requested_handle_types = 1;
  const granule_sim_snapshot_t before = granule_sim_snapshot();
  ASSERT_EQ(cu().cuMemCreate(&handle, kGranule, &properties, 0), 0);
  int descriptor = -1;
  ASSERT_EQ(cu().cuMemExportToShareableHandle(&descriptor, handle, 1, 0), 0);
  const int copy = dup(descriptor);
  EXPECT_EQ(close(descriptor), 0);
  abi::AllocationHandle imported = 0;
  void* const as_pointer = reinterpret_cast<void*>(static_cast<std::intptr_t>(copy));
  ASSERT_EQ(cu().cuMemImportFromShareableHandle(&imported, as_pointer, 1), 0);
  EXPECT_EQ(cu().cuMemRelease(imported), 0);
  EXPECT_EQ(cu().cuMemRelease(handle), 0);
  EXPECT_EQ(granule_sim_findings(before), 1u);  // the duplicate keeps it open
  EXPECT_EQ(close(copy), 0);
  EXPECT_EQ(granule_sim_findings(before), 0u);
}

TEST_F(Entry, AWaitByOtherMeansDoesNotStarveAHostFunction) {
  abi::Stream stream = nullptr;
  ASSERT_EQ(cu().cuStreamCreate(&stream, 1), 0);
  std::atomic<int> ran{0};
  const auto count = [](void* argument) { ++*static_cast<std::atomic<int>*>(argument); };
  ASSERT_EQ(cu().cuLaunchHostFunc(stream, count, &ran), 0);
  for (int i = 0; i < 2000 && ran == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(ran, 1);
  ASSERT_EQ(cu().cuStreamDestroy(stream), 0);
}

TEST_F(Entry, ThreadsHaveTheirOwnCurrentContexts) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      abi::Context current = nullptr;
      if (cu().cuCtxGetCurrent(&current) != 0 || current != nullptr) ++wrong;
      for (int round = 0; round < 200; ++round) {
        abi::AllocationHandle handle = 0;
        abi::DevicePtr ptr = 0;
        const abi::MemAllocationProp properties = on_device();
        if (cu().cuMemCreate(&handle, kGranule, &properties, 0) != 0) ++wrong;
        if (cu().cuMemAddressReserve(&ptr, kGranule, 0, 0, 0) != 0) ++wrong;
        if (cu().cuMemMap(ptr, kGranule, 0, handle, 0) != 0) ++wrong;
        if (cu().cuMemRelease(handle) != 0) ++wrong;
        if (cu().cuMemUnmap(ptr, kGranule) != 0) ++wrong;
        if (cu().cuMemAddressFree(ptr, kGranule) != 0) ++wrong;
      }
    });
  const granule_sim_snapshot_t before = granule_sim_snapshot();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(granule_sim_findings(before), 0u);
}

TEST_F(Entry, AForkedChildIsNotInitialized) {
  std::size_t free = 0;
  std::size_t total = 0;
  const pid_t child = fork();
  if (child == 0) _exit(cu().cuMemGetInfo(&free, &total));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 3) << "CUDA_ERROR_NOT_INITIALIZED";
  EXPECT_EQ(cu().cuMemGetInfo(&free, &total), 0) << "the parent goes on";
}

TEST_F(Entry, SelfCheckNamesWhatIsLeftAndForgetsIt) {
  const granule_sim_snapshot_t before = granule_sim_snapshot();
  abi::DevicePtr ptr = 0;
  ASSERT_EQ(cu().cuMemAlloc(&ptr, 4096), 0);
  std::string text(std::size_t{1} << 16, '\0');
  EXPECT_EQ(granule_sim_expect_no_leak(before, text.data(), text.size()), 1);
  EXPECT_NE(text.find("leak.pointer@"), std::string::npos) << text.c_str();
  EXPECT_NE(text.find("cuMemAlloc"), std::string::npos) << text.c_str();
  EXPECT_EQ(granule_sim_expect_no_leak(before, nullptr, 0), 0);
  ASSERT_EQ(cu().cuMemFree(ptr), 0);
}

TEST_F(Entry, FaultsOnDemand) {
  EXPECT_EQ(granule_sim_fail("cuMemAlloc nth=two"), 1);
  ASSERT_EQ(granule_sim_fail("cuMemAlloc nth=2 with CUDA_ERROR_OUT_OF_MEMORY"), 0);
  abi::DevicePtr first = 0;
  abi::DevicePtr second = 1;
  EXPECT_EQ(cu().cuMemAlloc(&first, 4096), 0);
  EXPECT_EQ(cu().cuMemAlloc(&second, 4096), 2);
  EXPECT_EQ(second, 0u);
  granule_sim_no_faults();
  EXPECT_EQ(cu().cuMemFree(first), 0);
  EXPECT_EQ(granule_sim_faults_delivered(), 1u);
}

TEST_F(Entry, MisuseIsSeen) {
  const granule_sim_snapshot_t before = granule_sim_snapshot();
  abi::AllocationHandle handle = 0;
  abi::Stream stream = nullptr;
  const abi::DevicePtr ptr = map(kGranule, handle);
  ASSERT_EQ(cu().cuStreamCreate(&stream, 1), 0);
  // Unmapped while a fill that nobody waited for may still run.
  ASSERT_EQ(cu().cuMemsetD8Async(ptr, 1, kGranule, stream), 0);
  ASSERT_EQ(cu().cuMemUnmap(ptr, kGranule), 0);
  EXPECT_NE(cu().cuStreamSynchronize(stream), 0);
  std::string text(std::size_t{1} << 16, '\0');
  EXPECT_EQ(granule_sim_expect_no_leak(before, text.data(), text.size()), 1);
  EXPECT_NE(text.find("misuse.unmapped_use@"), std::string::npos) << text.c_str();
  EXPECT_NE(text.find("misuse.unmap_under_work@"), std::string::npos) << text.c_str();
}

}  // namespace
}  // namespace granule::libcuda::test
