// Errors planted into the model that follows a device: whoever compares must find each of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <granule/backend_api/call.hpp>
#include <granule/model/model.hpp>

namespace granule::gpu {

/// A model that is wrong in one respect; with no name it is right.
class ModelError {
 public:
  /// Names of errors that can be planted.
  static const std::vector<std::string>& names();

  ModelError() = default;
  /// `name` is one of names(), or empty.
  explicit ModelError(std::string name) : name_(std::move(name)) {}

  /// As model::step, with the error.
  DriverStatus step(model::DriverState& state, model::ThreadId thread, Call& call) const;
  /// The free memory of a device, with the error.
  std::uint64_t free_bytes(const model::DriverState& state, std::int32_t device) const;

 private:
  std::string name_;
};

}  // namespace granule::gpu
