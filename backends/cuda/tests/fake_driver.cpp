// A driver library for tests: a few entry points that answer from plain counters, found through
// cuGetProcAddress as in the real one. What it does not have stays missing.
// GRANULE_FAKE_DEVICES in the environment sets the number of devices (default 1).
#include <cstdlib>
#include <cstring>

#include <granule/backends/driver_abi.hpp>

namespace {

using namespace granule::abi;

int current_context_word;
int stream_word;
int event_word;
Context current_context;

Result init(unsigned) {
  const char* devices = std::getenv("GRANULE_FAKE_DEVICES");
  return devices != nullptr && std::strcmp(devices, "0") == 0 ? 100 : 0;
}
Result device_count(int* count) {
  *count = 1;
  return 0;
}
Result driver_version(int* version) {
  *version = 13000;
  return 0;
}
Result get_current(Context* context) {
  *context = current_context;
  return 0;
}
Result set_current(Context context) {
  current_context = context;
  return 0;
}
Result retain_primary(Context* context, Device) {
  *context = reinterpret_cast<Context>(&current_context_word);
  return 0;
}
Result reset_primary(Device) { return 0; }
Result create(AllocationHandle* handle, std::size_t size, const MemAllocationProp*,
              unsigned long long) {
  if (size == 0) return 1;
  static AllocationHandle next = 0x1000;
  *handle = next += 0x10;
  return 0;
}
Result release(AllocationHandle handle) { return handle == 0 ? 1 : 0; }
Result map(DevicePtr, std::size_t, std::size_t, AllocationHandle handle, unsigned long long) {
  return handle == 0 ? 1 : 0;
}
Result unmap(DevicePtr, std::size_t) { return 0; }
Result stream_create(Stream* stream, unsigned) {
  *stream = reinterpret_cast<Stream>(&stream_word);
  return 0;
}
Result stream_query(Stream) { return 600; }
Result stream_destroy(Stream) { return 0; }
Result event_create(Event* event, unsigned) {
  *event = reinterpret_cast<Event>(&event_word);
  return 0;
}
Result event_query(Event event) { return event == nullptr ? 400 : 0; }
Result pointer_attributes(unsigned, int* attributes, void** data, DevicePtr ptr) {
  if (attributes[0] == 11) return 0;  // the range of nothing: left untouched
  if (attributes[0] == 9) {
    const int ordinal = ptr == 0 ? -2 : 0;
    std::memcpy(data[0], &ordinal, sizeof(ordinal));
  } else {
    std::memset(data[0], 0, 8);
  }
  return 0;
}

struct Entry {
  const char* name;
  void* function;
};

template <class F>
void* address(F* function) {
  void* out = nullptr;
  std::memcpy(&out, &function, sizeof(out));
  return out;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) Result cuGetProcAddress_v2(const char* name,
                                                                             void** out, int,
                                                                             unsigned long long,
                                                                             int* found) {
  const Entry entries[] = {
      {"cuInit", address(init)},
      {"cuDeviceGetCount", address(device_count)},
      {"cuDriverGetVersion", address(driver_version)},
      {"cuCtxGetCurrent", address(get_current)},
      {"cuCtxSetCurrent", address(set_current)},
      {"cuDevicePrimaryCtxRetain", address(retain_primary)},
      {"cuDevicePrimaryCtxReset", address(reset_primary)},
      {"cuMemCreate", address(create)},
      {"cuMemRelease", address(release)},
      {"cuMemMap", address(map)},
      {"cuMemUnmap", address(unmap)},
      {"cuStreamCreate", address(stream_create)},
      {"cuStreamQuery", address(stream_query)},
      {"cuStreamDestroy", address(stream_destroy)},
      {"cuEventCreate", address(event_create)},
      {"cuEventQuery", address(event_query)},
      {"cuPointerGetAttributes", address(pointer_attributes)},
  };
  for (const Entry& entry : entries) {
    if (std::strcmp(entry.name, name) == 0) {
      *out = entry.function;
      *found = 0;
      return 0;
    }
  }
  *out = nullptr;
  *found = 1;
  return 0;
}
