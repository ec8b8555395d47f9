// What a follower does where a device gives way: waits that a held stream holds up, requests that
// must not be started, refusals that the model has no figures for.
#include <functional>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include <granule/model/model.hpp>
#include <granule/prop/run.hpp>
#include <granule/prop/text.hpp>

#include "model_device.hpp"

namespace granule::gpu {
namespace {

/// A simulated device whose answers a test can change.
class BentDevice final : public Backend {
 public:
  using Bend = std::function<DriverStatus(Call& call, Backend& device)>;
  BentDevice(const model::Config& config, Bend bend)
      : device_(contrary(config)), bend_(std::move(bend)) {
    device_.set_thread(model::ThreadId{0});
  }
  DriverStatus execute(Call& call) noexcept override { return bend_(call, device_); }
  void set_thread(std::uint32_t number) { device_.set_thread(model::ThreadId{number}); }

 private:
  model::ModelBackend device_;
  Bend bend_;
};

struct Ran {
  prop::RunReport report;
  bool fell_short = false;
  bool held_up = false;
  std::uint64_t withheld = 0;
};

Ran run_bent(const std::string& text, const BentDevice::Bend& bend, bool careful = false) {
  Ran ran;
  std::unique_ptr<BentDevice> device;
  FollowingMachine* following = nullptr;
  prop::RunOptions options;
  options.make_machine = [&](const model::Config& config) {
    device = std::make_unique<BentDevice>(config, bend);
    FollowingMachine::Options how;
    how.set_device_thread = [&](std::uint32_t number) { device->set_thread(number); };
    how.without_init = true;
    how.compare_free = false;
    how.careful = careful;
    auto machine = std::make_unique<FollowingMachine>(*device, config, std::move(how));
    following = machine.get();
    return machine;
  };
  options.inspect = [&](const prop::World&) {
    ran.fell_short = following->follower().fell_short();
    ran.held_up = following->follower().held_up();
    ran.withheld = following->follower().withheld();
  };
  const prop::ParseResult parsed = prop::parse("granule 1\n" + text, "test.granule");
  EXPECT_TRUE(parsed.ok()) << (parsed.errors.empty() ? "" : prop::to_text(parsed.errors.front()));
  ran.report = prop::run(parsed.document.programs.front(), options);
  EXPECT_EQ(ran.report.status, prop::RunStatus::kClean)
      << (ran.report.failure ? ran.report.failure->message : "");
  return ran;
}

template <class C>
bool is(const Call& call) {
  return std::holds_alternative<C>(call);
}

TEST(DeviceChoice, AWaitThatAHeldStreamHoldsUpIsNotStarted) {
  bool held = false;
  bool waited = false;
  const auto bend = [&](Call& call, Backend& device) {
    held = (held || is<CloseGate>(call)) && !is<OpenGate>(call);
    if (held && is<StreamQuery>(call)) return DriverStatus::kNotReady;
    waited = waited || (held && is<StreamSynchronize>(call));
    return device.execute(call);
  };
  const Ran ran = run_bent(
      "stream s\nstream t\nhold s\ncuStreamSynchronize t => would_block\nrelease s\n"
      "cuStreamSynchronize t => ok\n",
      bend);
  EXPECT_FALSE(waited);
  EXPECT_TRUE(ran.held_up);
}

TEST(DeviceChoice, ARequestThatCannotSucceedIsNotMadeBesideAHeldStream) {
  int made = 0;
  const auto bend = [&](Call& call, Backend& device) {
    made += is<MemAlloc>(call) ? 1 : 0;
    return device.execute(call);
  };
  const std::string request = "x = cuMemAlloc 2^62 => CUDA_ERROR_OUT_OF_MEMORY\n";
  EXPECT_EQ(run_bent("stream s\n" + request, bend).withheld, 0u);
  EXPECT_EQ(made, 1);
  EXPECT_EQ(run_bent("stream s\nhold s\n" + request + "release s\n", bend).withheld, 1u);
  EXPECT_EQ(made, 1);
}

TEST(DeviceChoice, RefusalsWithoutFiguresAreFollowed) {
  const auto bend = [](Call& call, Backend& device) {
    const auto* create = std::get_if<MemCreate>(&call);
    const bool host = create && create->properties.location.type != LocationType::kDevice;
    const auto* reserve = std::get_if<MemAddressReserve>(&call);
    if (host || (reserve && reserve->size >= std::uint64_t{1} << 40))
      return DriverStatus::kOutOfMemory;
    return device.execute(call);
  };
  const Ran ran =
      run_bent("h = cuMemCreate 1g location=host_numa:0\nv = cuMemAddressReserve 2^40\n", bend);
  EXPECT_TRUE(ran.fell_short);
  EXPECT_EQ(ran.report.followed, 2u);
}

TEST(DeviceChoice, ShrinkersSparePoolsWithBlocks) {
  int destroyed = 0;
  const auto bend = [&](Call& call, Backend& device) {
    destroyed += is<MemPoolDestroy>(call) ? 1 : 0;
    return device.execute(call);
  };
  const std::string text =
      "stream s\nq = cuMemPoolCreate\nx = cuMemAllocFromPoolAsync 4096 q on s\n"
      "cuMemPoolDestroy q => undefined\ncuMemFreeAsync x on s\ncuCtxSynchronize\n"
      "cuMemPoolDestroy q => ok\n";
  run_bent(text, bend, true);
  EXPECT_EQ(destroyed, 1);
}

}  // namespace
}  // namespace granule::gpu
