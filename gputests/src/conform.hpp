// Random driver-level programs: calls of the driver, legal, illegal and at the edge, for a device
// and a model to answer side by side.
#pragma once

#include <cstdint>
#include <string>

#include <granule/prop/program.hpp>

namespace granule::gpu {

struct ConformOptions {
  std::uint32_t calls = 400;  // statements of a program, about
  std::uint32_t devices = 1;
  bool pools = true;
  bool contents = true;  // fills, copies and reads
  bool captures = true;
};

/// Program `index` of campaign `seed`: a pure function of its arguments. Makes no call on which
/// the driver is known to crash, queues no work on memory that may go before it has run, and ends
/// as it began once everything is given back.
prop::Program conform_program(std::uint64_t seed, std::uint64_t index,
                              const ConformOptions& options = {});
/// Its text.
std::string conform_text(std::uint64_t seed, std::uint64_t index, const ConformOptions& options);

}  // namespace granule::gpu
