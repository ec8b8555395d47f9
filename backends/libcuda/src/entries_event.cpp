// Entry points: events. Times are those of the host when the event was recorded.
#include "entry.hpp"
#include "host_work.hpp"

namespace granule::libcuda {
namespace {

abi::Result record(abi::Event event, abi::Stream stream, unsigned flags) {
  if (const abi::Result not_ready = ready()) return not_ready;
  if (flags > 1) return kBadValue;
  EventRecord call;
  call.event = {value_of(event)};
  call.stream = stream_of(stream);
  const abi::Result result = submit(call);
  if (result == kOk) remember_record(value_of(event));
  return result;
}

}  // namespace

GRANULE_ENTRY(cuEventCreate)(abi::Event* event, unsigned flags) {
  if (const abi::Result not_ready = ready_for(event)) return not_ready;
  constexpr unsigned kInterprocess = 4;
  if ((flags & ~7u) != 0 ||
      ((flags & kInterprocess) != 0 && (flags & abi::kEventDisableTiming) == 0))
    return kBadValue;
  EventCreate call;
  call.flags = flags;
  const abi::Result result = submit(call);
  if (result != kOk) return result;
  *event = pointer_of<abi::Event>(call.event.value);
  remember_event(call.event.value, flags);
  return kOk;
}
GRANULE_ENTRY(cuEventDestroy_v2)(abi::Event event) {
  EventDestroy call;
  call.event = {value_of(event)};
  const abi::Result result = submit(call);
  if (result == kOk) forget_event(value_of(event));
  return result;
}
GRANULE_ENTRY(cuEventDestroy)(abi::Event event) { return GRANULE_CALL(cuEventDestroy_v2)(event); }

GRANULE_ENTRY(cuEventRecord)(abi::Event event, abi::Stream stream) {
  return record(event, stream, 0);
}
GRANULE_ENTRY(cuEventRecordWithFlags)(abi::Event event, abi::Stream stream, unsigned flags) {
  return record(event, stream, flags);
}
GRANULE_ENTRY(cuEventQuery)(abi::Event event) {
  EventQuery call;
  call.event = {value_of(event)};
  return submit(call);
}
GRANULE_ENTRY(cuEventSynchronize)(abi::Event event) {
  EventSynchronize call;
  call.event = {value_of(event)};
  return submit(call);
}

GRANULE_ENTRY(cuEventElapsedTime_v2)(float* ms, abi::Event start, abi::Event end) {
  if (const abi::Result not_ready = ready_for(ms)) return not_ready;
  const EventFacts first = event_facts(value_of(start));
  const EventFacts last = event_facts(value_of(end));
  for (const abi::Event event : {start, end}) {
    EventQuery query;
    query.event = {value_of(event)};
    if (const abi::Result result = submit(query)) return result;
  }
  const bool timed = ((first.flags | last.flags) & abi::kEventDisableTiming) == 0;
  if (!timed || !first.recorded || !last.recorded) return kBadHandle;
  *ms = static_cast<float>(static_cast<double>(last.at_ns) - static_cast<double>(first.at_ns)) *
        1e-6f;
  return kOk;
}
GRANULE_ENTRY(cuEventElapsedTime)(float* ms, abi::Event start, abi::Event end) {
  return GRANULE_CALL(cuEventElapsedTime_v2)(ms, start, end);
}

}  // namespace granule::libcuda
