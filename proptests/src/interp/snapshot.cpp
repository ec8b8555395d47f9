// Collecting a snapshot: the oracle's reservations, mappings and blocks, the names of the program,
// and what the allocator says of its ranges.
#include <granule/prop/snapshot.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "../sched/scheduler.hpp"
#include "world.hpp"

namespace granule::prop {
namespace {

constexpr std::size_t kDevicesAlwaysShown = 4;

/// Nobody gives way while it lives, and its looking is no synchronisation of the library's.
class Undisturbed {
 public:
  explicit Undisturbed(sched::Scheduler* scheduler) : scheduler_(scheduler) {
    if (scheduler_) scheduler_->pin(true);
  }
  ~Undisturbed() {
    if (scheduler_) scheduler_->pin(false);
  }
  Undisturbed(const Undisturbed&) = delete;
  Undisturbed& operator=(const Undisturbed&) = delete;

 private:
  sched::Scheduler* scheduler_;
};

Use use_of(TargetRange::State state) {
  switch (state) {
    case TargetRange::State::kOpen:
      return Use::kOpen;
    case TargetRange::State::kRetired:
      return Use::kRetired;
    case TargetRange::State::kParked:
      return Use::kParked;
    case TargetRange::State::kIdle:
      return Use::kIdle;
    case TargetRange::State::kQuarantined:
      return Use::kQuarantined;
  }
  return Use::kUntold;
}

class Collector {
 public:
  explicit Collector(const World& world) : world_(world), oracle_(world.machine->oracle()) {}

  Snapshot collect() {
    shot_.granule = world_.sizes.granule;
    shot_.ledger = oracle_.ledger();
    add_reservations();
    add_blocks();
    add_loose();
    for (const auto& [name, object] : world_.objects) add_named(name, object);
    ask_about_uses();
    add_access();
    for (Row& row : shot_.rows)
      std::sort(row.viewers.begin(), row.viewers.end(), [](const Viewer& a, const Viewer& b) {
        return std::tuple(a.base, a.size, a.kind, std::string_view(a.name)) <
               std::tuple(b.base, b.size, b.kind, std::string_view(b.name));
      });
    return std::move(shot_);
  }

 private:
  void add_reservations() {
    std::map<std::uint64_t, std::uint64_t> times;
    const std::vector<model::MappingView> mappings = oracle_.mappings();
    for (const model::MappingView& mapping : mappings) ++times[mapping.allocation];
    auto next = mappings.begin();
    for (const model::ReservationView& reservation : oracle_.reservations()) {
      Row row;
      row.base = reservation.base;
      row.size = reservation.size;
      for (; next != mappings.end() && next->base < row.end(); ++next) {
        Piece piece;
        piece.base = next->base;
        piece.size = next->size;
        piece.memory = memory_name(next->allocation);
        piece.mapped = times[next->allocation];
        piece.location = next->location;
        row.pieces.push_back(std::move(piece));
      }
      shot_.rows.push_back(std::move(row));
    }
    reservations_ = shot_.rows.size();
  }

  void add_loose() {
    std::map<std::uint64_t, LooseMemory> loose;
    for (const model::HandleView& handle : oracle_.handles())
      loose[handle.allocation] = {memory_name(handle.allocation), handle.size, handle.location};
    for (const model::MappingView& mapping : oracle_.mappings()) loose.erase(mapping.allocation);
    for (auto& [number, memory] : loose) shot_.loose.push_back(std::move(memory));
  }

  void add_blocks() {
    Row plain;
    plain.kind = Row::Kind::kPlain;
    Row pool;
    pool.kind = Row::Kind::kPool;
    for (const model::BlockView& block : oracle_.blocks()) {
      Row& row = block.kind == model::BlockView::Kind::kPlain ? plain : pool;
      Piece piece;
      piece.base = block.base;
      piece.size = block.size;
      piece.location = block.location;
      piece.freed = block.freed;
      if (row.pieces.empty()) row.base = piece.base;
      row.size = piece.end() - row.base;
      row.pieces.push_back(std::move(piece));
    }
    for (Row* row : {&plain, &pool})
      if (!row->pieces.empty()) shot_.rows.push_back(std::move(*row));
  }

