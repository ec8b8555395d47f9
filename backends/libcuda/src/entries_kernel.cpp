// Entry points: what kernels and functions say of themselves. No code runs, so that most of it is
// what a small kernel would say.
#include "code_objects.hpp"
#include "entry.hpp"

namespace granule::libcuda {
namespace {

/// CUfunction_attribute of a kernel that uses next to nothing.
abi::Result attribute(int* value, int which, std::uint64_t kernel) {
  if (const abi::Result not_ready = ready_for(value)) return not_ready;
  if (!kernel_facts(kernel)) return kBadHandle;
  const Profile& profile = Session::get().profile();
  const int capability = profile.major * 10 + profile.minor;
  const int values[] = {1024, 0, 0, 0, 16, capability, capability, 0, 49152, -1};
  if (which < 0 || which > 15) return kBadValue;
  *value = which < static_cast<int>(std::size(values)) ? values[which] : 0;
  return kOk;
}

abi::Result set_attribute(int which, std::uint64_t kernel) {
  if (const abi::Result not_ready = ready()) return not_ready;
  if (!kernel_facts(kernel)) return kBadHandle;
  return which < 0 || which > 15 ? kBadValue : kOk;
}

abi::Result parameter(std::uint64_t kernel, std::size_t index, std::size_t* offset,
                      std::size_t* size) {
  if (const abi::Result not_ready = ready_for(offset)) return not_ready;
  const auto facts = kernel_facts(kernel);
  if (!facts) return kBadHandle;
  if (!facts->known) return unsupported("parameters of kernels in packed images");
  if (index >= facts->sizes.size()) return kBadValue;
  *offset = facts->offsets[index];
  if (size != nullptr) *size = facts->sizes[index];
  return kOk;
}

abi::Result name_of_kernel(const char** name, std::uint64_t kernel) {
  if (const abi::Result not_ready = ready_for(name)) return not_ready;
  const auto facts = kernel_facts(kernel);
  if (!facts) return kBadHandle;
  *name = interned(facts->name.c_str())->c_str();
  return kOk;
}

}  // namespace

GRANULE_ENTRY(cuFuncGetAttribute)(int* value, int which, abi::Function function) {
  return attribute(value, which, value_of(function));
}
GRANULE_ENTRY(cuKernelGetAttribute)
(int* value, int which, abi::Kernel kernel, abi::Device) {
  return attribute(value, which, value_of(kernel));
}
GRANULE_ENTRY(cuFuncSetAttribute)(abi::Function function, int which, int) {
  return set_attribute(which, value_of(function));
}
GRANULE_ENTRY(cuKernelSetAttribute)(int which, int, abi::Kernel kernel, abi::Device) {
  return set_attribute(which, value_of(kernel));
}
GRANULE_ENTRY(cuFuncSetCacheConfig)(abi::Function function, int) {
  return set_attribute(0, value_of(function));
}
GRANULE_ENTRY(cuKernelSetCacheConfig)(abi::Kernel kernel, int, abi::Device) {
  return set_attribute(0, value_of(kernel));
}
GRANULE_ENTRY(cuFuncGetParamInfo)
(abi::Function function, std::size_t index, std::size_t* offset, std::size_t* size) {
  return parameter(value_of(function), index, offset, size);
}
GRANULE_ENTRY(cuKernelGetParamInfo)
(abi::Kernel kernel, std::size_t index, std::size_t* offset, std::size_t* size) {
  return parameter(value_of(kernel), index, offset, size);
}
GRANULE_ENTRY(cuFuncGetName)(const char** name, abi::Function function) {
  return name_of_kernel(name, value_of(function));
}
GRANULE_ENTRY(cuKernelGetName)(const char** name, abi::Kernel kernel) {
  return name_of_kernel(name, value_of(kernel));
}
GRANULE_ENTRY(cuModuleGetLoadingMode)(int* mode) {
  if (mode == nullptr) return kBadValue;
  *mode = 2;  // lazy
  return kOk;
}
GRANULE_ENTRY(cuLibraryGetKernelCount)(unsigned* count, abi::Library library) {
  if (const abi::Result not_ready = ready_for(count)) return not_ready;
  const auto known = kernel_count(value_of(library));
  if (!known) return kBadHandle;
  *count = *known;
  return kOk;
}
GRANULE_ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessor)
(int* blocks, abi::Function function, int block, std::size_t) {
  if (const abi::Result not_ready = ready_for(blocks)) return not_ready;
  if (!kernel_facts(value_of(function))) return kBadHandle;
  if (block <= 0 || block > 1024) return kBadValue;
  *blocks = 2048 / block;
  return kOk;
}

}  // namespace granule::libcuda
