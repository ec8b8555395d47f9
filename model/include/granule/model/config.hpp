// What a simulated machine is and how its driver behaves: devices, verdict, schedule, placement,
// quirks. Plain values; a Config and a seed determine every answer of the model.
#pragma once

#include <cstdint>
#include <vector>

namespace granule::model {

/// How strict the model is where drivers differ.
enum class Verdict : std::uint8_t {
  kExact,        ///< answers as driver 580.159 was measured; leniencies also leave a finding
  kPortable,     ///< refuses the measured leniencies that other drivers or documents refuse
  kAdversarial,  ///< the worst allowed choice everywhere
};

/// When queued stream work runs.
enum class Schedule : std::uint8_t {
  kLazy,    ///< only when something waits for it, a pause lets it, or queries have asked for long
  kEager,   ///< as soon as it can
  kSeeded,  ///< a seeded share of it runs at each call
};

/// Where a reserve lands.
enum class Placement : std::uint8_t {
  kObserved,     ///< the measured policy (driver contract, section 1)
  kFresh,        ///< always addresses that were never used before; hints are not looked at
  kAdversarial,  ///< first fit, so that freed addresses come back at once; no hint is honoured
};

/// Which value a new handle gets.
enum class HandleReuse : std::uint8_t {
  kSeeded,  ///< a seeded choice between a released value and a fresh one
  kFresh,   ///< a fresh one, as long as that is affordable
  kAtOnce,  ///< the value released last
};

/// What one device can do and holds.
struct DeviceConfig {
  std::uint64_t memory = std::uint64_t{64} << 30;  ///< bytes free at the start
  std::uint64_t granularity = std::uint64_t{2} << 20;
  bool vmm = true;
  bool posix_fd = true;
  bool fabric = false;  ///< whether fabric handles can be made; the attribute says 1 either way
  bool rdma = true;
  bool pools = true;
  bool peers = true;  ///< whether this device and the others reach each other
};

/// Deviations of other drivers, each off by default.
struct Quirks {
  bool busy_after_bulk_unmap = false;  ///< addresses stay taken after an unmap of many mappings
  bool tail_access_refused = false;    ///< set access of a part of a reservation's mappings fails
  bool memory_back_at_address_free = false;  ///< unmapped memory returns when its addresses do
  bool threshold_forgotten = false;          ///< a pool's release threshold is not kept
  std::uint32_t not_ready_times = 0;         ///< each VMM call first says NOT_READY so many times
  bool rdma_flag_lies = false;               ///< the capability says yes, the call refuses
};

/// A whole machine. Compare nothing in it against wall time: all durations are virtual.
struct Config {
  std::vector<DeviceConfig> devices = std::vector<DeviceConfig>(1);
  Verdict verdict = Verdict::kExact;
  Schedule schedule = Schedule::kLazy;
  Placement placement = Placement::kObserved;
  HandleReuse handle_reuse = HandleReuse::kSeeded;
  bool ignore_hints = false;  ///< hints are granted elsewhere; can be switched while running
  Quirks quirks;
  std::uint64_t seed = 1;
  std::uint32_t query_patience = 8;  ///< lazy: unfinished work that is not held runs after so many
                                     ///< queries said NOT_READY
  std::uint64_t context_bytes = 548'995'072;  ///< what a context beyond the primary takes
  std::uint32_t numa_nodes = 1;
  std::int32_t driver_version = 13000;
  std::uint64_t own_base = 0;  ///< where plain, pinned and pool addresses begin, above all that a
                               ///< reserve can give; 0: among them, as a driver has it. For a model
                               ///< that follows a driver, whose own places it need not know.
  bool real_pinned = false;    ///< pinned memory is real host memory, for programs that look at it
};

}  // namespace granule::model
