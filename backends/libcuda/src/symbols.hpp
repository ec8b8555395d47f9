// The table of exported symbols, for cuGetProcAddress.
#pragma once

#include <cstddef>

namespace granule::libcuda {

struct Symbol {
  const char* name = nullptr;  // as asked for
  int version = 0;             // that brought this signature
  void* address = nullptr;
  bool per_thread = false;  // null streams are the thread's own
};

struct Symbols {
  const Symbol* begin = nullptr;
  std::size_t count = 0;
};

/// All of them, ascending by name in each of two runs.
Symbols all_symbols();

}  // namespace granule::libcuda
