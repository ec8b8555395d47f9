// The few questions for NVIDIA's management library, which may not be there.
#pragma once

#include <cstdint>
#include <string>

namespace granule::cuda {

/// libnvidia-ml.so.1 opened at run time. Every question has an answer for "not known".
class Nvml {
 public:
  struct Use {
    bool known = false;
    std::uint64_t used_bytes = 0;
    std::int32_t processes = -1;  // all that have a context, ours too; -1: not known
    bool ours_listed = false;     // one of them has our process id
  };

  Nvml();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  bool available() const { return ready_; }
  std::string driver_release() const;
  Use use_of(const std::string& pci_bus_id) const;
  /// "on", "off" or "unknown".
  std::string mig_mode(const std::string& pci_bus_id) const;

 private:
  template <class F>
  F symbol(const char* name) const;
  void* device(const std::string& pci_bus_id) const;

  void* library_ = nullptr;
  bool ready_ = false;
};

}  // namespace granule::cuda
