// Work of the client's that runs on the host in stream order, and what the library remembers of
// streams and events besides the model.
#pragma once

#include <cstdint>
#include <functional>

#include <granule/backend_api/types.hpp>
#include <granule/backends/driver_abi.hpp>

namespace granule::libcuda {

/// Queues `work`. A thread of the library sees to it that it runs although nobody waits for it.
abi::Result launch_host_work(StreamHandle stream, std::function<void()> work);

/// The flags that a stream was made with; 0 for default streams.
unsigned stream_flags(std::uint64_t stream);
void remember_stream(std::uint64_t stream, unsigned flags);

struct EventFacts {
  unsigned flags = 0;
  bool recorded = false;
  std::uint64_t at_ns = 0;  // host time of the last record
};
void remember_event(std::uint64_t event, unsigned flags);
void remember_record(std::uint64_t event);
void forget_event(std::uint64_t event);
EventFacts event_facts(std::uint64_t event);

}  // namespace granule::libcuda
