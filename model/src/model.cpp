// DriverState: the value around State, and its read-only views.
#include <granule/model/model.hpp>

#include <algorithm>

#include "calls.hpp"
#include "host_reach.hpp"
#include "memory_range.hpp"
#include "streams.hpp"
#include "vmm.hpp"

namespace granule::model {

std::string_view name_of(ViolationKind kind) noexcept {
  switch (kind) {
    case ViolationKind::kUnmappedUse:
      return "unmapped_use";
    case ViolationKind::kUnorderedFree:
      return "unordered_free";
    case ViolationKind::kDoubleRelease:
      return "double_release";
    case ViolationKind::kForeignFree:
      return "foreign_free";
    case ViolationKind::kNoAccess:
      return "no_access";
    case ViolationKind::kLeak:
      return "leak";
    case ViolationKind::kPoisonedUse:
      return "poisoned_use";
    case ViolationKind::kUnportable:
      return "unportable";
  }
  return "unknown";
}

DriverState::DriverState(Config config) : state_(std::make_unique<State>(std::move(config))) {}
DriverState::DriverState(const DriverState& other)
    : state_(std::make_unique<State>(*other.state_)) {
  state_->runner = nullptr;
}
DriverState& DriverState::operator=(const DriverState& other) {
  if (this != &other) {
    state_ = std::make_unique<State>(*other.state_);
    state_->runner = nullptr;
  }
  return *this;
}
DriverState::DriverState(DriverState&&) noexcept = default;
DriverState& DriverState::operator=(DriverState&&) noexcept = default;
DriverState::~DriverState() = default;

const Config& DriverState::config() const { return state_->config; }
void DriverState::set_ignore_hints(bool on) { state_->config.ignore_hints = on; }
void DriverState::set_verdict(Verdict verdict) { state_->config.verdict = verdict; }
void DriverState::set_schedule(Schedule schedule) { state_->config.schedule = schedule; }
void DriverState::set_quirks(const Quirks& quirks) { state_->config.quirks = quirks; }
void DriverState::set_runner(HostFunctionRunner* runner) { state_->runner = runner; }

void DriverState::force_next_reserve(std::uint64_t address) {
  state_->forced_reserves.push_back(address);
}
void DriverState::force_next_handle(std::uint64_t value) {
  state_->forced_handles.push_back(value);
}
void DriverState::force_next_pool_block(std::uint64_t address) {
  state_->forced_pool_blocks.push_back(address);
}

Ledger DriverState::ledger() const {
  Ledger ledger = state_->ledger;
  ledger.pool_blocks = state_->pools.live_blocks();
  for (const auto& [handle, pool] : state_->pools.pools()) {
    if (!pool.destroyed && !pool.is_default) ledger.pools += 1;
  }
  return ledger;
}

std::uint64_t DriverState::free_bytes(std::int32_t device) const {
  return state_->devices.at(static_cast<std::size_t>(device)).free;
}
std::uint64_t DriverState::total_bytes(std::int32_t device) const {
  return state_->devices.at(static_cast<std::size_t>(device)).total;
}
std::uint64_t DriverState::now_ns() const { return state_->now; }
std::uint64_t DriverState::calls() const { return state_->calls; }
std::uint64_t DriverState::largest_create(std::int32_t device) const {
  return usable_memory(*state_, device);
}

std::optional<ReservationView> DriverState::reservation_at(std::uint64_t address) const {
  const State& state = *state_;
  const auto it = model::reservation_at(state, address);
  if (it == state.reservations.end()) return std::nullopt;
  return ReservationView{it->first, it->second.size, 0};
}

namespace {
MappingView view_of(const State& state, std::uint64_t base, const Mapping& mapping) {
  const Allocation& memory = allocation_of(state, mapping);
  return {base, mapping.size, memory.number, value_of(state, mapping.handle),
          memory.properties.location};
}
}  // namespace

std::optional<MappingView> DriverState::mapping_at(std::uint64_t address) const {
  const State& state = *state_;
  const auto it = model::mapping_at(state, address);
  if (it == state.mappings.end()) return std::nullopt;
  return view_of(state, it->first, it->second);
}

std::optional<Access> DriverState::access_at(std::uint64_t address, Location location) const {
  const State& state = *state_;
  const auto it = model::mapping_at(state, address);
  const auto slot = access_slot(state, location);
  if (it == state.mappings.end() || !slot) return std::nullopt;
  return static_cast<Access>(it->second.access[*slot]);
}

HostReach DriverState::host_reach(std::uint64_t address, std::uint64_t size, Access need) const {
  return model::host_reach(*state_, DevicePtr{address}, size, need);
}

bool DriverState::range_has_access(std::uint64_t address, std::uint64_t size, Location location,
                                   Access access) const {
  const State& state = *state_;
  const auto slot = access_slot(state, location);
  if (!slot) return false;
  const auto needed = static_cast<std::uint8_t>(access);
  std::uint64_t at = address;
  auto it = model::mapping_at(state, address);
  while (at < address + size) {
    if (it == state.mappings.end() || it->first > at) return false;
    if ((it->second.access[*slot] & needed) != needed) return false;
    at = it->first + it->second.size;
    ++it;
  }
  return true;
}

ByteSummary DriverState::bytes_now(std::uint64_t address, std::uint64_t size) const {
  const auto summarise = [&](State& state) {
    Summary summary;
    std::uint64_t found = 0;
    visit_range(state, address, size, 0,
                [&](const Segment& segment, std::uint64_t begin, std::uint64_t end) {
                  const std::uint64_t shift = segment.base - segment.offset;
                  found += end - begin;
                  segment.contents->visit(
                      begin - shift, end - shift,
                      [&](std::uint64_t from, std::uint64_t to, const Bytes& bytes,
                          const StreamPoint&) { summary.add(bytes, to - from); });
                });
    if (found < size) summary.add(Bytes::unknown(), size - found);
    return summary.result();
  };
  if (state_->busy_streams.empty()) return summarise(*state_);
  DriverState copy = *this;
  copy.raw().dry = true;
  run_all(copy.raw());
  return summarise(copy.raw());
}

std::vector<ReservationView> DriverState::reservations() const {
  const State& state = *state_;
  std::vector<ReservationView> all;
  auto mapping = state.mappings.begin();
  for (const auto& [base, reservation] : state.reservations) {
    ReservationView view{base, reservation.size, 0};
    while (mapping != state.mappings.end() && mapping->first < base) ++mapping;
    while (mapping != state.mappings.end() && mapping->first - base < reservation.size) {
      view.mapped_bytes += mapping->second.size;
      ++mapping;
    }
    all.push_back(view);
  }
  return all;
}

std::vector<MappingView> DriverState::mappings() const {
  std::vector<MappingView> all;
  all.reserve(state_->mappings.size());
  for (const auto& [base, mapping] : state_->mappings) {
    all.push_back(view_of(*state_, base, mapping));
  }
  return all;
}

std::vector<MappingView> DriverState::mappings_in(std::uint64_t address, std::uint64_t size) const {
  const State& state = *state_;
  std::vector<MappingView> found;
  auto it = model::mapping_at(state, address);
  if (it == state.mappings.end()) it = state.mappings.lower_bound(address);
  for (; it != state.mappings.end() && it->first < address + size; ++it) {
    found.push_back(view_of(state, it->first, it->second));
  }
  return found;
}

std::vector<BlockView> DriverState::blocks() const {
  std::vector<BlockView> all;
  const auto add_plain = [&](const std::map<std::uint64_t, PlainMemory>& memory, bool freed) {
    for (const auto& [base, plain] : memory)
      all.push_back({BlockView::Kind::kPlain, base, plain.size,
                     device_location(DeviceId{plain.device}), freed});
  };
  add_plain(state_->plain, false);
  add_plain(state_->dying_plain, true);
  for (const auto& [handle, pool] : state_->pools.pools())
    for (const auto& [offset, block] : pool.live)
      all.push_back(
          {BlockView::Kind::kPool, pool.window.base + offset, block.size, pool.place(), false});
  std::sort(all.begin(), all.end(),
            [](const BlockView& a, const BlockView& b) { return a.base < b.base; });
  return all;
}

std::vector<HandleView> DriverState::handles() const {
  const State& state = *state_;
  std::vector<HandleView> all;
  for (std::size_t i = 0; i < state.handles.size(); ++i) {
    const HandleSlot& value = state.handles[i];
    if (!value.live()) continue;
    const Allocation& memory = state.allocations[value.allocation];
    all.push_back({value_of(state, static_cast<std::uint32_t>(i)), memory.number, memory.size,
                   value.references, value.mappings, memory.properties.location});
  }
  return all;
}

bool DriverState::event_done(EventHandle event) const {
  const auto it = state_->events.find(event.value);
  if (it == state_->events.end() || !it->second.recorded) return true;
  return it->second.capture == 0 && has_run(*state_, it->second.point);
}

bool DriverState::any_gate() const {
  for (const std::uint64_t number : state_->busy_streams) {
    if (state_->streams[number].closed_gates != 0) return true;
  }
  return false;
}

bool DriverState::work_pending_on(std::uint64_t address, std::uint64_t size) const {
  return state_->pending_memory_work != 0 && has_unordered_work(*state_, kNone, address, size);
}

std::uint64_t DriverState::pending_work() const {
  std::uint64_t pending = 0;
  for (const std::uint64_t number : state_->busy_streams) {
    pending += state_->streams[number].queue.size();
  }
  return pending;
}

void DriverState::drain() { run_all(*state_); }

void DriverState::open_all_gates() {
  const std::vector<std::uint64_t> busy = state_->busy_streams;
  for (const std::uint64_t number : busy) open_gates(*state_, number);
}

std::uint64_t DriverState::host_word(std::uint64_t address) const {
  const auto it = state_->host_words.find(address & ~std::uint64_t{7});
  return it == state_->host_words.end() ? 0 : it->second;
}
void DriverState::set_host_word(std::uint64_t address, std::uint64_t value) {
  state_->host_words[address & ~std::uint64_t{7}] = value;
}

const std::vector<Violation>& DriverState::violations() const { return state_->violations; }
std::vector<Violation> DriverState::take_violations() {
  std::vector<Violation> taken;
  taken.swap(state_->violations);
  return taken;
}
void DriverState::add_violation(ViolationKind kind, std::string message) {
  violate(*state_, kind, std::move(message));
}

}  // namespace granule::model
