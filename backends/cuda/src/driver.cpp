// Opens the driver library and fills the table of entry points.
#include "driver.hpp"

#include <dlfcn.h>

#include <cstring>

namespace granule::cuda {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";

template <class F>
F symbol(void* library, const char* name) {
  void* found = dlsym(library, name);
  F function = nullptr;
  static_assert(sizeof(function) == sizeof(found));
  std::memcpy(&function, &found, sizeof(found));
  return function;
}

Error unusable(std::string_view call, std::string_view detail) {
  Error error;
  error.code = ErrorCode::kUnsupported;
  error.call = call;
  error.detail = detail;
  return error;
}

}  // namespace

Result<std::unique_ptr<Driver>> Driver::load(const char* path) {
  void* library = dlopen(path != nullptr ? path : kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return unusable("dlopen", "libcuda.so.1 could not be opened: no NVIDIA driver is installed");
  }
  const auto newer = symbol<abi::GetProcAddressV2>(library, "cuGetProcAddress_v2");
  const auto older = symbol<abi::GetProcAddress>(library, "cuGetProcAddress");
  if (newer == nullptr && older == nullptr) {
    return unusable("dlsym", "the library has no cuGetProcAddress: CUDA 11.3 or newer is needed");
  }
  const auto look_up = [&](const abi::FunctionName& wanted) -> void* {
    void* found = nullptr;
    int why = abi::kProcAddressFound;
    const abi::Result status =
        newer != nullptr
            ? newer(wanted.name, &found, wanted.version, abi::kProcAddressLegacyStream, &why)
            : older(wanted.name, &found, wanted.version, abi::kProcAddressLegacyStream);
    return status == 0 && why == abi::kProcAddressFound ? found : nullptr;
  };
  std::unique_ptr<Driver> driver(new Driver);
  // The table is an array of pointers in the order of the name list.
  auto* slot = reinterpret_cast<unsigned char*>(&driver->functions_);
  for (const abi::FunctionName& wanted : abi::kFunctionNames) {
    void* found = look_up(wanted);
    std::memcpy(slot, &found, sizeof(found));
    slot += sizeof(found);
  }
  return driver;
}

}  // namespace granule::cuda
