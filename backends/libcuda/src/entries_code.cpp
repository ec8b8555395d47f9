// Entry points: modules, libraries, kernels and launches. No code runs: a launch is opaque work on
// its stream that touches every address of device memory found in its parameters.
#include <cstring>
#include <string>

#include "code_objects.hpp"
#include "entry.hpp"

namespace granule::libcuda {
namespace {

template <class P>
abi::Result load(P* out, const void* image) {
  if (const abi::Result not_ready = ready_for(out)) return not_ready;
  if (image == nullptr) return kBadValue;
  *out = pointer_of<P>(load_image(image));
  return kOk;
}

template <class P>
abi::Result find(P* out, std::uint64_t image, const char* name) {
  if (const abi::Result not_ready = ready_for(out)) return not_ready;
  if (name == nullptr) return kBadValue;
  if (!kernel_count(image)) return kBadHandle;
  const auto kernel = kernel_in_image(image, name);
  if (!kernel) return static_cast<int>(DriverStatus::kNotFound);
  *out = pointer_of<P>(*kernel);
  return kOk;
}

abi::Result launch_one(StreamHandle stream, KernelKind kind, std::uint64_t ptr) {
  LaunchKernel call;
  call.kind = kind;
  call.ptr = {ptr};
  call.size = kind == KernelKind::kSpin ? 0 : 1;
  call.duration_ns = 1000;
  call.stream = stream;
  return submit(call);
}

/// Launches work that touches each device address among the 64-bit words of the parameters.
abi::Result launch_touching(StreamHandle stream, const std::uint64_t* words, std::size_t count) {
  bool touched = false;
  for (std::size_t i = 0; i < count; ++i) {
    PointerGetAttribute query;
    query.ptr = {words[i]};
    query.attribute = PointerAttribute::kDevicePointer;
    if (words[i] == 0 || ask(query) != kOk) continue;
    if (const abi::Result bad = launch_one(stream, KernelKind::kTouch, words[i])) return bad;
    touched = true;
  }
  return touched ? kOk : launch_one(stream, KernelKind::kSpin, 0);
}

constexpr std::size_t kMostWords = 512;  // 4 KiB of parameters is the driver's limit

struct Words {
  std::uint64_t at[kMostWords] = {};
  std::size_t count = 0;
  void add(const void* from, std::size_t bytes) {
    const auto* next = static_cast<const unsigned char*>(from);
    for (; bytes >= 8 && count < kMostWords; bytes -= 8, next += 8)
      std::memcpy(&at[count++], next, 8);
  }
};

/// The parameters in one buffer: CU_LAUNCH_PARAM_BUFFER_POINTER, ..._SIZE, ..._END.
bool read_extra(void** extra, Words& words) {
  const void* buffer = nullptr;
  const std::size_t* size = nullptr;
  for (std::size_t i = 0; i < 8 && extra[i] != nullptr; i += 2) {
    if (value_of(extra[i]) == 1) buffer = extra[i + 1];
    if (value_of(extra[i]) == 2) size = static_cast<const std::size_t*>(extra[i + 1]);
  }
  if (buffer == nullptr || size == nullptr || *size > kMostWords * 8) return false;
  words.add(buffer, *size);
  return true;
}

abi::Result launch(std::uint64_t function, const unsigned* grid, const unsigned* block,
                   StreamHandle stream, void** parameters, void** extra) {
  if (const abi::Result not_ready = ready()) return not_ready;
  const auto kernel = kernel_facts(function);
  if (!kernel) return kBadHandle;
  for (int i = 0; i < 3; ++i)
    if (grid[i] == 0 || block[i] == 0 || block[i] > 1024) return kBadValue;
  if (parameters != nullptr && extra != nullptr) return kBadValue;
  Words words;
  if (extra != nullptr) {
    if (!read_extra(extra, words)) return kBadValue;
  } else if (kernel->known && !kernel->sizes.empty()) {
    if (parameters == nullptr) return kBadValue;
    for (std::size_t i = 0; i < kernel->sizes.size(); ++i) {
      if (parameters[i] == nullptr) return kBadValue;
      words.add(parameters[i], kernel->sizes[i]);
    }
  } else if (!kernel->known && parameters != nullptr) {
    Session::get().note_unsupported("parameters of kernels in packed images: not looked at");
  }
  return launch_touching(stream, words.at, words.count);
}

}  // namespace

GRANULE_ENTRY(cuModuleLoadData)(abi::Module* module, const void* image) {
  return load(module, image);
}
GRANULE_ENTRY(cuModuleLoadDataEx)
(abi::Module* module, const void* image, unsigned, int*, void**) { return load(module, image); }
GRANULE_ENTRY(cuModuleLoadFatBinary)(abi::Module* module, const void* image) {
  return load(module, image);
}
GRANULE_ENTRY(cuModuleUnload)(abi::Module module) {
  if (const abi::Result not_ready = ready()) return not_ready;
  return unload_image(value_of(module)) ? kOk : kBadHandle;
}
GRANULE_ENTRY(cuModuleGetFunction)
(abi::Function* function, abi::Module module, const char* name) {
  return find(function, value_of(module), name);
}
GRANULE_ENTRY(cuModuleGetFunctionCount)(unsigned* count, abi::Module module) {
  if (const abi::Result not_ready = ready_for(count)) return not_ready;
  const auto known = kernel_count(value_of(module));
  if (!known) return kBadHandle;
  *count = *known;
  return kOk;
}

GRANULE_ENTRY(cuLibraryLoadData)
(abi::Library* library, const void* code, int*, void**, unsigned, int*, void**, unsigned) {
  return load(library, code);
}
GRANULE_ENTRY(cuLibraryUnload)(abi::Library library) {
  if (const abi::Result not_ready = ready()) return not_ready;
  return unload_image(value_of(library)) ? kOk : kBadHandle;
}
GRANULE_ENTRY(cuLibraryGetKernel)
(abi::Kernel* kernel, abi::Library library, const char* name) {
  return find(kernel, value_of(library), name);
}
GRANULE_ENTRY(cuLibraryGetModule)(abi::Module* module, abi::Library library) {
  if (const abi::Result not_ready = ready_for(module)) return not_ready;
  if (!kernel_count(value_of(library))) return kBadHandle;
  *module = pointer_of<abi::Module>(value_of(library));
  return kOk;
}
GRANULE_ENTRY(cuKernelGetFunction)(abi::Function* function, abi::Kernel kernel) {
  if (const abi::Result not_ready = ready_for(function)) return not_ready;
  if (!kernel_facts(value_of(kernel))) return kBadHandle;
  *function = pointer_of<abi::Function>(value_of(kernel));
  return kOk;
}
GRANULE_ENTRY(cuFuncLoad)(abi::Function function) {
  if (const abi::Result not_ready = ready()) return not_ready;
  return kernel_facts(value_of(function)) ? kOk : kBadHandle;
}
GRANULE_ENTRY(cuFuncIsLoaded)(int* state, abi::Function function) {
  if (const abi::Result not_ready = ready_for(state)) return not_ready;
  if (!kernel_facts(value_of(function))) return kBadHandle;
  *state = 1;
  return kOk;
}

GRANULE_ENTRY(cuLaunchKernel)
(abi::Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
 unsigned block_y, unsigned block_z, unsigned, abi::Stream stream, void** parameters,
 void** extra) {
  const unsigned grid[] = {grid_x, grid_y, grid_z};
  const unsigned block[] = {block_x, block_y, block_z};
  return launch(value_of(function), grid, block, stream_of(stream), parameters, extra);
}
GRANULE_ENTRY(cuLaunchCooperativeKernel)
(abi::Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
 unsigned block_y, unsigned block_z, unsigned, abi::Stream stream, void** parameters) {
  const unsigned grid[] = {grid_x, grid_y, grid_z};
  const unsigned block[] = {block_x, block_y, block_z};
  return launch(value_of(function), grid, block, stream_of(stream), parameters, nullptr);
}
GRANULE_ENTRY(cuLaunchKernelEx)
(const abi::LaunchConfig* config, abi::Function function, void** parameters, void** extra) {
  if (const abi::Result not_ready = ready_for(config)) return not_ready;
  return launch(value_of(function), config->grid, config->block, stream_of(config->stream),
                parameters, extra);
}

}  // namespace granule::libcuda
