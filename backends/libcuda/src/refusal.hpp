// What a symbol answers that nothing implements. Apart from entry.hpp, for symbols.cpp.
#pragma once

namespace granule::libcuda {

/// CUDA_ERROR_NOT_SUPPORTED, and a line in the report.
int refuse(const char* symbol) noexcept;

}  // namespace granule::libcuda
