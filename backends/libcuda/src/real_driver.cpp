// The real driver behind a watched program: where it is, and what is not passed straight on to it.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>

#include "entry.hpp"
#include "symbols.hpp"

namespace granule::libcuda {
namespace {

/// What the ledger follows. All else, copies and launches included, goes straight to the driver.
constexpr std::string_view kWatched[] = {
    "cuInit",
    "cuGetProcAddress",
    "cuGetProcAddress_v2",
    "cuMemAddressReserve",
    "cuMemAddressFree",
    "cuMemCreate",
    "cuMemRelease",
    "cuMemRetainAllocationHandle",
    "cuMemMap",
    "cuMemUnmap",
    "cuMemSetAccess",
    "cuMemExportToShareableHandle",
    "cuMemImportFromShareableHandle",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemAllocHost_v2",
    "cuMemFreeHost",
    "cuMemPoolCreate",
    "cuMemPoolDestroy",
    "cuMemAllocAsync",
    "cuMemAllocAsync_ptsz",
    "cuMemAllocFromPoolAsync",
    "cuMemAllocFromPoolAsync_ptsz",
    "cuMemFreeAsync",
    "cuMemFreeAsync_ptsz",
    "cuCtxDestroy_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxReset_v2",
};

void* open_real() {
  const Options& options = Session::get().options();
  if (!options.watch) return nullptr;
  // Its own symbols come before ours in its eyes.
  void* library = dlopen(options.real.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (library == nullptr) std::fprintf(stderr, "granule watch: %s\n", dlerror());
  return library;
}

}  // namespace

bool is_watched(const char* symbol) {
  return std::find(std::begin(kWatched), std::end(kWatched), symbol) != std::end(kWatched);
}

void* real_symbol(const char* symbol) {
  static void* const library = open_real();
  return library != nullptr ? dlsym(library, symbol) : nullptr;
}

void* target_of(const Symbol& symbol) {
  if (Session::get().options().watch && !is_watched(symbol.symbol))
    return real_symbol(symbol.symbol);
  return symbol.entry;
}

int refuse(const char* symbol) noexcept { return unsupported(symbol); }

}  // namespace granule::libcuda
