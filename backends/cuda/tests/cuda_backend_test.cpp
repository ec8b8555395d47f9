// The backend without a GPU: opening, missing functions, the guard, forks.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include <granule/backends/cuda.hpp>
#include <granule/backends/cuda_info.hpp>

namespace granule::cuda {
namespace {

std::unique_ptr<CudaBackend> open_fake(bool guard = true) {
  Options options;
  options.library = GRANULE_FAKE_DRIVER;
  options.guard = guard;
  auto opened = CudaBackend::open(options);
  return opened.ok() ? std::move(*opened) : nullptr;
}

TEST(CudaOpen, SaysThatThereIsNoDriver) {
  Options options;
  options.library = "libgranule-no-such-driver.so.1";
  const auto opened = CudaBackend::open(options);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(to_string(opened.error()).find("no NVIDIA driver is installed"), std::string::npos);
}

TEST(CudaOpen, SaysThatALibraryIsNoDriver) {
  Options options;
  options.library = "libpthread.so.0";
  const auto opened = CudaBackend::open(options);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::kUnsupported);
}

TEST(CudaOpen, SaysThatThereIsNoDevice) {
  setenv("GRANULE_FAKE_DEVICES", "0", 1);
  Options options;
  options.library = GRANULE_FAKE_DRIVER;
  const auto opened = CudaBackend::open(options);
  unsetenv("GRANULE_FAKE_DEVICES");
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(opened.error().driver, DriverStatus::kNoDevice);
}

TEST(CudaCalls, AMissingFunctionIsUnavailable) {
  const auto backend = open_fake();
  ASSERT_NE(backend, nullptr);
  MemGetInfo call;
  EXPECT_EQ(backend->run(call), DriverStatus::kUnavailable);
  LaunchKernel launch;
  EXPECT_EQ(backend->run(launch), DriverStatus::kInvalidContext);
  DriverGetVersion version;
  EXPECT_EQ(backend->run(version), DriverStatus::kSuccess);
  EXPECT_EQ(version.version, 13000);
}

TEST(CudaGuard, KnowsTheHandlesItReturned) {
  const auto backend = open_fake();
  ASSERT_NE(backend, nullptr);
  MemRelease made_up{{0x1234}};
  EXPECT_EQ(backend->run(made_up), DriverStatus::kUndefined);
  MemRelease null;
  EXPECT_EQ(backend->run(null), DriverStatus::kInvalidValue);
  MemCreate create;
  create.size = 2 << 20;
  ASSERT_EQ(backend->run(create), DriverStatus::kSuccess);
  MemMap map{{0x10000000}, 2 << 20, 0, create.handle, 0};
  EXPECT_EQ(backend->run(map), DriverStatus::kSuccess);
  MemRelease release{create.handle};
  EXPECT_EQ(backend->run(release), DriverStatus::kSuccess);
  // Released, but a mapping keeps the memory: mapping again is answered, export is not.
  EXPECT_EQ(backend->run(map), DriverStatus::kSuccess);
  MemExportToShareableHandle share;
  share.handle = create.handle;
  EXPECT_EQ(backend->run(share), DriverStatus::kUndefined);
  MemUnmap unmap{{0x10000000}, 2 << 20};
  EXPECT_EQ(backend->run(unmap), DriverStatus::kSuccess);
  EXPECT_EQ(backend->run(map), DriverStatus::kUndefined);
  // A second release is answered.
  EXPECT_NE(backend->run(release), DriverStatus::kUndefined);
}

TEST(CudaGuard, LetsEverythingPassWhereItIsOff) {
  const auto backend = open_fake(false);
  ASSERT_NE(backend, nullptr);
  MemRelease made_up{{0x1234}};
  EXPECT_EQ(backend->run(made_up), DriverStatus::kSuccess);
}

TEST(CudaGuard, StreamsAndEventsGoWithTheirContext) {
  const auto backend = open_fake();
  ASSERT_NE(backend, nullptr);
  DevicePrimaryCtxRetain retain;
  ASSERT_EQ(backend->run(retain), DriverStatus::kSuccess);
  CtxSetCurrent set{retain.context};
  ASSERT_EQ(backend->run(set), DriverStatus::kSuccess);
  StreamCreate make_stream;
  ASSERT_EQ(backend->run(make_stream), DriverStatus::kSuccess);
  EventCreate make_event;
  ASSERT_EQ(backend->run(make_event), DriverStatus::kSuccess);
  StreamQuery query{make_stream.stream};
  EXPECT_EQ(backend->run(query), DriverStatus::kNotReady);
  DevicePrimaryCtxReset reset;
  ASSERT_EQ(backend->run(reset), DriverStatus::kSuccess);
  EXPECT_EQ(backend->run(query), DriverStatus::kUndefined);
  EventQuery done{make_event.event};
  EXPECT_EQ(backend->run(done), DriverStatus::kUndefined);
  EventQuery null;
  EXPECT_EQ(backend->run(null), DriverStatus::kInvalidHandle);
  StreamQuery default_stream;
  EXPECT_EQ(backend->run(default_stream), DriverStatus::kNotReady);
}

TEST(CudaGuard, ClosesOnlyDescriptorsOfItsOwn) {
  const auto backend = open_fake();
  ASSERT_NE(backend, nullptr);
  CloseDescriptor standard_output{{1}};
  EXPECT_EQ(backend->run(standard_output), DriverStatus::kUndefined);
  CloseDescriptor none;
  EXPECT_EQ(backend->run(none), DriverStatus::kInvalidValue);
}

TEST(CudaCalls, ThePluralAttributeSaysWhetherItWasWritten) {
  const auto backend = open_fake();
  ASSERT_NE(backend, nullptr);
  PointerGetAttributes ask;
  ask.attribute = PointerAttribute::kRangeStartAddr;
  ASSERT_EQ(backend->run(ask), DriverStatus::kSuccess);
  EXPECT_EQ(ask.written, 0);
  ask.attribute = PointerAttribute::kDeviceOrdinal;
  ASSERT_EQ(backend->run(ask), DriverStatus::kSuccess);
  EXPECT_EQ(ask.written, 1);
  EXPECT_EQ(static_cast<std::int64_t>(ask.value), -2);
  ask.attribute = PointerAttribute::kMemoryType;
  ASSERT_EQ(backend->run(ask), DriverStatus::kSuccess);
  EXPECT_EQ(ask.written, 1);
  EXPECT_EQ(ask.value, 0u);
}

TEST(CudaFork, TheChildIsToldThatCudaIsNotThere) {
  auto backend = open_fake();
  ASSERT_NE(backend, nullptr);
  const pid_t child = fork();
  if (child == 0) {
    DriverGetVersion version;
    const bool refused = backend->run(version) == DriverStatus::kNotInitialized;
    backend.reset();
    // A backend of the child's own works.
    const auto own = open_fake();
    const bool works = own != nullptr && own->run(version) == DriverStatus::kSuccess;
    _exit(refused && works ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  DriverGetVersion version;
  EXPECT_EQ(backend->run(version), DriverStatus::kSuccess);
}

TEST(CudaInfo, DescribesWhatLittleThereIs) {
  const auto backend = open_fake();
  ASSERT_NE(backend, nullptr);
  const Info info = describe(*backend);
  ASSERT_EQ(info.devices.size(), 1u);
  EXPECT_EQ(info.driver_api_version, 13000);
  EXPECT_NE(unfit_reason(info).find("no virtual memory management"), std::string::npos);
  EXPECT_NE(to_text(info).find("CUDA 13.0"), std::string::npos);
  EXPECT_NE(to_json(info).find("\"driver_api_version\":13000"), std::string::npos);
}

TEST(CudaInfo, ABusyDeviceIsUnfit) {
  Info info;
  EXPECT_EQ(unfit_reason(info), "no CUDA device");
  info.devices.emplace_back();
  info.devices[0].vmm = true;
  EXPECT_EQ(unfit_reason(info), "");
  info.devices[0].busy = true;
  EXPECT_EQ(unfit_reason(info), "device 0 is in use by somebody else");
}

}  // namespace
}  // namespace granule::cuda
