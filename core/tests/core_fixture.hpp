// What most tests of the core start from: a scripted driver whose streams capture when told, host
// memory that is counted, and a sink that keeps what it is told.
#pragma once

#include <gtest/gtest.h>

#include <granule/resource.hpp>

#include "scripted_backend.hpp"

namespace granule {

class CoreTest : public testing::Test {
 protected:
  CoreTest() {
    environment.sink = &sink;
    environment.runtime.memory = &memory;
    driver.script = [this](Call& call) { return answer(call); };
  }
  ~CoreTest() override { EXPECT_EQ(memory.blocks, 0u); }

  /// What the script says of a call; tests with more to say ask this last.
  virtual std::optional<DriverStatus> answer(Call& call) {
    auto* query = std::get_if<StreamIsCapturing>(&call);
    if (!query) return std::nullopt;
    if (query->stream == kLegacyStream && disturbed) return DriverStatus::kStreamCaptureImplicit;
    query->status = query->stream == capturing ? CaptureStatus::kActive : CaptureStatus::kNone;
    return DriverStatus::kSuccess;
  }
  VirtualMemoryResource resource(const VmmOptions& options = {}) {
    return VirtualMemoryResource::create(driver, options, environment).value();
  }
  VirtualMemoryResource resource(FreePolicy free, std::uint64_t cache = 0) {
    VmmOptions options;
    options.free = free;
    options.cache = cache;
    return resource(options);
  }
  /// The calls that `act` makes.
  template <class F>
  std::string calls_of(F&& act) {
    const std::size_t before = driver.log.size();
    act();
    return driver.calls(before);
  }

  CountedMemory memory;
  KeptReports sink;
  Environment environment;
  ScriptedBackend driver;
  StreamHandle capturing;  // the stream that captures
  bool disturbed = false;  // a blocking stream captures: the null stream is out
  Stream stream = Stream::bind(driver, StreamHandle{0x77}).value();
  Stream other = Stream::bind(driver, StreamHandle{0x78}).value();
  Stream third = Stream::bind(driver, StreamHandle{0x79}).value();
};

}  // namespace granule
