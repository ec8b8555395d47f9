// The end of a buffer of the naive resource: waits, captures, parking.
#include <algorithm>

#include "naive_core.hpp"

namespace granule::prop::zoo {

Result<CaptureVerdict> NaiveCore::capture_verdict(const NaiveState& state) {
  Result<CaptureVerdict> worst = driver_.capture_verdict(state.primary);
  for (const Stream& stream : state.further) {
    if (!worst) return worst;
    Result<CaptureVerdict> verdict = driver_.capture_verdict(stream);
    if (!verdict) return verdict;
    if (*verdict == CaptureVerdict::kCaptures || *worst == CaptureVerdict::kClear) worst = verdict;
  }
  return worst;
}

Status NaiveCore::refuse_if_capturing(const NaiveState& state) {
  Result<CaptureVerdict> verdict = capture_verdict(state);
  if (!verdict) return verdict.error();
  if (*verdict == CaptureVerdict::kClear) return {};
  return error_of(ErrorCode::kCapturing, "end the capture first");
}

Status NaiveCore::wait_for(const NaiveState& state) {
  if (is(Mistake::kCloseDoesNotWait)) return {};
  const bool host = options_.location.type != LocationType::kDevice;
  const bool by_default = state.primary.kind() != StreamKind::kCreated;
  if (!(host && by_default && is(Mistake::kHostMemoryNotWaited)))
    if (Status waited = driver_.wait_for(state.primary); !waited) return waited;
  for (const Stream& stream : state.further)
    if (Status waited = driver_.wait_for(stream); !waited) return waited;
  return {};
}

void NaiveCore::park(NaiveState& state, const Error& why) {
  auto parked = std::make_shared<NaiveState>(state);
  parked->record = parked->backup = nullptr;
  parked_.push_back(parked);
  report(FailureKind::kParked, why, state.base, state.size);
  free_record(state);
  state.closed = true;
}

void NaiveCore::end(NaiveState& state) {
  const bool narrow = is(Mistake::kDeleterKnowsOneRange) && state.known_size < state.size;
  const std::uint64_t size = narrow ? state.known_size : state.size;
  drop_view(state.base, size);
  if (narrow) forget_view(state.base + size, state.size - size);
  free_record(state);
  state.closed = true;
}

Status NaiveCore::close(NaiveState& state, const Stream* stream) {
  if (state.closed) return {};
  reap_parked();
  const Stream before = state.primary;
  if (stream) state.primary = *stream;
  const auto refuse = [&](const Error& error) -> Status {
    state.primary = before;
    return error;
  };
  if (state.size != 0 && !state.suspended) {
    Result<CaptureVerdict> verdict = capture_verdict(state);
    if (!verdict) return refuse(verdict.error());
    const bool careless = is(Mistake::kCloseWhileCapturing);
    if (*verdict == CaptureVerdict::kCaptures && !careless)
      return refuse(error_of(ErrorCode::kCapturing, "the buffer's stream is being captured"));
    if (*verdict == CaptureVerdict::kDisturbs) {
      park(state, error_of(ErrorCode::kCapturing, "a capture would be disturbed"));
      return {};
    }
    if (Status waited = wait_for(state); !waited && !careless) return refuse(waited.error());
  }
  end(state);
  return {};
}

Status NaiveCore::drop(NaiveState& state, bool may_stay) {
  if (state.closed) return {};
  reap_parked();
  if (state.size != 0 && !state.suspended) {
    Status ordered;
    Result<CaptureVerdict> verdict = capture_verdict(state);
    if (!verdict) {
      ordered = verdict.error();
    } else if (*verdict != CaptureVerdict::kClear) {
      ordered = error_of(ErrorCode::kCapturing, "a capture would be disturbed");
    } else {
      ordered = wait_for(state);
    }
    if (!ordered.ok()) {
      if (may_stay && ordered.error().driver == DriverStatus::kWouldBlock) return ordered;
      if (!is(Mistake::kImplicitCaptureUnseen)) {
        park(state, ordered.error());
        return {};
      }
    }
  }
  in_drop_ = true;
  end(state);
  in_drop_ = false;
  return {};
}

// Parked ranges whose captures have ended and whose work is done.
void NaiveCore::reap_parked() {
  for (std::size_t i = 0; i < parked_.size();) {
    const NaiveStatePtr state = parked_[i];
    Result<CaptureVerdict> verdict = capture_verdict(*state);
    bool done = verdict.ok() && *verdict == CaptureVerdict::kClear;
    std::vector<Stream> streams = state->further;
    streams.push_back(state->primary);
    for (const Stream& stream : streams) {
      if (!done) break;
      Result<bool> reached = driver_.is_done(stream);
      done = reached.ok() && *reached;
    }
    if (!done) {
      ++i;
      continue;
    }
    const auto still = std::find(parked_.begin(), parked_.end(), state);
    if (still == parked_.end()) continue;  // another thread was faster
    parked_.erase(still);
    drop_view(state->base, state->size);
  }
}

Status NaiveCore::used_on(NaiveState& state, const Stream& stream) {
  if (state.closed) return error_of(ErrorCode::kClosed, "the buffer is closed");
  if (is(Mistake::kUsedOnIgnored)) return {};
  if (std::find(state.further.begin(), state.further.end(), stream) == state.further.end())
    state.further.push_back(stream);
  return {};
}

Result<NaiveStatePtr> NaiveCore::hold(const NaiveState& state) {
  if (Status open = usable(state); !open) return open.error();
  Result<NaiveStatePtr> made = new_state(state.primary);
  if (!made) return made;
  (*made)->base = state.base;
  (*made)->size = state.size;
  (*made)->known_size = state.known_size;
  hold_view(state.base, state.size);
  open_.push_back(made->get());
  return made;
}

// The stream is about to go: what is queued on it is waited for now, and the default stream of its
// device takes its place.
Status NaiveCore::forget(const Stream& stream) {
  std::vector<NaiveState*> all = open_;
  for (const NaiveStatePtr& parked : parked_) all.push_back(parked.get());
  std::vector<NaiveState*> users;
  for (NaiveState* state : all)
    if (state->primary == stream ||
        std::find(state->further.begin(), state->further.end(), stream) != state->further.end())
      users.push_back(state);
  if (users.empty()) return {};
  Result<CaptureVerdict> verdict = driver_.capture_verdict(stream);
  if (!verdict) return verdict.error();
  if (*verdict == CaptureVerdict::kCaptures)
    return error_of(ErrorCode::kCapturing, "the stream is being captured");
  if (Status waited = driver_.wait_for(stream); !waited) return waited;
  for (NaiveState* state : users) {
    std::erase(state->further, stream);
    if (state->primary == stream) state->primary = Stream::legacy(stream.device());
  }
  return {};
}

Status NaiveCore::grant(DeviceId device, Access access) {
  VmmOptions wanted = options_;
  wanted.peers = {device};
  wanted.peer_access = access;
  const Violations wrong = validate(wanted, caps_);
  if (!wrong.empty()) return wrong.errors[0];
  const AccessEntry entry{device_location(device), access};
  const auto found_in = [&](const AccessEntries& entries) {
    for (const AccessEntry& known : entries)
      if (known.location == entry.location) return known.access;
    return Access::kNone;
  };
  std::vector<std::uint64_t> reached;
  for (const auto& [base, mapping] : mappings_) {
    if (!mapping.mapped || mapping.quarantined) continue;
    if (found_in(chunks_[mapping.chunk].access) >= access) continue;
    AccessEntries one;
    one.push(entry);
    const Status set = set_access(base, mapping.size, one);
    if (set.ok()) {
      reached.push_back(base);
      continue;
    }
    for (const std::uint64_t at : reached) {
      AccessEntries back;
      back.push({entry.location, found_in(chunks_[mappings_[at].chunk].access)});
      (void)set_access(at, mappings_[at].size, back).ok();
    }
    return set;
  }
  for (auto& [number, chunk] : chunks_) {
    if (found_in(chunk.access) >= access) continue;
    bool known = false;
    for (std::uint32_t i = 0; i < chunk.access.count; ++i) {
      if (!(chunk.access.entries[i].location == entry.location)) continue;
      chunk.access.entries[i].access = access;
      known = true;
    }
    if (!known) chunk.access.push(entry);
  }
  if (found_in(entries_of(options_)) < access) grants_.push_back(entry);
  return {};
}

}  // namespace granule::prop::zoo
