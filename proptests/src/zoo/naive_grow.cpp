// Allocating, growing and shrinking in the naive resource.
#include <algorithm>

#include <granule/backend_api/checked.hpp>

#include "naive_core.hpp"

namespace granule::prop::zoo {
namespace {

/// A refusal that an optional property may be the reason of.
bool refused_property(const Error& error, bool out_of_memory_too) {
  if (error.code == ErrorCode::kOutOfMemory)
    return out_of_memory_too && error.exhausted == Exhausted::kDevice;
  return error.code == ErrorCode::kDriver && error.driver != DriverStatus::kWouldBlock &&
         !is_sticky(error.driver);
}

}  // namespace

Result<NaiveStatePtr> NaiveCore::allocate(const Stream& stream, std::uint64_t size,
                                          const AllocateOptions& options) {
  reap_parked();
  if (options.at.value % std::max(alignment_, granularity_) != 0)
    return error_of(ErrorCode::kInvalidArgument, "`at` must be a multiple of the alignment");
  const auto rounded = round_up(size);
  const auto capacity = round_up(std::max(options.capacity, size));
  if (!rounded || !capacity) return error_of(ErrorCode::kOverflow, "the size wraps");
  if (Status fits = check_size(*rounded); !fits) return fits.error();
  const bool late = is(Mistake::kRecordAfterCall);
  const Stream recorded =
      is(Mistake::kStreamOfAllocateDropped) ? Stream::legacy(stream.device()) : stream;
  Result<NaiveStatePtr> made = late ? std::make_shared<NaiveState>() : new_state(recorded);
  if (!made) return made.error();
  NaiveStatePtr state = *made;
  if (*rounded == 0 && !is(Mistake::kZeroSizeSent)) {
    if (late) state->primary = recorded;
    open_.push_back(state.get());
    return state;
  }
  if (options.zero && *rounded != 0) {
    Result<CaptureVerdict> verdict = driver_.capture_verdict(stream);
    if (!verdict || *verdict != CaptureVerdict::kClear) {
      free_record(*state);
      if (!verdict) return verdict.error();
      return error_of(ErrorCode::kCapturing, "the stream captures");
    }
  }
  Growth growth;
  growth.add = *rounded;
  growth.capacity = *capacity;
  growth.hint = options.at.value;
  growth.options = options_;
  Result<Extended> fresh = extend(growth);
  if (!fresh) {
    free_record(*state);
    return fresh.error();
  }
  if (is(Mistake::kPeersWalkedOnce)) peers_walked_ = true;
  if (options.zero && *rounded != 0 && !is(Mistake::kZeroSkipped)) {
    if (Status cleared = driver_.clear(stream, fresh->base, *rounded); !cleared) {
      drop_view(fresh->base, *rounded);
      free_record(*state);
      return cleared.error();
    }
  }
  if (late) {
    made = new_state(recorded);
    if (!made) {
      forget_view(fresh->base, *rounded);
      return made.error();
    }
    state = *made;
  }
  state->base = fresh->base;
  state->size = state->known_size = *rounded;
  spaces_[fresh->base].first_size = *rounded;
  open_.push_back(state.get());
  return state;
}

Result<NaiveCore::Growth> NaiveCore::plan(const NaiveState& state, std::uint64_t size,
                                          const GrowOptions& options) {
  if (is(Mistake::kCallOptionsStored)) options_ = merged(options);
  GrowOptions checked = options;
  if (is(Mistake::kHandleTypePerCall)) checked.handle_type.reset();
  const Violations wrong = validate(checked, options_, caps_);
  if (!wrong.empty()) return wrong.errors[0];
  const auto rounded = round_up(size);
  const auto wanted = round_up(options.capacity.value_or(0));
  if (!rounded || !wanted) return error_of(ErrorCode::kOverflow, "the size wraps");
  Growth growth;
  growth.base = state.base;
  growth.size = state.size;
  if (*rounded <= state.size) return growth;
  if (Status fits = check_size(*rounded); !fits) return fits.error();
  growth.add = *rounded - state.size;
  growth.capacity = std::max(*rounded, *wanted);
  growth.options = merged(options);
  growth.of_call = options.self_access || options.peer_access || options.peers;
  const auto last = mappings_.lower_bound(state.base + state.size);
  if (state.size != 0 && last != mappings_.begin()) {
    const std::uint64_t space = std::prev(last)->second.space;
    growth.capacity = std::max(growth.capacity, space + spaces_[space].size - state.base);
  }
  return growth;
}

NaiveCore::ChunkRequest NaiveCore::chunk_request(const Growth& growth, bool rdma,
                                                 bool in_place) const {
  ChunkRequest request;
  request.size = growth.add;
  request.handle_type = growth.options.handle_type;
  request.rdma = rdma;
  request.from_grow = growth.size != 0;
  VmmOptions options = growth.options;
  if (in_place && is(Mistake::kPeersForgottenInPlace)) options.peers.clear();
  request.access = entries_of(options);
  return request;
}

// A new chunk at `base` of a space that is there already.
Status NaiveCore::add_chunk(const Growth& growth, bool rdma, std::uint64_t space,
                            std::uint64_t base, bool in_place, Rollback& rollback) {
  const ChunkRequest request = chunk_request(growth, rdma, in_place);
  const std::uint64_t old = is(Mistake::kMoveChargedTwice) && !in_place ? growth.size : 0;
  if (old != 0)
    if (Status gate = charge(old); !gate) return gate;
  Result<std::uint64_t> chunk = create_chunk(request);
  charged_ -= old;
  if (!chunk) return chunk.status();
  rollback.add([this, number = *chunk] { release_chunk_if_unused(number); });
  if (Status mapped = map(base, *chunk, space); !mapped) {
    // A chunk whose charge is forgotten was released by the step that failed.
    if (is(Mistake::kBudgetNotReturned)) charged_ += growth.add;
    return mapped;
  }
  rollback.add([this, base, size = growth.add] { drop_mapping(base, size); });
  return {};
}

// The space to put a chunk right behind the range: nothing if it has to move.
Result<std::optional<std::uint64_t>> NaiveCore::room_behind(const Growth& growth) {
  const std::optional<std::uint64_t> none;
  if (is(Mistake::kNeverInPlace)) return none;
  const std::uint64_t end = growth.base + growth.size;
  const auto next = mappings_.lower_bound(end);
  const std::uint64_t space = std::prev(next)->second.space;
  const std::uint64_t space_end = space + spaces_[space].size;
  if (space_end > end) {
    const bool taken = next != mappings_.end() && next->first < end + growth.add;
    if (taken || space_end - end < growth.add) return none;
    return std::optional(space);
  }
  const bool aligned = is(Mistake::kProbeAligned);
  Result<std::uint64_t> probe = reserve(growth.add, aligned ? alignment_ : 0, end);
  if (!probe) {
    if (aligned) return probe.error();
    if (!is(Mistake::kRefusedProbeFreed)) return none;
    MemAddressFree free{DevicePtr{kPoison64}, growth.add};
    return driver_error(driver_.vmm(free), kind_of<MemAddressFree>);
  }
  if (*probe == end) return std::optional(*probe);
  free_space_if_unused(*probe);
  return none;
}

// Everything that the range has, once more in `space`.
Status NaiveCore::map_old(const Growth& growth, std::uint64_t space, Rollback& rollback) {
  const bool with_access = !is(Mistake::kNewMappingWithoutAccess);
  for (const std::uint64_t at : view(growth.base, growth.size)) {
    const std::uint64_t to = space + (at - growth.base);
    const std::uint64_t number = mappings_[at].chunk;
    if (is(Mistake::kGrowReferencesKept)) {
      MemRetainAllocationHandle retain{DevicePtr{at}, {}};
      (void)driver_.vmm(retain);
    }
    if (is(Mistake::kFirstHandleOverAll)) {
      MemMap whole;
      whole.ptr.value = space;
      whole.size = growth.size;
      whole.handle = chunks_[number].handle;
      if (chunks_[number].size != growth.size) {
        const DriverStatus status = driver_.vmm(whole);
        if (status != DriverStatus::kSuccess) return driver_error(status, kind_of<MemMap>, space);
      }
    }
    if (Status mapped = map(to, number, space, with_access); !mapped) return mapped;
    rollback.add([this, to] { drop_mapping(to, mappings_[to].size); });
  }
  return {};
}

// Undoes a failed move by hand: the input is mapped again, as if it had been unmapped.
void NaiveCore::undo_by_mapping_again(const Growth& growth) {
  for (const std::uint64_t at : view(growth.base, growth.size)) {
    const NaiveMapping& mapping = mappings_[at];
    if (unmap(at, mapping.size) != DriverStatus::kSuccess) continue;
    MemMap again;
    again.ptr.value = at;
    again.size = mapping.size;
    again.handle = chunks_[mapping.chunk].handle;
    (void)driver_.vmm(again);
  }
}

// Takes the input's mappings away before the new ones are there.
Status NaiveCore::unmap_early(const Growth& growth) {
  for (const std::uint64_t at : view(growth.base, growth.size)) {
    const DriverStatus status = unmap(at, mappings_[at].size);
    if (status != DriverStatus::kSuccess) return driver_error(status, kind_of<MemUnmap>, at);
    mappings_[at].mapped = false;
  }
  return {};
}

// As unmap_early, after the new mappings are there.
void NaiveCore::unmap_input(const Growth& growth) {
  for (const std::uint64_t at : view(growth.base, growth.size)) {
    if (unmap(at, mappings_[at].size) == DriverStatus::kSuccess) mappings_[at].mapped = false;
  }
}

Result<NaiveCore::Extended> NaiveCore::extend_once(const Growth& growth, bool rdma) {
  Rollback rollback;
  if (growth.size != 0) {
    Result<std::optional<std::uint64_t>> room = room_behind(growth);
    if (!room) return room.error();
    if (*room) {
      rollback.add([this, space = **room] { free_space_if_unused(space); });
      const std::uint64_t end = growth.base + growth.size;
      if (Status added = add_chunk(growth, rdma, **room, end, true, rollback); !added)
        return added.error();
      rollback.commit();
      return Extended{growth.base, Placement::kKept};
    }
    if (growth.before_move)
      if (Status ready = growth.before_move(); !ready) return ready.error();
  }
  Result<std::uint64_t> space = reserve(growth.capacity, alignment_, growth.hint);
  if (!space) return space.error();
  rollback.add([this, at = *space] { free_space_if_unused(at); });
  const bool early = growth.size != 0 && is(Mistake::kOldMappingGoneEarly);
  if (growth.size != 0 && is(Mistake::kRollbackMapsWithoutAccess))
    rollback.add([this, growth] { undo_by_mapping_again(growth); });
  if (early)
    if (Status gone = unmap_early(growth); !gone) return gone.error();
  if (growth.size != 0)
    if (Status mapped = map_old(growth, *space, rollback); !mapped) return mapped.error();
  if (Status added = add_chunk(growth, rdma, *space, *space + growth.size, false, rollback); !added)
    return added.error();
  rollback.commit();
  for (const std::uint64_t at : view(growth.base, growth.size)) {
    NaiveMapping& old = mappings_[at];
    spaces_[old.space].moved_from = true;
    if (!early) continue;
    NaiveChunk& chunk = chunks_[old.chunk];
    MemMap again;
    again.ptr.value = at;
    again.size = old.size;
    again.handle = chunk.handle;
    if (driver_.vmm(again) == DriverStatus::kSuccess) old.mapped = true;
    (void)set_access(at, old.size, chunk.access).ok();
  }
  return Extended{*space, Placement::kMoved};
}

Result<NaiveCore::Extended> NaiveCore::extend(const Growth& growth) {
  const bool wished = growth.options.rdma == Wish::kIfPossible;
  const bool rdma = growth.options.rdma == Wish::kRequired || (wished && !rdma_dropped_);
  Result<Extended> first = extend_once(growth, rdma);
  if (first.ok() || !rdma || !wished ||
      !refused_property(first.error(), is(Mistake::kFlagDroppedOnOom)))
    return first;
  Result<Extended> second = extend_once(growth, false);
  if (!second.ok()) return first;
  if (!is(Mistake::kFlagAskedAgain)) rdma_dropped_ = true;
  return second;
}

Result<NaiveCore::Grown> NaiveCore::grow(const NaiveStatePtr& input, std::uint64_t size,
                                         const GrowOptions& options) {
  if (Status open = usable(*input); !open) return open.error();
  reap_parked();
  std::uint64_t seen = input->size;
  if (is(Mistake::kSharedRangeMutable) && shared_totals_.count(input->base) != 0)
    seen = std::max(seen, shared_totals_[input->base]);
  NaiveState shared = *input;
  shared.size = seen;
  Result<Growth> growth = plan(shared, size, options);
  if (!growth) return growth.error();
  if (growth->add == 0) {
    if (is(Mistake::kCoveredIsInput)) return Grown{input, Placement::kAlias};
    if (is(Mistake::kSmallerRequestSetsAccess) && (options.self_access || options.peer_access)) {
      const AccessEntries access = entries_of(merged(options));
      for (const std::uint64_t at : view(input->base, input->size))
        if (Status set = set_access(at, mappings_[at].size, access); !set) return set.error();
    }
    Result<NaiveStatePtr> made = new_state(input->primary);
    if (!made) return made.error();
    (*made)->base = input->base;
    (*made)->size = seen;
    (*made)->known_size = input->known_size;
    hold_view(input->base, seen);
    open_.push_back(made->get());
    return Grown{*made, Placement::kAlias};
  }
  const bool late = is(Mistake::kRecordAfterCall);
  const Stream stream =
      is(Mistake::kStreamLostInGrow) ? Stream::legacy(input->primary.device()) : input->primary;
  Result<NaiveStatePtr> made = late ? std::make_shared<NaiveState>() : new_state(stream);
  if (!made) return made.error();
  NaiveStatePtr state = *made;
  Result<Extended> done = extend(*growth);
  if (!done) {
    free_record(*state);
    return done.error();
  }
  const std::uint64_t total = growth->size + growth->add;
  if (late) {
    made = new_state(stream);
    if (!made) {
      if (done->placement == Placement::kMoved)
        forget_view(done->base, total);
      else
        forget_view(done->base + growth->size, growth->add);
      return made.error();
    }
    state = *made;
  }
  if (done->placement == Placement::kKept) {
    hold_view(input->base, growth->size);
    shared_totals_[input->base] = total;
  } else if (is(Mistake::kMoveUnmapsAtOnce)) {
    unmap_input(*growth);
  }
  state->base = done->base;
  state->size = is(Mistake::kSizeRecordedUnaligned) ? size : total;
  state->known_size =
      done->placement == Placement::kKept && input->size != 0 ? input->known_size : state->size;
  open_.push_back(state.get());
  return Grown{state, done->placement};
}

Result<ResizeResult> NaiveCore::resize(NaiveState& state, std::uint64_t size,
                                       const GrowOptions& options) {
  if (Status open = usable(state); !open) return open.error();
  reap_parked();
  Result<Growth> growth = plan(state, size, options);
  if (!growth) return growth.error();
  ResizeResult result{Placement::kKept, DevicePtr{state.base}, DevicePtr{state.base}, 0};
  if (growth->add == 0) {
    Result<std::uint64_t> shrunk = shrink(state, size);
    if (!shrunk) return shrunk.error();
    result.new_ptr = DevicePtr{state.base};
    if (result.new_ptr != result.old_ptr) result.placement = Placement::kMoved;
    result.size = *shrunk;
    return result;
  }
  growth->before_move = [this, &state]() -> Status {
    if (Status may = refuse_if_capturing(state); !may) return may;
    return is(Mistake::kMoveUnmapsAtOnce) ? Status() : wait_for(state);
  };
  Result<Extended> done = extend(*growth);
  if (!done) return done.error();
  const std::uint64_t total = growth->size + growth->add;
  if (done->placement == Placement::kMoved) {
    const std::uint64_t before = failures_;
    drop_view(state.base, state.size);
    if (is(Mistake::kOldRangeErrorThrown) && failures_ != before) {
      forget_view(done->base, total);
      return driver_error(DriverStatus::kUnknown, kind_of<MemAddressFree>, state.base);
    }
  }
  state.base = done->base;
  state.size = is(Mistake::kSizeRecordedUnaligned) ? size : total;
  if (done->placement == Placement::kMoved) state.known_size = state.size;
  result.placement = done->placement;
  result.new_ptr = DevicePtr{state.base};
  result.size = state.size;
  return result;
}

Result<std::uint64_t> NaiveCore::shrink(NaiveState& state, std::uint64_t size) {
  if (Status open = usable(state); !open) return open.error();
  std::uint64_t kept = 0;
  for (const std::uint64_t at : view(state.base, state.size))
    if (at - state.base < size) kept = at + mappings_[at].size - state.base;
  if (kept >= state.size) return state.size;
  reap_parked();
  if (Status may = refuse_if_capturing(state); !may) return may.error();
  if (Status waited = wait_for(state); !waited) return waited.error();
  drop_view(state.base + kept, state.size - kept);
  state.size = kept;
  state.known_size = std::min(state.known_size, kept);
  if (kept == 0) state.base = 0;
  return kept;
}

Result<bool> NaiveCore::could_extend(const NaiveState& state) {
  if (Status open = usable(state); !open) return open.error();
  if (state.size == 0) return false;
  Growth growth;
  growth.base = state.base;
  growth.size = state.size;
  growth.add = granularity_;
  Result<std::optional<std::uint64_t>> room = room_behind(growth);
  if (!room) return room.error();
  if (!*room) return false;
  free_space_if_unused(**room);
  return true;
}

}  // namespace granule::prop::zoo
