// What a machine offers: driver, devices, and whether somebody else is using them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <granule/backend_api/export.hpp>
#include <granule/backends/cuda.hpp>

namespace granule::cuda {

/// One device as the driver and, where it is there, the management library describe it.
struct DeviceInfo {
  std::int32_t ordinal = 0;
  std::string name;
  std::string pci_bus_id;
  std::int32_t compute_major = 0;
  std::int32_t compute_minor = 0;
  std::uint64_t total_bytes = 0;
  std::uint64_t free_bytes = 0;  // as the driver says, with a context of ours made
  bool vmm = false;
  bool pools = false;
  bool posix_fd = false;
  bool fabric = false;  // the device's own claim; creating may still be refused
  bool rdma = false;
  bool host_numa = false;
  bool stream_memory_operations = false;
  std::uint64_t minimum_granularity = 0;      // bytes
  std::uint64_t recommended_granularity = 0;  // bytes
  std::vector<std::int32_t> peers;            // devices whose memory this one can reach
  std::string mig = "unknown";                // "off", "on", "instance" or "unknown"
  /// Other processes with work on the device; -1 where nothing could tell.
  std::int32_t other_processes = -1;
  /// Bytes that were in use before our context was made; only where nvml is true.
  std::uint64_t used_before_bytes = 0;
  /// Somebody else uses the device: a free-memory check would be worthless.
  bool busy = false;
};

/// The whole machine.
struct Info {
  std::int32_t driver_api_version = 0;  // 13000: CUDA 13.0
  std::string driver_release;           // "580.159.03", or empty where nothing tells
  std::string kernel;                   // operating system, release and machine, as uname says
  bool nvml = false;                    // the management library answered
  std::vector<DeviceInfo> devices;
};

/// Asks driver and management library. Makes a primary context on each device for a moment;
/// leaves the current context as it was. Call it before anything is allocated: what this
/// process holds itself counts as use where there is no management library.
GRANULE_EXPORT Info describe(CudaBackend& backend);

/// Why the machine is unfit for exact checks, or empty: no device, no virtual memory management,
/// or a busy device.
GRANULE_EXPORT std::string unfit_reason(const Info& info);

/// Plain lines for a person.
GRANULE_EXPORT std::string to_text(const Info& info);
/// One JSON object.
GRANULE_EXPORT std::string to_json(const Info& info);

}  // namespace granule::cuda
