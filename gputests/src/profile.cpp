// From a machine's description to the model of it.
#include "profile.hpp"

#include <algorithm>
#include <filesystem>

namespace granule::gpu {
namespace {

namespace fs = std::filesystem;

std::uint32_t numa_nodes() {
  std::uint32_t nodes = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/sys/devices/system/node", error)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("node", 0) == 0 && name.size() > 4 && name[4] >= '0' && name[4] <= '9') ++nodes;
  }
  return std::max<std::uint32_t>(nodes, 1);
}

bool can_make_fabric(Backend& backend, std::int32_t device) {
  MemCreate create;
  create.size = std::uint64_t{2} << 20;
  create.properties.location = device_location(DeviceId{device});
  create.properties.handle_types = HandleType::kFabric;
  if (backend.run(create) != DriverStatus::kSuccess) return false;
  MemRelease release{create.handle};
  backend.run(release);
  return true;
}

model::DeviceConfig device_config(Backend& backend, const cuda::DeviceInfo& info,
                                  std::size_t devices) {
  model::DeviceConfig config;
  config.memory = info.free_bytes;
  if (info.recommended_granularity != 0) config.granularity = info.recommended_granularity;
  config.vmm = info.vmm;
  config.posix_fd = info.posix_fd;
  config.fabric = info.vmm && can_make_fabric(backend, info.ordinal);
  config.rdma = info.rdma;
  config.pools = info.pools;
  config.peers = info.peers.size() + 1 >= devices;
  return config;
}

template <class Use>
void on_device(Backend& backend, std::int32_t device, Use use) {
  DevicePrimaryCtxRetain retain;
  retain.device.value = device;
  if (backend.run(retain) != DriverStatus::kSuccess) return;
  CtxPushCurrent push{retain.context};
  if (backend.run(push) == DriverStatus::kSuccess) {
    use();
    CtxPopCurrent pop;
    backend.run(pop);
  }
  DevicePrimaryCtxRelease release;
  release.device.value = device;
  backend.run(release);
}

}  // namespace

Profile profile_of(cuda::CudaBackend& backend) {
  const cuda::Info info = cuda::describe(backend);
  Profile profile;
  profile.unfit = cuda::unfit_reason(info);
  profile.kernel = info.kernel;
  profile.driver =
      info.driver_release.empty() ? std::to_string(info.driver_api_version) : info.driver_release;
  profile.config.driver_version = info.driver_api_version;
  profile.config.numa_nodes = numa_nodes();
  profile.config.devices.clear();
  for (const cuda::DeviceInfo& device : info.devices) {
    if (profile.gpu.empty()) {
      profile.gpu = device.name;
      profile.mig = device.mig;
    }
    profile.config.devices.push_back(device_config(backend, device, info.devices.size()));
  }
  return profile;
}

void measure_free(Backend& backend, model::Config& config) {
  for (std::size_t i = 0; i < config.devices.size(); ++i) {
    on_device(backend, static_cast<std::int32_t>(i), [&] {
      MemGetInfo info;
      if (backend.run(info) == DriverStatus::kSuccess) config.devices[i].memory = info.free;
    });
  }
}

std::uint64_t idle_noise(Backend& backend, unsigned samples) {
  std::uint64_t low = UINT64_MAX;
  std::uint64_t high = 0;
  on_device(backend, 0, [&] {
    for (unsigned i = 0; i < samples; ++i) {
      MemGetInfo info;
      if (backend.run(info) != DriverStatus::kSuccess) continue;
      low = std::min(low, info.free);
      high = std::max(high, info.free);
    }
  });
  return low <= high ? high - low : 0;
}

}  // namespace granule::gpu
