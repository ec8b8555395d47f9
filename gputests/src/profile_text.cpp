// A profile as one line of JSON, for the pipe from a probe.
#include <nlohmann/json.hpp>

#include "device_run.hpp"

namespace granule::gpu {

using nlohmann::json;

std::string to_line(const Profile& p) {
  json devices = json::array();
  for (const model::DeviceConfig& d : p.config.devices)
    devices.push_back({{"memory", d.memory},
                       {"granularity", d.granularity},
                       {"vmm", d.vmm},
                       {"posix_fd", d.posix_fd},
                       {"fabric", d.fabric},
                       {"rdma", d.rdma},
                       {"pools", d.pools},
                       {"peers", d.peers}});
  return json{{"driver", p.driver},
              {"gpu", p.gpu},
              {"kernel", p.kernel},
              {"mig", p.mig},
              {"unfit", p.unfit},
              {"version", p.config.driver_version},
              {"numa", p.config.numa_nodes},
              {"devices", devices}}
      .dump(-1, ' ', true, json::error_handler_t::replace);
}

std::optional<Profile> profile_from_line(const std::string& line) {
  const json j = json::parse(line, nullptr, false);
  if (!j.is_object()) return std::nullopt;
  Profile p;
  p.driver = j.value("driver", "");
  p.gpu = j.value("gpu", "");
  p.kernel = j.value("kernel", "");
  p.mig = j.value("mig", "");
  p.unfit = j.value("unfit", "");
  p.config.driver_version = j.value("version", std::int32_t{0});
  p.config.numa_nodes = j.value("numa", std::uint32_t{1});
  p.config.devices.clear();
  for (const json& d : j.value("devices", json::array())) {
    model::DeviceConfig device;
    device.memory = d.value("memory", device.memory);
    device.granularity = d.value("granularity", device.granularity);
    device.vmm = d.value("vmm", true);
    device.posix_fd = d.value("posix_fd", true);
    device.fabric = d.value("fabric", false);
    device.rdma = d.value("rdma", true);
    device.pools = d.value("pools", true);
    device.peers = d.value("peers", true);
    p.config.devices.push_back(device);
  }
  if (p.config.devices.empty()) p.config.devices.emplace_back();
  return p;
}

}  // namespace granule::gpu
