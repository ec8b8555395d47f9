// Suspending, resuming and sharing in the naive resource.
#include <granule/backend_api/call.hpp>

#include "naive_core.hpp"

namespace granule::prop::zoo {
namespace {

constexpr std::size_t kBackupAlignment = 64;

}  // namespace

Status NaiveCore::check_for_suspend(const NaiveState& state) {
  for (const std::uint64_t at : view(state.base, state.size)) {
    const NaiveMapping& mapping = mappings_[at];
    if (mapping.holders == 1 && chunks_[mapping.chunk].uses == 1) continue;
    Error error = error_of(ErrorCode::kInvalidArgument, "another buffer shares a chunk");
    error.object = state.base;
    return error;
  }
  return refuse_if_capturing(state);
}

Status NaiveCore::take_backup(NaiveState& state) {
  if (state.size == 0) return {};
  state.backup = driver_.host_memory().allocate(state.size, kBackupAlignment);
  if (!state.backup) return exhausted_error(Exhausted::kHost, state.size);
  return driver_.copy(state.primary, state.backup, state.base, state.size, true);
}

void NaiveCore::drop_backup(NaiveState& state) {
  if (state.backup) driver_.host_memory().deallocate(state.backup, state.size, kBackupAlignment);
  state.backup = nullptr;
}

Status NaiveCore::suspend(const std::vector<NaiveState*>& states, bool backup) {
  for (const NaiveState* state : states)
    if (state->closed) return error_of(ErrorCode::kClosed, "the buffer is closed");
  reap_parked();
  for (NaiveState* state : states)
    if (!state->suspended)
      if (Status fine = check_for_suspend(*state); !fine) return fine;
  for (NaiveState* state : states)
    if (!state->suspended)
      if (Status waited = wait_for(*state); !waited) return waited;
  Rollback rollback;
  if (backup)
    for (NaiveState* state : states) {
      if (state->suspended || state->backup) continue;
      rollback.add([this, state] { drop_backup(*state); });
      if (Status taken = take_backup(*state); !taken) return taken;
    }
  for (NaiveState* state : states) {
    if (state->suspended) continue;
    for (const std::uint64_t at : view(state->base, state->size)) {
      NaiveMapping& mapping = mappings_[at];
      if (!mapping.mapped) continue;  // the same buffer named twice
      const DriverStatus status = unmap(at, mapping.size);
      if (status != DriverStatus::kSuccess) return driver_error(status, kind_of<MemUnmap>, at);
      mapping.mapped = false;
      rollback.add([this, at] {
        NaiveMapping& again = mappings_[at];
        MemMap call;
        call.ptr.value = at;
        call.size = again.size;
        call.handle = chunks_[again.chunk].handle;
        const DriverStatus back = driver_.vmm(call);
        again.mapped = back == DriverStatus::kSuccess;
        if (again.mapped && set_access(at, again.size, chunks_[again.chunk].access).ok()) return;
        report(FailureKind::kUndoFailed, driver_error(back, kind_of<MemMap>, at), at, again.size);
      });
    }
  }
  rollback.commit();
  for (NaiveState* state : states)
    if (!state->suspended) take_down(*state);
  return {};
}

// All is unmapped: the memory goes too.
void NaiveCore::take_down(NaiveState& state) {
  for (const std::uint64_t at : view(state.base, state.size)) {
    NaiveChunk& chunk = chunks_[mappings_[at].chunk];
    if (!chunk.handle) continue;
    MemRelease release{chunk.handle};
    const DriverStatus status = driver_.vmm(release);
    chunk.handle = {};
    if (status == DriverStatus::kSuccess) {
      if (chunk.charged) charged_ -= chunk.size;
    } else {
      ++leaked_handles_;
      leaked_handle_bytes_ += chunk.size;
      report(FailureKind::kReleaseFailed, driver_error(status, kind_of<MemRelease>), at,
             chunk.size);
    }
    chunk.charged = false;
  }
  state.suspended = true;
  if (!is(Mistake::kResumeByHint) || state.size == 0) return;
  // The addresses go as well, in the hope of getting them back.
  const std::uint64_t space = mappings_[view(state.base, state.size)[0]].space;
  MemAddressFree free{DevicePtr{space}, spaces_[space].size};
  if (driver_.vmm(free) == DriverStatus::kSuccess) spaces_[space].freed = true;
}

Status NaiveCore::bring_back(NaiveState& state, Rollback& rollback) {
  if (is(Mistake::kResumeByHint) && state.size != 0) {
    const std::uint64_t space = mappings_[view(state.base, state.size)[0]].space;
    if (spaces_[space].freed) {
      const NaiveSpace old = spaces_[space];
      spaces_.erase(space);
      Result<std::uint64_t> again = reserve(old.size, 0, space);
      if (!again) return again.status();
      std::map<std::uint64_t, NaiveMapping> moved;
      for (const std::uint64_t at : view(state.base, state.size)) {
        moved[*again + (at - space)] = mappings_[at];
        moved[*again + (at - space)].space = *again;
        mappings_.erase(at);
      }
      spaces_[*again] = {old.size, old.first_size, old.mappings, false, false};
      state.base = *again + (state.base - space);
      mappings_.insert(moved.begin(), moved.end());
    }
  }
  for (const std::uint64_t at : view(state.base, state.size)) {
    NaiveMapping& mapping = mappings_[at];
    if (mapping.mapped) continue;
    NaiveChunk& chunk = chunks_[mapping.chunk];
    if (!chunk.handle) {
      if (Status gate = charge(chunk.size); !gate) return gate;
      MemCreate create;
      create.size = chunk.size;
      create.properties = properties_of({chunk.size, {}, chunk.handle_type, chunk.rdma, false});
      const DriverStatus status = driver_.vmm(create);
      if (status != DriverStatus::kSuccess) {
        if (!is(Mistake::kBudgetNotReturned)) charged_ -= chunk.size;
        return driver_error(status, kind_of<MemCreate>, at);
      }
      chunk.handle = create.handle;
      chunk.charged = true;
      rollback.add([this, &chunk, at] {
        MemRelease release{chunk.handle};
        const DriverStatus gone = driver_.vmm(release);
        chunk.handle = {};
        chunk.charged = false;
        if (gone == DriverStatus::kSuccess) {
          charged_ -= chunk.size;
          return;
        }
        ++leaked_handles_;
        leaked_handle_bytes_ += chunk.size;
        report(FailureKind::kReleaseFailed, driver_error(gone, kind_of<MemRelease>), at,
               chunk.size);
      });
    }
    MemMap call;
    call.ptr.value = at;
    call.size = mapping.size;
    call.handle = chunk.handle;
    const DriverStatus status = driver_.vmm(call);
    if (status != DriverStatus::kSuccess) return driver_error(status, kind_of<MemMap>, at);
    mapping.mapped = true;
    rollback.add([this, at] {
      NaiveMapping& undo = mappings_[at];
      const DriverStatus gone = unmap(at, undo.size);
      undo.mapped = gone != DriverStatus::kSuccess;
      if (undo.mapped)
        report(FailureKind::kUndoFailed, driver_error(gone, kind_of<MemUnmap>, at), at, undo.size);
    });
    if (Status set = set_access(at, mapping.size, chunk.access); !set) return set;
  }
  return {};
}

Status NaiveCore::resume(const std::vector<NaiveState*>& states) {
  for (const NaiveState* state : states)
    if (state->closed) return error_of(ErrorCode::kClosed, "the buffer is closed");
  reap_parked();
  for (const NaiveState* state : states) {  // the copies are ordered on the buffers' streams
    if (!state->suspended || !state->backup) continue;
    if (Status may = refuse_if_capturing(*state); !may) return may;
    if (Status waited = wait_for(*state); !waited) return waited;
  }
  Rollback all;
  std::vector<NaiveState*> back;
  for (NaiveState* state : states) {
    if (!state->suspended) continue;
    Rollback own;
    Rollback& rollback = is(Mistake::kResumeHalfWay) ? own : all;
    if (Status done = bring_back(*state, rollback); !done) return done;
    if (state->backup)
      if (Status copied =
              driver_.copy(state->primary, state->backup, state->base, state->size, false);
          !copied)
        return copied;
    own.commit();
    if (is(Mistake::kResumeHalfWay)) {
      state->suspended = false;
      drop_backup(*state);
    }
    back.push_back(state);
  }
  all.commit();
  for (NaiveState* state : back) {
    state->suspended = false;
    drop_backup(*state);
  }
  return {};
}

Result<std::vector<Descriptor>> NaiveCore::export_chunks(const NaiveState& state) {
  if (Status open = usable(state); !open) return open.error();
  if (options_.handle_type == HandleType::kNone)
    return error_of(ErrorCode::kUnsupported, "no handle type was asked for");
  std::vector<Descriptor> descriptors;
  for (const std::uint64_t at : view(state.base, state.size)) {
    MemExportToShareableHandle call;
    call.handle = chunks_[mappings_[at].chunk].handle;
    call.type = options_.handle_type;
    const DriverStatus status = driver_.call(call);
    if (status != DriverStatus::kSuccess) {
      (void)close_descriptors(descriptors).ok();
      return driver_error(status, kind_of<MemExportToShareableHandle>, at);
    }
    descriptors.push_back(call.descriptor);
  }
  return descriptors;
}

Status NaiveCore::close_descriptors(std::vector<Descriptor>& descriptors) {
  Status first;
  for (const Descriptor& descriptor : descriptors) {
    CloseDescriptor close{descriptor};
    const DriverStatus status = driver_.call(close);
    if (status != DriverStatus::kSuccess && first.ok())
      first = driver_error(status, kind_of<CloseDescriptor>);
  }
  descriptors.clear();
  return first;
}

}  // namespace granule::prop::zoo
