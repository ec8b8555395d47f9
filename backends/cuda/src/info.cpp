// Asking a machine what it offers, and printing the answer.
#include <sys/utsname.h>

#include <string>

#include <granule/backends/cuda_info.hpp>

#include "impl.hpp"
#include "nvml.hpp"

namespace granule::cuda {
namespace {

// More than a fresh driver keeps for itself on a device that nobody uses.
constexpr std::uint64_t kIdleUse = std::uint64_t{2} << 30;

std::int32_t attribute(CudaBackend& backend, std::int32_t device, DeviceAttribute which) {
  DeviceGetAttribute ask;
  ask.device = {device};
  ask.attribute = which;
  return backend.run(ask) == DriverStatus::kSuccess ? ask.value : 0;
}

std::uint64_t granularity(CudaBackend& backend, std::int32_t device, GranularityKind kind) {
  MemGetAllocationGranularity ask;
  ask.properties.location = device_location({device});
  ask.option = kind;
  return backend.run(ask) == DriverStatus::kSuccess ? ask.granularity : 0;
}

void ask_features(CudaBackend& backend, DeviceInfo& d) {
  const auto has = [&](DeviceAttribute which) { return attribute(backend, d.ordinal, which) != 0; };
  d.compute_major = attribute(backend, d.ordinal, DeviceAttribute::kComputeCapabilityMajor);
  d.compute_minor = attribute(backend, d.ordinal, DeviceAttribute::kComputeCapabilityMinor);
  d.vmm = has(DeviceAttribute::kVmmSupported);
  d.pools = has(DeviceAttribute::kMemoryPoolsSupported);
  d.posix_fd = has(DeviceAttribute::kPosixFdSupported);
  d.fabric = has(DeviceAttribute::kFabricHandleSupported);
  d.rdma = has(DeviceAttribute::kGpuDirectRdmaWithVmm);
  d.host_numa = has(DeviceAttribute::kHostNumaVmmSupported);
  d.stream_memory_operations = has(DeviceAttribute::kStreamMemOps64Bit);
  d.minimum_granularity = granularity(backend, d.ordinal, GranularityKind::kMinimum);
  d.recommended_granularity = granularity(backend, d.ordinal, GranularityKind::kRecommended);
  DeviceTotalMem total;
  total.device = {d.ordinal};
  if (backend.run(total) == DriverStatus::kSuccess) d.total_bytes = total.total;
}

void ask_free(CudaBackend& backend, DeviceInfo& d) {
  const Driver& driver = backend.impl().driver;
  abi::Context context = nullptr;
  if (invoke(driver->cuDevicePrimaryCtxRetain, &context, d.ordinal) != DriverStatus::kSuccess)
    return;
  {
    const PushedContext pushed(driver, context);
    MemGetInfo memory;
    if (backend.run(memory) == DriverStatus::kSuccess) d.free_bytes = memory.free;
  }
  invoke(driver->cuDevicePrimaryCtxRelease, d.ordinal);
}

void ask_use(CudaBackend& backend, const Nvml& nvml, DeviceInfo& d) {
  unsigned flags = 0;
  int active = 0;  // whether this process has a context there already
  invoke(backend.impl().driver->cuDevicePrimaryCtxGetState, d.ordinal, &flags, &active);
  const Nvml::Use use = nvml.use_of(d.pci_bus_id);
  d.used_before_bytes = use.known ? use.used_bytes : 0;
  if (use.processes >= 0) {
    // In a container the library may list our process under a number that we do not know.
    const bool ours = use.processes > 0 && (use.ours_listed || active != 0);
    d.other_processes = use.processes - (ours ? 1 : 0);
  }
  ask_free(backend, d);
  if (d.other_processes >= 0) {
    d.busy = d.other_processes > 0 || (active == 0 && use.known && use.used_bytes > kIdleUse);
  } else {
    d.busy = d.total_bytes > d.free_bytes && d.total_bytes - d.free_bytes > kIdleUse;
  }
}

DeviceInfo describe_device(CudaBackend& backend, const Nvml& nvml, std::int32_t ordinal,
                           std::int32_t count) {
  const Driver& driver = backend.impl().driver;
  DeviceInfo d;
  d.ordinal = ordinal;
  char text[256] = {};
  if (invoke(driver->cuDeviceGetName, static_cast<char*>(text), 255, ordinal) ==
      DriverStatus::kSuccess)
    d.name = text;
  char bus[64] = {};
  if (invoke(driver->cuDeviceGetPCIBusId, static_cast<char*>(bus), 63, ordinal) ==
      DriverStatus::kSuccess)
    d.pci_bus_id = bus;
  ask_features(backend, d);
  for (std::int32_t other = 0; other < count; ++other) {
    DeviceCanAccessPeer peer{{ordinal}, {other}, 0};
    if (other != ordinal && backend.run(peer) == DriverStatus::kSuccess && peer.can != 0)
      d.peers.push_back(other);
  }
  const bool instance = d.name.find("MIG") != std::string::npos;
  d.mig = instance ? "instance" : nvml.mig_mode(d.pci_bus_id);
  ask_use(backend, nvml, d);
  return d;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out + '"';
}

std::string yes(bool value) { return value ? "yes" : "no"; }
std::string json(bool value) { return value ? "true" : "false"; }

std::string version_text(std::int32_t version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string device_text(const DeviceInfo& d) {
  std::string out = "device " + std::to_string(d.ordinal) + ": " + d.name + ", " + d.pci_bus_id +
                    ", compute " + std::to_string(d.compute_major) + "." +
                    std::to_string(d.compute_minor) + "\n";
  out += "  memory: " + std::to_string(d.total_bytes) + " bytes, " + std::to_string(d.free_bytes) +
         " free\n";
  out += "  virtual memory management: " + yes(d.vmm) + ", granularity " +
         std::to_string(d.minimum_granularity) + " (recommended " +
         std::to_string(d.recommended_granularity) + ")\n";
  out += "  handle types: none" + std::string(d.posix_fd ? " posix_fd" : "") +
         (d.fabric ? " fabric" : "") + ", rdma: " + yes(d.rdma) +
         ", host numa: " + yes(d.host_numa) + "\n";
  out += "  pools: " + yes(d.pools) +
         ", stream memory operations: " + yes(d.stream_memory_operations) + "\n";
  out += "  peers:";
  for (const std::int32_t peer : d.peers) out += " " + std::to_string(peer);
  out += (d.peers.empty() ? " none" : "") + std::string(", MIG: ") + d.mig + "\n";
  out += "  other processes: " +
         (d.other_processes < 0 ? std::string("unknown") : std::to_string(d.other_processes)) +
         (d.busy ? ", busy" : ", idle") + "\n";
  return out;
}

std::string device_json(const DeviceInfo& d) {
  const auto number = [](auto value) { return std::to_string(value); };
  std::string peers;
  for (const std::int32_t peer : d.peers) peers += (peers.empty() ? "" : ",") + number(peer);
  return "{\"ordinal\":" + number(d.ordinal) + ",\"name\":" + quoted(d.name) +
         ",\"pci_bus_id\":" + quoted(d.pci_bus_id) + ",\"compute_capability\":" +
         quoted(number(d.compute_major) + "." + number(d.compute_minor)) +
         ",\"total_bytes\":" + number(d.total_bytes) + ",\"free_bytes\":" + number(d.free_bytes) +
         ",\"vmm\":" + json(d.vmm) + ",\"pools\":" + json(d.pools) +
         ",\"posix_fd\":" + json(d.posix_fd) + ",\"fabric\":" + json(d.fabric) +
         ",\"rdma\":" + json(d.rdma) + ",\"host_numa\":" + json(d.host_numa) +
         ",\"stream_memory_operations\":" + json(d.stream_memory_operations) +
         ",\"minimum_granularity\":" + number(d.minimum_granularity) +
         ",\"recommended_granularity\":" + number(d.recommended_granularity) + ",\"peers\":[" +
         peers + "],\"mig\":" + quoted(d.mig) +
         ",\"other_processes\":" + number(d.other_processes) +
         ",\"used_before_bytes\":" + number(d.used_before_bytes) + ",\"busy\":" + json(d.busy) +
         "}";
}

}  // namespace

Info describe(CudaBackend& backend) {
  Info info;
  DriverGetVersion version;
  if (backend.run(version) == DriverStatus::kSuccess) info.driver_api_version = version.version;
  utsname system{};
  if (uname(&system) == 0) {
    info.kernel = std::string(system.sysname) + " " + system.release + " " + system.machine;
  }
  const Nvml nvml;
  info.nvml = nvml.available();
  info.driver_release = nvml.driver_release();
  DeviceGetCount count;
  if (backend.run(count) != DriverStatus::kSuccess) count.count = 0;
  for (std::int32_t i = 0; i < count.count; ++i)
    info.devices.push_back(describe_device(backend, nvml, i, count.count));
  return info;
}

std::string unfit_reason(const Info& info) {
  if (info.devices.empty()) return "no CUDA device";
  for (const DeviceInfo& d : info.devices) {
    const std::string name = "device " + std::to_string(d.ordinal);
    if (!d.vmm) return name + " has no virtual memory management";
    if (d.busy) return name + " is in use by somebody else";
  }
  return {};
}

std::string to_text(const Info& info) {
  std::string out =
      "driver: " +
      (info.driver_release.empty() ? std::string("release unknown") : info.driver_release) +
      ", CUDA " + version_text(info.driver_api_version) + "\n";
  out += "system: " + info.kernel + "\n";
  for (const DeviceInfo& d : info.devices) out += device_text(d);
  const std::string reason = unfit_reason(info);
  out += reason.empty() ? "fit for exact checks\n" : "unfit for exact checks: " + reason + "\n";
  return out;
}

std::string to_json(const Info& info) {
  std::string devices;
  for (const DeviceInfo& d : info.devices) devices += (devices.empty() ? "" : ",") + device_json(d);
  return "{\"driver_api_version\":" + std::to_string(info.driver_api_version) +
         ",\"driver_release\":" + quoted(info.driver_release) +
         ",\"kernel\":" + quoted(info.kernel) + ",\"nvml\":" + json(info.nvml) +
         ",\"unfit\":" + quoted(unfit_reason(info)) + ",\"devices\":[" + devices + "]}";
}

}  // namespace granule::cuda
