// Names and descriptions of the driver's result codes.
#pragma once

namespace granule::libcuda {

/// "CUDA_ERROR_OUT_OF_MEMORY"; null for a number that is no code.
const char* error_name(int code) noexcept;
/// "out of memory"; null for a number that is no code.
const char* error_text(int code) noexcept;

}  // namespace granule::libcuda
