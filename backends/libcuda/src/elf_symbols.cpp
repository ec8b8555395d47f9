// Reading .symtab. Files are read once; one that is malformed has no symbols.
#include "elf_symbols.hpp"

#include <elf.h>
#include <link.h>

#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <vector>

namespace granule::libcuda {
namespace {

struct Function {
  std::uint64_t size = 0;
  std::string name;
};
using Functions = std::map<std::uint64_t, Function>;

template <class T>
bool read_at(std::ifstream& file, std::uint64_t offset, T* to, std::size_t count) {
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(to), static_cast<std::streamsize>(sizeof(T) * count));
  return file.good();
}

Functions read_functions(const std::string& path) {
  Functions functions;
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header{};
  if (!file || !read_at(file, 0, &header, 1)) return functions;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_shentsize != sizeof(Elf64_Shdr))
    return functions;
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  if (!read_at(file, header.e_shoff, sections.data(), sections.size())) return functions;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 28;
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections.size()) continue;
    const Elf64_Shdr& names = sections[section.sh_link];
    if (section.sh_size > kMost || names.sh_size > kMost || names.sh_size == 0) continue;
    std::vector<Elf64_Sym> symbols(section.sh_size / sizeof(Elf64_Sym));
    std::vector<char> text(names.sh_size);
    if (!read_at(file, section.sh_offset, symbols.data(), symbols.size())) continue;
    if (!read_at(file, names.sh_offset, text.data(), text.size())) continue;
    text.back() = '\0';
    for (const Elf64_Sym& symbol : symbols) {
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_value == 0) continue;
      if (symbol.st_name >= text.size()) continue;
      functions[symbol.st_value] = {symbol.st_size, text.data() + symbol.st_name};
    }
  }
  return functions;
}

}  // namespace

std::uint64_t address_in_file(const void* base, const void* address) {
  // A program that is not relocatable is numbered by its addresses in memory.
  const auto* header = static_cast<const Elf64_Ehdr*>(base);
  const auto at = reinterpret_cast<std::uint64_t>(address);
  if (header != nullptr && header->e_type == ET_EXEC) return at;
  return at - reinterpret_cast<std::uint64_t>(base);
}

std::string symbol_in_file(const std::string& path, std::uint64_t address) {
  static std::mutex mutex;
  static auto* const files = new std::map<std::string, Functions>;
  const std::lock_guard lock(mutex);
  const auto known = files->find(path);
  const Functions& functions = known != files->end()
                                   ? known->second
                                   : files->emplace(path, read_functions(path)).first->second;
  auto it = functions.upper_bound(address);
  if (it == functions.begin()) return {};
  --it;
  const bool covered = it->second.size == 0 || address - it->first < it->second.size;
  return covered ? it->second.name : std::string{};
}

}  // namespace granule::libcuda
