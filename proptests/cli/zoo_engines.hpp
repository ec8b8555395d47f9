// The engines that look for planted defects: generated programs, evenly or in swarms, sweeps with
// faults, and every short program.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <granule/prop/program.hpp>
#include <granule/prop/run.hpp>
#include <granule/prop/zoo.hpp>

namespace granule::cli {

enum class Engine : std::uint8_t {
  kSwarm,      // the campaign of `granule check`
  kFocused,    // a campaign of what the defect needs and the plain things
  kRandom,     // the same with all features in every program, evenly
  kSweep,      // short generated programs, with every single fault
  kEnumerate,  // the palette of `granule enumerate`, up to three operations, with every fault
};
inline constexpr Engine kEngines[] = {Engine::kSwarm, Engine::kFocused, Engine::kRandom,
                                      Engine::kSweep, Engine::kEnumerate};
std::string_view name_of(Engine engine);

struct EngineLimits {
  std::uint64_t seed = 1;
  std::chrono::milliseconds time = std::chrono::seconds(10);
  std::uint32_t jobs = 1;
};

/// A program that fails with the defect and is clean without it.
struct ZooFind {
  bool found = false;
  Engine engine = Engine::kSwarm;
  double seconds = 0;
  std::uint64_t programs = 0;  // runs, with or without a fault
  prop::Program program;
  prop::RunOptions run;  // with the defect
};

ZooFind look_for(const prop::Specimen& specimen, Engine engine, const EngineLimits& limits);

}  // namespace granule::cli
