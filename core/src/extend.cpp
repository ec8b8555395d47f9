// Adding one chunk to a range: in reserved room, in the addresses right behind, or by a move.
// No byte is copied and nothing that the input maps is touched (I6). Everything made on the way is
// owned by a reference; leaving early gives it back.
#include "extend.hpp"

#include <algorithm>

namespace granule::detail {
namespace {

bool refused_property(const Error& error) {
  return error.code == ErrorCode::kDriver && error.driver != DriverStatus::kWouldBlock &&
         !is_sticky(error.driver);
}

// Addresses that are ours and empty, as far as we know, and yet no memory can be mapped there.
bool something_is_there(const Error& error) {
  return error.call == MemMap::info.name && error.driver == DriverStatus::kInvalidValue;
}

// The place is not to be had. That is all a caller looks at then.
Error place_taken(bool* refused) {
  *refused = true;
  return {};
}

}  // namespace

// Memory ahead of need is taken only where it is to be had at once: nothing is given back, waited
// for or moved to get it.
Result<ResourceCore::Extension> ResourceCore::extend(ExtendRequest request) {
  const auto at_once = [&](std::uint64_t add, bool may_move) {
    ExtendRequest modest = request;
    modest.add = add;
    modest.may_move = may_move;
    return extend_with_wish(modest, false);
  };
  const auto is_final = [](const Result<Extension>& result) {
    return result.ok() || result.error().code != ErrorCode::kOutOfMemory ||
           result.error().exhausted == Exhausted::kHost;
  };
  if (request.add > request.least) {
    bool must_move = !request.last;
    if (request.last) {
      Result<Extension> here = at_once(std::min(request.add, room_for(request)), false);
      if (!is_final(here)) here = at_once(request.least, false);
      if (is_final(here)) return here;
      must_move = here.error().exhausted == Exhausted::kAddresses;
    }
    if (must_move && request.may_move) {
      Result<Extension> ahead = at_once(request.add, true);
      if (is_final(ahead)) return ahead;
    }
    request.add = request.least;
  }
  return extend_with_wish(request, true);
}

// How much may be added in place: all that is reserved behind the range, if that is enough; any
// amount, where the addresses behind the reservation have to be asked for.
std::uint64_t ResourceCore::room_for(const ExtendRequest& request) {
  const Mapping& last = *request.last;
  reap_in_the_way(last, request.add);
  const Lock lock(mutex_);
  const Reservation& reservation = *last.reservation;
  if (last.end() >= reservation.end()) return UINT64_MAX;
  const auto next = reservation.mappings.lower_bound(last.end());
  const std::uint64_t end = next == reservation.mappings.end() ? reservation.end() : next->base;
  return std::max(end - last.end(), request.least);
}

Result<ResourceCore::Extension> ResourceCore::extend_with_wish(const ExtendRequest& request,
                                                               bool make_room) {
  bool rdma = request.rdma != Wish::kNo;
  if (request.rdma == Wish::kIfPossible) {
    const Lock lock(mutex_);
    rdma = !rdma_dropped_;
  }
  const auto attempt = [&](bool with_rdma) {
    if (!make_room) return extend_once(request, with_rdma);
    return with_room([&] { return extend_once(request, with_rdma); }, request.may_move);
  };
  Result<Extension> first = attempt(rdma);
  if (first.ok() || !rdma || request.rdma == Wish::kRequired || !refused_property(first.error()))
    return first;
  // The wish may be what was refused, at the create or only at the grant: once without it. If that
  // works the wish is dropped for good, else it was something else.
  Result<Extension> second = attempt(false);
  if (!second.ok()) return first;
  const Lock lock(mutex_);
  rdma_dropped_ = true;
  return second;
}

Result<ResourceCore::Extension> ResourceCore::extend_once(const ExtendRequest& request, bool rdma) {
  Extension done;
  if (!request.last && request.may_move) {
    Result<ChainRef> chain = first_chunk(request, rdma);
    if (!chain) return chain.error();
    done.chain = std::move(*chain);
    done.base = done.chain->end() - request.add;
    done.placement = Placement::kMoved;
    return done;
  }
  bool refused = false;
  Result<ChainRef> in_place = Error();
  if (request.last) {
    in_place = extend_in_place(request, rdma, &refused);
  } else {
    refused = true;  // an empty buffer has no addresses yet, so that any would be a move
  }
  if (in_place.ok()) {
    done.chain = std::move(*in_place);
    done.base = request.base;
    return done;
  }
  if (!refused) return in_place.error();
  if (!request.may_move) {
    Error error = make_error(ErrorCode::kOutOfMemory, "the addresses behind the buffer are taken");
    error.exhausted = Exhausted::kAddresses;
    error.wanted = request.add;
    return error;
  }
  // The first refusal is what a caller should hear of, if the move does not work either.
  const auto refuse = [&](const Error& error) {
    return something_is_there(in_place.error()) ? in_place.error() : error;
  };
  if (request.before_move) {
    if (Status ready = request.before_move(request.before_move_argument); !ready)
      return refuse(ready.error());
  }
  Result<ChainRef> moved = move_chain(request, rdma);
  if (!moved) return refuse(moved.error());
  done.chain = std::move(*moved);
  done.base = done.chain->end() - (request.size + request.add);
  done.placement = Placement::kMoved;
  return done;
}

// With mutex_ held: is there reserved room for `size` bytes behind `last`? `at_end` tells that the
// reservation ends there, so that the addresses behind it are worth a probe.
bool ResourceCore::room_behind(const Mapping& last, std::uint64_t size, bool* at_end) {
  const Reservation& reservation = *last.reservation;
  *at_end = last.end() >= reservation.end();
  if (reservation.end() - last.end() < size) return false;
  const auto next = reservation.mappings.lower_bound(last.end());
  return next == reservation.mappings.end() || next->base >= last.end() + size;
}

// `refused` tells that the place, not the memory, was the trouble.
Result<ChainRef> ResourceCore::extend_in_place(const ExtendRequest& request, bool rdma,
                                               bool* refused) {
  bool at_end = false;
  bool room = false;
  {
    const Lock lock(mutex_);
    room = room_behind(*request.last, request.add, &at_end);
  }
  if (!room && reap_in_the_way(*request.last, request.add)) {
    const Lock lock(mutex_);
    room = room_behind(*request.last, request.add, &at_end);
  }
  const std::uint64_t behind = request.last->end();
  if (room) return add_chunks(*request.last->reservation, behind, request, rdma, refused);
  if (!at_end) return place_taken(refused);
  // The probe asks for no alignment: that of whole reservations would make its hint illegal.
  Result<ReservationRef> probe = reserve(request.add, 0, behind);
  if (!probe) {
    *refused = probe.error().exhausted != Exhausted::kHost;
    return probe.error();
  }
  if ((*probe)->base != behind) return place_taken(refused);
  return add_chunks(**probe, behind, request, rdma, refused);
}

// Claims the addresses for the new memory on top of `below`, in pieces of at most max_chunk, and
// makes a chunk for each. Nothing is mapped yet.
Result<ChainRef> ResourceCore::draft_chunks(ChainRef below, Reservation& reservation,
                                            std::uint64_t base, const ExtendRequest& request,
                                            bool rdma, bool* refused) {
  ChainRef top = std::move(below);
  for (std::uint64_t offset = 0; offset < request.add;) {
    Fresh<Mapping> fresh(driver_.runtime());
    Fresh<Chunk> chunk(driver_.runtime());
    if (!fresh || !chunk) return host_memory_error(sizeof(Mapping) + sizeof(Chunk));
    fresh->reservation = &reservation;
    fresh->base = base + offset;
    fresh->size = std::min(request.add - offset, max_chunk_);
    fresh->used = fresh->end();
    fresh->refs = 1;
    chunk->size = fresh->size;
    chunk->access = request.access;
    chunk->rdma = rdma;
    chunk->refs = 1;
    {
      const Lock lock(mutex_);
      if (!claim(*fresh.get())) return place_taken(refused);  // another thread was faster
      ++request.access->refs;
      fresh->chunk = chunk.release();
      fresh->prev = top.release();
      top = ChainRef(*this, fresh.release());
    }
    if (Status acquired = acquire(*top->chunk); !acquired) return acquired.error();
    offset += top->size;
  }
  return top;
}

// Maps what was drafted in [from, to), in ascending order.
Status ResourceCore::map_drafted(Reservation& reservation, std::uint64_t from, std::uint64_t to) {
  while (from < to) {
    Mapping* next = nullptr;
    {
      const Lock lock(mutex_);
      next = &*reservation.mappings.lower_bound(from);
    }
    if (Status mapped = map_chunk(*next); !mapped) return mapped;
    from = next->end();
  }
  return {};
}

// New chunks mapped from `base` of `reservation` on, on top of the request's range.
Result<ChainRef> ResourceCore::add_chunks(Reservation& reservation, std::uint64_t base,
                                          const ExtendRequest& request, bool rdma, bool* refused) {
  Result<ChainRef> top = draft_chunks(pin(request.last), reservation, base, request, rdma, refused);
  if (!top) return top;
  Status mapped = map_drafted(reservation, base, base + request.add);
  if (mapped.ok()) return top;
  *refused = something_is_there(mapped.error());
  return mapped.error();
}

Result<ChainRef> ResourceCore::first_chunk(const ExtendRequest& request, bool rdma) {
  Result<ReservationRef> reservation = reserve(request.capacity, alignment_, request.hint);
  if (!reservation) return reservation.error();
  bool refused = false;
  return add_chunks(**reservation, (*reservation)->base, request, rdma, &refused);
}

// Claims a place in `target` for each chunk of the range, at the same distances as now. What has
// been claimed so far is left in `top`, also on failure. From the top down, because that is how a
// range is linked.
Status ResourceCore::draft_move(const ExtendRequest& request, Reservation& target, ChainRef* top) {
  Mapping* above = nullptr;
  for (Mapping* old = request.last; old; old = old->prev) {
    Fresh<Mapping> fresh(driver_.runtime());
    if (!fresh) return host_memory_error(sizeof(Mapping));
    fresh->reservation = &target;
    fresh->base = target.base + (old->base - request.base);
    fresh->size = old->size;
    fresh->used = fresh->end();
    fresh->refs = 1;
    const Lock lock(mutex_);
    fresh->chunk = old->chunk;
    ++old->chunk->refs;
    claim(*fresh.get());  // cannot fail: the reservation is new and ours alone
    Mapping* const mapping = fresh.release();
    if (above) {
      above->prev = mapping;
    } else {
      *top = ChainRef(*this, mapping);
    }
    above = mapping;
  }
  return {};
}

// The whole range at a new address: every old chunk with its own size and access, then the new
// ones. Memory is made before anything is mapped, because it is what is likeliest to be refused.
Result<ChainRef> ResourceCore::move_chain(const ExtendRequest& request, bool rdma) {
  Result<ReservationRef> target = reserve(request.capacity, alignment_, 0);
  if (!target) return target.error();
  const std::uint64_t base = (*target)->base;
  ChainRef old;
  if (Status drafted = draft_move(request, **target, &old); !drafted) return drafted.error();
  bool refused = false;
  Result<ChainRef> top =
      draft_chunks(std::move(old), **target, base + request.size, request, rdma, &refused);
  if (!top) return top;
  if (Status mapped = map_drafted(**target, base, base + request.size + request.add); !mapped)
    return mapped.error();
  return top;
}

}  // namespace granule::detail
