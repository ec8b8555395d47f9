// Physical memory: the budget gate (I14), cuMemCreate and cuMemRelease, access lists.
#include <atomic>

#include "resource_core.hpp"

namespace granule::detail {
namespace {

std::uint64_t next_origin() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

Error exhausted(Exhausted what, std::uint64_t wanted, std::uint64_t available,
                std::string_view detail) {
  Error error = make_error(ErrorCode::kOutOfMemory, detail);
  error.exhausted = what;
  error.wanted = wanted;
  error.available = available;
  return error;
}

}  // namespace

// A request that no release could ever satisfy is refused before any call: the driver would empty
// every pool of the process on its way to the same answer (S55).
Status ResourceCore::check_size(std::uint64_t size) const {
  const std::uint64_t total =
      properties_.location.type == LocationType::kDevice ? caps_.device.total_memory : 0;
  if (total != 0 && size > total)
    return exhausted(Exhausted::kDevice, size, total, "more than the device has in all");
  if (size > options_.limit)
    return exhausted(Exhausted::kBudget, size, options_.limit, "more than the resource's limit");
  // A million calls of each kind: minutes, for what a larger chunk does at once.
  constexpr int kMostChunksLog2 = 20;
  if (max_chunk_ <= size >> kMostChunksLog2)
    return make_error(ErrorCode::kInvalidArgument, "max_chunk would make a million chunks of it");
  return {};
}

Status ResourceCore::charge(std::uint64_t size) {
  const Lock lock(mutex_);
  const std::uint64_t room = options_.limit - charged_;
  if (size > room)
    return exhausted(Exhausted::kBudget, size, room, "the resource's limit is reached");
  charged_ += size;
  return {};
}

void ResourceCore::uncharge(std::uint64_t size) {
  const Lock lock(mutex_);
  charged_ -= size;
}

// Memory for a chunk that has none, behind the budget gate: the budget is charged before the driver
// call, so nothing can fail between the memory and its owner.
Status ResourceCore::acquire(Chunk& chunk) {
  if (Status gate = charge(chunk.size); !gate) return gate;
  MemCreate create;
  create.size = chunk.size;
  create.properties = properties_;
  create.properties.rdma = chunk.rdma ? 1 : 0;
  const DriverStatus status = driver_.vmm(create);
  if (status != DriverStatus::kSuccess) {
    uncharge(chunk.size);
    Error error = driver_error(status, kind_of<MemCreate>);
    error.wanted = chunk.size;
    return error;
  }
  const Lock lock(mutex_);
  chunk.handle = create.handle;
  chunk.origin = next_origin();  // whoever holds earlier memory of this chunk holds something else
  chunk.imported = false;
  chunk.exported = false;
  chunk.charged = true;
  return {};
}

void ResourceCore::drop_chunk(Chunk* chunk) noexcept {
  {
    const Lock lock(mutex_);
    if (--chunk->refs != 0) return;
  }
  DriverStatus status = DriverStatus::kSuccess;
  if (chunk->handle) {
    MemRelease release{chunk->handle};
    status = driver_.vmm(release);
  }
  {
    const Lock lock(mutex_);
    if (status == DriverStatus::kSuccess) {
      if (chunk->charged && chunk->handle) pass_on_charge(*chunk);
    } else {
      // Still held as far as anybody knows: it stays charged.
      ++leaked_handles_;
      if (chunk->charged) leaked_handle_bytes_ += chunk->size;
    }
    drop_access(chunk->access);
  }
  if (status != DriverStatus::kSuccess)
    report(FailureKind::kReleaseFailed,
           driver_error(status, kind_of<MemRelease>, chunk->handle.value), 0, chunk->size);
  unmake(driver_.runtime(), chunk);
}

// With mutex_ held, of a chunk that holds nothing any more: memory that is held through another one
// as well stays charged there.
void ResourceCore::pass_on_charge(const Chunk& chunk) {
  Chunk* const other = chunk.exported || chunk.imported ? holder_of(chunk.origin) : nullptr;
  if (other && !other->charged) {  // an import beside this drop has paid for itself
    other->charged = true;
  } else {
    charged_ -= chunk.size;
  }
}

// With mutex_ held. Lists are few (one for the resource, one for each distinct per-call option),
// so a walk finds an equal one.
AccessList* ResourceCore::intern(const AccessEntries& entries) {
  for (AccessList& list : access_lists_)
    if (list.entries == entries) {
      ++list.refs;
      return &list;
    }
  AccessList* list = make<AccessList>(driver_.runtime());
  if (!list) return nullptr;
  list->entries = entries;
  list->refs = 1;
  access_lists_.push_back(*list);
  return list;
}

// With mutex_ held.
void ResourceCore::drop_access(AccessList* list) {
  if (!list || --list->refs != 0) return;
  access_lists_.erase(access_lists_.iterator_to(*list));
  unmake(driver_.runtime(), list);
}

}  // namespace granule::detail
