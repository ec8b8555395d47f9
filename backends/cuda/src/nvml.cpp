// Management library: loaded by name, asked by symbol, our own struct layouts.
#include "nvml.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cstring>
#include <vector>

namespace granule::cuda {
namespace {

using Device = void*;
constexpr int kSuccess = 0;
constexpr int kInsufficientSize = 7;

struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

// nvmlProcessInfo_t of the _v2 and _v3 entry points.
struct Process {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance;
  unsigned compute_instance;
};
static_assert(sizeof(Process) == 24);

}  // namespace

template <class F>
F Nvml::symbol(const char* name) const {
  void* found = library_ != nullptr ? dlsym(library_, name) : nullptr;
  F function = nullptr;
  std::memcpy(&function, &found, sizeof(found));
  return function;
}

Nvml::Nvml() {
  library_ = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  const auto init = symbol<int (*)()>("nvmlInit_v2");
  ready_ = init != nullptr && init() == kSuccess;
}

Nvml::~Nvml() {
  const auto shutdown = symbol<int (*)()>("nvmlShutdown");
  if (ready_ && shutdown != nullptr) shutdown();
}

std::string Nvml::driver_release() const {
  const auto ask = symbol<int (*)(char*, unsigned)>("nvmlSystemGetDriverVersion");
  char text[96] = {};
  if (!ready_ || ask == nullptr || ask(text, sizeof(text)) != kSuccess) return {};
  return text;
}

void* Nvml::device(const std::string& pci_bus_id) const {
  const auto ask = symbol<int (*)(const char*, Device*)>("nvmlDeviceGetHandleByPciBusId_v2");
  Device found = nullptr;
  if (!ready_ || ask == nullptr || ask(pci_bus_id.c_str(), &found) != kSuccess) return nullptr;
  return found;
}

Nvml::Use Nvml::use_of(const std::string& pci_bus_id) const {
  Use use;
  Device d = device(pci_bus_id);
  if (d == nullptr) return use;
  const auto memory = symbol<int (*)(Device, Memory*)>("nvmlDeviceGetMemoryInfo");
  Memory m{};
  if (memory != nullptr && memory(d, &m) == kSuccess) {
    use.known = true;
    use.used_bytes = m.used;
  }
  auto list =
      symbol<int (*)(Device, unsigned*, Process*)>("nvmlDeviceGetComputeRunningProcesses_v3");
  if (list == nullptr)
    list = symbol<int (*)(Device, unsigned*, Process*)>("nvmlDeviceGetComputeRunningProcesses_v2");
  if (list == nullptr) return use;
  std::vector<Process> processes(64);
  auto count = static_cast<unsigned>(processes.size());
  int status = list(d, &count, processes.data());
  if (status == kInsufficientSize) {
    processes.resize(count + 64);
    count = static_cast<unsigned>(processes.size());
    status = list(d, &count, processes.data());
  }
  if (status != kSuccess) return use;
  use.processes = static_cast<std::int32_t>(count);
  for (unsigned i = 0; i < count; ++i)
    if (processes[i].pid == static_cast<unsigned>(getpid())) use.ours_listed = true;
  return use;
}

std::string Nvml::mig_mode(const std::string& pci_bus_id) const {
  const auto ask = symbol<int (*)(Device, unsigned*, unsigned*)>("nvmlDeviceGetMigMode");
  Device d = device(pci_bus_id);
  unsigned now = 0;
  unsigned pending = 0;
  if (d == nullptr || ask == nullptr) return "unknown";
  const int status = ask(d, &now, &pending);
  if (status == kSuccess) return now != 0 ? "on" : "off";
  constexpr int kNotSupported = 3;
  return status == kNotSupported ? "off" : "unknown";
}

}  // namespace granule::cuda
