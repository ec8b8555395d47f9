// Every symbol of the driver, as a function that leads on to its target. Alone in its file, for the
// entry points have other parameters in theirs.
#include "symbols.hpp"

#include <atomic>
#include <cstdint>

#include "per_thread.hpp"

// A function called through a type that it does not have: sanitizers of C++ know no C libraries.
#if defined(__clang__)
#define GRANULE_ANY_TYPE __attribute__((no_sanitize("function")))
#else
#define GRANULE_ANY_TYPE
#endif

// Entry points that do not exist are null.
#define GRANULE_SYMBOL(base, version, symbol, entry, per_thread) \
  extern "C" __attribute__((weak, visibility("hidden"))) int granule_entry_##entry();
#include "symbols_memory.inc"
#include "symbols_rest.inc"
#undef GRANULE_SYMBOL

namespace granule::libcuda {
namespace {

using Word = std::uintptr_t;
/// Any function of the driver: at most twelve arguments, all of them numbers or pointers, so each
/// is a word to the caller and to the called; words that the called does not take are not looked
/// at.
using AnyFunction = int (*)(Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word);

}  // namespace
}  // namespace granule::libcuda

#define GRANULE_SYMBOL(base, version, name, entry, per_thread)                        \
  extern "C" __attribute__((visibility("default"))) GRANULE_ANY_TYPE int name(        \
      granule::libcuda::Word a, granule::libcuda::Word b, granule::libcuda::Word c,   \
      granule::libcuda::Word d, granule::libcuda::Word e, granule::libcuda::Word f,   \
      granule::libcuda::Word g, granule::libcuda::Word h, granule::libcuda::Word i,   \
      granule::libcuda::Word j, granule::libcuda::Word k, granule::libcuda::Word l) { \
    using namespace granule::libcuda;                                                 \
    static const Symbol self{#base,                                                   \
                             version,                                                 \
                             #name,                                                   \
                             nullptr,                                                 \
                             reinterpret_cast<void*>(&granule_entry_##entry),         \
                             (per_thread) != 0};                                      \
    static void* const target = target_of(self);                                      \
    if (target == nullptr) return refuse(#name);                                      \
    const auto function = reinterpret_cast<AnyFunction>(target);                      \
    if constexpr ((per_thread) != 0) {                                                \
      const PerThreadScope scope(true);                                               \
      return function(a, b, c, d, e, f, g, h, i, j, k, l);                            \
    }                                                                                 \
    return function(a, b, c, d, e, f, g, h, i, j, k, l);                              \
  }
#include "symbols_memory.inc"
#include "symbols_rest.inc"
#undef GRANULE_SYMBOL

namespace granule::libcuda {

Symbols all_symbols() {
#define GRANULE_SYMBOL(base, version, name, entry, per_thread) \
  {#base,                                                      \
   version,                                                    \
   #name,                                                      \
   reinterpret_cast<void*>(&name),                             \
   reinterpret_cast<void*>(&granule_entry_##entry),            \
   (per_thread) != 0},
  static const Symbol kSymbols[] = {
#include "symbols_memory.inc"
#include "symbols_rest.inc"
  };
#undef GRANULE_SYMBOL
  return {kSymbols, sizeof(kSymbols) / sizeof(kSymbols[0])};
}

}  // namespace granule::libcuda
