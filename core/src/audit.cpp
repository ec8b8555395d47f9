// The library looking at itself: statistics, invariants, and views for pictures and ledgers.
#include <algorithm>
#include <limits>
#include <string>

#include "resource_core.hpp"

namespace granule::detail {

// With mutex_ held: the bytes of a range that this walk has not met yet. Memory that was imported
// although it is held already counts once, with the lowest of its chunks.
std::uint64_t ResourceCore::unmet_bytes(const Record& record) {
  std::uint64_t bytes = 0;
  for (const Mapping* mapping = record.last; mapping; mapping = mapping->prev) {
    Chunk* chunk = mapping->chunk;
    if (!chunk->handle) continue;
    // Of memory that another process made nothing more is known: each of its chunks counts.
    if (Chunk* const lowest =
            chunk->exported || chunk->imported ? holder_of(chunk->origin) : nullptr)
      chunk = lowest;
    if (chunk->mark == walk_) continue;
    chunk->mark = walk_;
    bytes += chunk->size;
  }
  return bytes;
}

Statistics ResourceCore::statistics() {
  const Lock lock(mutex_);
  Statistics sum;
  ++walk_;
  for (const Record& record : open_) {
    ++sum.buffers;
    sum.live += unmet_bytes(record);
  }
  for (const Record& record : pending_)
    (record.state == RecordState::kParked ? sum.parked : sum.retired) += committed(record);
  ++walk_;
  for (const Reservation& reservation : reservations_) {
    ++sum.reservations;
    sum.reserved += reservation.size;
    for (const Mapping& mapping : reservation.mappings) {
      const bool quarantined = mapping.state == MappingState::kQuarantined;
      if (quarantined) sum.quarantined += mapping.size;
      if (quarantined || mapping.state == MappingState::kMapped) {
        ++sum.mappings;
        sum.mapped += mapping.size;
      }
      if (mapping.chunk->handle && mapping.chunk->mark != walk_) {
        mapping.chunk->mark = walk_;
        ++sum.handles;
      }
    }
  }
  sum.charged = charged_;
  sum.cached = cached_;
  sum.leaked_handles = leaked_handles_;
  sum.leaked_handle_bytes = leaked_handle_bytes_;
  sum.leaked_reservations = leaked_reservations_;
  sum.worker_ranges = worker_ranges_;
  sum.worker_bytes = worker_bytes_;
  return sum;
}

void ResourceCore::for_each_mapping(
    const std::function<void(const VirtualMemoryResource::MappingView&)>& visit) {
  const Lock lock(mutex_);
  for (const Reservation& reservation : reservations_)
    for (const Mapping& mapping : reservation.mappings) {
      VirtualMemoryResource::MappingView view;
      view.base = DevicePtr{mapping.base};
      view.size = mapping.size;
      view.reservation = DevicePtr{reservation.base};
      view.reservation_size = reservation.size;
      view.handle = mapping.chunk->handle;
      view.access = &mapping.chunk->access->entries;
      view.quarantined = mapping.state == MappingState::kQuarantined;
      view.mapped = view.quarantined || mapping.state == MappingState::kMapped;
      visit(view);
    }
}

void ResourceCore::for_each_range(
    const std::function<void(const VirtualMemoryResource::RangeView&)>& visit) {
  using State = VirtualMemoryResource::RangeState;
  const Lock lock(mutex_);
  const auto show = [&](const Record& record, State state) {
    if (record.last)
      visit({DevicePtr{record.base}, record.size, committed(record), state, record.suspended});
  };
  for (const Record& record : open_) show(record, State::kOpen);
  for (const Record& record : pending_)
    show(record, record.state == RecordState::kParked ? State::kParked : State::kRetired);
  for (const Record& record : idle_) show(record, State::kIdle);
}

std::optional<BufferView> ResourceCore::buffer_at(std::uint64_t address) {
  const Lock lock(mutex_);
  const Record* found = nullptr;
  for (const Record& record : open_)
    if (AddressRange{record.base, record.size}.contains(address) &&
        (!found || record.size > found->size))
      found = &record;
  if (!found) return std::nullopt;
  const Mapping* mapping = found->last;
  while (mapping->base > address) mapping = mapping->prev;
  return BufferView{DevicePtr{found->base},
                    found->size,
                    {DevicePtr{mapping->base}, mapping->size, mapping->chunk->handle}};
}

namespace {

// One audit: counts recomputed from the links and compared with those kept.
class Audit {
 public:
  void expect(bool holds, std::string_view what, std::uint64_t where) {
    if (holds || !first_.empty()) return;
    first_ = std::string(what) + " at " + std::to_string(where);
  }
  std::string first() const { return first_; }

