// Entry points: initialisation, versions, errors, devices.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "entry.hpp"
#include "error_text.hpp"

namespace granule::libcuda {
namespace {

/// OK if the device exists.
abi::Result check_device(abi::Device device) {
  DeviceTotalMem total;
  total.device = {device};
  return ask(total);
}

abi::Result uuid_of(abi::Uuid* uuid, abi::Device device) {
  if (const abi::Result not_ready = ready_for(uuid)) return not_ready;
  if (const abi::Result bad = check_device(device)) return bad;
  static constexpr unsigned char kStart[] = {0x67, 0x72, 0x61, 0x6e, 0x75, 0x6c, 0x65, 0x2d};
  *uuid = {};
  std::copy(std::begin(kStart), std::end(kStart), uuid->bytes);
  uuid->bytes[15] = static_cast<unsigned char>(device);
  return kOk;
}

int number(int attribute) {
  return profile_attribute(Session::get().profile(), attribute).value_or(0);
}

}  // namespace

GRANULE_ENTRY(cuInit)(unsigned flags) {
  Init call;
  call.flags = flags;
  return submit(call);
}

GRANULE_ENTRY(cuDriverGetVersion)(int* version) {
  if (version == nullptr) return kBadValue;
  return submit_for(DriverGetVersion{}, version, [](const auto& c) { return c.version; });
}

GRANULE_ENTRY(cuGetErrorName)(abi::Result error, const char** text) {
  if (text == nullptr) return kBadValue;
  *text = error_name(error);
  return *text != nullptr ? kOk : kBadValue;
}

GRANULE_ENTRY(cuGetErrorString)(abi::Result error, const char** text) {
  if (text == nullptr) return kBadValue;
  *text = error_text(error);
  return *text != nullptr ? kOk : kBadValue;
}

GRANULE_ENTRY(cuDeviceGetCount)(int* count) {
  if (const abi::Result not_ready = ready_for(count)) return not_ready;
  return submit_for(DeviceGetCount{}, count, [](const auto& c) { return c.count; });
}

GRANULE_ENTRY(cuDeviceGet)(abi::Device* device, int ordinal) {
  if (const abi::Result not_ready = ready_for(device)) return not_ready;
  if (const abi::Result bad = check_device(ordinal)) return bad;
  *device = ordinal;
  return kOk;
}

GRANULE_ENTRY(cuDeviceGetName)(char* name, int length, abi::Device device) {
  if (const abi::Result not_ready = ready_for(name)) return not_ready;
  if (length <= 0) return kBadValue;
  if (const abi::Result bad = check_device(device)) return bad;
  const std::string_view text = Session::get().profile().name;
  const std::size_t count = std::min(text.size(), static_cast<std::size_t>(length) - 1);
  std::memcpy(name, text.data(), count);
  name[count] = '\0';
  return kOk;
}

GRANULE_ENTRY(cuDeviceGetUuid)(abi::Uuid* uuid, abi::Device device) {
  return uuid_of(uuid, device);
}
GRANULE_ENTRY(cuDeviceGetUuid_v2)(abi::Uuid* uuid, abi::Device device) {
  return uuid_of(uuid, device);
}

GRANULE_ENTRY(cuDeviceTotalMem_v2)(std::size_t* bytes, abi::Device device) {
  if (const abi::Result not_ready = ready_for(bytes)) return not_ready;
  DeviceTotalMem call;
  call.device = {device};
  return submit_for(call, bytes, [](const auto& c) { return std::size_t{c.total}; });
}
GRANULE_ENTRY(cuDeviceTotalMem)(unsigned* bytes, abi::Device device) {
  if (const abi::Result not_ready = ready_for(bytes)) return not_ready;
  DeviceTotalMem call;
  call.device = {device};
  return submit_for(call, bytes, [](const auto& c) {
    return static_cast<unsigned>(std::min<std::uint64_t>(c.total, 0xffffffffu));
  });
}

GRANULE_ENTRY(cuDeviceGetAttribute)(int* value, int attribute, abi::Device device) {
  if (const abi::Result not_ready = ready_for(value)) return not_ready;
  if (const auto known = profile_attribute(Session::get().profile(), attribute)) {
    if (const abi::Result bad = check_device(device)) return bad;
    *value = *known;
    return kOk;
  }
  DeviceGetAttribute call;
  call.attribute = static_cast<DeviceAttribute>(attribute);
  call.device = {device};
  return submit_for(call, value, [](const auto& c) { return c.value; });
}

GRANULE_ENTRY(cuDeviceComputeCapability)(int* major, int* minor, abi::Device device) {
  if (const abi::Result not_ready = ready_for(major)) return not_ready;
  if (minor == nullptr) return kBadValue;
  if (const abi::Result bad = check_device(device)) return bad;
  *major = Session::get().profile().major;
  *minor = Session::get().profile().minor;
  return kOk;
}

GRANULE_ENTRY(cuDeviceGetProperties)(abi::DeviceProperties* out, abi::Device device) {
  if (const abi::Result not_ready = ready_for(out)) return not_ready;
  if (const abi::Result bad = check_device(device)) return bad;
  abi::DeviceProperties made;
  made.max_threads_per_block = number(1);
  for (int i = 0; i < 3; ++i) made.max_threads_dim[i] = number(2 + i);
  for (int i = 0; i < 3; ++i) made.max_grid_size[i] = number(5 + i);
  made.shared_mem_per_block = number(8);
  made.total_constant_memory = number(9);
  made.simd_width = number(10);
  made.mem_pitch = number(11);
  made.regs_per_block = number(12);
  made.clock_rate = number(13);
  made.texture_align = number(14);
  *out = made;
  return kOk;
}

GRANULE_ENTRY(cuDeviceGetPCIBusId)(char* id, int length, abi::Device device) {
  if (const abi::Result not_ready = ready_for(id)) return not_ready;
  if (length <= 0) return kBadValue;
  if (const abi::Result bad = check_device(device)) return bad;
  std::snprintf(id, static_cast<std::size_t>(length), "0000:%02X:00.0",
                static_cast<unsigned>(3 + device) & 0xffu);
  return kOk;
}

GRANULE_ENTRY(cuDeviceGetByPCIBusId)(abi::Device* device, const char* id) {
  if (const abi::Result not_ready = ready_for(device)) return not_ready;
  if (id == nullptr) return kBadValue;
  unsigned domain = 0;
  unsigned bus = 0;
  if (std::sscanf(id, "%x:%x", &domain, &bus) != 2 || domain != 0 || bus < 3 || bus > 0xff)
    return kBadValue;
  if (check_device(static_cast<int>(bus - 3)) != kOk) return kBadDevice;
  *device = static_cast<int>(bus - 3);
  return kOk;
}

GRANULE_ENTRY(cuDeviceCanAccessPeer)(int* can, abi::Device device, abi::Device peer) {
  if (const abi::Result not_ready = ready_for(can)) return not_ready;
  DeviceCanAccessPeer call;
  call.device = {device};
  call.peer = {peer};
  return submit_for(call, can, [](const auto& c) { return c.can; });
}

GRANULE_ENTRY(cuDeviceGetP2PAttribute)
(int* value, int attribute, abi::Device device, abi::Device peer) {
  if (const abi::Result not_ready = ready_for(value)) return not_ready;
  if (attribute < 1 || attribute > 5 || device == peer) return kBadValue;
  DeviceCanAccessPeer call;
  call.device = {device};
  call.peer = {peer};
  const abi::Result result = ask(call);
  if (result == kOk) *value = attribute == 1 || attribute == 5 ? 0 : call.can;
  return result;
}

}  // namespace granule::libcuda
