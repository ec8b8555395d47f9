// Cells of coverage: operation x outcome x abstract state, packed into one number each.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <granule/prop/verbs.hpp>

namespace granule::prop {

/// Outcomes as coverage tells them apart. Those from kFirstError on are errors of the library.
inline constexpr std::array<std::string_view, 23> kOutcomeNames{"ok",
                                                                "alias",
                                                                "kept",
                                                                "moved",
                                                                "word",
                                                                "value",
                                                                "driver",
                                                                "would_block",
                                                                "skipped",
                                                                "other",
                                                                "out_of_memory:device",
                                                                "out_of_memory:addresses",
                                                                "out_of_memory:budget",
                                                                "out_of_memory:pending",
                                                                "out_of_memory:host",
                                                                "invalid_argument",
                                                                "overflow",
                                                                "unsupported",
                                                                "closed",
                                                                "wrong_resource",
                                                                "suspended",
                                                                "capturing",
                                                                "error driver"};

/// State: 2 bits of open buffers (3: three or more), then one bit each for a held stream, a
/// capture, an armed fault, a suspended buffer.
constexpr std::uint32_t pack_cell(Verb verb, std::uint32_t outcome, std::uint32_t state) {
  return static_cast<std::uint32_t>(verb) << 11 | (outcome & 31) << 6 | (state & 63);
}

}  // namespace granule::prop
