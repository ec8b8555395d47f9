// Differences as they are reported, and free memory held against the model's figure.
#include "follow.hpp"

#include <utility>

#include <granule/backends/trace.hpp>

namespace granule::gpu {
namespace {

std::string spelled(DriverStatus status) { return std::string(name_of(status)); }

/// The text of one output of a call.
std::string output_text(const Call& call, std::string_view field) {
  const std::string line = trace::to_text(call, DriverStatus::kSuccess);
  const std::string key = " " + std::string(field) + "=";
  const std::size_t at = line.find(key, line.find("=>"));
  if (at == std::string::npos) return "?";
  const std::size_t from = at + key.size();
  return line.substr(from, line.find(' ', from) - from);
}

}  // namespace

std::string to_text(const Divergence& d) {
  return d.call + "\n    the model " + (d.model.empty() ? d.model_says : d.model) +
         "\n    differs in " + d.field + ": the device says " + d.device_says + ", the model " +
         d.model_says;
}

void Follower::record(const Call& device, DriverStatus status, const Try& tried,
                      model::ThreadId thread) {
  Divergence found;
  found.number = calls_;
  found.origin = current_origin();
  found.field = tried.field;
  found.call = trace::to_text(device, status);
  found.model = trace::to_text(tried.call, tried.status);
  const std::string name(name_of(kind(device)));
  if (found.field == "status") {
    found.device_says = spelled(status);
    found.model_says = spelled(tried.status);
    found.signature = name + " status " + found.device_says + " " + found.model_says;
  } else if (found.field == "reserved") {
    found.device_says = std::to_string(*reserved_);
    found.model_says = std::to_string(oracle_reserved(thread));
    found.signature = name + " reserved";
  } else {
    found.device_says = output_text(device, found.field);
    found.model_says = output_text(tried.call, found.field);
    found.signature = name + " " + found.field;
  }
  report(found);
}

void Follower::report(const Divergence& divergence) {
  constexpr std::size_t kMost = 100;
  any_ = true;
  if (divergences_.size() < kMost) divergences_.push_back(divergence);
}

std::uint64_t Follower::wanted_free(std::int32_t device) {
  return error_.free_bytes(oracle_, device) +
         static_cast<std::uint64_t>(own_memory_.empty() ? 0 : own_memory_[device]);
}

bool Follower::agrees_on_free(std::int32_t device, std::uint64_t free) {
  const std::lock_guard lock(mutex_);
  return wanted_free(device) == free;
}

void Follower::compare_free(std::int32_t device, std::uint64_t free) {
  const std::lock_guard lock(mutex_);
  const bool other = other_calls_;
  const bool last = static_cast<std::size_t>(device) + 1 == oracle_.config().devices.size();
  if (last) other_calls_ = false;  // all devices have been asked
  const std::uint64_t wanted = wanted_free(device);
  if (wanted == free || any_) return;
  const auto moved = static_cast<std::int64_t>(free - wanted);
  if (own_memory_moves_ && other && moved < static_cast<std::int64_t>(kOwnMemorySlack) &&
      moved > -static_cast<std::int64_t>(kOwnMemorySlack)) {
    own_memory_[device] += moved;
    ++followed_;
    return;
  }
  Divergence found;
  found.number = calls_;
  found.field = "free memory";
  found.call = "cuMemGetInfo of device " + std::to_string(device);
  found.device_says = std::to_string(free);
  found.model_says = std::to_string(wanted);
  found.signature = "free memory";
  const auto less = static_cast<std::int64_t>(free - wanted);
  found.model =
      "expects " + std::to_string(wanted) + " bytes (difference " + std::to_string(less) + ")";
  report(found);
}

std::vector<Divergence> Follower::take_divergences() {
  const std::lock_guard lock(mutex_);
  return std::exchange(divergences_, {});
}

}  // namespace granule::gpu
