// The driver behind the entry points, as the rest of this library sees it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <granule/backend_api/backend.hpp>

#include "options.hpp"

namespace granule::libcuda {

/// Something that a call was found to do wrong.
struct Misuse {
  std::string kind;  // "double_release", "unmapped_use", ...
  std::string message;
};

/// A backend that judges its client. Thread-safe.
class Driver : public Backend {
 public:
  /// What the calling thread's last calls were found to do wrong.
  virtual std::vector<Misuse> take_misuse() = 0;
};

/// The model, or the real driver (compose.cpp). Null, with a reason, if there is none.
std::unique_ptr<Driver> make_driver(const Options& options, std::string& why);

}  // namespace granule::libcuda
