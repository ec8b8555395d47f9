// The live sets behind the guard.
#include "guard.hpp"

namespace granule::cuda {

bool Guard::mapped(std::uint64_t handle) const {
  for (const auto& [base, mapping] : mappings_)
    if (mapping.handle == handle) return true;
  return false;
}

bool Guard::known(ObjectKind kind, std::uint64_t value, Care care) const {
  if (value == 0) return true;
  switch (kind) {
    case ObjectKind::kAllocation: {
      const auto found = allocations_.find(value);
      if (found == allocations_.end()) return false;
      if (found->second > 0 || care == Care::kAnswers) return true;
      return care == Care::kMapped && mapped(value);
    }
    case ObjectKind::kStream:
      return value <= kPerThreadStream.value || streams_.count(value) != 0;
    case ObjectKind::kEvent:
      return events_.count(value) != 0;
    case ObjectKind::kPool:
      return pools_.count(value) != 0;
    case ObjectKind::kContext:
      return contexts_.count(value) != 0;
    case ObjectKind::kGraph:
      return graphs_.count(value) != 0;
    default:
      return true;  // addresses and descriptors: the driver looks them up
  }
}

bool Guard::special(const CloseDescriptor& call) const {
  // close(2) would take any descriptor of the process, one that is not ours too.
  return call.descriptor.value < 0 ||
         descriptors_.count(static_cast<std::uint64_t>(call.descriptor.value)) != 0;
}

void Guard::made(ObjectKind kind, std::uint64_t value, std::uint64_t context) {
  if (value == 0 && kind != ObjectKind::kDescriptor) return;
  switch (kind) {
    case ObjectKind::kAllocation:
      ++allocations_[value];
      break;
    case ObjectKind::kStream:
      streams_[value] = context;
      break;
    case ObjectKind::kEvent:
      events_[value] = context;
      break;
    case ObjectKind::kPool:
      pools_.insert(value);
      break;
    case ObjectKind::kContext:
      contexts_.insert(value);
      break;
    case ObjectKind::kGraph:
      graphs_.insert(value);
      break;
    case ObjectKind::kDescriptor:
      descriptors_.insert(value);
      break;
    default:
      break;
  }
}

void Guard::dropped(ObjectKind kind, std::uint64_t value) {
  switch (kind) {
    case ObjectKind::kAllocation: {
      const auto found = allocations_.find(value);
      if (found != allocations_.end() && found->second > 0) --found->second;
      break;
    }
    case ObjectKind::kStream:
      streams_.erase(value);
      break;
    case ObjectKind::kEvent:
      events_.erase(value);
      break;
    case ObjectKind::kContext:
      contexts_.erase(value);
      break;
    case ObjectKind::kGraph:
      graphs_.erase(value);
      break;
    case ObjectKind::kDescriptor:
      descriptors_.erase(value);
      break;
    default:
      break;  // a destroyed pool is still answered
  }
}

void Guard::extra(const MemMap& call) {
  mappings_[call.ptr.value] = {call.size, call.handle.value};
}

void Guard::extra(const MemUnmap& call) {
  auto it = mappings_.lower_bound(call.ptr.value);
  while (it != mappings_.end() && it->first - call.ptr.value < call.size) it = mappings_.erase(it);
}

void Guard::context_gone(ContextHandle context) {
  const std::lock_guard lock(mutex_);
  const auto drop = [&](std::unordered_map<std::uint64_t, std::uint64_t>& objects) {
    for (auto it = objects.begin(); it != objects.end();)
      it = it->second == context.value ? objects.erase(it) : std::next(it);
  };
  drop(streams_);
  drop(events_);
}

}  // namespace granule::cuda
