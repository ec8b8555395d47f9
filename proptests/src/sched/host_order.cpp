// Vector clocks of host threads, and what they must know of each other.
#include "host_order.hpp"

#include <string>
#include <type_traits>
#include <variant>

#include <granule/backends/origin.hpp>

namespace granule::prop::sched {
namespace {

/// Kinds whose values the driver makes and hands to the library alone.
bool is_tracked(ObjectKind kind) {
  switch (kind) {
    case ObjectKind::kAllocation:
    case ObjectKind::kDescriptor:
    case ObjectKind::kPlainMemory:
    case ObjectKind::kPoolBlock:
    case ObjectKind::kEvent:
      return true;
    default:
      return false;  // reservations and mappings are places: see learn_places
  }
}

template <class T>
std::uint64_t number_of(const T& value) {
  if constexpr (requires { value.value; }) {
    return static_cast<std::uint64_t>(value.value);
  } else {
    return 0;
  }
}

bool is_default(StreamHandle stream) { return stream.value <= kPerThreadStream.value; }

}  // namespace

void HostOrder::touch(Trace& trace, CallKind call) {
  const ThreadIndex thread = scheduler_.current();
  trace.known.raise(thread, scheduler_.clock(thread).at(thread));
  trace.last = call;
}

void HostOrder::expect_all_known(const Trace& trace, ObjectKind kind, CallKind call) {
  const ThreadIndex self = scheduler_.current();
  const std::uint32_t other = trace.known.first_unknown_to(scheduler_.clock(self));
  if (other == HostClock::kNone) return;
  scheduler_.find("threads unordered " + std::string(name_of(kind)),
                  scheduler_.name(self) + " makes " + std::string(name_of(call)) + " on a " +
                      std::string(name_of(kind)) + " without knowing of all that " +
                      scheduler_.name(other) + " did with it (last: " +
                      std::string(name_of(trace.last)) + "): no lock and no wait orders the two");
}

void HostOrder::make(ObjectKind kind, std::uint64_t value, CallKind call, std::uint64_t size) {
  Trace& trace = of(kind)[value];
  if (trace.references == 0) trace = Trace();
  ++trace.references;
  trace.size = size;
  touch(trace, call);
}

void HostOrder::use(ObjectKind kind, std::uint64_t value, CallKind call) {
  const auto found = of(kind).find(value);
  if (found != of(kind).end()) touch(found->second, call);
}

void HostOrder::drop(ObjectKind kind, std::uint64_t value, CallKind call) {
  const auto found = of(kind).find(value);
  if (found == of(kind).end()) return;
  expect_all_known(found->second, kind, call);
  touch(found->second, call);
  if (--found->second.references == 0) of(kind).erase(found);
}

void HostOrder::use_reservation(std::uint64_t address, CallKind call) {
  Traces& reservations = of(ObjectKind::kReservation);
  auto next = reservations.upper_bound(address);
  if (next == reservations.begin()) return;
  Trace& trace = std::prev(next)->second;
  if (address < std::prev(next)->first + trace.size) touch(trace, call);
}

void HostOrder::learn_objects(const Call& call) {
  std::visit(
      [&](const auto& known) {
        for_each_field(known, [&](const auto& field, const auto& member) {
          if (!is_tracked(field.kind)) return;
          const std::uint64_t value = number_of(member);
          if (field.role == Role::kMakes) make(field.kind, value, kind(call));
          if (field.role == Role::kUses) use(field.kind, value, kind(call));
          if (field.role == Role::kDrops) drop(field.kind, value, kind(call));
        });
      },
      call);
}

void HostOrder::learn_places(const Call& call) {
  const CallKind now = kind(call);
  if (const auto* reserve = std::get_if<MemAddressReserve>(&call)) {
    make(ObjectKind::kReservation, reserve->ptr.value, now, reserve->size);
  } else if (const auto* free = std::get_if<MemAddressFree>(&call)) {
    drop(ObjectKind::kReservation, free->ptr.value, now);
  } else if (const auto* map = std::get_if<MemMap>(&call)) {
    make(ObjectKind::kMapping, map->ptr.value, now, map->size);
    use_reservation(map->ptr.value, now);
  } else if (const auto* unmap = std::get_if<MemUnmap>(&call)) {
    drop(ObjectKind::kMapping, unmap->ptr.value, now);
    use_reservation(unmap->ptr.value, now);
  } else if (const auto* access = std::get_if<MemSetAccess>(&call)) {
    use(ObjectKind::kMapping, access->ptr.value, now);
  }
}

void HostOrder::know_streams(StreamHandle stream, HostClock& clock) {
  if (!is_default(stream)) return clock.join(stream_clock(stream));
  for (const auto& [handle, known] : streams_) clock.join(known);
}

void HostOrder::learn_order(const Call& call, bool of_library) {
  const ThreadIndex self = scheduler_.current();
  HostClock& clock = scheduler_.clock(self);
  if (const auto* record = std::get_if<EventRecord>(&call)) {
    if (of_library) {
      const auto found = of(ObjectKind::kEvent).find(record->event.value);
      if (found != of(ObjectKind::kEvent).end())
        expect_all_known(found->second, ObjectKind::kEvent, kind(call));
    }
    HostClock known = clock;
    know_streams(record->stream, known);
    events_[record->event.value] = std::move(known);
  } else if (const auto* query = std::get_if<EventQuery>(&call)) {
    clock.join(events_[query->event.value]);
  } else if (const auto* wait = std::get_if<EventSynchronize>(&call)) {
    clock.join(events_[wait->event.value]);
  } else if (const auto* behind = std::get_if<StreamWaitEvent>(&call)) {
    stream_clock(behind->stream).join(events_[behind->event.value]);
  } else if (const auto* asked = std::get_if<StreamQuery>(&call)) {
    know_streams(asked->stream, clock);
  } else if (const auto* sync = std::get_if<StreamSynchronize>(&call)) {
    know_streams(sync->stream, clock);
  } else if (std::holds_alternative<CtxSynchronize>(call)) {
    know_streams(StreamHandle{}, clock);
  }
  std::visit(
      [&](const auto& known) {
        for_each_field(known, [&](const auto& field, const auto& member) {
          using Member = std::remove_cvref_t<decltype(member)>;
          if constexpr (std::is_same_v<Member, StreamHandle>) {
            if (field.role == Role::kStream) stream_clock(member).join(clock);
          }
        });
      },
      call);
  clock.tick(self);
}

void HostOrder::learn(const Call& call, bool of_library) {
  learn_order(call, of_library);
  if (!of_library) return;
  learn_objects(call);
  learn_places(call);
}

void HostOrder::expect_known(std::uint64_t base, std::uint64_t size) {
  const Traces& mappings = of(ObjectKind::kMapping);
  for (auto it = mappings.lower_bound(base); it != mappings.end() && it->first < base + size;
       ++it) {
    const ThreadIndex self = scheduler_.current();
    const std::uint32_t other = it->second.known.first_unknown_to(scheduler_.clock(self));
    if (other == HostClock::kNone) continue;
    scheduler_.find("threads unordered reuse",
                    scheduler_.name(self) + " was given memory without knowing of all that " +
                        scheduler_.name(other) +
                        " did with it (last: " + std::string(name_of(it->second.last)) + ")");
    return;
  }
}

void ThreadedBackend::learn_maker(const Call& call) {
  const auto* made = std::get_if<MemCreate>(&call);
  if (made) makers_[made->handle.value] = scheduler_.current();
  if (const auto* gone = std::get_if<MemRelease>(&call)) makers_.erase(gone->handle.value);
}

bool ThreadedBackend::is_of_worker(AllocationHandle handle) const {
  const auto maker = makers_.find(handle.value);
  return maker != makers_.end() && scheduler_.is_of_library(maker->second);
}

bool ThreadedBackend::is_of_another(AllocationHandle handle) const {
  const auto maker = makers_.find(handle.value);
  return maker != makers_.end() && maker->second != scheduler_.current() &&
         !scheduler_.is_of_library(maker->second);
}

DriverStatus ThreadedBackend::execute(Call& call) noexcept {
  DriverStatus status = inner_.execute(call);
  while (status == DriverStatus::kWouldBlock && scheduler_.await_driver())
    status = inner_.execute(call);
  const bool of_library = current_origin() == CallOrigin::kLibrary;
  if (status == DriverStatus::kWouldBlock) return status;
  if (!of_library) scheduler_.driver_moved();
  if (status != DriverStatus::kSuccess) return status;
  order_.learn(call, of_library);
  learn_maker(call);
  return status;
}

}  // namespace granule::prop::sched
