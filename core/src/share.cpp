// Export and import: one descriptor per chunk, imported into one contiguous range.
#include <granule/share.hpp>

#include <utility>

#include "extend.hpp"

namespace granule {

SharedBuffer::SharedBuffer(SharedBuffer&& other) noexcept
    : backend_(other.backend_), type_(other.type_), chunks_(std::exchange(other.chunks_, {})) {}

SharedBuffer& SharedBuffer::operator=(SharedBuffer&& other) noexcept {
  if (this == &other) return *this;
  close().ignore();  // as the destructor
  backend_ = other.backend_;
  type_ = other.type_;
  chunks_ = std::exchange(other.chunks_, {});
  return *this;
}

SharedBuffer::~SharedBuffer() { close().ignore(); }

Status SharedBuffer::close() {
  Status first;
  for (const Chunk& chunk : std::exchange(chunks_, {})) {
    CloseDescriptor call{chunk.descriptor};
    const DriverStatus status = backend_->run(call);
    if (status != DriverStatus::kSuccess && first.ok())
      first = detail::driver_error(status, kind_of<CloseDescriptor>);
  }
  return first;
}

namespace detail {

// In address order: a range is linked from its end. The caller is at work on the record.
Result<std::vector<Mapping*>> ResourceCore::mappings_of(const Record& record) {
  std::size_t count = 0;
  for (const Mapping* mapping = record.last; mapping; mapping = mapping->prev) ++count;
  try {
    std::vector<Mapping*> all(count);
    for (Mapping* mapping = record.last; mapping; mapping = mapping->prev) all[--count] = mapping;
    return all;
  } catch (const std::bad_alloc&) {
    return host_memory_error(count * sizeof(Mapping*));
  }
}

Result<std::vector<ChunkView>> ResourceCore::chunks(const Record& record) {
  const AtWork at_work(*this, record);
  const Result<std::vector<Mapping*>> mappings = mappings_of(record);
  if (!mappings) return mappings.error();
  try {
    std::vector<ChunkView> views;
    for (const Mapping* mapping : *mappings)
      views.push_back({DevicePtr{mapping->base}, mapping->size, mapping->chunk->handle});
    return views;
  } catch (const std::bad_alloc&) {
    return host_memory_error(mappings->size() * sizeof(ChunkView));
  }
}

Result<SharedBuffer> ResourceCore::export_record(const Record& record) {
  if (Status open = usable(record); !open) return open.error();
  const AtWork at_work(*this, record);
  if (options_.handle_type == HandleType::kNone)
    return make_error(ErrorCode::kUnsupported, "the resource was made without a handle type");
  SharedBuffer shared(driver_.backend(), options_.handle_type);
  const Result<std::vector<Mapping*>> mappings = mappings_of(record);
  if (!mappings) return mappings.error();
  try {
    shared.reserve(mappings->size());
  } catch (const std::bad_alloc&) {
    return host_memory_error(mappings->size() * sizeof(SharedBuffer::Chunk));
  }
  for (Mapping* mapping : *mappings) {
    if (mapping->chunk->imported)
      return make_error(ErrorCode::kUnsupported, "imported memory cannot be exported again");
    MemExportToShareableHandle call{mapping->chunk->handle, options_.handle_type, 0, {}};
    const DriverStatus status = driver_.vmm(call);
    if (status != DriverStatus::kSuccess)
      return driver_error(status, kind_of<MemExportToShareableHandle>, mapping->base);
    shared.add({call.descriptor, mapping->size, mapping->chunk->origin});
    const Lock lock(mutex_);
    mapping->chunk->exported = true;
  }
  return shared;
}

// With mutex_ held: a chunk of ours that holds this memory. Of memory that another process made
// nothing is known.
Chunk* ResourceCore::holder_of(std::uint64_t origin) {
  if (origin == 0) return nullptr;
  for (Reservation& reservation : reservations_)
    for (Mapping& mapping : reservation.mappings)
      if (mapping.chunk->origin == origin && mapping.chunk->handle) return mapping.chunk;
  return nullptr;
}

// Imports one descriptor and maps it on top of `below` in the reservation.
Result<ChainRef> ResourceCore::import_chunk(const SharedBuffer::Chunk& shared, HandleType type,
                                            Reservation& reservation, ChainRef below,
                                            std::uint64_t base) {
  Fresh<Chunk> chunk(driver_.runtime());
  Fresh<Mapping> fresh(driver_.runtime());
  if (!chunk || !fresh) return host_memory_error(sizeof(Chunk) + sizeof(Mapping));
  bool held = false;
  {
    const Lock lock(mutex_);
    held = holder_of(shared.origin) != nullptr;
  }
  if (!held)
    if (Status gate = charge(shared.size); !gate) return gate.error();
  MemImportFromShareableHandle call{shared.descriptor, type, {}};
  const DriverStatus status = driver_.vmm(call);
  if (status != DriverStatus::kSuccess) {
    if (!held) uncharge(shared.size);
    return driver_error(status, kind_of<MemImportFromShareableHandle>);
  }
  chunk->handle = call.handle;
  chunk->size = shared.size;
  chunk->origin = shared.origin;
  chunk->imported = true;
  chunk->charged = !held;
  chunk->refs = 1;
  fresh->reservation = &reservation;
  fresh->base = base;
  fresh->size = shared.size;
  fresh->used = fresh->end();
  fresh->refs = 1;
  ChainRef top;
  {
    const Lock lock(mutex_);
    chunk->access = access_;
    ++access_->refs;
    if (held && !holder_of(shared.origin)) {  // it went meanwhile; this holds it now
      chunk->charged = true;
      charged_ += shared.size;
    } else if (!held && holder_of(shared.origin)) {  // it came meanwhile, and was charged
      chunk->charged = false;
      charged_ -= shared.size;
    }
    fresh->chunk = chunk.release();
    claim(*fresh.get());  // cannot fail: the reservation is new and ours alone
    fresh->prev = below.release();
    top = ChainRef(*this, fresh.release());
  }
  if (Status mapped = map_chunk(*top.get()); !mapped) return mapped.error();
  return top;
}

Result<Buffer> ResourceCore::import_shared(const Stream& stream, const SharedBuffer& shared) {
  std::uint64_t total = 0;
  for (const SharedBuffer::Chunk& chunk : shared.chunks()) {
    if (chunk.size == 0 || chunk.size % granularity_ != 0)
      return make_error(ErrorCode::kInvalidArgument, "a chunk's size must be whole granules");
    const auto sum = checked_add(total, chunk.size);
    if (!sum) return make_error(ErrorCode::kOverflow, "the chunks' sizes add up past 64 bits");
    total = *sum;
  }
  if (shared.type() != options_.handle_type && total != 0)
    return make_error(ErrorCode::kInvalidArgument, "the handle type differs from the resource's");
  Result<Record*> made = new_record(stream);
  if (!made) return made.error();
  RecordHold record(*this, *made);
  if (total == 0) return make_buffer(record.release());
  collect(UINT64_MAX, kReapsPerOperation);
  Result<ReservationRef> reservation = reserve(total, alignment_, 0);
  if (!reservation) return reservation.error();
  ChainRef top;
  std::uint64_t base = (*reservation)->base;
  for (const SharedBuffer::Chunk& chunk : shared.chunks()) {
    Result<ChainRef> next = import_chunk(chunk, shared.type(), **reservation, std::move(top), base);
    if (!next) return next.error();
    top = std::move(*next);
    base += chunk.size;
  }
  record->base = (*reservation)->base;
  record->size = total;
  record->last = top.release();
  return make_buffer(record.release());
}

}  // namespace detail
}  // namespace granule
