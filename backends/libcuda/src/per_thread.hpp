// Whether null streams mean the calling thread's own, during a call of a _ptsz or _ptds symbol.
#pragma once

namespace granule::libcuda {

inline thread_local bool null_is_per_thread = false;

class PerThreadScope {
 public:
  explicit PerThreadScope(bool on) { null_is_per_thread = on; }
  ~PerThreadScope() { null_is_per_thread = false; }
  PerThreadScope(const PerThreadScope&) = delete;
  PerThreadScope& operator=(const PerThreadScope&) = delete;
};

}  // namespace granule::libcuda
