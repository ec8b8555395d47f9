// Validation of options (pure) and the questions to the driver that it needs.
#include <granule/options.hpp>

#include <algorithm>

#include "numa.hpp"
#include "resource_core.hpp"

namespace granule {
namespace {

using detail::make_error;

bool on_host(const Location& location) { return location.type != LocationType::kDevice; }

Error invalid(std::string_view detail) { return make_error(ErrorCode::kInvalidArgument, detail); }
Error unsupported(std::string_view detail) { return make_error(ErrorCode::kUnsupported, detail); }

bool is_access(Access access) {
  return access == Access::kNone || access == Access::kRead || access == Access::kReadWrite;
}

void check_location(const VmmOptions& options, const SystemCaps& caps, Violations& wrong) {
  const Location& at = options.location;
  if (at.type == LocationType::kHost && at.id != 0)
    wrong.add(invalid("host memory has no number; memory of a NUMA node has"));
  switch (at.type) {
    case LocationType::kDevice:
      if (at.id < 0 || at.id >= caps.device_count) wrong.add(invalid("no such device"));
      break;
    case LocationType::kHost:
      if (caps.device.host == Support::kNo)
        wrong.add(unsupported("host memory cannot be mapped here (attribute 145)"));
      break;
    case LocationType::kHostNuma:
    case LocationType::kHostNumaCurrent:
      if (at.type == LocationType::kHostNuma && at.id < 0)
        wrong.add(invalid("a NUMA node is a number from 0 on"));
      if (caps.device.host_numa == Support::kNo)
        wrong.add(unsupported("memory of a NUMA node cannot be mapped here (attribute 141)"));
      break;
    default:
      wrong.add(invalid("not a kind of location"));
  }
}

void check_handle_type(const VmmOptions& options, const SystemCaps& caps, Violations& wrong) {
  if (options.handle_type == HandleType::kNone) return;
  if (on_host(options.location)) {
    wrong.add(invalid("host memory cannot be exported: use no handle type"));
    return;
  }
  switch (options.handle_type) {
    case HandleType::kPosixFd:
      if (caps.device.posix_fd == Support::kNo)
        wrong.add(unsupported("no file descriptors on this device (attribute 103)"));
      break;
    case HandleType::kWin32Kmt:
      if (caps.device.win32_kmt == Support::kNo)
        wrong.add(unsupported("no KMT handles on this device (attribute 105)"));
      break;
    case HandleType::kFabric:
      if (caps.device.fabric == Support::kNo)
        wrong.add(unsupported("no fabric handles: they need attribute 128 and an IMEX channel"));
      break;
    case HandleType::kWin32:
      wrong.add(unsupported("win32 handles need security attributes, which nothing here takes"));
      break;
    default:
      wrong.add(invalid("one handle type at most"));
  }
}

void check_access(const VmmOptions& options, const SystemCaps& caps, Violations& wrong) {
  if (!is_access(options.self_access) || !is_access(options.peer_access))
    wrong.add(invalid("access is none, read or read-write"));
  std::size_t others = 0;
  for (const DeviceId& peer : options.peers) {
    if (peer.value < 0 || peer.value >= caps.device_count) {
      wrong.add(invalid("a peer is no device of this machine"));
      continue;
    }
    if (device_location(peer) == options.location) continue;
    ++others;
    if (std::find(caps.reachable_peers.begin(), caps.reachable_peers.end(), peer) ==
        caps.reachable_peers.end())
      wrong.add(invalid("a peer cannot reach the memory's device"));
  }
  if (others != 0 && options.peer_access == Access::kNone)
    wrong.add(invalid("peers were named, but no access for them"));
  if (detail::access_entries(options).count == AccessEntries::kCapacity &&
      options.peers.size() >= AccessEntries::kCapacity)
    wrong.add(invalid("at most 16 places can have access to a chunk"));
}

}  // namespace

Violations validate(const VmmOptions& options, const SystemCaps& caps) {
  Violations wrong;
  check_location(options, caps, wrong);
  if (options.type == AllocationType::kManaged)
    wrong.add(unsupported("managed memory cannot be mapped by the driver's VMM calls"));
  if (options.location.type == LocationType::kDevice && caps.device.vmm == Support::kNo)
    wrong.add(unsupported("the device has no virtual memory management (attribute 102)"));
  check_handle_type(options, caps, wrong);
  if (options.alignment != 0 && !is_power_of_two(options.alignment))
    wrong.add(invalid("an alignment is 0 or a power of two"));
  check_access(options, caps, wrong);
  if (options.rdma != Wish::kNo && on_host(options.location))
    wrong.add(invalid("RDMA belongs to device memory"));
  if (options.rdma == Wish::kRequired && caps.device.rdma == Support::kNo)
    wrong.add(unsupported("the device has no GPUDirect RDMA for mapped memory (attribute 110)"));
  if (options.rdma != Wish::kNo && options.rdma != Wish::kIfPossible &&
      options.rdma != Wish::kRequired)
    wrong.add(invalid("RDMA is no, if_possible or required"));
  if (options.type != AllocationType::kPinned && options.type != AllocationType::kManaged)
    wrong.add(invalid("memory is pinned"));
  if (options.free != FreePolicy::kSynchronize && options.free != FreePolicy::kDeferred)
    wrong.add(invalid("frees synchronize or are deferred"));
  if (options.granularity != GranularityKind::kMinimum &&
      options.granularity != GranularityKind::kRecommended)
    wrong.add(invalid("granularity is minimum or recommended"));
  constexpr std::uint64_t kLongestInterval = 3'600'000'000'000;
  if (options.worker &&
      (options.worker_interval_ns == 0 || options.worker_interval_ns > kLongestInterval))
    wrong.add(invalid("a worker's interval is more than nothing and at most an hour"));
  return wrong;
}

Violations validate(const GrowOptions& call, const VmmOptions& options, const SystemCaps& caps) {
  Violations wrong;
  if (call.handle_type && *call.handle_type != options.handle_type)
    wrong.add(invalid("a grow cannot change the handle type: an export would fail part-way"));
  Location asked = call.location.value_or(options.location);
  if (asked.type == LocationType::kHostNumaCurrent)
    asked = {LocationType::kHostNuma, caps.current_numa_node};
  if (asked != options.location) wrong.add(invalid("a grow cannot change the location"));
  if (!call.self_access && !call.peer_access && !call.peers && !call.rdma) return wrong;
  VmmOptions merged = options;
  if (call.self_access) merged.self_access = *call.self_access;
  if (call.peer_access) merged.peer_access = *call.peer_access;
  if (call.peers) merged.peers = *call.peers;
  if (call.rdma) merged.rdma = *call.rdma;
  const Violations more = validate(merged, caps);
  for (std::size_t i = 0; i < more.count; ++i) wrong.add(more.errors[i]);
  return wrong;
}

namespace detail {

AccessEntries access_entries(const VmmOptions& options) {
  AccessEntries entries;
  if (options.self_access != Access::kNone) entries.push({options.location, options.self_access});
  std::vector<DeviceId> peers = options.peers;
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  for (const DeviceId& peer : peers) {
    const Location place = device_location(peer);
    if (place != options.location)
      entries.push({place, options.peer_access});  // validate refuses more than fit
  }
  return entries;
}

namespace {

Result<Support> ask(Backend& backend, DeviceAttribute attribute, DeviceId device) {
  DeviceGetAttribute get{attribute, device, 0};
  const DriverStatus status = backend.run(get);
  // Older drivers do not know every attribute: then the feature may be there all the same.
  if (status == DriverStatus::kInvalidValue) return Support::kUnknown;
  if (status != DriverStatus::kSuccess) return driver_error(status, kind_of<DeviceGetAttribute>);
  return get.value != 0 ? Support::kYes : Support::kNo;
}

Status ask_device(Backend& backend, DeviceId device, DeviceCaps& caps) {
  struct Question {
    DeviceAttribute attribute;
    Support DeviceCaps::*answer;
  };
  static constexpr Question kQuestions[] = {
      {DeviceAttribute::kVmmSupported, &DeviceCaps::vmm},
      {DeviceAttribute::kPosixFdSupported, &DeviceCaps::posix_fd},
      {DeviceAttribute::kWin32KmtHandleSupported, &DeviceCaps::win32_kmt},
      {DeviceAttribute::kFabricHandleSupported, &DeviceCaps::fabric},
      {DeviceAttribute::kGpuDirectRdmaWithVmm, &DeviceCaps::rdma},
      {DeviceAttribute::kHostNumaVmmSupported, &DeviceCaps::host_numa},
      {DeviceAttribute::kHostVmmSupported, &DeviceCaps::host},
  };
  for (const Question& question : kQuestions) {
    Result<Support> answer = ask(backend, question.attribute, device);
    if (!answer) return answer.error();
    caps.*question.answer = *answer;
  }
  DeviceGetAttribute node{DeviceAttribute::kHostNumaId, device, 0};
  if (backend.run(node) == DriverStatus::kSuccess) caps.host_numa_id = std::max(node.value, 0);
  DeviceTotalMem total{device, 0};
  const DriverStatus status = backend.run(total);
  if (status != DriverStatus::kSuccess) return driver_error(status, kind_of<DeviceTotalMem>);
  caps.total_memory = total.total;
  return {};
}

}  // namespace
}  // namespace detail

Result<SystemCaps> query_caps(Backend& backend, const VmmOptions& options) {
  SystemCaps caps;
  DeviceGetCount count;
  DriverStatus status = backend.run(count);
  if (status != DriverStatus::kSuccess)
    return detail::driver_error(status, kind_of<DeviceGetCount>);
  caps.device_count = count.count;
  caps.current_numa_node = detail::current_numa_node();
  const bool device_memory = options.location.type == LocationType::kDevice;
  const DeviceId device{device_memory ? options.location.id : 0};
  if (device.value < 0 || device.value >= count.count) return caps;
  if (Status asked = detail::ask_device(backend, device, caps.device); !asked) return asked.error();
  for (std::int32_t id = 0; id < count.count; ++id) {
    const DeviceId peer{id};
    DeviceCanAccessPeer can{peer, device, 0};
    // Memory of the host is reached by every device; a device reaches its own.
    if (device_memory && peer != device) {
      status = backend.run(can);
      if (status != DriverStatus::kSuccess)
        return detail::driver_error(status, kind_of<DeviceCanAccessPeer>);
      if (can.can == 0) continue;
    }
    caps.reachable_peers.push_back(peer);
  }
  return caps;
}

}  // namespace granule
