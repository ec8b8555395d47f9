// What the simulated driver holds for its client, for oracles and drawings; and what it found
// wrong.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <granule/backend_api/export.hpp>
#include <granule/backend_api/types.hpp>

namespace granule::model {

/// Totals that are kept as calls are made; reading them costs nothing.
struct Ledger {
  std::uint64_t reservations = 0;
  std::uint64_t reserved_bytes = 0;
  std::uint64_t handle_references = 0;  ///< create, retain and import count one each
  std::uint64_t allocations = 0;        ///< physical allocations whose memory is held
  std::uint64_t allocated_bytes = 0;    ///< their bytes, on devices and the host
  std::uint64_t mappings = 0;           ///< mapping objects
  std::uint64_t mapped_bytes = 0;
  std::uint64_t descriptors = 0;   ///< open exported descriptors
  std::uint64_t plain_blocks = 0;  ///< live cuMemAlloc allocations
  std::uint64_t plain_bytes = 0;   ///< bytes asked for in them
  std::uint64_t pinned_blocks = 0;
  std::uint64_t pool_blocks = 0;  ///< pool blocks that were not freed
  std::uint64_t pools = 0;        ///< pools made and not destroyed
  std::uint64_t streams = 0;
  std::uint64_t events = 0;
  std::uint64_t graphs = 0;
  std::uint64_t contexts = 0;  ///< contexts made by cuCtxCreate
  friend bool operator==(const Ledger&, const Ledger&) = default;
};

/// One reservation.
struct ReservationView {
  std::uint64_t base = 0;
  std::uint64_t size = 0;
  std::uint64_t mapped_bytes = 0;  ///< filled by lists, not by single look-ups
};

/// How far the host itself reaches a range of addresses.
enum class HostReach : std::uint8_t {
  kNone,  // no mapping of it, or not all of it is memory of the host
  kPart,  // some mapping, and not all of them as far as is asked
  kAll,
};

/// One mapping object.
struct MappingView {
  std::uint64_t base = 0;
  std::uint64_t size = 0;
  std::uint64_t allocation = 0;  ///< number of the physical allocation; aliases share it
  AllocationHandle handle;       ///< the value that was mapped
  Location location;             ///< where the memory lies
};

/// Memory that no reservation holds: a cuMemAlloc allocation, or a block of a pool.
struct BlockView {
  enum class Kind : std::uint8_t { kPlain, kPool };
  Kind kind = Kind::kPlain;
  std::uint64_t base = 0;
  std::uint64_t size = 0;  ///< bytes asked for
  Location location;       ///< where the memory lies
  bool freed = false;      ///< plain: its free on a stream is queued and has not run
};

/// One handle value with references, or whose memory a mapping keeps.
struct HandleView {
  AllocationHandle handle;
  std::uint64_t allocation = 0;
  std::uint64_t size = 0;
  std::uint64_t references = 0;
  std::uint64_t mappings = 0;
  Location location;
};

/// Kinds of misuse and findings.
enum class ViolationKind : std::uint8_t {
  kUnmappedUse,    ///< work ran on an address that was not mapped
  kUnorderedFree,  ///< memory was freed while unordered work may still use it
  kDoubleRelease,
  kForeignFree,  ///< something freed that is not the caller's, or not of that kind
  kNoAccess,     ///< work ran on a mapping without the needed access
  kLeak,
  kPoisonedUse,  ///< an output of a failed call was used
  kUnportable,   ///< a measured leniency was used; a finding, not an error by default
};
/// "unmapped_use", "unordered_free", ...
GRANULE_EXPORT std::string_view name_of(ViolationKind kind) noexcept;

struct Violation {
  ViolationKind kind = ViolationKind::kUnmappedUse;
  std::uint64_t call = 0;  ///< number of the call during which it was found, from 1
  std::string message;
};

}  // namespace granule::model