 private:
  std::string first_;
};

void count_links(const RecordList& records) {
  for (const Record& record : records)
    if (record.last) ++record.last->links;
}

void audit_record(const Record& record, std::uint64_t granularity, Audit& audit) {
  std::uint64_t end = record.base + committed(record);
  audit.expect(record.base + record.size <= end, "a buffer shows more than it has", record.base);
  for (const Mapping* mapping = record.last; mapping; mapping = mapping->prev) {
    audit.expect(mapping->end() == end, "a range has a gap", mapping->base);
    audit.expect(mapping->refs != 0, "I4: a range holds a mapping without a count", mapping->base);
    audit.expect(mapping->chunk->size == mapping->size, "a mapping differs from its chunk in size",
                 mapping->base);
    const bool suspended = mapping->state == MappingState::kSuspended;
    audit.expect(record.suspended || mapping->state == MappingState::kMapped,
                 "a buffer that is open is not mapped", mapping->base);
    audit.expect(!suspended || record.suspended, "a mapping is suspended, its buffer not",
                 mapping->base);
    end = mapping->base;
  }
  audit.expect(end == record.base, "a range does not begin at its buffer's address", record.base);
  audit.expect(record.size % granularity == 0, "I11: a size is no whole granule", record.base);
}

}  // namespace

// With mutex_ held: counts anew who refers to mappings, chunks and access lists.
void ResourceCore::count_all_links() {
  for (AccessList& list : access_lists_) list.links = &list == access_ ? 1 : 0;
  for (Reservation& reservation : reservations_)
    for (Mapping& mapping : reservation.mappings) {
      mapping.links = 0;
      mapping.chunk->links = 0;
    }
  for (Reservation& reservation : reservations_)
    for (Mapping& mapping : reservation.mappings) {
      if (mapping.prev) ++mapping.prev->links;
      if (++mapping.chunk->links == 1) ++mapping.chunk->access->links;
    }
  for (const RecordList* list : {&open_, &pending_, &idle_}) count_links(*list);
}

std::string ResourceCore::check_invariants() {
  const Lock lock(mutex_);
  Audit audit;
  std::uint64_t charged = leaked_handle_bytes_;
  std::uint64_t cached = 0;
  ++walk_;
  count_all_links();
  for (const RecordList* list : {&open_, &pending_, &idle_})
    for (const Record& record : *list) audit_record(record, granularity_, audit);
  for (const Record& record : idle_) cached += committed(record);
  for (const AccessList& list : access_lists_)
    audit.expect(list.refs == list.links, "I10: an access list's count is off", list.refs);
  for (const Reservation& reservation : reservations_) {
    std::uint64_t end = reservation.base;
    std::uint64_t count = 0;
    for (const Mapping& mapping : reservation.mappings) {
      ++count;
      audit.expect(mapping.base >= end && mapping.end() <= reservation.end(),
                   "I2: mappings overlap or leave their reservation", mapping.base);
      audit.expect(mapping.reservation == &reservation, "a mapping lies in another's reservation",
                   mapping.base);
      end = mapping.end();
      const bool quarantined = mapping.state == MappingState::kQuarantined;
      audit.expect(mapping.refs == mapping.links || quarantined, "I4: a mapping's count is off",
                   mapping.base);
      Chunk* const chunk = mapping.chunk;
      if (chunk->mark == walk_) continue;
      chunk->mark = walk_;
      audit.expect(chunk->size % granularity_ == 0, "I11: a chunk is no whole granule",
                   mapping.base);
      audit.expect(chunk->refs == chunk->links, "I3: a chunk's count is off", mapping.base);
      if (chunk->charged && chunk->handle) charged += chunk->size;
    }
    audit.expect(reservation.refs == count, "I2: a reservation's count is off", reservation.base);
    audit.expect(count != 0, "I1: a reservation holds nothing and was not freed", reservation.base);
  }
  audit.expect(cached == cached_, "I15: the cache differs from the idle ranges", cached_);
  audit.expect(cached_ <= options_.cache, "the cache is above its bound", cached_);
  audit.expect(charged == charged_, "I14: the budget differs from the chunks held", charged_);
  return audit.first();
}

}  // namespace granule::detail
