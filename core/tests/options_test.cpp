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

TEST(Options, LastDeviceIsADeviceAndTheOneBehindIsNot) {
  VmmOptions options;
  options.location.id = 1;
  EXPECT_TRUE(validate(options, machine(2)).empty());
  options.location.id = 2;
  EXPECT_EQ(first(options, machine(2)), ErrorCode::kInvalidArgument);
  options.location.id = 0;
  for (const std::int32_t peer : {-1, 2}) {
    options.peers = {{peer}};
    const Violations wrong = validate(options, machine(2));
    ASSERT_EQ(wrong.count, 1u) << peer;
    EXPECT_EQ(wrong.errors[0].detail, "a peer is no device of this machine");
  }
}

TEST(Options, PeersWithoutAccessAndOutOfReachAreInvalid) {
  VmmOptions options;
  options.peers = {{1}};
  options.peer_access = Access::kNone;
  EXPECT_EQ(first(options, machine(2)), ErrorCode::kInvalidArgument);
  options.peers = {{0}};
  EXPECT_TRUE(validate(options, machine(2)).empty()) << "the owner alone needs none";
  options.peers = {{1}};
  options.peer_access = Access::kRead;
  SystemCaps far = machine(2);
  far.reachable_peers = {{0}};
  EXPECT_EQ(validate(options, far).errors[0].detail, "a peer cannot reach the memory's device");
  options.self_access = static_cast<Access>(7);
  EXPECT_EQ(validate(options, far).errors[0].detail, "access is none, read or read-write");
}

TEST(Options, SixteenPlacesMayHaveAccess) {
  VmmOptions options;
  for (std::int32_t id = 1; id < 16; ++id) options.peers.push_back({id});
  EXPECT_TRUE(validate(options, machine(20)).empty());
  options.peers.push_back({0});
  options.peers.push_back({1});
  EXPECT_EQ(validate(options, machine(20)).count, 1u)
      << "as many names as that are not looked through twice";
  options.peers.assign(16, DeviceId{1});
  EXPECT_TRUE(validate(options, machine(20)).empty()) << "one peer, named often";
  options.peers = {};
  for (std::int32_t id = 1; id < 17; ++id) options.peers.push_back({id});
  EXPECT_EQ(first(options, machine(20)), ErrorCode::kInvalidArgument);
}

TEST(Options, WhatTheDeviceLacksIsUnsupported) {
  const auto lacks = [](Support DeviceCaps::*what, auto&& change) {
    VmmOptions options;
    change(options);
    SystemCaps caps = machine(1);
    caps.device.*what = Support::kNo;
    EXPECT_EQ(first(options, caps), ErrorCode::kUnsupported);
    for (const Support fine : {Support::kYes, Support::kUnknown}) {
      caps.device.*what = fine;
      EXPECT_TRUE(validate(options, caps).empty());
    }
  };
  lacks(&DeviceCaps::vmm, [](VmmOptions&) {});
  lacks(&DeviceCaps::posix_fd, [](VmmOptions& o) { o.handle_type = HandleType::kPosixFd; });
  lacks(&DeviceCaps::win32_kmt, [](VmmOptions& o) { o.handle_type = HandleType::kWin32Kmt; });
  lacks(&DeviceCaps::fabric, [](VmmOptions& o) { o.handle_type = HandleType::kFabric; });
  lacks(&DeviceCaps::rdma, [](VmmOptions& o) { o.rdma = Wish::kRequired; });
  lacks(&DeviceCaps::host, [](VmmOptions& o) { o.location = {LocationType::kHost, 0}; });
  lacks(&DeviceCaps::host_numa, [](VmmOptions& o) { o.location = {LocationType::kHostNuma, 1}; });
  lacks(&DeviceCaps::host_numa, [](VmmOptions& o) {
    o.location = {LocationType::kHostNumaCurrent, 0};
  });
}

