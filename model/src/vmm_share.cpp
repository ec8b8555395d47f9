// Export to file descriptors, import, and closing them.
#include "calls.hpp"
#include "vmm.hpp"

namespace granule::model {

DriverStatus run_call(State& state, ThreadId, MemExportToShareableHandle& call) {
  if (call.flags != 0) return DriverStatus::kInvalidValue;
  if (call.handle.value == 0) return DriverStatus::kInvalidValue;
  const auto slot = slot_of(state, call.handle);
  if (!slot || !state.handles[*slot].live()) {
    violate(state, ViolationKind::kForeignFree,
            "export of handle " + hex(call.handle.value) + ", which is not alive");
    return DriverStatus::kUndefined;
  }
  const HandleSlot& value = state.handles[*slot];
  const auto asked = static_cast<std::uint32_t>(call.type);
  const auto offered = static_cast<std::uint32_t>(value.properties.handle_types);
  const bool single = call.type == HandleType::kPosixFd || call.type == HandleType::kFabric;
  if (!single || (asked & offered) == 0) return DriverStatus::kInvalidValue;
  std::int32_t number = 3;  // the lowest free one, as the kernel does
  for (const auto& [taken, open] : state.descriptors) {
    if (taken != number) break;
    ++number;
  }
  state.descriptors[number] = {value.allocation, call.type};
  state.allocations[value.allocation].descriptors += 1;
  state.ledger.descriptors += 1;
  call.descriptor = Descriptor{number};
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId, MemImportFromShareableHandle& call) {
  if (call.type != HandleType::kPosixFd && call.type != HandleType::kFabric) {
    return DriverStatus::kInvalidValue;
  }
  const auto it = state.descriptors.find(call.descriptor.value);
  if (it == state.descriptors.end() || it->second.type != call.type) {
    return DriverStatus::kUnknown;
  }
  const std::uint32_t slot = new_handle(state, it->second.allocation);
  HandleSlot& value = state.handles[slot];
  value.imported = true;
  value.properties.handle_types = HandleType::kNone;
  call.handle = value_of(state, slot);
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId, CloseDescriptor& call) {
  const auto it = state.descriptors.find(call.descriptor.value);
  if (it == state.descriptors.end()) {
    violate(state, ViolationKind::kDoubleRelease,
            "close of descriptor " + std::to_string(call.descriptor.value) + ", not open");
    return DriverStatus::kInvalidValue;
  }
  const std::uint32_t allocation = it->second.allocation;
  state.descriptors.erase(it);
  state.ledger.descriptors -= 1;
  state.allocations[allocation].descriptors -= 1;
  release_allocation_if_unused(state, allocation);
  return DriverStatus::kSuccess;
}

}  // namespace granule::model
