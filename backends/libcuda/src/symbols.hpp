// The exported symbols and where each of them leads: to an entry point of this library, to the real
// driver behind it, or to a refusal.
#pragma once

#include <cstddef>

namespace granule::libcuda {

struct Symbol {
  const char* name = nullptr;    // as cuGetProcAddress is asked for it
  int version = 0;               // that brought this signature
  const char* symbol = nullptr;  // as it is exported
  void* exported = nullptr;      // what a client calls
  void* entry = nullptr;         // this library's own function; null if it has none
  bool per_thread = false;       // null streams are the thread's own
};

struct Symbols {
  const Symbol* begin = nullptr;
  std::size_t count = 0;
};
Symbols all_symbols();

/// Whether, with a real driver behind, a symbol is still answered here: what makes and drops things
/// that the ledger knows.
bool is_watched(const char* symbol);
/// A symbol of the real driver; null if there is none, or no real driver.
void* real_symbol(const char* symbol);

/// Where the symbol leads now; null: it is refused.
void* target_of(const Symbol& symbol);
/// CUDA_ERROR_NOT_SUPPORTED, and a line in the report.
int refuse(const char* symbol) noexcept;

}  // namespace granule::libcuda