  /// The row that holds an address; reservations go before blocks, whose rows have gaps.
  Row* row_at(std::uint64_t address) {
    const auto end = shot_.rows.begin() + static_cast<std::ptrdiff_t>(reservations_);
    const auto behind =
        std::upper_bound(shot_.rows.begin(), end, address,
                         [](std::uint64_t at, const Row& row) { return at < row.base; });
    if (behind != shot_.rows.begin() && address < std::prev(behind)->end())
      return &*std::prev(behind);
    for (auto row = end; row != shot_.rows.end(); ++row)
      for (const Piece& piece : row->pieces)
        if (address >= piece.base && address < piece.end()) return &*row;
    return nullptr;
  }

  /// Calls visit(row) for every row that bytes lie in: a range may cross into the reservation right
  /// behind its own.
  template <class Visitor>
  void for_each_row(std::uint64_t base, std::uint64_t size, Visitor&& visit) {
    for (std::uint64_t at = base; at < base + size;) {
      Row* row = row_at(at);
      if (!row) return;
      visit(*row);
      if (row->kind != Row::Kind::kReservation) return;
      at = row->end();
    }
  }

  void add_viewer(const Viewer& viewer) {
    for_each_row(viewer.base, viewer.size, [&](Row& row) { row.viewers.push_back(viewer); });
  }

  /// What the program took at `base`, as large as the row or the block there.
  void add_whole(const std::string& name, std::uint64_t base, Viewer::Kind kind) {
    const Row* row = row_at(base);
    if (!row) return;
    if (row->kind == Row::Kind::kReservation) {
      if (kind == Viewer::Kind::kReservation) add_viewer({kind, name, row->base, row->size, false});
      return;
    }
    for (const Piece& piece : row->pieces)
      if (piece.base == base && kind == Viewer::Kind::kBlock)
        return add_viewer({kind, name, base, piece.size, false});
  }

  void add_named(const std::string& name, const Object& object) {
    if (const auto* buffer = std::get_if<BufferObject>(&object)) {
      if (!buffer->buffer || buffer->buffer->is_closed()) return;
      const std::uint64_t base = buffer->buffer->ptr().value;
      named_.insert({base, buffer->buffer->size()});
      add_viewer({Viewer::Kind::kBuffer, name, base, buffer->buffer->size(),
                  buffer->buffer->is_suspended()});
    } else if (const auto* decoy = std::get_if<DecoyObject>(&object)) {
      add_viewer({Viewer::Kind::kReservation, name, decoy->base.value, decoy->size, false});
    } else if (const auto* hole = std::get_if<HoleObject>(&object)) {
      if (hole->keeper)
        add_viewer({Viewer::Kind::kReservation, name + " (keeps the hole)", hole->keeper.value,
                    hole->keeper_size, false});
    } else if (const auto* raw = std::get_if<RawObject>(&object)) {
      if (raw->kind == RawObject::Kind::kReservation)
        add_whole(name, raw->value, Viewer::Kind::kReservation);
      if (raw->kind == RawObject::Kind::kPlain || raw->kind == RawObject::Kind::kBlock)
        add_whole(name, raw->value, Viewer::Kind::kBlock);
    }
  }

  void ask_about_uses() {
    sched::Scheduler* const scheduler = world_.scheduler;
    if (scheduler && (scheduler->others_busy() != 0 || !scheduler->library_rests())) {
      shot_.uses_known = false;
      return;
    }
    const Undisturbed undisturbed(scheduler);
    for (TargetResource* resource : resources())
      resource->for_each_range([&](const TargetRange& range) { add_range(range); });
  }

