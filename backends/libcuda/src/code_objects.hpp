// Modules, libraries, kernels and functions: names without code. The parameters of kernels are
// known in PTX and plain binaries, not in packed images (fat binaries).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace granule::libcuda {

struct KernelFacts {
  std::string name;
  bool known = false;  // whether the parameters are
  std::vector<std::uint32_t> offsets;
  std::vector<std::uint32_t> sizes;
};

/// The kernels of PTX text.
std::vector<KernelFacts> kernels_in_ptx(std::string_view text);

/// The kernels of an ELF file in memory.
std::vector<KernelFacts> kernels_in_elf(const void* image);

/// Loads an image; never 0. The text of PTX is read to its end.
std::uint64_t load_image(const void* image);
/// False if there is no such image.
bool unload_image(std::uint64_t handle);
/// The kernel of that name; nothing if the image is dead or known not to have it.
std::optional<std::uint64_t> kernel_in_image(std::uint64_t image, std::string_view name);
/// The kernels that an image is known to have.
std::optional<std::uint32_t> kernel_count(std::uint64_t image);
/// The kernel of a handle; nothing for a wild one.
std::optional<KernelFacts> kernel_facts(std::uint64_t kernel);

}  // namespace granule::libcuda
