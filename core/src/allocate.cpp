// allocate: a fresh range, or an empty buffer.
#include <algorithm>
#include <optional>

#include "context_scope.hpp"
#include "extend.hpp"

namespace granule::detail {

// With mutex_ held.
void ResourceCore::enlist_open(Record& record) {
  open_.push_back(record);
  if (options_.commit_ahead != 0) wake_worker();
}

// Of a record that is among the open ones.
Buffer ResourceCore::own(Record* record) {
  ref();
  return Buffer(this, record);
}

Buffer ResourceCore::make_buffer(Record* record) {
  {
    const Lock lock(mutex_);
    enlist_open(*record);
  }
  return own(record);
}

Result<Record*> ResourceCore::new_record(const Stream& stream) {
  Record* record = make<Record>(driver_.runtime());
  if (!record) return host_memory_error(sizeof(Record));
  record->primary.stream = stream;
  return record;
}

// The access list of a new chunk: the resource's, or one made from the options of this call.
// Counted; null with `error` set if there is no host memory.
AccessList* ResourceCore::access_for(const GrowOptions* call, Error* error) {
  const Lock lock(mutex_);
  if (!call || (!call->self_access && !call->peer_access && !call->peers)) {
    ++access_->refs;
    return access_;
  }
  VmmOptions merged = options_;
  if (call->self_access) merged.self_access = *call->self_access;
  if (call->peer_access) merged.peer_access = *call->peer_access;
  if (call->peers) merged.peers = *call->peers;
  AccessEntries entries = access_entries(merged);
  if (!add_granted(entries, access_->entries, access_entries(options_))) {
    *error =
        make_error(ErrorCode::kInvalidArgument, "at most 16 places can have access to a chunk");
    return nullptr;
  }
  AccessList* list = intern(entries);
  if (!list) *error = host_memory_error(sizeof(AccessList));
  return list;
}

// Zeroes, ordered on the stream.
Status ResourceCore::clear(const Stream& stream, std::uint64_t base, std::uint64_t size) {
  std::optional<ContextScope> scope;
  if (stream.kind() != StreamKind::kCreated) {
    if (Status kept = order_.keep_context(stream); !kept) return kept;
    scope.emplace(driver_, stream);
    if (!scope->status().ok()) return scope->status();
  }
  MemsetD8Async fill{DevicePtr{base}, 0, size, stream.handle()};
  const DriverStatus status = driver_.call(fill);
  if (status == DriverStatus::kSuccess) return {};
  return driver_error(status, kind_of<MemsetD8Async>, base);
}

// Can the device write to new memory?
Status ResourceCore::may_write(DeviceId device) {
  const Lock lock(mutex_);
  for (const AccessEntry& entry : access_->entries)
    if (entry.location == device_location(device) && entry.access == Access::kReadWrite) return {};
  return make_error(ErrorCode::kInvalidArgument,
                    "`zero` needs an access for the stream's device that can write");
}

Result<Buffer> ResourceCore::allocate(const Stream& stream, std::uint64_t size,
                                      const AllocateOptions& options) {
  if ((options.at.value & (std::max(alignment_, granularity_) - 1)) != 0)
    return make_error(ErrorCode::kInvalidArgument,
                      "`at` must be a multiple of the granularity and of the alignment");
  const auto rounded = checked_round_up(size, granularity_);
  const auto capacity =
      options.capacity > size ? checked_round_up(options.capacity, granularity_) : rounded;
  if (!capacity)  // which is the larger one
    return make_error(ErrorCode::kOverflow, "the size wraps when rounded up to whole granules");
  if (Status fits = check_size(*rounded); !fits) return fits.error();
  if (options.zero && *rounded != 0)
    if (Status may = may_write(stream.device()); !may) return may.error();
  if (*rounded != 0 && options.at) reap_on_the_way();
  if (*rounded != 0 && !options.at) {
    if (Record* idle = take_idle(stream, *rounded, *capacity)) {
      Buffer taken = own(idle);
      if (!options.zero) return taken;
      // Where the clear fails the range ends as any buffer does: idle again, if there is room.
      if (Status cleared = clear(stream, idle->base, idle->size); !cleared) return cleared.error();
      return taken;
    }
  }
  Result<Record*> made = new_record(stream);
  if (!made) return made.error();
  RecordHold record(*this, *made);
  if (*rounded == 0) return make_buffer(record.release());
  if (options.zero) {
    // A clear on a capturing stream would become a node of the graph and not run now.
    if (Status may = refuse_if_capturing(*record.get()); !may) return may.error();
  }
  Error error;
  AccessList* access = access_for(nullptr, &error);
  if (!access) return error;
  ExtendRequest request;
  request.least = *rounded;
  request.add = commit_target(0, *rounded);
  request.capacity = std::max(*capacity, request.add);
  request.hint = options.at.value;
  request.access = access;
  request.rdma = options_.rdma;
  const AccessHold hold(*this, access);
  Result<Extension> fresh = extend(request);
  if (!fresh) return fresh.error();
  record->has_history = options.zero;
  record->base = fresh->base;
  record->last = fresh->chain.release();
  show(*record.get(), *rounded);
  const Status cleared = options.zero ? clear(stream, record->base, *rounded) : Status();
  // A fill that was reported as failed may have been queued: the range ends as any buffer does.
  Buffer made_whole = make_buffer(record.release());
  if (!cleared.ok()) return cleared.error();
  return made_whole;
}

}  // namespace granule::detail
