// Single steps of the naive resource and how each is undone by hand.
#include <algorithm>

#include "naive_core.hpp"

namespace granule::prop::zoo {

std::vector<std::uint64_t> NaiveCore::view(std::uint64_t base, std::uint64_t size) const {
  std::vector<std::uint64_t> found;
  for (auto it = mappings_.lower_bound(base); it != mappings_.end() && it->first < base + size;
       ++it)
    found.push_back(it->first);
  return found;
}

Status NaiveCore::charge(std::uint64_t size) {
  if (charged_ > options_.limit || size > options_.limit - charged_)
    return exhausted_error(Exhausted::kBudget, size);
  charged_ += size;
  return {};
}

Result<std::uint64_t> NaiveCore::reserve(std::uint64_t size, std::uint64_t alignment,
                                         std::uint64_t hint) {
  MemAddressReserve reserve;
  reserve.size = size;
  reserve.alignment = alignment;
  reserve.hint.value = hint;
  const DriverStatus status = driver_.vmm(reserve);
  if (status != DriverStatus::kSuccess)
    return driver_error(status, kind_of<MemAddressReserve>, 0, Exhausted::kAddresses);
  spaces_[reserve.ptr.value].size = size;
  return reserve.ptr.value;
}

AllocationProperties NaiveCore::properties_of(const ChunkRequest& request) const {
  constexpr std::uint32_t kManagedType = 2;
  AllocationProperties properties;
  if (options_.type == AllocationType::kManaged) properties.type = kManagedType;
  properties.location = options_.location;
  properties.handle_types = request.handle_type;
  properties.rdma = request.rdma ? 1 : 0;
  return properties;
}

Result<std::uint64_t> NaiveCore::create_chunk(const ChunkRequest& request) {
  const bool charged = !(request.from_grow && is(Mistake::kGrowthNotCharged));
  if (charged)
    if (Status gate = charge(request.size); !gate) return gate.error();
  MemCreate create;
  create.size = request.size;
  create.properties = properties_of(request);
  const DriverStatus status = driver_.vmm(create);
  if (status != DriverStatus::kSuccess) {
    if (charged && !is(Mistake::kBudgetNotReturned)) charged_ -= request.size;
    return driver_error(status, kind_of<MemCreate>);
  }
  NaiveChunk chunk;
  chunk.handle = create.handle;
  chunk.size = request.size;
  chunk.access = request.access;
  chunk.handle_type = request.handle_type;
  chunk.rdma = request.rdma;
  chunk.charged = charged;
  chunk.from_grow = request.from_grow;
  chunks_[next_chunk_] = chunk;
  return next_chunk_++;
}

Status NaiveCore::set_access(std::uint64_t base, std::uint64_t size, const AccessEntries& access) {
  if (access.count == 0 && !is(Mistake::kEmptyAccessListSent)) return {};
  MemSetAccess call{DevicePtr{base}, size, access};
  const DriverStatus status = driver_.vmm(call);
  if (status == DriverStatus::kSuccess) return {};
  return driver_error(status, kind_of<MemSetAccess>, base);
}

// On success the mapping is in the tables, held once.
Status NaiveCore::map(std::uint64_t base, std::uint64_t number, std::uint64_t space,
                      bool with_access) {
  NaiveChunk& chunk = chunks_[number];
  MemMap call;
  call.ptr.value = base;
  call.size = chunk.size;
  call.handle = chunk.handle;
  const DriverStatus status = driver_.vmm(call);
  if (status != DriverStatus::kSuccess) {
    const Error error = driver_error(status, kind_of<MemMap>, base);
    if (!is(Mistake::kRollbackErrorWins)) return error;
    const DriverStatus undone = unmap(base, chunk.size);
    if (undone == DriverStatus::kSuccess) return error;
    return driver_error(undone, kind_of<MemUnmap>, base);
  }
  NaiveMapping mapping;
  mapping.size = chunk.size;
  mapping.chunk = number;
  mapping.space = space;
  mapping.holders = 1;
  mappings_[base] = mapping;
  ++chunk.uses;
  ++spaces_[space].mappings;
  const Status granted = with_access ? set_access(base, chunk.size, chunk.access) : Status();
  if (!granted.ok()) drop_mapping(base, chunk.size);
  return granted;
}

DriverStatus NaiveCore::unmap(std::uint64_t base, std::uint64_t size) {
  if (is(Mistake::kUnmapByGranule)) {
    DriverStatus first = DriverStatus::kSuccess;
    for (std::uint64_t at = 0; at < size && first == DriverStatus::kSuccess; at += granularity_) {
      MemUnmap call{DevicePtr{base + at}, granularity_};
      first = driver_.vmm(call);
    }
    return first;
  }
  MemUnmap call{DevicePtr{base}, size};
  return driver_.vmm(call);
}

// One holder less. `size` is what the holder believes to be mapped there.
void NaiveCore::drop_mapping(std::uint64_t base, std::uint64_t size) {
  const auto found = mappings_.find(base);
  if (found == mappings_.end()) return;
  NaiveMapping& mapping = found->second;
  if (mapping.holders == 0 || --mapping.holders > 0) return;
  const std::uint64_t space = mapping.space;
  const std::uint64_t number = mapping.chunk;
  const bool last_use = chunks_[number].uses == 1;
  AllocationHandle own;
  if (is(Mistake::kCreationReferenceKept) && mapping.mapped && last_use) {
    MemRetainAllocationHandle retain{DevicePtr{base}, {}};
    if (driver_.vmm(retain) == DriverStatus::kSuccess) own = retain.handle;
  }
  if (is(Mistake::kAddressesFirst) && spaces_[space].mappings == 1) {
    MemAddressFree free{DevicePtr{space}, spaces_[space].size};
    const DriverStatus status = driver_.vmm(free);
    if (status != DriverStatus::kSuccess) {
      report(FailureKind::kReleaseFailed, driver_error(status, kind_of<MemAddressFree>), space, 0);
      ++leaked_spaces_;
    }
    spaces_.erase(space);
  }
  if (mapping.mapped) {
    const DriverStatus status = unmap(base, size);
    if (status != DriverStatus::kSuccess) {
      report(FailureKind::kQuarantined, driver_error(status, kind_of<MemUnmap>, base), base, size);
      const bool swallowed = is(Mistake::kFailureSwallowed) && in_drop_;
      if (!is(Mistake::kFreedUnderFailedUnmap)) {
        mapping.quarantined = true;
        if (swallowed) forget_mapping(base);
        return;
      }
    }
  }
  mappings_.erase(found);
  leave_chunk(number);
  if (own) {  // the only reference that this code knows of
    MemRelease release{own};
    (void)driver_.vmm(release);
    charged_ -= chunks_[number].size;
    chunks_.erase(number);
  }
  leave_space(space);
}

// The resource loses sight of a mapping and of what was only held by it.
void NaiveCore::forget_mapping(std::uint64_t base) {
  const auto found = mappings_.find(base);
  if (found == mappings_.end()) return;
  const std::uint64_t number = found->second.chunk;
  const std::uint64_t space = found->second.space;
  mappings_.erase(found);
  if (auto chunk = chunks_.find(number); chunk != chunks_.end() && --chunk->second.uses == 0) {
    if (chunk->second.charged) charged_ -= chunk->second.size;
    chunks_.erase(chunk);
  }
  if (auto owner = spaces_.find(space); owner != spaces_.end() && --owner->second.mappings == 0)
    spaces_.erase(owner);
}

void NaiveCore::leave_chunk(std::uint64_t number) {
  const auto found = chunks_.find(number);
  if (found == chunks_.end()) return;
  if (found->second.uses > 0) --found->second.uses;
  if (!is(Mistake::kCreationReferenceKept)) release_chunk_if_unused(number);
}

void NaiveCore::release_chunk_if_unused(std::uint64_t number) {
  const auto found = chunks_.find(number);
  if (found == chunks_.end() || found->second.uses > 0) return;
  const NaiveChunk chunk = found->second;
  chunks_.erase(found);
  DriverStatus status = DriverStatus::kSuccess;
  if (chunk.handle && !(chunk.from_grow && is(Mistake::kGrowReferencesKept))) {
    MemRelease release{chunk.handle};
    status = driver_.vmm(release);
  }
  if (status == DriverStatus::kSuccess) {
    if (chunk.charged) charged_ -= chunk.size;
    return;
  }
  report(FailureKind::kReleaseFailed, driver_error(status, kind_of<MemRelease>), 0, chunk.size);
  if (is(Mistake::kFailureSwallowed) && in_drop_) {
    if (chunk.charged) charged_ -= chunk.size;
    return;
  }
  ++leaked_handles_;
  leaked_handle_bytes_ += chunk.size;
}

void NaiveCore::leave_space(std::uint64_t base) {
  const auto found = spaces_.find(base);
  if (found == spaces_.end()) return;
  if (found->second.mappings > 0) --found->second.mappings;
  free_space_if_unused(base);
}

void NaiveCore::free_space_if_unused(std::uint64_t base) {
  const auto found = spaces_.find(base);
  if (found == spaces_.end() || found->second.mappings > 0) return;
  const NaiveSpace space = found->second;
  spaces_.erase(found);
  if (space.freed) return;
  MemAddressFree free{DevicePtr{base}, space.size};
  if (is(Mistake::kCapacityFreedBySize) && space.first_size != 0) free.size = space.first_size;
  const bool again = space.moved_from && (is(Mistake::kOldRangeFreedTwice) ||
                                          (is(Mistake::kFinalizerFreesAgain) && in_drop_));
  const DriverStatus status = driver_.vmm(free);
  if (status != DriverStatus::kSuccess) {
    report(FailureKind::kReleaseFailed, driver_error(status, kind_of<MemAddressFree>, base), base,
           space.size);
    if (!(is(Mistake::kFailureSwallowed) && in_drop_)) ++leaked_spaces_;
  } else if (again) {
    const DriverStatus second = driver_.vmm(free);
    if (second != DriverStatus::kSuccess)
      report(FailureKind::kReleaseFailed, driver_error(second, kind_of<MemAddressFree>, base), base,
             space.size);
  }
}

void NaiveCore::drop_view(std::uint64_t base, std::uint64_t size) {
  std::vector<std::uint64_t> bases = view(base, size);
  std::reverse(bases.begin(), bases.end());
  for (const std::uint64_t at : bases) {
    std::uint64_t mapped = mappings_[at].size;
    if (is(Mistake::kSizeRecordedUnaligned)) mapped = std::min(mapped, base + size - at);
    drop_mapping(at, mapped);
  }
}

void NaiveCore::forget_view(std::uint64_t base, std::uint64_t size) {
  for (const std::uint64_t at : view(base, size))
    if (--mappings_[at].holders == 0) forget_mapping(at);
}

void NaiveCore::hold_view(std::uint64_t base, std::uint64_t size) {
  for (const std::uint64_t at : view(base, size)) ++mappings_[at].holders;
}

}  // namespace granule::prop::zoo
