// The cell of coverage that a statement reached.
#pragma once

#include <algorithm>

#include <granule/prop/cells.hpp>

#include "world.hpp"

namespace granule::prop {

inline std::uint32_t outcome_of(const Reply& reply) {
  const auto named = [](std::string_view text, std::size_t fallback) {
    for (std::size_t i = 0; i < kOutcomeNames.size(); ++i)
      if (kOutcomeNames[i] == text) return static_cast<std::uint32_t>(i);
    return static_cast<std::uint32_t>(fallback);
  };
  switch (reply.kind) {
    case Reply::Kind::kOk:
      return 0;
    case Reply::Kind::kWord:
      return named(reply.word, 4);
    case Reply::Kind::kValues:
      return 5;
    case Reply::Kind::kDriverError:
      return 6;
    case Reply::Kind::kWouldBlock:
      return 7;
    case Reply::Kind::kSkipped:
      return 8;
    case Reply::Kind::kError: {
      if (reply.word == "driver") return named("error driver", 22);
      if (reply.word != "out_of_memory") return named(reply.word, 22);
      for (std::size_t i = 10; i < 15; ++i)
        if (kOutcomeNames[i].substr(14) == reply.detail) return static_cast<std::uint32_t>(i);
      return 10;
    }
    default:
      return 9;
  }
}

/// The state is the one that the last statement of the allocator left, but for held streams,
/// captures and faults.
inline std::uint32_t cell_of(const World& world, Verb verb, const Reply& reply) {
  std::uint32_t open = 0;
  bool suspended = false;
  for (const Visible& buffer : world.visible) {
    open += buffer.closed ? 0 : 1;
    suspended = suspended || buffer.suspended;
  }
  const std::uint32_t state = std::min<std::uint32_t>(open, 3) | (world.held.empty() ? 0u : 4u) |
                              (world.capturing_lanes.empty() ? 0u : 8u) |
                              (world.any_fault ? 16u : 0u) | (suspended ? 32u : 0u);
  return pack_cell(verb, outcome_of(reply), state);
}

}  // namespace granule::prop
