// Addresses and mappings: reserve and free (I1, I2), map, unmap, quarantine (I13), chains.
#include "resource_core.hpp"

namespace granule::detail {

Result<ReservationRef> ResourceCore::reserve(std::uint64_t size, std::uint64_t alignment,
                                             std::uint64_t hint) {
  Fresh<Reservation> fresh(driver_.runtime());
  if (!fresh) return host_memory_error(sizeof(Reservation));
  MemAddressReserve call;
  call.size = size;
  call.alignment = alignment;
  call.hint = DevicePtr{hint};
  const DriverStatus status = driver_.vmm(call);
  if (status != DriverStatus::kSuccess) {
    Error error = driver_error(status, kind_of<MemAddressReserve>, 0, Exhausted::kAddresses);
    error.wanted = size;
    return error;
  }
  fresh->base = call.ptr.value;
  fresh->size = size;
  fresh->refs = 1;
  const Lock lock(mutex_);
  Reservation* reservation = fresh.release();
  reservations_.push_back(*reservation);
  return ReservationRef(*this, reservation);
}

void ResourceCore::drop_reservation(Reservation* reservation) noexcept {
  {
    const Lock lock(mutex_);
    if (--reservation->refs != 0) return;
  }
  MemAddressFree call{DevicePtr{reservation->base}, reservation->size};
  const DriverStatus status = driver_.vmm(call);
  {
    const Lock lock(mutex_);
    reservations_.erase(reservations_.iterator_to(*reservation));
    if (status != DriverStatus::kSuccess) ++leaked_reservations_;
  }
  if (status != DriverStatus::kSuccess)
    report(FailureKind::kReleaseFailed,
           driver_error(status, kind_of<MemAddressFree>, reservation->base), reservation->base,
           reservation->size);
  unmake(driver_.runtime(), reservation);
}

// With mutex_ held. Puts the mapping's addresses, which begin where another one of its reservation
// ends, or the reservation begins, under its name; false if they are taken.
bool ResourceCore::claim(Mapping& mapping) {
  Reservation& reservation = *mapping.reservation;
  const auto next = reservation.mappings.lower_bound(mapping.base);
  if (next != reservation.mappings.end() && next->base < mapping.end()) return false;
  reservation.mappings.insert(next, mapping);
  ++reservation.refs;
  return true;
}

// Nobody knows whether anything is mapped at the place: on success nothing is. INVALID_VALUE says
// of reserved addresses that nothing is there (driver contract, section 12); any other refusal to
// answer says nothing.
Status ResourceCore::clear_place(Mapping& mapping) {
  MemGetAccess query{properties_.location, DevicePtr{mapping.base}, Access::kNone};
  DriverStatus status = driver_.vmm(query);
  if (status == DriverStatus::kInvalidValue) return {};
  if (status != DriverStatus::kSuccess)
    return driver_error(status, kind_of<MemGetAccess>, mapping.base);
  status = unmap(mapping);
  if (status == DriverStatus::kSuccess) return {};
  return driver_error(status, kind_of<MemUnmap>, mapping.base);
}

// The driver said that it did not map. If it did all the same, nothing could ever be mapped there
// again; where that cannot be told, nobody is handed the place.
void ResourceCore::take_back_map(Mapping& mapping) noexcept {
  if (Status cleared = clear_place(mapping); !cleared) quarantine(mapping, cleared.error());
}

Status ResourceCore::map_once(Mapping& mapping, const AccessEntries& entries) {
  MemMap map;
  map.ptr = DevicePtr{mapping.base};
  map.size = mapping.size;
  map.handle = mapping.chunk->handle;
  DriverStatus status = driver_.vmm(map);
  if (status != DriverStatus::kSuccess) {
    const Error error = driver_error(status, kind_of<MemMap>, mapping.base);
    take_back_map(mapping);
    return error;
  }
  if (entries.count == 0) return {};  // the driver refuses an empty list
  MemSetAccess access{DevicePtr{mapping.base}, mapping.size, entries};
  status = driver_.vmm(access);
  if (status == DriverStatus::kSuccess) return {};
  const Error error = driver_error(status, kind_of<MemSetAccess>, mapping.base);
  unmap_or_quarantine(mapping);
  return error;
}

// Maps the chunk at the claimed place with the chunk's access. On failure the mapping is claimed
// as before, or quarantined, or mapped with too little access.
Status ResourceCore::map_chunk(Mapping& mapping) {
  AccessEntries entries;
  {
    const Lock lock(mutex_);
    entries = mapping.chunk->access->entries;
  }
  if (Status mapped = map_once(mapping, entries); !mapped) return mapped;
  for (;;) {
    {
      // A grant reaches what is mapped before it widens the lists: so either it sees this mapping,
      // or this sees the wider list.
      const Lock lock(mutex_);
      mapping.state = MappingState::kMapped;
      if (mapping.chunk->access->entries == entries) return {};
      entries = mapping.chunk->access->entries;
    }
    MemSetAccess access{DevicePtr{mapping.base}, mapping.size, entries};
    const DriverStatus status = driver_.vmm(access);
    if (status != DriverStatus::kSuccess)
      return driver_error(status, kind_of<MemSetAccess>, mapping.base);
  }
}

// Unmaps; afterwards the mapping is claimed. On failure it is as before.
DriverStatus ResourceCore::unmap(Mapping& mapping) noexcept {
  MemUnmap call{DevicePtr{mapping.base}, mapping.size};
  const DriverStatus status = driver_.vmm(call);
  if (status == DriverStatus::kSuccess) {
    const Lock lock(mutex_);
    mapping.state = MappingState::kClaimed;
  }
  return status;
}

// Mapping, addresses and memory stay ours for good: nothing is freed under a mapping that may still
// be there, and nobody is handed its place.
void ResourceCore::quarantine(Mapping& mapping, const Error& why) noexcept {
  {
    const Lock lock(mutex_);
    mapping.state = MappingState::kQuarantined;
  }
  report(FailureKind::kQuarantined, why, mapping.base, mapping.size);
}

void ResourceCore::unmap_or_quarantine(Mapping& mapping) noexcept {
  const DriverStatus status = unmap(mapping);
  if (status == DriverStatus::kSuccess) return;
  quarantine(mapping, driver_error(status, kind_of<MemUnmap>, mapping.base));
}

// Nobody refers to the mapping any more, but its addresses are still taken until it is erased.
void ResourceCore::destroy_mapping(Mapping* mapping) noexcept {
  if (mapping->state == MappingState::kMapped) unmap_or_quarantine(*mapping);
  Reservation* const reservation = mapping->reservation;
  {
    const Lock lock(mutex_);
    mapping->prev = nullptr;
    if (mapping->state == MappingState::kQuarantined) return;  // keeps chunk and reservation
    reservation->mappings.erase(reservation->mappings.iterator_to(*mapping));
  }
  drop_chunk(mapping->chunk);
  unmake(driver_.runtime(), mapping);
  drop_reservation(reservation);
}

void ResourceCore::drop_chain(Mapping* last) noexcept {
  while (last) {
    Mapping* below = nullptr;
    {
      const Lock lock(mutex_);
      if (--last->refs != 0) return;
      below = last->prev;
    }
    destroy_mapping(last);
    last = below;
  }
}

ChainRef ResourceCore::pin(Mapping* last) {
  if (!last) return {};
  const Lock lock(mutex_);
  ++last->refs;
  return ChainRef(*this, last);
}

}  // namespace granule::detail
