// What a followed device is, taken from the driver once and handed to every process of a run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <granule/backends/cuda.hpp>
#include <granule/backends/cuda_info.hpp>
#include <granule/model/config.hpp>

namespace granule::gpu {

/// The devices as the model needs them, and the names for reports.
struct Profile {
  model::Config config;  // memory: what is free
  std::string driver;    // "580.159.03", or the version number
  std::string gpu;       // name of device 0
  std::string kernel;
  std::string mig;
  std::string unfit;  // why the machine cannot be used; empty: it can
};

/// Asks driver and management library. Makes a primary context on each device for a moment.
Profile profile_of(cuda::CudaBackend& backend);
/// Sets `memory` of each device to what is free now; the primary contexts must be retained.
void measure_free(Backend& backend, model::Config& config);
/// The most and least of cuMemGetInfo over `samples` readings: bytes of idle noise.
std::uint64_t idle_noise(Backend& backend, unsigned samples);

}  // namespace granule::gpu
