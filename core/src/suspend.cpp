// suspend and resume: the physical memory goes, the addresses stay. All or none over a set.
#include <optional>

#include "context_scope.hpp"
#include "extend.hpp"

namespace granule::detail {

/// An operation on all buffers of a set, for as long as it lives.
class ResourceCore::SetAtWork {
 public:
  SetAtWork(ResourceCore& core, std::span<Buffer* const> buffers) : core_(core), buffers_(buffers) {
    for (const Buffer* buffer : buffers_) core_.begin_work(*record_of(*buffer));
  }
  SetAtWork(const SetAtWork&) = delete;
  SetAtWork& operator=(const SetAtWork&) = delete;
  ~SetAtWork() {
    for (const Buffer* buffer : buffers_) core_.end_work(*record_of(*buffer));
  }

 private:
  ResourceCore& core_;
  std::span<Buffer* const> buffers_;
};

Record* ResourceCore::record_of(const Buffer& buffer) { return buffer.record_; }

// Closed, foreign, or shared: what a set may not hold.
Status ResourceCore::check_set(std::span<Buffer* const> buffers) const {
  for (const Buffer* buffer : buffers) {
    if (buffer->is_closed()) return make_error(ErrorCode::kClosed, "the buffer is closed");
    if (buffer->core_ != this)
      return make_error(ErrorCode::kWrongResource, "the buffer belongs to another resource");
  }
  return {};
}

// A chunk that somebody else maps through the same mapping cannot be taken away. Pending frees
// that share it are waited for.
Status ResourceCore::check_for_suspend(Record& record) {
  for (;;) {
    bool shared = false;
    {
      const Lock lock(mutex_);
      for_each_in_chain(record, [&](const Mapping& mapping) {
        if (mapping.refs != 1 || mapping.chunk->refs != 1) shared = true;
      });
    }
    if (!shared) return refuse_if_capturing(record);
    Result<bool> waited = wait_oldest();
    if (!waited) return waited.error();
    if (*waited) continue;
    Error error = make_error(ErrorCode::kInvalidArgument,
                             "another open buffer or holder shares a chunk of this one");
    error.object = record.base;
    return error;
  }
}

// Maps again what unmap_all unmapped of this record. A failure is reported, of the whole record
// (the mapping may be of memory ahead, that no caller knows), and leaves it suspended, so that a
// resume can bring it back.
void ResourceCore::remap(Record& record) noexcept {
  for_each_in_chain(record, [&](Mapping& mapping) {
    if (mapping.state != MappingState::kClaimed) return;
    const Status mapped = map_chunk(mapping);
    if (mapped.ok()) return;
    record.suspended = true;
    report(FailureKind::kUndoFailed, mapped.error(), record.base, record.size);
  });
}

// The driver refused to unmap, or said so although it did: then nobody has access there, and the
// chunk is mapped again; twice, because a map that is refused finds what is there after all, and
// takes it away. If that cannot be done, nobody knows what is there: the mapping is quarantined and
// the record suspended, for a resume to try again, and the doubt reported.
void ResourceCore::restore(Record& record, Mapping& mapping) noexcept {
  MemGetAccess query{properties_.location, DevicePtr{mapping.base}, Access::kNone};
  const DriverStatus status = driver_.vmm(query);
  if (status == DriverStatus::kSuccess) return;
  Status sure = driver_error(status, kind_of<MemGetAccess>, mapping.base);
  if (status == DriverStatus::kInvalidValue) {
    {
      const Lock lock(mutex_);
      mapping.state = MappingState::kClaimed;
    }
    sure = map_chunk(mapping);
    if (!sure.ok() && mapping.state == MappingState::kClaimed) sure = map_chunk(mapping);
    if (sure.ok()) return;
    const Lock lock(mutex_);
    mapping.state = MappingState::kQuarantined;
    record.suspended = true;
  }
  report(FailureKind::kUndoFailed, sure.error(), record.base, record.size);
}

Status ResourceCore::unmap_all(std::span<Buffer* const> buffers) {
  for (Buffer* buffer : buffers) {
    Record& record = *record_of(*buffer);
    if (record.suspended) continue;
    DriverStatus status = DriverStatus::kSuccess;
    std::uint64_t where = 0;
    for_each_in_chain(record, [&](Mapping& mapping) {
      // Unmapped already: the buffer is in the set twice.
      if (status != DriverStatus::kSuccess || mapping.state != MappingState::kMapped) return;
      where = mapping.base;
      status = unmap(mapping);
      if (status != DriverStatus::kSuccess) restore(record, mapping);
    });
    if (status != DriverStatus::kSuccess) {
      for (Buffer* undo : buffers) remap(*record_of(*undo));
      return driver_error(status, kind_of<MemUnmap>, where);
    }
  }
  return {};
}

// The memory of chunks that are not mapped any more goes too. A refused release is a reported leak.
void ResourceCore::give_back_chunks(Record& record) noexcept {
  for_each_in_chain(record, [&](Mapping& mapping) {
    Chunk& chunk = *mapping.chunk;
    if (mapping.state != MappingState::kClaimed) return;
    MemRelease release{chunk.handle};
    const DriverStatus status = driver_.vmm(release);
    {
      const Lock lock(mutex_);
      chunk.handle = {};
      mapping.state = MappingState::kSuspended;
      if (status == DriverStatus::kSuccess) {
        if (chunk.charged) pass_on_charge(chunk);
      } else {
        ++leaked_handles_;
        if (chunk.charged) leaked_handle_bytes_ += chunk.size;
      }
    }
    if (status != DriverStatus::kSuccess)
      report(FailureKind::kReleaseFailed, driver_error(status, kind_of<MemRelease>), mapping.base,
             mapping.size);
  });
}

Status ResourceCore::suspend(std::span<Buffer* const> buffers, bool backup) {
  if (Status fine = check_set(buffers); !fine) return fine;
  const SetAtWork at_work(*this, buffers);
  collect(UINT64_MAX, kReapsPerOperation);
  for (Buffer* buffer : buffers) {
    Record& record = *record_of(*buffer);
    if (record.suspended) continue;
    if (Status fine = check_for_suspend(record); !fine) return fine;
  }
  for (Buffer* buffer : buffers)
    if (Record& record = *record_of(*buffer); !record.suspended) {
      if (Status waited = wait_for(record); !waited) return waited;
      end_copy(record);  // of a suspend that failed
      drop_backup(record);
    }
  Status done;
  for (Buffer* buffer : buffers)
    if (Record& record = *record_of(*buffer);
        backup && done.ok() && !record.suspended && !record.backup)  // once, if it is there twice
      done = take_backup(record);
  if (done.ok()) done = unmap_all(buffers);
  for (Buffer* buffer : buffers) {
    Record& record = *record_of(*buffer);
    if (!done.ok()) {
      // A copy that does not end keeps its target, until the next suspend or the end of the range.
      if (!record.suspended && settle_copy(record).ok()) drop_backup(record);
      continue;
    }
    if (record.suspended) continue;
    give_back_chunks(record);
    note_given_back();
    record.suspended = true;
  }
  return done;
}

// Memory and mapping for every chunk that lacks them.
Status ResourceCore::bring_back(Record& record) {
  Status done;
  for_each_in_chain(record, [&](Mapping& mapping) {
    if (!done.ok() || mapping.state == MappingState::kMapped) return;
    // One that is said not to be there stays quarantined until the map has shown it. It has its
    // memory.
    if (mapping.state == MappingState::kQuarantined) {
      done = clear_place(mapping);
    } else if (!mapping.chunk->handle) {
      done = acquire(*mapping.chunk);
    }
    if (!done.ok()) return;
    if (mapping.state == MappingState::kSuspended) {
      const Lock lock(mutex_);
      mapping.state = MappingState::kClaimed;
    }
    done = map_chunk(mapping);
  });
  return done;
}

// Undoes bring_back: a suspended record as before. What cannot be unmapped stays, with its memory,
// until a resume or the end of the buffer.
void ResourceCore::take_down(Record& record) noexcept {
  if (Status settled = settle_copy(record); !settled) {
    if (settled.error().driver != DriverStatus::kWouldBlock)
      report(FailureKind::kUndoFailed, settled.error(), record.base, record.size);
    return;
  }
  for_each_in_chain(record, [&](Mapping& mapping) {
    if (mapping.state != MappingState::kMapped) return;
    const DriverStatus status = unmap(mapping);
    if (status == DriverStatus::kSuccess) return;
    report(FailureKind::kUndoFailed, driver_error(status, kind_of<MemUnmap>), mapping.base,
           mapping.size);
  });
  give_back_chunks(record);
}

// Contents come back by copies on the buffers' own streams. What could hinder them is asked first:
// once a copy is queued, nothing that was made for it can be taken down again.
Status ResourceCore::ready_for_copies(std::span<Buffer* const> buffers) {
  for (Buffer* buffer : buffers) {
    Record& record = *record_of(*buffer);
    if (!record.suspended || !record.backup) continue;
    if (Status may = refuse_if_capturing(record); !may) return may;
    if (Status may = may_copy(record); !may) return may;
    if (Status waited = wait_for(record); !waited) return waited;
    end_copy(record);
  }
  return {};
}

Status ResourceCore::resume(std::span<Buffer* const> buffers) {
  if (Status fine = check_set(buffers); !fine) return fine;
  const SetAtWork at_work(*this, buffers);
  if (Status ready = ready_for_copies(buffers); !ready) return ready;
  const auto attempt = [&]() -> Status {
    Status done;
    for (Buffer* buffer : buffers)
      if (Record& record = *record_of(*buffer); record.suspended && done.ok())
        done = bring_back(record);
    for (Buffer* buffer : buffers)
      if (Record& record = *record_of(*buffer); record.suspended && record.backup && done.ok())
        done = copy_and_wait(record, false);
    if (!done.ok())
      for (Buffer* buffer : buffers)
        if (Record& record = *record_of(*buffer); record.suspended) take_down(record);
    return done;
  };
  Status done = with_room(attempt);
  if (!done.ok()) return done;
  for (Buffer* buffer : buffers) {
    Record& record = *record_of(*buffer);
    if (!record.suspended) continue;  // a copy of a failed suspend may still write to its backup
    record.suspended = false;
    drop_backup(record);
  }
  return {};
}

}  // namespace granule::detail
