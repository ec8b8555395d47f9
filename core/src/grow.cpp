// grow: a new buffer that covers more, with its input untouched (I5, I6).
#include <algorithm>

#include "extend.hpp"

namespace granule::detail {

namespace {

Error suspended_error(const Record& record) {
  Error error = make_error(ErrorCode::kSuspended, "resume the buffer first");
  error.object = record.base;
  return error;
}

// Only what validate() looks at; setting up its answer costs more than the rest of an alias.
bool asks_for_properties(const GrowOptions& options) {
  return options.self_access || options.peer_access || options.peers || options.rdma ||
         options.handle_type || options.location;
}

}  // namespace

Status ResourceCore::usable(const Record& record) const {
  if (record.suspended) return suspended_error(record);
  return {};
}

std::uint64_t ResourceCore::capacity(const Record& record) {
  const AtWork at_work(*this, record);
  if (!record.last) return 0;
  const Lock lock(mutex_);
  const Reservation& reservation = *record.last->reservation;
  const auto next = reservation.mappings.lower_bound(record.last->end());
  const std::uint64_t end = next == reservation.mappings.end() ? reservation.end() : next->base;
  return end - record.base;
}

// The addresses that a range has been promised, whoever sits in them just now: a move takes as
// much along.
std::uint64_t ResourceCore::promised(const Record& record) {
  if (!record.last) return 0;
  return std::max(committed(record), record.last->reservation->end() - record.base);
}

Result<bool> ResourceCore::could_extend(const Record& record) {
  if (Status open = usable(record); !open) return open.error();
  const AtWork at_work(*this, record);
  if (!record.last) return false;
  if (committed(record) > record.size) return true;
  collect(UINT64_MAX, kReapsPerOperation);
  bool at_end = false;
  bool room = false;
  {
    const Lock lock(mutex_);
    room = room_behind(*record.last, granularity_, &at_end);
  }
  if (!room && reap_in_the_way(*record.last, granularity_)) {
    const Lock lock(mutex_);
    room = room_behind(*record.last, granularity_, &at_end);
  }
  if (!at_end) return room;
  Result<ReservationRef> probe = reserve(granularity_, 0, record.last->end());
  return probe.ok() && (*probe)->base == record.last->end();
}

// Takes the memory committed behind the record's end for a buffer that is to reach `end`. Only the
// buffer that reaches furthest into a chunk may: another would see its bytes.
Status ResourceCore::take_committed(const Record& record, std::uint64_t end, CommittedHold* hold) {
  Mapping* const last = record.last;
  if (!last) return {};
  const Lock lock(mutex_);
  const std::uint64_t own = record.base + record.size;
  if (last->used != own && last->refs > 1 && own != last->end())
    return make_error(ErrorCode::kInvalidArgument,
                      "another grow of this buffer took the memory committed ahead: grow that one");
  hold->mapping = last;
  hold->before = last->used;
  last->used = std::min(end, last->end());
  return {};
}

ResourceCore::CommittedHold::~CommittedHold() {
  if (!mapping) return;
  const Lock lock(core.mutex_);
  mapping->used = before;
}

// `size` and so many per cent of it; `size` where that wraps.
std::uint64_t ResourceCore::grown_by(std::uint64_t size, std::uint32_t percent) {
  if (percent == 0) return size;
  const auto whole = checked_mul(size / 100, percent);
  const auto all = whole ? checked_add(*whole, size % 100 * percent / 100) : std::nullopt;
  return all ? checked_add(size, *all).value_or(size) : size;
}

// How much to commit for a range that is to show `size` bytes: by the growth policy.
std::uint64_t ResourceCore::commit_target(std::uint64_t have, std::uint64_t size) const {
  const std::uint64_t ahead = checked_add(size, options_.commit_ahead).value_or(size);
  const std::uint64_t slack = grown_by(have, options_.slack_percent);
  const bool by_worker = options_.worker;  // what is ahead of need, but for the slack
  const auto rounded =
      checked_round_up(std::max({size, by_worker ? size : ahead, slack}), granularity_);
  if (!rounded || !check_size(*rounded).ok()) return size;
  return *rounded;
}

// Checks and roundings that a grow and a larger resize share; on success what to ask of extend:
// add is 0 if the committed memory is enough. The access list in it is counted.
Result<ResourceCore::ExtendRequest> ResourceCore::plan_growth(const Record& record,
                                                              std::uint64_t size,
                                                              const GrowOptions& options) {
  if (asks_for_properties(options)) {
    const Violations wrong = validate(options, options_, caps_);
    if (!wrong.empty()) return wrong.errors[0];
  }
  const auto rounded = checked_round_up(size, granularity_);
  const auto wanted = checked_round_up(options.capacity.value_or(0), granularity_);
  if (!rounded || !wanted)
    return make_error(ErrorCode::kOverflow, "the size wraps when rounded up to whole granules");
  ExtendRequest request;
  request.last = record.last;
  request.base = record.base;
  request.size = committed(record);
  request.shown = std::max(*rounded, record.size);
  if (*rounded <= request.size) return request;
  if (Status fits = check_size(*rounded); !fits) return fits.error();
  const std::uint64_t target = commit_target(request.size, *rounded);
  request.least = *rounded - request.size;
  request.add = target - request.size;
  request.capacity = std::max({target, *wanted, promised(record)});
  request.rdma = options.rdma.value_or(options_.rdma);
  Error error;
  request.access = access_for(&options, &error);
  if (!request.access) return error;
  return request;
}

Result<GrowResult> ResourceCore::grow(const Record& input, std::uint64_t size,
                                      const GrowOptions& options) {
  if (Status open = usable(input); !open) return open.error();
  const AtWork at_work(*this, input);
  Result<ExtendRequest> request = plan_growth(input, size, options);
  if (!request) return request.error();
  const AccessHold hold(*this, request->access);

  CommittedHold taken(*this);
  if (request->shown != input.size)
    if (Status may = take_committed(input, input.base + request->shown, &taken); !may)
      return may.error();
  Result<Record*> made = share(input);
  if (!made) return made.error();
  RecordHold record(*this, *made);
  if (request->shown == input.size)
    return GrowResult{make_buffer(record.release()), Placement::kAlias};
  record->size = request->shown;
  if (request->add == 0) {
    taken.keep();
    return GrowResult{make_buffer(record.release()), Placement::kKept};
  }

  // The new record shares the input's chain already, so it also pins it.
  collect(UINT64_MAX, kReapsPerOperation);
  Result<Extension> done = extend(*request);
  if (!done) return done.error();
  taken.keep();
  ChainRef old(*this, std::exchange(record->last, done->chain.release()));
  record->base = done->base;
  show(*record.get(), request->shown);
  return GrowResult{make_buffer(record.release()), done->placement};
}

// With mutex_ held: the record shows `size` bytes of its chain; what is behind is committed ahead.
void ResourceCore::set_shown(Record& record, std::uint64_t size) {
  record.size = size;
  record.last->used = std::min(record.base + size, record.last->end());
}

void ResourceCore::show(Record& record, std::uint64_t size) {
  const Lock lock(mutex_);
  set_shown(record, size);
}

}  // namespace granule::detail
