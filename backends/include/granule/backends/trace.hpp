// The text form of driver calls, one line a call, generated from the field descriptions:
//   cuMemCreate size=2097152 properties=device:0 flags=0 => CUDA_SUCCESS handle=0x3
// and the way back. TraceBackend hands each line to a sink as the call returns.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <granule/backend_api/backend.hpp>
#include <granule/backend_api/export.hpp>

namespace granule::trace {

/// A call with its answer.
struct Traced {
  Call call;
  DriverStatus status = DriverStatus::kSuccess;
};

/// Inputs only: "cuMemMap ptr=0x200000 size=2097152 offset=0 handle=0x1 flags=0".
GRANULE_EXPORT std::string to_text(const Call& call);
/// Inputs, " => ", the status and, if the call succeeded, its outputs. Host data is written as
/// pattern, host pointers as numbers.
GRANULE_EXPORT std::string to_text(const Call& call, DriverStatus status);

/// The call and status of a line that to_text wrote; the outputs of a failed call hold poison.
/// Without " => " the status is kSuccess and outputs have their defaults. Fields may be left out
/// (they keep their defaults) but not repeated or unknown. Nothing if the line is malformed.
GRANULE_EXPORT std::optional<Traced> from_text(std::string_view line);

/// Passes calls through and gives the line of each to `sink`, from the calling thread.
class GRANULE_EXPORT TraceBackend final : public Backend {
 public:
  using Sink = std::function<void(std::string_view line)>;
  /// `sink` must not throw and, if several threads make calls, must be thread-safe.
  TraceBackend(Backend& inner, Sink sink) : inner_(inner), sink_(std::move(sink)) {}

  DriverStatus execute(Call& call) noexcept override;

 private:
  Backend& inner_;
  Sink sink_;
};

}  // namespace granule::trace
