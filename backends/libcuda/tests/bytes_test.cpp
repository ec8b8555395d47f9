// The simulated driver's memory holds bytes: what is written is read, through every alias, and
// fills cost nothing.
#include <array>
#include <numeric>
#include <vector>

#include "simulated.hpp"

namespace granule::libcuda::test {
namespace {

using Bytes = SimulatedDriver;

std::vector<unsigned char> counting(std::size_t size) {
  std::vector<unsigned char> bytes(size);
  std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(1));
  return bytes;
}

TEST_F(Bytes, AliasesSeeEachOther) {
  abi::AllocationHandle handle = 0;
  const abi::DevicePtr first = map(kGranule, handle);
  abi::DevicePtr second = 0;
  const abi::MemAccessDesc access{{1, 0}, 3};
  ASSERT_EQ(cu().cuMemAddressReserve(&second, kGranule, 0, 0, 0), 0);
  ASSERT_EQ(cu().cuMemMap(second, kGranule, 0, handle, 0), 0);
  ASSERT_EQ(cu().cuMemSetAccess(second, kGranule, &access, 1), 0);
  const std::vector<unsigned char> written = counting(1000);
  ASSERT_EQ(cu().cuMemcpyHtoD(first + 77, written.data(), written.size()), 0);
  std::vector<unsigned char> read(1000);
  ASSERT_EQ(cu().cuMemcpyDtoH(read.data(), second + 77, read.size()), 0);
  EXPECT_EQ(read, written);
  EXPECT_EQ(cu().cuMemUnmap(second, kGranule), 0);
  EXPECT_EQ(cu().cuMemAddressFree(second, kGranule), 0);
  unmap(first, kGranule, handle);
}

TEST_F(Bytes, SixtyFourGibibytesCanBeFilled) {
  constexpr std::size_t kSize = std::size_t{64} << 30;
  abi::AllocationHandle handle = 0;
  const abi::DevicePtr ptr = map(kSize, handle);
  ASSERT_EQ(cu().cuMemsetD32(ptr, 0xDEADBEEFu, kSize / 4), 0);
  ASSERT_EQ(cu().cuMemsetD8(ptr + kSize - 3, 0x11, 3), 0);
  std::array<unsigned char, 8> end{};
  ASSERT_EQ(cu().cuMemcpyDtoH(end.data(), ptr + kSize - end.size(), end.size()), 0);
  EXPECT_EQ(end, (std::array<unsigned char, 8>{0xEF, 0xBE, 0xAD, 0xDE, 0xEF, 0x11, 0x11, 0x11}));
  unmap(ptr, kSize, handle);
}

TEST_F(Bytes, UnifiedCopiesLookWhatEachEndIs) {
  abi::DevicePtr ptr = 0;
  ASSERT_EQ(cu().cuMemAlloc(&ptr, 4096), 0);
  const std::vector<unsigned char> written = counting(4096);
  std::vector<unsigned char> read(4096);
  const auto address = [](const void* host) { return reinterpret_cast<abi::DevicePtr>(host); };
  ASSERT_EQ(cu().cuMemcpy(ptr, address(written.data()), 4096), 0);
  ASSERT_EQ(cu().cuMemcpy(address(read.data()), ptr, 4096), 0);
  EXPECT_EQ(read, written);
  std::fill(read.begin(), read.end(), static_cast<unsigned char>(0));
  ASSERT_EQ(cu().cuMemcpy(address(read.data()), address(written.data()), 4096), 0);
  EXPECT_EQ(read, written);
  ASSERT_EQ(cu().cuMemFree(ptr), 0);
}

TEST_F(Bytes, RowsAreCopiedWithTheirPitches) {
  abi::DevicePtr ptr = 0;
  ASSERT_EQ(cu().cuMemAlloc(&ptr, 4096), 0);
  ASSERT_EQ(cu().cuMemsetD8(ptr, 0, 4096), 0);
  const std::vector<unsigned char> written = counting(64);
  abi::Memcpy2D copy;
  copy.src_type = abi::kMemoryTypeHost;
  copy.src_host = written.data();
  copy.src_pitch = 8;
  copy.dst_type = abi::kMemoryTypeDevice;
  copy.dst_device = ptr;
  copy.dst_pitch = 100;
  copy.dst_x = 3;
  copy.dst_y = 1;
  copy.width = 8;
  copy.height = 5;
  ASSERT_EQ(cu().cuMemcpy2D(&copy), 0);
  std::vector<unsigned char> read(4096);
  ASSERT_EQ(cu().cuMemcpyDtoH(read.data(), ptr, read.size()), 0);
  for (std::size_t row = 0; row < 5; ++row)
    for (std::size_t column = 0; column < 8; ++column)
      EXPECT_EQ(read[(row + 1) * 100 + 3 + column], written[row * 8 + column]);
  EXPECT_EQ(read[102], 0);
  EXPECT_EQ(read[111], 0);
  ASSERT_EQ(cu().cuMemFree(ptr), 0);
}

TEST_F(Bytes, PinnedMemoryIsTheHostsOwn) {
  void* host = nullptr;
  ASSERT_EQ(cu().cuMemAllocHost(&host, 4096), 0);
  std::memset(host, 0x42, 4096);
  abi::DevicePtr ptr = 0;
  ASSERT_EQ(cu().cuMemAlloc(&ptr, 4096), 0);
  ASSERT_EQ(cu().cuMemcpyDtoD(ptr, reinterpret_cast<abi::DevicePtr>(host), 4096), 0);
  unsigned char byte = 0;
  ASSERT_EQ(cu().cuMemcpyDtoH(&byte, ptr + 4095, 1), 0);
  EXPECT_EQ(byte, 0x42);
  ASSERT_EQ(cu().cuMemsetD8(reinterpret_cast<abi::DevicePtr>(host), 0x43, 4096), 0);
  ASSERT_EQ(cu().cuCtxSynchronize(), 0);
  EXPECT_EQ(static_cast<unsigned char*>(host)[9], 0x43);
  ASSERT_EQ(cu().cuMemFree(ptr), 0);
  ASSERT_EQ(cu().cuMemFreeHost(host), 0);
}

}  // namespace
}  // namespace granule::libcuda::test
