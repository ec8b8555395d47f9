// Validation of options against made-up machines: no driver call is involved.
#include <gtest/gtest.h>

#include <granule/options.hpp>

namespace granule {
namespace {

SystemCaps machine(std::int32_t devices) {
  SystemCaps caps;
  caps.device_count = devices;
  caps.device.vmm = Support::kYes;
  caps.device.total_memory = 1ull << 36;
  for (std::int32_t i = 0; i < devices; ++i) caps.reachable_peers.push_back({i});
  return caps;
}

ErrorCode first(const VmmOptions& options, const SystemCaps& caps) {
  const Violations wrong = validate(options, caps);
  EXPECT_FALSE(wrong.empty());
  return wrong.empty() ? ErrorCode::kDriver : wrong.errors[0].code;
}

TEST(Options, DefaultsAreValid) { EXPECT_TRUE(validate(VmmOptions{}, machine(1)).empty()); }

TEST(Options, DeviceThatDoesNotExistIsInvalid) {
  VmmOptions options;
  options.location.id = 99;
  EXPECT_EQ(first(options, machine(1)), ErrorCode::kInvalidArgument);
  options.location.id = -1;
  EXPECT_EQ(first(options, machine(1)), ErrorCode::kInvalidArgument);
}

TEST(Options, AlignmentMustBeAPowerOfTwo) {
  VmmOptions options;
  options.alignment = 6u << 20;
  EXPECT_EQ(first(options, machine(1)), ErrorCode::kInvalidArgument);
  options.alignment = 4096;
  EXPECT_TRUE(validate(options, machine(1)).empty());
}

TEST(Options, ManagedMemoryIsUnsupported) {
  VmmOptions options;
  options.type = AllocationType::kManaged;
  EXPECT_EQ(first(options, machine(1)), ErrorCode::kUnsupported);
}

TEST(Options, HostMemoryTakesNeitherHandleTypeNorRdma) {
  VmmOptions options;
  options.location = {LocationType::kHost, 0};
  EXPECT_TRUE(validate(options, machine(1)).empty());
  options.handle_type = HandleType::kPosixFd;
  EXPECT_EQ(first(options, machine(1)), ErrorCode::kInvalidArgument);
  options.handle_type = HandleType::kNone;
  options.rdma = Wish::kIfPossible;
  EXPECT_EQ(first(options, machine(1)), ErrorCode::kInvalidArgument);
}

TEST(Options, PeersAreCheckedAgainstTheMachine) {
  VmmOptions options;
  options.peers = {{1}};
  EXPECT_EQ(first(options, machine(1)), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(validate(options, machine(2)).empty());
  SystemCaps apart = machine(2);
  apart.reachable_peers = {{0}};
  EXPECT_EQ(first(options, apart), ErrorCode::kInvalidArgument);
  options.peer_access = Access::kNone;
  EXPECT_EQ(first(options, machine(2)), ErrorCode::kInvalidArgument);
}

TEST(Options, OwnerAmongItsPeersIsDropped) {
  VmmOptions options;
  options.peers = {{0}, {0}};
  options.peer_access = Access::kNone;
  EXPECT_TRUE(validate(options, machine(1)).empty());
}

TEST(Options, SupportThatIsUnknownIsLeftToTheDriver) {
  VmmOptions options;
  options.handle_type = HandleType::kFabric;
  SystemCaps caps = machine(1);
  EXPECT_TRUE(validate(options, caps).empty());
  caps.device.fabric = Support::kNo;
  EXPECT_EQ(first(options, caps), ErrorCode::kUnsupported);
}

TEST(Options, EveryViolationIsReturned) {
  VmmOptions options;
  options.alignment = 3;
  options.type = AllocationType::kManaged;
  options.location.id = 7;
  options.peers = {{9}};
  EXPECT_EQ(validate(options, machine(1)).count, 4u);
}

TEST(Options, GrowCannotChangeHandleTypeOrLocation) {
  GrowOptions call;
  call.handle_type = HandleType::kNone;
  EXPECT_TRUE(validate(call, VmmOptions{}, machine(1)).empty());
  call.handle_type = HandleType::kPosixFd;
  call.location = Location{LocationType::kHost, 0};
  EXPECT_EQ(validate(call, VmmOptions{}, machine(1)).count, 2u);
}

TEST(Options, GrowIsCheckedLikeTheConstructor) {
  GrowOptions call;
  call.peers = std::vector<DeviceId>{{99}};
  EXPECT_FALSE(validate(call, VmmOptions{}, machine(1)).empty());
}

}  // namespace
}  // namespace granule
