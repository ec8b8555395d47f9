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

}  // namespace

Status ResourceCore::usable(const Record& record) const {
  if (record.suspended) return suspended_error(record);
  return {};
}

std::uint64_t ResourceCore::capacity(const Record& record) {
  if (!record.last) return 0;
  const Lock lock(mutex_);
  const Reservation& reservation = *record.last->reservation;
  if (record.last->end() >= reservation.end()) return record.size;
  const auto next = reservation.mappings.lower_bound(record.last->end());
  const std::uint64_t end = next == reservation.mappings.end() ? reservation.end() : next->base;
  return end - record.base;
}

// The addresses that a range has been promised, whoever sits in them just now: a move takes as
// much along.
std::uint64_t ResourceCore::promised(const Record& record) {
  if (!record.last) return 0;
  return std::max(record.size, record.last->reservation->end() - record.base);
}

Result<bool> ResourceCore::could_extend(const Record& record) {
  if (Status open = usable(record); !open) return open.error();
  if (!record.last) return false;
  collect(UINT64_MAX, kReapsPerOperation);
  bool at_end = false;
  bool room = false;
  {
    const Lock lock(mutex_);
    room = room_behind(*record.last, granularity_, &at_end);
  }
  if (room || !at_end) return room;
  Result<ReservationRef> probe = reserve(granularity_, 0, record.last->end());
  return probe.ok() && (*probe)->base == record.last->end();
}

// Checks and roundings that a grow and a larger resize share; on success what to ask of extend.
// The access list in it is counted.
Result<ResourceCore::ExtendRequest> ResourceCore::plan_growth(const Record& record,
                                                              std::uint64_t size,
                                                              const GrowOptions& options) {
  const auto rounded = checked_round_up(size, granularity_);
  const auto wanted = checked_round_up(options.capacity.value_or(0), granularity_);
  if (!rounded || !wanted)
    return make_error(ErrorCode::kOverflow, "the size wraps when rounded up to whole granules");
  ExtendRequest request;
  request.last = record.last;
  request.base = record.base;
  request.size = record.size;
  if (*rounded <= record.size) return request;  // nothing to add
  if (Status fits = check_size(*rounded); !fits) return fits.error();
  request.add = *rounded - record.size;
  request.capacity = std::max({*rounded, *wanted, promised(record)});
  request.rdma = options.rdma.value_or(options_.rdma);
  Error error;
  request.access = access_for(&options, &error);
  if (!request.access) return error;
  return request;
}

Result<GrowResult> ResourceCore::grow(const Record& input, std::uint64_t size,
                                      const GrowOptions& options) {
  if (Status open = usable(input); !open) return open.error();
  const Violations wrong = validate(options, options_, caps_);
  if (!wrong.empty()) return wrong.errors[0];
  Result<ExtendRequest> request = plan_growth(input, size, options);
  if (!request) return request.error();
  const AccessHold hold(*this, request->access);

  Result<Record*> made = share(input);
  if (!made) return made.error();
  RecordHold record(*this, *made);
  if (request->add == 0) return GrowResult{make_buffer(record.release()), Placement::kAlias};

  // The new record shares the input's chain already, so it also pins it.
  collect(UINT64_MAX, kReapsPerOperation);
  Result<Extension> done = extend(*request);
  if (!done) return done.error();
  ChainRef old(*this, std::exchange(record->last, done->chain.release()));
  record->base = done->base;
  record->size = input.size + request->add;
  return GrowResult{make_buffer(record.release()), done->placement};
}

}  // namespace granule::detail
