// For tests: the entry points of the simulated driver, found as a client finds them.
#pragma once

#include <gtest/gtest.h>

#include <cstring>

#include <granule/backends/driver_abi.hpp>

extern "C" int cuGetProcAddress_v2(const char*, void**, int, unsigned long long, int*);

namespace granule::libcuda::test {

inline constexpr std::size_t kGranule = std::size_t{2} << 20;

/// All entry points of the list that the cuda backend uses.
inline const abi::FunctionTable& cu() {
  static const abi::FunctionTable table = [] {
    abi::FunctionTable made;
    auto* slot = reinterpret_cast<unsigned char*>(&made);
    for (const abi::FunctionName& wanted : abi::kFunctionNames) {
      void* found = nullptr;
      int why = -1;
      EXPECT_EQ(cuGetProcAddress_v2(wanted.name, &found, wanted.version, 1, &why), 0);
      EXPECT_EQ(why, 0) << wanted.name;
      std::memcpy(slot, &found, sizeof(found));
      slot += sizeof(found);
    }
    return made;
  }();
  return table;
}

inline abi::MemAllocationProp on_device(int device = 0) {
  abi::MemAllocationProp properties;
  properties.type = 1;
  properties.location = {1, device};
  return properties;
}

/// A current primary context of device 0.
class SimulatedDriver : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cu().cuInit(0), 0);
    ASSERT_EQ(cu().cuDevicePrimaryCtxRetain(&context_, 0), 0);
    ASSERT_EQ(cu().cuCtxSetCurrent(context_), 0);
  }
  void TearDown() override {
    cu().cuCtxSetCurrent(nullptr);
    cu().cuDevicePrimaryCtxRelease(0);
  }
  /// `size` bytes mapped with access; `handle` stays held.
  abi::DevicePtr map(std::size_t size, abi::AllocationHandle& handle) {
    abi::DevicePtr ptr = 0;
    const abi::MemAllocationProp properties = on_device();
    const abi::MemAccessDesc access{{1, 0}, 3};
    EXPECT_EQ(cu().cuMemAddressReserve(&ptr, size, 0, 0, 0), 0);
    EXPECT_EQ(cu().cuMemCreate(&handle, size, &properties, 0), 0);
    EXPECT_EQ(cu().cuMemMap(ptr, size, 0, handle, 0), 0);
    EXPECT_EQ(cu().cuMemSetAccess(ptr, size, &access, 1), 0);
    return ptr;
  }
  void unmap(abi::DevicePtr ptr, std::size_t size, abi::AllocationHandle handle) {
    EXPECT_EQ(cu().cuMemUnmap(ptr, size), 0);
    EXPECT_EQ(cu().cuMemRelease(handle), 0);
    EXPECT_EQ(cu().cuMemAddressFree(ptr, size), 0);
  }

  abi::Context context_ = nullptr;
};

}  // namespace granule::libcuda::test
