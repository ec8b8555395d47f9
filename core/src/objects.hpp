// The records of the core: access list, chunk, reservation, mapping, record of a buffer.
// Plain data with intrusive hooks and counts; all of it is guarded by ResourceCore's mutex, except
// where a member says that it never changes. Owners are made before the driver call that fills
// them, so nothing can fail between a success and its owner.
#pragma once

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <cstdint>

#include <granule/backend_api/calls_vmm.hpp>
#include <granule/backend_api/checked.hpp>
#include <granule/stream.hpp>

namespace granule::detail {

namespace intrusive = boost::intrusive;
using ListHook = intrusive::list_base_hook<intrusive::link_mode<intrusive::safe_link>>;
using SetHook = intrusive::set_base_hook<intrusive::link_mode<intrusive::safe_link>,
                                         intrusive::optimize_size<true>>;

/// Who may do what with a chunk. Shared by the chunks made with it; only a grant changes it, and
/// only to more.
struct AccessList : ListHook {
  AccessEntries entries;
  std::uint32_t refs = 0;   // chunks, the resource, and operations at work with it
  std::uint32_t links = 0;  // scratch of the audit
};

/// Physical memory (the driver's allocation) and our one reference to it.
struct Chunk {
  AllocationHandle handle;  // null while suspended
  std::uint64_t size = 0;   // never changes
  AccessList* access = nullptr;
  std::uint64_t origin = 0;  // the memory's own number in this process
  std::uint32_t refs = 0;    // mappings, and operations at work on it
  std::uint32_t mark = 0;    // last walk that counted it
  std::uint32_t links = 0;   // scratch of the audit
  bool rdma = false;
  bool imported = false;  // no handle type of its own: not to be exported
  bool exported = false;  // others may hold the same memory
  bool charged = true;    // counted against the limit
};

struct Reservation;

enum class MappingState : std::uint8_t {
  kClaimed,  // the addresses are ours, the driver has not mapped them (yet, or any more)
  kMapped,
  kSuspended,    // the addresses are kept, the memory is given back
  kQuarantined,  // not unmapped, as far as anybody knows: kept for good (I13)
};

/// One chunk at one place, and the link to the mapping below it: a range is the chain from its
/// last mapping down. Ranges that share a prefix share its mappings, by count.
struct Mapping : SetHook {
  Mapping* prev = nullptr;  // counted; null for the first of a range; never changes once shared
  Chunk* chunk = nullptr;   // counted; never null once others can see the mapping
  Reservation* reservation = nullptr;  // counted; never changes
  std::uint64_t base = 0;              // never changes
  std::uint64_t size = 0;              // never changes
  std::uint64_t used = 0;   // end of what buffers were given of it; below end() if committed ahead
  std::uint32_t refs = 0;   // records and the mapping above, and operations at work on it
  std::uint32_t mark = 0;   // last grant that reached it
  std::uint32_t links = 0;  // scratch of the audit
  MappingState state = MappingState::kClaimed;
  AddressRange range() const { return {base, size}; }
  std::uint64_t end() const { return base + size; }
};

struct ByBase {
  using type = std::uint64_t;
  std::uint64_t operator()(const Mapping& mapping) const { return mapping.base; }
};
using MappingSet =
    intrusive::set<Mapping, intrusive::key_of_value<ByBase>, intrusive::constant_time_size<false>>;

/// A range of addresses from one cuMemAddressReserve, and everything that lies in it.
struct Reservation : ListHook {
  std::uint64_t base = 0;  // 0 until the driver has granted it
  std::uint64_t size = 0;
  MappingSet mappings;     // disjoint, ascending
  std::uint32_t refs = 0;  // mappings, and operations at work in it
  std::uint64_t end() const { return base + size; }
};

/// An event of the driver, kept for reuse in a list of its context.
struct Marker : ListHook {
  EventHandle event;
  ContextHandle context;
  DeviceId device;
  bool retained = false;   // holds the device's primary context, which the event lives in
  std::uint32_t refs = 0;  // stream uses that wait for it; 0: free for reuse
};

/// A stream that a record's release is ordered behind. Once `marker` is set, it stands for all
/// that was to be waited for, and the stream need not exist any more.
struct StreamUse : ListHook {
  Stream stream;
  Marker* marker = nullptr;
  bool forgotten = false;  // the stream is gone: the marker stays whatever becomes of the release
  bool done = false;       // the marker was seen to be reached
};

/// Of a pending record; one that is open or idle is in a list of its own.
enum class RecordState : std::uint8_t {
  kOpen,     // not pending
  kRetired,  // closed; goes when all its markers are reached
  kParked,   // closed; waits for the end of a capture, or for a wait that becomes possible
  kReaping,  // closed; some thread is giving it back
};

/// What a buffer owns: its share of a range and the streams its release is ordered behind. On
/// close the same record becomes the pending free, so that a close needs no host memory.
struct Record : ListHook, SetHook {
  Mapping* last = nullptr;  // counted; null for an empty buffer
  std::uint64_t base = 0;
  std::uint64_t size = 0;  // bytes that the buffer shows; the chain may reach further
  StreamUse primary;       // the stream named at allocation or close
  intrusive::list<StreamUse, intrusive::constant_time_size<false>> further;
  /// The memory carries work on the allocation's stream that only the library knows of: a clear, or
  /// what an idle range was used for before; or that stream was named as a further one. A close on
  /// another stream then keeps `former` too.
  bool has_history = false;
  StreamUse former;  // in `further`, if it is kept
  /// Contents while suspended, if they were to be kept; also while a copy may still write there.
  std::uint8_t* backup = nullptr;
  std::uint64_t backup_size = 0;
  /// A copy between memory and backup was queued and not seen to end: whatever takes either away
  /// is ordered behind the record's streams. `copy_use` is among them where the copy's stream is
  /// not the record's own and nobody else named it.
  bool copying = false;
  StreamUse* copy_use = nullptr;
  std::uint32_t passed = 0;  // last search of the cache that could not use it
  RecordState state = RecordState::kOpen;
  std::uint64_t tried_ahead = 0;      // size for which the worker has tried to commit memory ahead
  mutable std::uint32_t at_work = 0;  // operations on the buffer; counted if there is a worker
  bool suspended = false;
};

/// Bytes of the whole chain: what is committed, from the record's base on.
inline std::uint64_t committed(const Record& record) {
  return record.last ? record.last->end() - record.base : 0;
}

/// Nothing to order a release behind: an empty buffer, or one whose memory was given back already.
inline bool holds_nothing(const Record& record) {
  return !record.last || (record.suspended && !record.copying);
}

using RecordList = intrusive::list<Record>;
struct BySize {
  using type = std::uint64_t;
  std::uint64_t operator()(const Record& record) const { return record.size; }
};
using RecordsBySize = intrusive::multiset<Record, intrusive::key_of_value<BySize>,
                                          intrusive::constant_time_size<false>>;

}  // namespace granule::detail
