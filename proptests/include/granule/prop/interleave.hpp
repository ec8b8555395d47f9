// Interleavings of host threads: all of them up to a bound, and one that fails.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <granule/prop/program.hpp>
#include <granule/prop/run.hpp>

namespace granule::prop {

struct ExploreOptions {
  /// Pre-emptions in one interleaving: points at which a thread that could go on gives way.
  std::uint32_t preemptions = 2;
  /// Runs at most.
  std::uint64_t max_runs = 100'000;
};

struct ExploreResult {
  std::uint64_t runs = 0;  // each another interleaving
  /// Every interleaving within the bound was run (up to the first that failed).
  bool complete = false;
  /// The first run that failed; nothing: none did.
  std::optional<RunReport> failed;
  std::vector<std::uint16_t> told;  // what it took, for Interleave::kTold
};

/// Runs a program under every interleaving of its threads within the bound, depth first, until one
/// fails. Deterministic. For short programs: the number grows with the points of the seam that are
/// passed to the power of the pre-emptions.
ExploreResult explore(const Program& program, RunOptions options,
                      const ExploreOptions& bounds = {});

/// True if where threads change depends on `thread_seed` more than by whole statements.
bool is_interleaved(const Program& program, const RunOptions& options);

/// The first seed, from the options' own on, under which the program fails with that signature
/// (empty: with any), among `tries`. Nothing if there is none.
std::optional<std::uint64_t> failing_seed(const Program& program, RunOptions options,
                                          const std::string& signature, std::uint32_t tries);

}  // namespace granule::prop
