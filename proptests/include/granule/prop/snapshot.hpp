// The address space of a run at one moment, as plain data: what drawings of it are made from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <granule/backend_api/types.hpp>
#include <granule/model/ledger.hpp>

namespace granule::prop {

class World;

/// Who has memory, as the allocator under test says. Of several that share it, the first of these.
enum class Use : std::uint8_t {
  kUntold,       // nobody says: the program's own driver calls, or an allocator that does not tell
  kQuarantined,  // the driver would not unmap it
  kOpen,         // a buffer or a holder
  kRetired,      // a free behind unfinished work
  kParked,       // a free kept for a capture, or because a wait failed
  kIdle,         // the cache
};
/// "", "quarantined", "open", "pending", "parked", "idle".
std::string_view name_of(Use use) noexcept;

/// Something with a name, or a use, that lies over a part of a lane.
struct Viewer {
  enum class Kind : std::uint8_t {
    kBuffer,       // an open buffer: the bytes that it shows
    kHolder,       // an open range that no buffer of the program shows
    kRange,        // a range that is pending, parked or idle: `name` says which
    kReservation,  // addresses that the program took: reserved, a decoy, what stands behind a hole
    kBlock,        // plain memory or a pool block of the program
  };
  Kind kind = Kind::kBuffer;
  std::string name;
  std::uint64_t base = 0;
  std::uint64_t size = 0;
  bool suspended = false;
  std::uint64_t end() const { return base + size; }
  friend bool operator==(const Viewer&, const Viewer&) = default;
};

/// Memory at an address: a mapping, or a block that no reservation holds.
struct Piece {
  std::uint64_t base = 0;
  std::uint64_t size = 0;
  std::string memory;          // memory_name of the physical allocation; blocks: ""
  std::uint64_t mapped = 1;    // how often that allocation is mapped just now
  Location location;           // where it lies
  std::vector<Access> access;  // of each of Snapshot::accessors; blocks: empty
  Use use = Use::kUntold;
  bool freed = false;  // a plain block whose free on a stream has not run
  std::uint64_t end() const { return base + size; }
  friend bool operator==(const Piece&, const Piece&) = default;
};

/// Addresses that are drawn in one row.
struct Row {
  enum class Kind : std::uint8_t {
    kReservation,
    kPlain,  // all cuMemAlloc memory, from the first to the last
    kPool,   // all pool blocks, likewise
  };
  Kind kind = Kind::kReservation;
  std::uint64_t base = 0;
  std::uint64_t size = 0;
  std::vector<Piece> pieces;  // ascending, disjoint
  /// By base, the shortest first, then by name. One that crosses into the next row is in both.
  std::vector<Viewer> viewers;
  std::uint64_t end() const { return base + size; }
  friend bool operator==(const Row&, const Row&) = default;
};

/// A physical allocation that a handle keeps and that is mapped nowhere.
struct LooseMemory {
  std::string memory;
  std::uint64_t size = 0;
  Location location;
  friend bool operator==(const LooseMemory&, const LooseMemory&) = default;
};

struct Snapshot {
  std::uint64_t granule = 0;       // of device 0, in bytes
  std::vector<Row> rows;           // reservations ascending, then plain memory, then pools
  std::vector<LooseMemory> loose;  // by number of the allocation
  /// Whose access the pieces tell of: every device of a machine with at most four, of a larger one
  /// those with any access; and the host if it has any.
  std::vector<Location> accessors;
  /// False if some thread was in the middle of an operation: nobody was asked about uses then.
  bool uses_known = true;
  model::Ledger ledger;
  friend bool operator==(const Snapshot&, const Snapshot&) = default;
};

/// What is there now. Makes no driver call and changes nothing. On the thread of the run.
Snapshot snapshot_of(const World& world);

/// The name of a physical allocation by the oracle's number for it, which counts from 1 and is used
/// once: A B ... Z AA AB ... So all pictures of a run call the same memory the same.
std::string memory_name(std::uint64_t allocation);

/// "device:0", "host", "host_numa:1".
std::string to_text(const Location& location);
/// "-", "r", "rw".
std::string_view name_of(Access access) noexcept;
/// "0x000302000000".
std::string address_text(std::uint64_t address);
/// "3g" for whole granules, "512B" otherwise.
std::string amount_text(std::uint64_t bytes, std::uint64_t granule);

/// "1 reservations, 2 mappings, 0 handles, 3g of memory".
std::string totals_text(const Snapshot& snapshot);

/// "mapped nowhere, kept by handles: A 1g, B 2g and 7 more", or "" if there is no such memory.
std::string loose_text(const Snapshot& snapshot);

/// A drawing in text: one line a reservation, a letter a granule for each physical allocation, and
/// a line a piece with the names of the buffers that see it.
std::string draw(const Snapshot& snapshot);

}  // namespace granule::prop
