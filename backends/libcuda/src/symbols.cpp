// Every symbol of the driver, weakly: one that nothing in this library defines strongly answers
// CUDA_ERROR_NOT_SUPPORTED and leaves a line in the report. Alone in its file, for the entry points
// have other parameters in theirs.
#include "symbols.hpp"

#include "refusal.hpp"

#define GRANULE_SYMBOL(base, version, symbol, per_thread)                    \
  extern "C" __attribute__((weak, visibility("default"))) int symbol(void) { \
    return ::granule::libcuda::refuse(#symbol);                              \
  }
#include "symbols_memory.inc"
#include "symbols_rest.inc"
#undef GRANULE_SYMBOL

namespace granule::libcuda {
namespace {

void* address_of(int (*function)()) { return reinterpret_cast<void*>(function); }

}  // namespace

Symbols all_symbols() {
#define GRANULE_SYMBOL(base, version, symbol, per_thread) \
  {#base, version, address_of(&symbol), (per_thread) != 0},
  static const Symbol kSymbols[] = {
#include "symbols_memory.inc"
#include "symbols_rest.inc"
  };
#undef GRANULE_SYMBOL
  return {kSymbols, sizeof(kSymbols) / sizeof(kSymbols[0])};
}

}  // namespace granule::libcuda