TEST(Options, OnlyWhatIsAskedForMustBeThere) {
  SystemCaps caps = machine(1);
  DeviceCaps& has = caps.device;
  has.posix_fd = has.win32_kmt = has.fabric = has.rdma = has.host = has.host_numa = Support::kNo;
  const auto with = [&](Support DeviceCaps::*what, auto&& change) {
    VmmOptions options;
    change(options);
    has.*what = Support::kYes;
    EXPECT_TRUE(validate(options, caps).empty());
    has.*what = Support::kNo;
    return validate(options, caps).count;
  };
  EXPECT_EQ(with(&DeviceCaps::vmm, [](VmmOptions&) {}), 1u);
  EXPECT_EQ(with(&DeviceCaps::host,
                 [](VmmOptions& o) {
                   o.location = {LocationType::kHost, 0};
                 }),
            1u)
      << "and that without any VMM of the device's memory";
  has.vmm = Support::kYes;
  EXPECT_EQ(
      with(&DeviceCaps::posix_fd, [](VmmOptions& o) { o.handle_type = HandleType::kPosixFd; }), 1u);
  EXPECT_EQ(
      with(&DeviceCaps::win32_kmt, [](VmmOptions& o) { o.handle_type = HandleType::kWin32Kmt; }),
      1u);
  EXPECT_EQ(with(&DeviceCaps::fabric, [](VmmOptions& o) { o.handle_type = HandleType::kFabric; }),
            1u);
  has.host = Support::kYes;
  VmmOptions options;
  options.location = {LocationType::kHost, 0};
  options.handle_type = HandleType::kPosixFd;
  EXPECT_EQ(validate(options, caps).count, 1u) << "host memory has no handles of any type";
  options = {};
  options.handle_type = HandleType::kWin32;
  EXPECT_EQ(validate(options, caps).count, 1u);
  options = {};
  options.type = static_cast<AllocationType>(9);
  EXPECT_EQ(validate(options, caps).count, 1u);
  options = {};
  options.free = static_cast<FreePolicy>(9);
  EXPECT_EQ(validate(options, caps).count, 1u);
  options = {};
  options.worker = true;
  options.worker_interval_ns = 3'600'000'000'000;
  EXPECT_TRUE(validate(options, caps).empty()) << "an hour";
  options = {};
  options.rdma = static_cast<Wish>(9);
  has.rdma = Support::kYes;
  EXPECT_EQ(validate(options, caps).count, 1u);
}

TEST(Options, AWishForRdmaIsNoDemand) {
  VmmOptions options;
  options.rdma = Wish::kIfPossible;
  SystemCaps caps = machine(1);
  caps.device.rdma = Support::kNo;
  EXPECT_TRUE(validate(options, caps).empty());
}

TEST(Options, KindsThatAreNoneAreInvalid) {
  VmmOptions options;
  options.handle_type = HandleType::kWin32;
  EXPECT_EQ(first(options, machine(1)), ErrorCode::kUnsupported);
  options.handle_type = static_cast<HandleType>(3);
  EXPECT_EQ(first(options, machine(1)), ErrorCode::kInvalidArgument);
  options = {};
  options.location.type = static_cast<LocationType>(99);
  EXPECT_EQ(first(options, machine(1)), ErrorCode::kInvalidArgument);
  options = {};
  options.location = {LocationType::kHostNuma, -1};
  EXPECT_EQ(first(options, machine(1)), ErrorCode::kInvalidArgument);
  options.location = {LocationType::kHostNuma, 0};
  EXPECT_TRUE(validate(options, machine(1)).empty());
  options.location = {LocationType::kHostNumaCurrent, -1};
  EXPECT_TRUE(validate(options, machine(1)).empty()) << "whose number does not count";
  options.location = {LocationType::kHost, 3};
  EXPECT_EQ(first(options, machine(1)), ErrorCode::kInvalidArgument);
  options = {};
  options.granularity = static_cast<GranularityKind>(9);
  EXPECT_EQ(first(options, machine(1)), ErrorCode::kInvalidArgument);
}

TEST(Options, GrowOnTheCurrentNodeIsOneOnItsNumber) {
  SystemCaps caps = machine(1);
  caps.current_numa_node = 3;
  VmmOptions options;
  options.location = {LocationType::kHostNuma, 3};
  GrowOptions call;
  call.location = Location{LocationType::kHostNumaCurrent, 0};
  EXPECT_TRUE(validate(call, options, caps).empty());
  options.location.id = 2;
  EXPECT_EQ(validate(call, options, caps).count, 1u);
}

TEST(Options, GrowMayNameWhatTheResourceHasAlready) {
  VmmOptions options;
  GrowOptions call;
  call.location = options.location;
  call.handle_type = options.handle_type;
  EXPECT_TRUE(validate(call, options, machine(2)).empty());
  call.peer_access = static_cast<Access>(7);
  EXPECT_EQ(validate(call, options, machine(2)).count, 1u);
  call.peer_access.reset();
  call.self_access = static_cast<Access>(7);
  EXPECT_EQ(validate(call, options, machine(2)).count, 1u);
  call.self_access.reset();
  call.rdma = Wish::kRequired;
  SystemCaps caps = machine(2);
  caps.device.rdma = Support::kNo;
  EXPECT_EQ(validate(call, options, caps).count, 1u);
}

}  // namespace
}  // namespace granule
