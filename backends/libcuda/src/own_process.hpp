// Is this still the process that began? Asked at every call, since a driver does not work in a
// forked child.
#pragma once

namespace granule::libcuda {

/// Marks the process that makes it. Thread-safe; never fails.
class OwnProcess {
 public:
  OwnProcess() noexcept;
  OwnProcess(const OwnProcess&) = delete;
  OwnProcess& operator=(const OwnProcess&) = delete;
  ~OwnProcess();
  /// False in a child of fork(2) or clone(2). The price of a load, where the kernel can wipe a page
  /// on a fork (Linux 4.14 and later), else that of getpid.
  bool holds() const noexcept { return mark_ != nullptr ? *mark_ != 0 : is_same_pid(); }

 private:
  bool is_same_pid() const noexcept;
  const volatile unsigned char* mark_ = nullptr;
  int pid_ = 0;
};

}  // namespace granule::libcuda
