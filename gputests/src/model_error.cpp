// What each planted error does.
#include "model_error.hpp"

namespace granule::gpu {
namespace {

constexpr std::uint64_t kGranule = std::uint64_t{2} << 20;

bool unmaps_a_hole(const model::DriverState& state, const MemUnmap& call) {
  if (call.size == 0 || call.size % kGranule != 0) return false;
  std::uint64_t mapped = 0;
  for (const auto& mapping : state.mappings_in(call.ptr.value, call.size)) mapped += mapping.size;
  return mapped < call.size;
}

}  // namespace

const std::vector<std::string>& ModelError::names() {
  static const std::vector<std::string> names{"unmap-refuses-holes", "access-of-all-mappings",
                                              "create-costs-more", "release-keeps-value"};
  return names;
}

DriverStatus ModelError::step(model::DriverState& state, model::ThreadId thread, Call& call) const {
  if (name_ == "unmap-refuses-holes") {
    const auto* unmap = std::get_if<MemUnmap>(&call);
    if (unmap != nullptr && unmaps_a_hole(state, *unmap)) return DriverStatus::kInvalidValue;
  }
  const DriverStatus status = model::step(state, thread, call);
  if (name_.empty() || status != DriverStatus::kSuccess) return status;
  if (name_ == "access-of-all-mappings") {
    if (auto* access = std::get_if<MemGetAccess>(&call))
      if (access->access == Access::kRead) access->access = Access::kReadWrite;
  } else if (name_ == "create-costs-more") {
    if (auto* info = std::get_if<MemGetInfo>(&call))
      info->free -= kGranule * state.ledger().allocations;
  } else if (name_ == "release-keeps-value") {
    if (const auto* release = std::get_if<MemRelease>(&call)) {
      Call again = *release;
      if (model::step(state, thread, again) == DriverStatus::kSuccess)
        return DriverStatus::kInvalidValue;
    }
  }
  return status;
}

std::uint64_t ModelError::free_bytes(const model::DriverState& state, std::int32_t device) const {
  const std::uint64_t right = state.free_bytes(device);
  return name_ == "create-costs-more" ? right - kGranule * state.ledger().allocations : right;
}

}  // namespace granule::gpu
