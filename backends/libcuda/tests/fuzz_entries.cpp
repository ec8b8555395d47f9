// Calls entry points with random arguments for a while: nothing may crash. Host pointers are null
// or valid, as the library's contract has it; everything else may be anything, and half of it is
// what earlier calls returned, so that calls succeed too.
//   fuzz_entries [SECONDS [SEED]]
#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <granule/backends/driver_abi.hpp>

extern "C" int cuGetProcAddress_v2(const char*, void**, int, unsigned long long, int*);

namespace {

namespace abi = granule::abi;

std::uint64_t state = 1;
std::uint64_t next() {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}
std::uint64_t below(std::uint64_t bound) { return next() % bound; }

// Longer than all device memory there is, so that no copy that the driver allows leaves it.
constexpr std::size_t kHostBytes = std::size_t{1} << 30;
char* host = nullptr;

constexpr std::size_t kSeen = 64;
std::array<std::uint64_t, kSeen> seen{};
void remember(std::uint64_t value) { seen[below(kSeen)] = value; }

std::uint64_t size() {
  static constexpr std::uint64_t kSizes[] = {0, 1, 2, 4, 511, 4096, 1u << 21, 2u << 21, 3u << 21};
  switch (below(8)) {
    case 0:
      return std::uint64_t{1} << below(64);
    case 1:
      return ~std::uint64_t{0} - below(3);
    case 2:
      return next();
    default:
      return kSizes[below(std::size(kSizes))];
  }
}

std::uint64_t word() {
  switch (below(6)) {
    case 0:
      return size();
    case 1:
      return below(4);
    case 2:
      return seen[below(kSeen)] + size();
    default:
      return seen[below(kSeen)];
  }
}

int number() { return static_cast<int>(below(10) == 0 ? next() : below(24)) - 2; }

std::uint64_t succeeded = 0;

// Scratch for outputs: what a call wrote there is remembered.
std::array<std::uint64_t, 512> outputs{};

abi::MemLocation location() { return {number() % 6, number() % 3}; }

/// One argument of each type that entry points take.
template <class T>
struct Argument;

template <>
struct Argument<int> {
  static int make() { return below(3) != 0 ? static_cast<int>(below(2)) : number(); }
};
template <>
struct Argument<unsigned> {
  static unsigned make() { return below(3) != 0 ? 0u : static_cast<unsigned>(next()); }
};
template <>
struct Argument<unsigned char> {
  static unsigned char make() { return static_cast<unsigned char>(next()); }
};
template <>
struct Argument<unsigned long> {
  static unsigned long make() { return size(); }
};
template <>
struct Argument<unsigned long long> {
  static unsigned long long make() { return below(8) == 0 ? 0 : word(); }
};
template <>
struct Argument<void (*)(void*)> {
  static auto make() -> void (*)(void*) {
    if (below(8) == 0) return nullptr;
    return [](void*) {};
  }
};
template <>
struct Argument<const char*> {
  static const char* make() {
    static constexpr const char* kTexts[] = {"", "kernel", "add", "cuMemMap", "0000:03:00.0"};
    return below(8) == 0 ? nullptr : kTexts[below(std::size(kTexts))];
  }
};
template <>
struct Argument<const abi::MemAllocationProp*> {
  static const abi::MemAllocationProp* make() {
    static abi::MemAllocationProp made;
    made = {};
    made.type = below(4) == 0 ? number() : 1;
    made.requested_handle_types = below(2) == 0 ? number() : 1;
    made.location = below(4) == 0 ? location() : abi::MemLocation{1, 0};
    return below(16) == 0 ? nullptr : &made;
  }
};
template <>
struct Argument<const abi::MemLocation*> {
  static const abi::MemLocation* make() {
    static abi::MemLocation made;
    made = location();
    return below(16) == 0 ? nullptr : &made;
  }
};
template <>
struct Argument<abi::MemLocation*> {
  static abi::MemLocation* make() {
    return const_cast<abi::MemLocation*>(Argument<const abi::MemLocation*>::make());
  }
};
template <>
struct Argument<const abi::MemAccessDesc*> {
  static const abi::MemAccessDesc* make() {
    static std::array<abi::MemAccessDesc, 16> made;
    for (abi::MemAccessDesc& one : made)
      one = {below(4) == 0 ? location() : abi::MemLocation{1, 0}, below(4) == 0 ? number() : 3};
    return below(16) == 0 ? nullptr : made.data();
  }
};
template <>
struct Argument<const abi::MemPoolProps*> {
  static const abi::MemPoolProps* make() {
    static abi::MemPoolProps made;
    made = {};
    made.type = below(4) == 0 ? number() : 1;
    made.location = below(4) == 0 ? location() : abi::MemLocation{1, 0};
    made.max_size = below(2) == 0 ? 0 : size();
    return below(16) == 0 ? nullptr : &made;
  }
};
template <>
struct Argument<const abi::Memcpy2D*> {
  static const abi::Memcpy2D* make() {
    static abi::Memcpy2D made;
    made = {};
    // Rows of host memory are few, short and near: their pointers are valid for what they name.
    made.width = below(4096);
    made.height = below(64);
    made.src_x = below(64);
    made.dst_y = below(64);
    made.src_type = 1 + static_cast<int>(below(5));
    made.dst_type = 1 + static_cast<int>(below(5));
    made.src_host = made.dst_host = host;
    made.src_device = word();
    made.dst_device = word();
    made.src_pitch = below(3) * 4200;
    made.dst_pitch = below(3) * 4200;
    return below(16) == 0 ? nullptr : &made;
  }
};
template <>
struct Argument<void**> {
  static void** make() {
    static std::array<void*, 512> made;
    for (void*& one : made) one = outputs.data();
    // The form for `extra` ends somewhere, too.
    if (below(2) == 0) made[below(3) * 2] = nullptr;
    return below(3) == 0 ? nullptr : made.data();
  }
};
template <>
struct Argument<const void*> {
  static const void* make() { return below(16) == 0 ? nullptr : host + below(4096); }
};
template <>
struct Argument<void*> {
  static void* make() { return below(16) == 0 ? nullptr : host + below(4096); }
};
template <class T>
struct Argument<T*> {
  static T* make() {
    // An object of the driver's, wild or seen; or room for an output.
    if constexpr (requires { sizeof(T); }) {
      return below(16) == 0 ? nullptr : reinterpret_cast<T*>(outputs.data());
    } else {
      return reinterpret_cast<T*>(below(8) == 0 ? below(3) : word());
    }
  }
};

// C has no notion of `const int*` against `int*` across a library's border; a sanitizer of C++ has.
#if defined(__clang__)
#define GRANULE_ANY_TYPE __attribute__((no_sanitize("function")))
#else
#define GRANULE_ANY_TYPE
#endif

template <class... Args>
GRANULE_ANY_TYPE void call(int (*function)(Args...)) {
  if (function == nullptr) return;
  outputs[0] = outputs[1] = 0;
  const int result = function(Argument<Args>::make()...);
  succeeded += result == 0 ? 1 : 0;
  if (result == 0 && outputs[0] != 0) remember(outputs[0]);
}

/// By position, so that no list has to be kept.
void call_one(const abi::FunctionTable& table) {
  const std::uint64_t chosen = below(abi::kFunctionCount);
  std::uint64_t at = 0;
#define GRANULE_DRIVER_FUNCTION(name, version, parameters) \
  if (at++ == chosen) return call(table.name);
#include <granule/backends/driver_functions.inc>
#undef GRANULE_DRIVER_FUNCTION
}

/// The other symbols: every argument null or a valid pointer, which is a wild number as well.
GRANULE_ANY_TYPE void call_raw(const std::vector<void*>& symbols) {
  using Raw = int (*)(void*, void*, void*, void*, void*, void*, void*, void*, void*, void*, void*);
  const auto function = reinterpret_cast<Raw>(symbols[below(symbols.size())]);
  static std::array<std::uint64_t, 512> zeros{};
  zeros.fill(0);
  const auto any = [] { return below(3) == 0 ? nullptr : static_cast<void*>(zeros.data()); };
  function(any(), any(), any(), any(), any(), any(), any(), any(), any(), any(), any());
}

abi::FunctionTable load(std::vector<void*>& others) {
  abi::FunctionTable table;
  auto* slot = reinterpret_cast<unsigned char*>(&table);
  for (const abi::FunctionName& wanted : abi::kFunctionNames) {
    void* found = nullptr;
    int why = 0;
    cuGetProcAddress_v2(wanted.name, &found, wanted.version, below(3), &why);
    std::memcpy(slot, &found, sizeof(found));
    slot += sizeof(found);
  }
  // Host functions are called: these two take pointers to code.
  for (const char* name :
       {"cuCtxCreate_v3",         "cuCtxCreate_v4",          "cuStreamGetCaptureInfo_v3",
        "cuMemAllocPitch_v2",     "cuArrayCreate_v2",        "cuGraphLaunch",
        "cuMemcpy3D_v2",          "cuMemcpy3DPeer",          "cuLaunchKernelEx",
        "cuMemGetDefaultMemPool", "cuMemSetMemPool",         "cuEventElapsedTime_v2",
        "cuGetErrorName",         "cuStreamGetCtx_v2_ptsz",  "cuMemsetD2D16_v2_ptds",
        "cuLibraryLoadData",      "cuKernelGetFunction",     "cuMemHostGetFlags",
        "cuGetExportTable",       "cuDeviceGetP2PAttribute", "cuCtxSynchronize_v2"})
    if (void* found = dlsym(RTLD_DEFAULT, name)) others.push_back(found);
  return table;
}

}  // namespace

int main(int argc, char** argv) {
  const long seconds = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 3;
  state = argc > 2 ? std::strtoull(argv[2], nullptr, 10) * 2 + 1 : 1;
  host = static_cast<char*>(mmap(nullptr, kHostBytes, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (host == MAP_FAILED) return 1;
  std::vector<void*> others;
  const abi::FunctionTable table = load(others);
  table.cuInit(0);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  std::uint64_t calls = 0;
  while (std::chrono::steady_clock::now() < end) {
    for (int i = 0; i < 100; ++i, ++calls) below(8) == 0 ? call_raw(others) : call_one(table);
    // A current context, that most calls get somewhere.
    abi::Context context = nullptr;
    if (table.cuDevicePrimaryCtxRetain(&context, 0) == 0) table.cuCtxSetCurrent(context);
  }
  std::printf("%llu calls, %llu succeeded\n", static_cast<unsigned long long>(calls),
              static_cast<unsigned long long>(succeeded));
  std::fflush(stdout);
  std::_Exit(0);
}
