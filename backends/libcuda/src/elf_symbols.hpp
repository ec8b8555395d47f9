// Names of functions that a program does not export, from the symbol table of its file.
#pragma once

#include <cstdint>
#include <string>

namespace granule::libcuda {

/// `address` as the file of the module loaded at `base` numbers it.
std::uint64_t address_in_file(const void* base, const void* address);
/// The function that covers an address of a file; empty if it has no symbols.
std::string symbol_in_file(const std::string& path, std::uint64_t address);

}  // namespace granule::libcuda
