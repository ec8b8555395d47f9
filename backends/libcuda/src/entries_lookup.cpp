// Entry points: cuGetProcAddress, export tables, and refusals.
#include <cstring>
#include <string_view>
#include <unordered_map>

#include "entry.hpp"
#include "symbols.hpp"

namespace granule::libcuda {
namespace {

using ByName = std::unordered_multimap<std::string_view, const Symbol*>;
const ByName& by_name() {
  static const auto* const map = [] {
    auto* made = new ByName;
    const Symbols symbols = all_symbols();
    for (std::size_t i = 0; i < symbols.count; ++i)
      made->emplace(symbols.begin[i].name, &symbols.begin[i]);
    return made;
  }();
  return *map;
}

/// The newest form of a name that is not newer than `version`.
const Symbol* newest(std::string_view name, int version, bool per_thread, bool& any) {
  const Symbol* best = nullptr;
  const auto [first, last] = by_name().equal_range(name);
  for (auto it = first; it != last; ++it) {
    const Symbol* symbol = it->second;
    any = true;
    if (symbol->per_thread != per_thread || symbol->version > version) continue;
    if (best == nullptr || symbol->version > best->version) best = symbol;
  }
  return best;
}

/// What the real driver hands out, for names that are not watched.
bool ask_real(const char* name, void** out, int version, std::uint64_t flags, int* why,
              abi::Result& result) {
  static const auto real =
      reinterpret_cast<abi::GetProcAddressV2>(real_symbol("cuGetProcAddress_v2"));
  if (real == nullptr) return false;
  result = real(name, out, version, flags, why);
  return true;
}

abi::Result look_up(const char* name, void** out, int version, std::uint64_t flags, int* why) {
  if (name == nullptr || out == nullptr || flags > 2) return kBadValue;
  bool any = false;
  const Symbol* found = nullptr;
  if (flags == abi::kProcAddressPerThreadStream) found = newest(name, version, true, any);
  if (found == nullptr) found = newest(name, version, false, any);
  if (Session::get().options().watch && (found == nullptr || !is_watched(found->symbol))) {
    abi::Result result = kOk;
    int ignored = 0;
    if (ask_real(name, out, version, flags, why != nullptr ? why : &ignored, result)) return result;
  }
  *out = found != nullptr ? found->exported : nullptr;
  const int result = found != nullptr ? abi::kProcAddressFound
                     : any            ? abi::kProcAddressVersionNotSufficient
                                      : abi::kProcAddressNotFound;
  if (why != nullptr) {
    *why = result;
    return kOk;
  }
  return found != nullptr ? kOk : static_cast<int>(DriverStatus::kNotFound);
}

}  // namespace

GRANULE_ENTRY(cuGetProcAddress)
(const char* name, void** out, int version, std::uint64_t flags) {
  return look_up(name, out, version, flags, nullptr);
}
GRANULE_ENTRY(cuGetProcAddress_v2)
(const char* name, void** out, int version, std::uint64_t flags, int* why) {
  int ignored = 0;
  return look_up(name, out, version, flags, why != nullptr ? why : &ignored);
}

GRANULE_ENTRY(cuGetExportTable)(const void** table, const void* id) {
  if (table == nullptr || id == nullptr) return kBadValue;
  *table = nullptr;
  Session::get().note_unsupported(
      "cuGetExportTable: undocumented, asked for by the CUDA runtime library, which cannot start "
      "on "
      "a simulated driver");
  return static_cast<int>(DriverStatus::kNotFound);
}

}  // namespace granule::libcuda
