// resize, try_extend and shrink: the same buffer, larger or smaller.
#include <algorithm>

#include "extend.hpp"

namespace granule::detail {

// Part of a range that a resize will let go, ordered behind the buffer's streams beforehand.
// Deferred: a record of its own with its markers set, so that nothing can fail afterwards.
struct ResourceCore::Departure {
  explicit Departure(ResourceCore& owner, Record& of) : core(owner), record(of) {}
  Departure(const Departure&) = delete;
  Departure& operator=(const Departure&) = delete;
  ~Departure() {
    if (spare) core.release_record(spare);
  }
  ResourceCore& core;
  Record& record;
  Record* spare = nullptr;
};

// Before any change: nobody captures on the streams, and by the policy their work is done or has a
// marker behind it.
Status ResourceCore::prepare_departure(void* argument) {
  auto& departure = *static_cast<Departure*>(argument);
  ResourceCore& core = departure.core;
  Record& record = departure.record;
  if (Status may = core.refuse_if_capturing(record); !may) return may;
  if (core.options_.free == FreePolicy::kSynchronize) return core.wait_for(record);
  if (departure.spare) return {};  // a second attempt: the markers still stand
  Result<Record*> spare = core.share(record);
  if (!spare) return spare.error();
  departure.spare = *spare;
  Status ready = core.copy_uses(record, *departure.spare);
  if (ready.ok()) ready = core.set_markers(*departure.spare);
  if (ready.ok()) return {};
  core.release_record(std::exchange(departure.spare, nullptr));  // without markers it is no order
  if (!is_sticky(ready.error().driver)) return ready;
  core.report(FailureKind::kWaitSkipped, ready.error(), record.base, record.size);
  return {};
}

// Gives the record its new share and lets the old one go. Cannot fail.
void ResourceCore::depart(Departure& departure, Mapping* last, std::uint64_t base,
                          std::uint64_t size) noexcept {
  Record& record = departure.record;
  Mapping* old = nullptr;
  {
    const Lock lock(mutex_);
    old = std::exchange(record.last, last);
    record.base = base;
    record.size = size;
    if (last) set_shown(record, size);
    if (departure.spare) {
      departure.spare->state = RecordState::kRetired;
      pending_.push_back(*std::exchange(departure.spare, nullptr));
      wake_worker();
    }
  }
  drop_chain(old);
  note_given_back();
}

Result<ResizeResult> ResourceCore::resize(Record& record, std::uint64_t size,
                                          const GrowOptions& options, bool may_move) {
  if (Status open = usable(record); !open) return open.error();
  const AtWork at_work(*this, record);
  Result<ExtendRequest> request = plan_growth(record, size, options);
  if (!request) return request.error();
  const AccessHold hold(*this, request->access);
  ResizeResult result{Placement::kKept, DevicePtr{record.base}, DevicePtr{record.base},
                      record.size};
  if (request->shown == record.size) {
    Result<std::uint64_t> shrunk = shrink(record, size);
    if (!shrunk) return shrunk.error();
    result.size = *shrunk;
    result.new_ptr = DevicePtr{record.base};
    if (result.new_ptr != result.old_ptr) result.placement = Placement::kMoved;
    return result;
  }
  CommittedHold taken(*this);
  if (Status may = take_committed(record, record.base + request->shown, &taken); !may)
    return may.error();
  if (request->add == 0) {
    taken.keep();
    const Lock lock(mutex_);
    record.size = result.size = request->shown;
    return result;
  }
  collect(UINT64_MAX, kReapsPerOperation);
  Departure departure(*this, record);
  request->may_move = may_move;
  request->before_move = prepare_departure;
  request->before_move_argument = &departure;
  Result<Extension> done = extend(*request);
  if (!done) return done.error();
  taken.keep();
  if (done->placement == Placement::kKept && departure.spare)
    release_record(std::exchange(departure.spare, nullptr));
  depart(departure, done->chain.release(), done->base, request->shown);
  result.placement = done->placement;
  result.new_ptr = DevicePtr{record.base};
  result.size = record.size;
  return result;
}

Result<std::uint64_t> ResourceCore::shrink(Record& record, std::uint64_t size) {
  if (Status open = usable(record); !open) return open.error();
  const AtWork at_work(*this, record);
  Mapping* kept = record.last;
  while (kept && kept->base - record.base >= size) kept = kept->prev;
  if (kept == record.last) return record.size;
  collect(UINT64_MAX, kReapsPerOperation);
  Departure departure(*this, record);
  if (Status ready = prepare_departure(&departure); !ready) return ready.error();
  std::uint64_t base = 0;
  std::uint64_t end = 0;
  if (kept) {
    const Lock lock(mutex_);
    ++kept->refs;
    base = record.base;
    end = std::min(kept->end(), record.base + record.size);
  }
  depart(departure, kept, base, end - base);
  return record.size;
}

}  // namespace granule::detail
