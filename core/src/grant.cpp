// grant: a further device gets access to every chunk there is and to those to come (I10).
#include "resource_core.hpp"

namespace granule::detail {
namespace {

Access access_of(const AccessEntries& entries, const Location& location) {
  for (const AccessEntry& entry : entries)
    if (entry.location == location) return entry.access;
  return Access::kNone;
}

bool widens(Access from, Access to) {
  return static_cast<std::uint32_t>(to) > static_cast<std::uint32_t>(from);
}

// The list with the entry added or widened; false if it is full.
bool widen(AccessEntries& entries, const AccessEntry& granted) {
  for (std::uint32_t i = 0; i < entries.count; ++i)
    if (entries.entries[i].location == granted.location) {
      if (widens(entries.entries[i].access, granted.access))
        entries.entries[i].access = granted.access;
      return true;
    }
  return entries.push(granted);
}

Error no_room() {
  return make_error(ErrorCode::kInvalidArgument, "at most 16 places can have access to a chunk");
}

}  // namespace

bool add_granted(AccessEntries& entries, const AccessEntries& now, const AccessEntries& asked) {
  for (const AccessEntry& entry : now)
    if (widens(access_of(asked, entry.location), entry.access) && !widen(entries, entry))
      return false;
  return true;
}

// The next mapping that this grant has not reached, pinned and marked; null if there is none.
Mapping* ResourceCore::next_to_grant(const AccessEntry& granted) {
  for (Reservation& reservation : reservations_)
    for (Mapping& mapping : reservation.mappings) {
      if (mapping.state != MappingState::kMapped || mapping.refs == 0 || mapping.mark == grant_)
        continue;
      mapping.mark = grant_;
      if (!widens(access_of(mapping.chunk->access->entries, granted.location), granted.access))
        continue;
      ++mapping.refs;
      return &mapping;
    }
  return nullptr;
}

// Takes back what a failed grant gave, mapping by mapping. A failure is reported.
void ResourceCore::revoke(const AccessEntry& granted, ChainRef* reached,
                          std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    AccessEntries before;
    {
      const Lock lock(mutex_);
      before.push(
          {granted.location, access_of(reached[i]->chunk->access->entries, granted.location)});
    }
    MemSetAccess call{DevicePtr{reached[i]->base}, reached[i]->size, before};
    const DriverStatus status = driver_.vmm(call);
    if (status != DriverStatus::kSuccess)
      report(FailureKind::kUndoFailed,
             driver_error(status, kind_of<MemSetAccess>, reached[i]->base), reached[i]->base,
             reached[i]->size);
  }
}

// With mutex_ held: every list of the resource that does not give this access yet is replaced by
// a wider one. The lists were all made beforehand.
Status ResourceCore::widen_lists(const AccessEntry& granted) {
  for (AccessList& list : access_lists_) {
    AccessEntries wider = list.entries;
    if (!widen(wider, granted)) return no_room();
  }
  for (AccessList& list : access_lists_) widen(list.entries, granted);
  return {};
}

// Access that the device has already is about to change. What its work may still use of ranges that
// nobody owns any more is ours to see to: pending ranges are waited for, idle ones given back.
Status ResourceCore::quiesce() {
  if (Status evicted = evict_to(0); !evicted) return evicted;
  for (bool more = true; more;) {
    Result<bool> waited = wait_oldest();
    if (!waited) return waited.error();
    more = *waited;
  }
  const Lock lock(mutex_);
  if (pending_.empty()) return {};
  return make_error(ErrorCode::kCapturing,
                    "ranges that wait for a capture to end are still mapped");
}

Status ResourceCore::grant(DeviceId device, Access access) {
  VmmOptions wanted = options_;
  wanted.peers = {device};
  wanted.peer_access = access;
  const AccessEntry granted{device_location(device), access};
  if (granted.location != options_.location) {
    const Violations wrong = validate(wanted, caps_);
    if (!wrong.empty()) return wrong.errors[0];
  }
  std::size_t room = 0;
  bool changes = false;
  {
    const Lock lock(mutex_);
    for (const AccessList& list : access_lists_) {
      const Access now = access_of(list.entries, granted.location);
      changes = changes || (now != Access::kNone && widens(now, access));
    }
  }
  if (changes)
    if (Status quiet = quiesce(); !quiet) return quiet;
  {
    Lock lock(mutex_);
    while (granting_) changed_.wait(mutex_);
    for (AccessList& list : access_lists_) {
      AccessEntries wider = list.entries;
      if (!widen(wider, granted)) return no_room();
    }
    granting_ = true;
    ++grant_;
    for (Reservation& reservation : reservations_)
      for ([[maybe_unused]] Mapping& mapping : reservation.mappings) ++room;
  }
  Status done = grant_all(granted, room);
  const Lock lock(mutex_);
  granting_ = false;
  changed_.notify_all();
  return done;
}

// `room` mappings there were at the start; what other threads add meanwhile needs a second array.
Status ResourceCore::grant_all(const AccessEntry& granted, std::size_t room) {
  const std::size_t bytes = (room + kGrantSpare) * sizeof(ChainRef);
  HostMemory& memory = driver_.runtime().host_memory();
  auto* const reached = static_cast<ChainRef*>(memory.allocate(bytes, alignof(ChainRef)));
  if (!reached) return host_memory_error(bytes);
  std::size_t count = 0;
  Status done;
  for (;;) {
    Mapping* next = nullptr;
    {
      const Lock lock(mutex_);
      next = next_to_grant(granted);
      if (!next) {
        done = widen_lists(granted);
        break;
      }
    }
    if (count == room + kGrantSpare) {
      drop_chain(next);
      done = make_error(ErrorCode::kOutOfMemory, "too many chunks were added during the grant");
      break;
    }
    ::new (reached + count) ChainRef(*this, next);
    AccessEntries entries;
    entries.push(granted);
    MemSetAccess call{DevicePtr{next->base}, next->size, entries};
    const DriverStatus status = driver_.vmm(call);
    ++count;
    if (status != DriverStatus::kSuccess) {
      done = driver_error(status, kind_of<MemSetAccess>, next->base);
      break;
    }
  }
  if (!done.ok()) revoke(granted, reached, count);
  for (std::size_t i = 0; i < count; ++i) reached[i].~ChainRef();
  memory.deallocate(reached, bytes, alignof(ChainRef));
  return done;
}

}  // namespace granule::detail
