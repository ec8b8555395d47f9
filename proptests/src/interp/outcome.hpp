// What the answer of an allocator statement may be, given what was there before it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "world.hpp"

namespace granule::prop {

/// What was known before a statement ran.
struct Foreseen {
  bool relevant = false;         // a statement of the allocator
  std::uint64_t input_size = 0;  // grow, resize: bytes of the buffer
  std::uint64_t need = 0;        // bytes of physical memory to be added, in whole granules
  bool room_behind = false;      // grow, resize: its reservation has free room for them
  std::vector<StreamHandle> capturing;
  std::uint64_t faults_fired = 0;
  bool hindered = false;  // a fault fired since, be it in a statement that then would block
};

Foreseen foresee(World& world, const Statement& s);
/// The first thing about the answer that no correct allocator gives, or nothing.
std::optional<Failure> check_outcome(World& world, const Statement& s, const Reply& reply,
                                     const Foreseen& before);

}  // namespace granule::prop