  /// Those that a name or a buffer still reaches, in the order of names.
  std::vector<TargetResource*> resources() const {
    std::vector<TargetResource*> found;
    const auto add = [&](const std::shared_ptr<ResourceObject>& resource) {
      TargetResource* target = resource ? resource->target.get() : nullptr;
      if (target && std::find(found.begin(), found.end(), target) == found.end())
        found.push_back(target);
    };
    for (const auto& [name, object] : world_.objects) {
      if (const auto* resource = std::get_if<std::shared_ptr<ResourceObject>>(&object))
        add(*resource);
      if (const auto* buffer = std::get_if<BufferObject>(&object)) add(buffer->resource);
      if (const auto* holder = std::get_if<HolderObject>(&object)) add(holder->resource);
    }
    return found;
  }

  static void mark(Row& row, std::uint64_t begin, std::uint64_t end, Use use) {
    auto piece =
        std::lower_bound(row.pieces.begin(), row.pieces.end(), begin,
                         [](const Piece& one, std::uint64_t base) { return one.base < base; });
    for (; piece != row.pieces.end() && piece->base < end; ++piece)
      if (piece->use == Use::kUntold || use < piece->use) piece->use = use;
  }

  void add_range(const TargetRange& range) {
    const Use use = use_of(range.state);
    for_each_row(range.base.value, range.committed, [&](Row& row) {
      mark(row, range.base.value, range.base.value + range.committed, use);
    });
    if (use == Use::kQuarantined) return;
    if (use != Use::kOpen)
      return add_viewer({Viewer::Kind::kRange, std::string(name_of(use)), range.base.value,
                         range.committed, range.suspended});
    const auto same = named_.find({range.base.value, range.size});
    if (same != named_.end()) {
      named_.erase(same);
    } else {
      add_viewer({Viewer::Kind::kHolder, "held", range.base.value, range.size, range.suspended});
    }
  }

  void add_access() {
    std::vector<Location> asked;
    const std::size_t devices = oracle_.config().devices.size();
    for (std::size_t i = 0; i < devices; ++i)
      asked.push_back(device_location(DeviceId{static_cast<std::int32_t>(i)}));
    asked.push_back({LocationType::kHost, 0});
    for (const Location& who : asked) {
      const bool always = who.type == LocationType::kDevice && devices <= kDevicesAlwaysShown;
      if (!always && !has_any(who)) continue;
      shot_.accessors.push_back(who);
      for_each_mapping([&](Piece& piece) {
        piece.access.push_back(oracle_.access_at(piece.base, who).value_or(Access::kNone));
      });
    }
  }

  bool has_any(const Location& who) {
    bool any = false;
    for_each_mapping([&](const Piece& piece) {
      any = any || oracle_.access_at(piece.base, who).value_or(Access::kNone) != Access::kNone;
    });
    return any;
  }

  template <class Visitor>
  void for_each_mapping(Visitor&& visit) {
    for (std::size_t i = 0; i < reservations_; ++i)
      for (Piece& piece : shot_.rows[i].pieces) visit(piece);
  }

  const World& world_;
  model::DriverState& oracle_;
  Snapshot shot_;
  std::size_t reservations_ = 0;  // rows of those; blocks' rows follow
  std::multiset<std::pair<std::uint64_t, std::uint64_t>> named_;  // buffers: base, size
};

}  // namespace

std::string_view name_of(Use use) noexcept {
  switch (use) {
    case Use::kUntold:
      return "";
    case Use::kQuarantined:
      return "quarantined";
    case Use::kOpen:
      return "open";
    case Use::kRetired:
      return "pending";
    case Use::kParked:
      return "parked";
    case Use::kIdle:
      return "idle";
  }
  return "";
}

std::string memory_name(std::uint64_t allocation) {
  constexpr std::uint64_t kLetters = 26;
  std::string name;
  for (std::uint64_t left = allocation; left > 0; left = (left - 1) / kLetters)
    name.insert(name.begin(), static_cast<char>('A' + (left - 1) % kLetters));
  return name;
}

Snapshot snapshot_of(const World& world) { return Collector(world).collect(); }

std::string draw(const World& world) { return draw(snapshot_of(world)); }

}  // namespace granule::prop
