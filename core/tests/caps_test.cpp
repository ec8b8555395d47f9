// What is asked of the driver before a resource is made, and what its answers mean.
#include <gtest/gtest.h>

#include <granule/resource.hpp>

#include "scripted_backend.hpp"

namespace granule {
namespace {

class CapsTest : public testing::Test {
 protected:
  /// Attributes answer their number below 100, what is above 0; `node` is that of the host.
  void answer_with(std::int32_t devices, std::int32_t node) {
    driver.script = [=, this](Call& call) -> std::optional<DriverStatus> {
      if (auto* count = std::get_if<DeviceGetCount>(&call)) {
        count->count = devices;
        return DriverStatus::kSuccess;
      }
      auto* get = std::get_if<DeviceGetAttribute>(&call);
      if (!get) return std::nullopt;
      asked.push_back(get->device);
      get->value = get->attribute == DeviceAttribute::kHostNumaId ? node : 1;
      return DriverStatus::kSuccess;
    };
  }
  SystemCaps caps_of(const VmmOptions& options) { return query_caps(driver, options).value(); }
  ScriptedBackend driver;
  std::vector<DeviceId> asked;
};

TEST_F(CapsTest, EveryFeatureIsAskedOfTheDeviceOfTheMemory) {
  answer_with(3, 2);
  VmmOptions options;
  options.location.id = 1;
  const SystemCaps caps = caps_of(options);
  EXPECT_EQ(caps.device_count, 3);
  for (const Support answer :
       {caps.device.vmm, caps.device.posix_fd, caps.device.win32_kmt, caps.device.fabric,
        caps.device.rdma, caps.device.host_numa, caps.device.host})
    EXPECT_EQ(answer, Support::kYes);
  EXPECT_EQ(caps.device.host_numa_id, 2);
  EXPECT_EQ(caps.device.total_memory, 1ull << 40);
  EXPECT_EQ(asked.size(), 8u);
  for (const DeviceId device : asked) EXPECT_EQ(device, DeviceId{1});
  EXPECT_EQ(caps.reachable_peers, (std::vector<DeviceId>{{0}, {1}, {2}}));
  EXPECT_EQ(driver.count<DeviceCanAccessPeer>(), 2u) << "a device reaches its own";
}

TEST_F(CapsTest, HostMemoryAsksTheFirstDeviceAndIsReachedByAll) {
  answer_with(2, -1);
  VmmOptions options;
  options.location = {LocationType::kHostNuma, 5};
  const SystemCaps caps = caps_of(options);
  EXPECT_EQ(caps.device.host_numa_id, 0) << "-1 is taken as 0";
  for (const DeviceId device : asked) EXPECT_EQ(device, DeviceId{0});
  EXPECT_EQ(caps.reachable_peers.size(), 2u);
  EXPECT_EQ(driver.count<DeviceCanAccessPeer>(), 0u);
}

TEST_F(CapsTest, DeviceThatIsNoneIsNotAsked) {
  answer_with(2, 0);
  VmmOptions options;
  for (const std::int32_t id : {-1, 2}) {
    options.location.id = id;
    EXPECT_EQ(caps_of(options).device.vmm, Support::kUnknown);
  }
  EXPECT_TRUE(asked.empty());
}

TEST_F(CapsTest, AttributeThatTheDriverDoesNotKnowIsUnknown) {
  driver.fail<DeviceGetAttribute>(DriverStatus::kInvalidValue);
  EXPECT_EQ(caps_of({}).device.vmm, Support::kUnknown);
  driver.lift();
  driver.fail<DeviceGetAttribute>(DriverStatus::kNotInitialized);
  EXPECT_EQ(query_caps(driver, {}).status().error().driver, DriverStatus::kNotInitialized);
}

TEST_F(CapsTest, PeersOutOfReachAreLeftOut) {
  driver.script = [](Call& call) -> std::optional<DriverStatus> {
    auto* can = std::get_if<DeviceCanAccessPeer>(&call);
    if (!can) return std::nullopt;
    can->can = 0;
    return DriverStatus::kSuccess;
  };
  EXPECT_EQ(caps_of({}).reachable_peers, std::vector<DeviceId>{{0}});
}

template <class C>
void expect_refused() {
  ScriptedBackend driver;
  driver.fail<C>(DriverStatus::kUnknown);
  const auto made = VirtualMemoryResource::create(driver, {});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().call, name_of(kind_of<C>));
  EXPECT_EQ(made.error().driver, DriverStatus::kUnknown);
}

TEST_F(CapsTest, QuestionThatIsRefusedIsTheErrorOfTheResource) {
  expect_refused<DeviceGetCount>();
  expect_refused<DeviceTotalMem>();
  expect_refused<DeviceCanAccessPeer>();
  expect_refused<MemGetAllocationGranularity>();
}

TEST_F(CapsTest, GranularityOfTheMemoryThatWillBeMade) {
  VmmOptions options;
  options.location = {LocationType::kHost, 0};
  options.granularity = GranularityKind::kMinimum;
  const auto r = VirtualMemoryResource::create(driver, options).value();
  const auto& asked_for = driver.last<MemGetAllocationGranularity>();
  EXPECT_EQ(asked_for.option, GranularityKind::kMinimum);
  EXPECT_EQ(asked_for.properties.location.type, LocationType::kHost);
  EXPECT_EQ(asked_for.properties.location.id, 0);
  EXPECT_EQ(r.properties().granularity, kG);
  driver.script = [](Call& call) -> std::optional<DriverStatus> {
    auto* query = std::get_if<MemGetAllocationGranularity>(&call);
    if (!query) return std::nullopt;
    query->granularity = 3 << 20;
    return DriverStatus::kSuccess;
  };
  EXPECT_EQ(VirtualMemoryResource::create(driver, {}).status().error().code,
            ErrorCode::kUnsupported);
}

TEST_F(CapsTest, NodeOfTheMakingThreadIsSettledOnce) {
  VmmOptions options;
  options.location = {LocationType::kHostNumaCurrent, 0};
  const auto r = VirtualMemoryResource::create(driver, options).value();
  EXPECT_EQ(r.properties().location.type, LocationType::kHostNuma);
  EXPECT_GE(r.properties().location.id, 0);
}

TEST_F(CapsTest, HandlesShareAResource) {
  std::optional<VirtualMemoryResource> a = VirtualMemoryResource::create(driver, {}).value();
  VirtualMemoryResource b = *a;
  VirtualMemoryResource c = std::move(*a);
  a.reset();
  b = c;
  EXPECT_EQ(b.statistics().buffers, 0u);
  Buffer buffer = c.allocate(Stream::legacy({0}), kG).value();
  EXPECT_TRUE(b.owns(buffer));
  EXPECT_EQ(b.statistics().buffers, 1u);
}

}  // namespace
}  // namespace granule
