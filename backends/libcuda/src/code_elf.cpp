// Kernels and their parameters in a binary image: sections ".nv.info.NAME" of an ELF file in
// memory, whose records 0x17 tell the place and size of each parameter. The image's length is
// nowhere given: it is read carefully, and one that is cut or malformed has fewer kernels.
#include <elf.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "code_objects.hpp"

namespace granule::libcuda {
namespace {

/// Copies out of the image; false where there is no memory.
bool read_bytes(const void* from, std::uint64_t offset, void* to, std::size_t size) {
  iovec local{to, size};
  iovec remote{const_cast<char*>(static_cast<const char*>(from)) + offset, size};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size);
}

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;

std::vector<char> section_bytes(const void* image, const Elf64_Shdr& section) {
  if (section.sh_size == 0 || section.sh_size > (1u << 20) || section.sh_offset > kMostBytes)
    return {};
  std::vector<char> bytes(section.sh_size);
  if (!read_bytes(image, section.sh_offset, bytes.data(), bytes.size())) bytes.clear();
  return bytes;
}

template <class T>
T number_at(const std::vector<char>& bytes, std::size_t at) {
  T value{};
  if (at + sizeof(T) <= bytes.size()) std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

/// Records: format, kind, then a 16-bit value or the length of what follows.
KernelFacts parameters_in(const std::vector<char>& info) {
  constexpr unsigned char kSized = 4;
  constexpr unsigned char kParameter = 0x17;
  struct Parameter {
    std::uint32_t ordinal;
    std::uint32_t offset;
    std::uint32_t size;
  };
  std::vector<Parameter> found;
  for (std::size_t at = 0; at + 4 <= info.size();) {
    const auto format = number_at<unsigned char>(info, at);
    const auto kind = number_at<unsigned char>(info, at + 1);
    const std::size_t length = format == kSized ? number_at<std::uint16_t>(info, at + 2) : 0;
    if (kind == kParameter && length >= 12)
      found.push_back({number_at<std::uint16_t>(info, at + 8),
                       number_at<std::uint16_t>(info, at + 10),
                       number_at<std::uint32_t>(info, at + 12) >> 18});
    at += 4 + length;
  }
  std::sort(found.begin(), found.end(),
            [](const Parameter& a, const Parameter& b) { return a.ordinal < b.ordinal; });
  KernelFacts kernel;
  kernel.known = true;
  for (const Parameter& one : found) {
    kernel.offsets.push_back(one.offset);
    kernel.sizes.push_back(one.size);
  }
  return kernel;
}

}  // namespace

std::vector<KernelFacts> kernels_in_elf(const void* image) {
  static constexpr const char kPrefix[] = ".nv.info.";
  std::vector<KernelFacts> kernels;
  Elf64_Ehdr header{};
  if (!read_bytes(image, 0, &header, sizeof(header))) return kernels;
  if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shoff > kMostBytes) return kernels;
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  if (sections.empty() || header.e_shstrndx >= sections.size() ||
      !read_bytes(image, header.e_shoff, sections.data(), sections.size() * sizeof(Elf64_Shdr)))
    return kernels;
  std::vector<char> names = section_bytes(image, sections[header.e_shstrndx]);
  if (names.empty()) return kernels;
  names.back() = '\0';
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_name >= names.size()) continue;
    const std::string name = names.data() + section.sh_name;
    if (name.rfind(kPrefix, 0) != 0) continue;
    KernelFacts kernel = parameters_in(section_bytes(image, section));
    kernel.name = name.substr(sizeof(kPrefix) - 1);
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

}  // namespace granule::libcuda
