// One call on both sides: what must not be started, what is forced, what is tried again.
#include "follow.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include <granule/backends/trace.hpp>

#include "compare.hpp"

namespace granule::gpu {
namespace {

thread_local bool in_host_function = false;

/// Host functions of the device come here first, so that their calls are known as such.
void run_host_call(void* argument) {
  const auto& call = *static_cast<Follower::HostCall*>(argument);
  in_host_function = true;
  if (call.function != nullptr) call.function(call.argument);
  in_host_function = false;
}

template <class C, class... List>
constexpr bool is_any_of = (std::is_same_v<C, List> || ...);

char* log_buffer = nullptr;
std::size_t log_size = 0;

/// The bytes of device memory that a call asks for; 0: it asks for none.
std::uint64_t memory_asked(const Call& call) {
  return std::visit(
      [](const auto& c) -> std::uint64_t {
        using C = std::decay_t<decltype(c)>;
        if constexpr (is_any_of<C, MemCreate, MemAlloc, MemAllocAsync, MemAllocFromPoolAsync>) {
          return c.size;
        } else {
          return 0;
        }
      },
      call);
}

/// Calls with which contexts, and what a driver keeps in them, come and go.
bool moves_contexts(const Call& call) {
  return std::visit(
      [](const auto& c) {
        using C = std::decay_t<decltype(c)>;
        return is_any_of<C, CtxCreate, CtxDestroy, DevicePrimaryCtxRetain, DevicePrimaryCtxRelease,
                         DevicePrimaryCtxReset>;
      },
      call);
}

/// Whether a map or unmap goes over the end of what is reserved, or a retain is behind it: then it
/// depends on what lies there, and may be refused.
bool sticks_out(const model::DriverState& oracle, const Call& call) {
  const auto* map = std::get_if<MemMap>(&call);
  const auto* unmap = std::get_if<MemUnmap>(&call);
  if (const auto* retain = std::get_if<MemRetainAllocationHandle>(&call))
    return !oracle.reservation_at(retain->ptr.value);
  if (map == nullptr && unmap == nullptr) return false;
  std::uint64_t at = map != nullptr ? map->ptr.value : unmap->ptr.value;
  const std::uint64_t end = at + (map != nullptr ? map->size : unmap->size);
  auto place = oracle.reservation_at(at);
  if (!place) return false;
  while (place && at < end) {
    at = place->base + place->size;
    place = oracle.reservation_at(at);
  }
  return at < end;
}

/// Whether the answer can depend on how far queued work has come.
bool shows_progress(const Call& call) {
  return std::visit(
      [](const auto& c) {
        using C = std::decay_t<decltype(c)>;
        return is_any_of<C, StreamQuery, EventQuery, TakeLanding, MemcpyDtoH, MemGetInfo,
                         MemAllocAsync, MemAllocFromPoolAsync, MemPoolGetAttribute, MemCreate,
                         MemAlloc, StreamDestroy, MemPoolTrimTo, MemPoolDestroy>;
      },
      call);
}

}  // namespace

void log_call(const std::string& text) {
  if (log_buffer == nullptr) return;
  const std::size_t length = std::min(text.size(), log_size - 1);
  std::copy_n(text.begin(), length, log_buffer);
  log_buffer[length] = '\0';
}

void log_calls_to(char* buffer, std::size_t size) {
  log_buffer = buffer;
  log_size = size;
}

model::Config following(model::Config config) {
  config.verdict = model::Verdict::kExact;
  config.schedule = model::Schedule::kLazy;
  config.placement = model::Placement::kObserved;
  config.handle_reuse = model::HandleReuse::kFresh;
  config.quirks = {};
  config.query_patience = UINT32_MAX;
  config.own_base = std::uint64_t{1} << 52;
  config.real_pinned = false;
  return config;
}

Follower::Follower(Backend& device, model::DriverState& oracle, ModelError error)
    : device_(device), oracle_(oracle), error_(std::move(error)) {}
Follower::~Follower() = default;

bool Follower::may_be_undefined(const Call& call) const {
  return std::visit(
      [&](const auto& c) {
        using C = std::decay_t<decltype(c)>;
        if constexpr (is_any_of<C, Memcpy, MemcpyHtoD, MemcpyHtoDAsync, MemcpyDtoH, MemcpyDtoHAsync,
                                MemcpyDtoD, MemcpyDtoDAsync>)
          return c.size != 0;
        bool unknown = false;
        for_each_field(c, [&](const auto& field, const auto& member) {
          using T = std::remove_cvref_t<decltype(member)>;
          if constexpr (std::is_same_v<T, AllocationHandle>) {
            if (is_output(field.role) || member.value == 0) return;
            const auto found = references_.find(member.value);
            unknown = unknown || found == references_.end() || found->second == 0;
          } else if constexpr (kIdKind<T> != IdKind::kNone) {
            if (is_output(field.role)) return;
            unknown =
                unknown || !names_.knows(kIdKind<T>, static_cast<std::uint64_t>(member.value));
          }
        });
        return unknown;
      },
      call);
}

bool Follower::withhold(Call& call, DriverStatus& status) {
  Call asked = renamed_inputs(names_, call);
  if (const auto* destroy = std::get_if<MemPoolDestroy>(&asked); spare_pools_ && destroy) {
    Call used = MemPoolGetAttribute{destroy->pool, PoolAttribute::kUsedMemCurrent, 0};
    model::DriverState copy = oracle_;
    if (model::step(copy, thread_, used) == DriverStatus::kSuccess &&
        std::get<MemPoolGetAttribute>(used).value != 0) {
      status = DriverStatus::kUndefined;
      ++withheld_;
      return true;
    }
  }
  bool stop = model::would_block(oracle_, thread_, asked);
  // Measured: where streams were destroyed before, a cuMemAlloc that cannot succeed waits for all
  // streams, held ones included, for what the driver could give back.
  const auto* alloc = std::get_if<MemAlloc>(&call);
  if (alloc != nullptr && !live_[ObjectKind::kNone].empty() && alloc->size > most_free())
    stop = true;
  if (!stop && may_be_undefined(call)) {
    model::DriverState copy = oracle_;
    Call tried = asked;
    stop = model::step(copy, thread_, tried) == DriverStatus::kUndefined;
  }
  if (!stop) return false;
  status = model::step(oracle_, thread_, asked);
  ++withheld_;
  return true;
}

void Follower::follow(const Call& device, DriverStatus status, const Call& asked,
                      model::ThreadId thread) {
  const bool refused = status == DriverStatus::kInvalidValue || status == DriverStatus::kUnknown;
  const bool outside = refused && sticks_out(oracle_, asked);
  const bool short_of = status == DriverStatus::kOutOfMemory && may_be_short(asked);
  fell_short_ = fell_short_ || short_of;
  if (outside || short_of) {
    ++followed_;
    return;
  }
  other_calls_ = other_calls_ || info_of(kind(asked)).family != CallFamily::kVmm;
  if (status == DriverStatus::kOutOfMemory || moves_contexts(asked)) {
    own_memory_moves_ = true;
    other_calls_ = true;
  }
  pool_in_use_ = oracle_pool(asked, thread);
  if (status == DriverStatus::kSuccess) {
    // A query that says done shows progress of just that stream.
    if (const auto* query = std::get_if<StreamQuery>(&asked))
      oracle_.advance_stream(thread, query->stream);
    if (const auto* query = std::get_if<EventQuery>(&asked)) oracle_.advance_event(query->event);
  }
  std::unique_ptr<model::DriverState> before;
  const bool unsettled = oracle_.pending_work() > 0;
  if (status == DriverStatus::kSuccess || status == DriverStatus::kOutOfMemory)
    look_at_pool(device, unsettled);
  const std::uint64_t bytes = memory_asked(asked);
  const std::uint64_t free = bytes == 0 ? 0 : oracle_.free_bytes(0);
  const bool near_limit =
      bytes != 0 && ((status == DriverStatus::kOutOfMemory && bytes <= free) ||
                     (status == DriverStatus::kSuccess && bytes + kOwnMemorySlack > free));
  if ((unsettled && shows_progress(asked)) || is_sticky(status) || near_limit)
    before = std::make_unique<model::DriverState>(oracle_);
  Try tried = attempt(device, status, asked, thread);
  if (!tried.field.empty() && near_limit && bytes + kOwnMemorySlack > free)
    retry_grant(tried, device, status, asked, thread, *before);
  if (!tried.field.empty() && before) retry(tried, device, status, asked, thread, *before);
  if (std::holds_alternative<StreamEndCapture>(device) && captures_ > 0) --captures_;
  if (!tried.field.empty()) record(device, status, tried, thread);
  if (status == DriverStatus::kSuccess && tried.status == DriverStatus::kSuccess)
    settle(device, tried, thread);
  if (status == DriverStatus::kOutOfMemory && pool_in_use_ != 0)
    refused_pools_.insert(pool_in_use_);
  pool_in_use_ = 0;
  reserved_.reset();
}

void Follower::note_pool(const Call& device, const Call& oracle) {
  if (pool_in_use_ == 0) return;
  const auto* one = std::get_if<MemAllocAsync>(&device);
  const auto* from = std::get_if<MemAllocFromPoolAsync>(&device);
  const std::uint64_t ptr = one != nullptr ? one->ptr.value : from->ptr.value;
  const std::uint64_t placed = one != nullptr ? std::get<MemAllocAsync>(oracle).ptr.value
                                              : std::get<MemAllocFromPoolAsync>(oracle).ptr.value;
  if (ptr != 0) pool_shift_.emplace(pool_in_use_, ptr - placed);
}

void Follower::settle(const Call& device, const Try& tried, model::ThreadId thread) {
  learn_effects(names_, device, tried.call);
  note_pool(device, tried.call);
  if (std::holds_alternative<StreamBeginCapture>(device)) ++captures_;
  if (const auto* made = std::get_if<StreamCreate>(&tried.call)) streams_.push_back(made->stream);
  if (const auto* gone = std::get_if<StreamDestroy>(&tried.call))
    std::erase(streams_, gone->stream);
  if (const auto* gone = std::get_if<MemPoolDestroy>(&tried.call))
    pool_shift_.erase(gone->pool.value);
  const auto* read = std::get_if<MemcpyDtoHAsync>(&device);
  if (read != nullptr && read->dst != nullptr) {
    const auto host = reinterpret_cast<std::uint64_t>(read->dst);
    const Objects& pins = live_[ObjectKind::kPinnedMemory];
    auto it = pins.upper_bound(host);
    const bool pinned = it != pins.begin() && host - std::prev(it)->first < std::prev(it)->second;
    if (pinned) return;
    Call wait = StreamSynchronize{std::get<MemcpyDtoHAsync>(tried.call).stream};
    model::step(oracle_, thread, wait);  // a copy to pageable memory waits
  }
}

std::uint64_t Follower::most_free() const {
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < oracle_.config().devices.size(); ++i)
    most = std::max(most, oracle_.free_bytes(static_cast<std::int32_t>(i)));
  return most;
}

// What the model has no figures for: the memory of the host, the driver's own on a full device, and
// addresses beside what else the process has mapped.
bool Follower::may_be_short(const Call& call) const {
  constexpr std::uint64_t kMuchAddress = std::uint64_t{1} << 36;
  if (const auto* create = std::get_if<MemCreate>(&call))
    return create->properties.location.type != LocationType::kDevice;
  if (const auto* reserve = std::get_if<MemAddressReserve>(&call))
    return reserve->size >= kMuchAddress;
  if (memory_asked(call) != 0) return false;
  for (std::size_t i = 0; i < oracle_.config().devices.size(); ++i)
    if (oracle_.free_bytes(static_cast<std::int32_t>(i)) < kOwnMemorySlack) return true;
  return false;
}

// Measured: in a process that has made and destroyed many streams a held one can hold up others
// that share its queue to the device, the null stream among them. Nobody can know beforehand, so
// that a wait beside held streams is tried with queries first.
bool Follower::is_held_up(const Call& call) {
  Call query;
  {
    const std::lock_guard lock(mutex_);
    if (live_[ObjectKind::kNone].empty() || captures_ != 0) return false;
  }
  if (const auto* wait = std::get_if<StreamSynchronize>(&call)) {
    query = StreamQuery{wait->stream};
  } else if (const auto* event = std::get_if<EventSynchronize>(&call)) {
    query = EventQuery{event->event};
  } else {
    return false;
  }
  const OriginScope scope(CallOrigin::kHarness);
  constexpr auto kPatience = std::chrono::milliseconds(500);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  do {
    Call asked = query;
    if (device_.execute(asked) != DriverStatus::kNotReady) return false;
  } while (std::chrono::steady_clock::now() < end);
  held_up_ = true;
  return true;
}

DriverStatus Follower::ask_device(Call& call) {
  if (log_buffer != nullptr) {
    std::string text = trace::to_text(call) + " (call " + std::to_string(calls_);
    char number[20];
    for (const auto& [stream, unused] : live_[ObjectKind::kNone]) {
      std::snprintf(number, sizeof number, "%llx", static_cast<unsigned long long>(stream));
      text += std::string(", held 0x") + number;
    }
    text += ")";
    log_call(text);
  }
  if (auto* launch = std::get_if<LaunchHostFunc>(&call)) {
    host_calls_.push_back({this, launch->function, launch->argument});
    Call wrapped = LaunchHostFunc{launch->stream, run_host_call, &host_calls_.back()};
    return device_.execute(wrapped);
  }
  return device_.execute(call);
}

DriverStatus Follower::execute(Call& call) noexcept {
  if (std::holds_alternative<Pause>(call)) return device_.execute(call);
  const bool inside = in_host_function;
  const model::ThreadId thread = inside ? model::kHostFunctionThread : thread_;
  Call asked;
  DriverStatus status = DriverStatus::kSuccess;
  {
    const std::lock_guard lock(mutex_);
    ++calls_;
    if (!inside && withhold(call, status)) return status;
    look_at_streams(call, thread);
    asked = renamed_inputs(names_, call);
  }
  if (!inside && is_held_up(call)) {
    const std::lock_guard lock(mutex_);
    ++withheld_;
    return DriverStatus::kWouldBlock;
  }
  status = ask_device(call);
  const std::lock_guard lock(mutex_);
  sticky_ = sticky_ || is_sticky(status);
  // A result that has not arrived: the oracle is asked again when it has.
  if (status == DriverStatus::kNotReady && std::holds_alternative<TakeLanding>(call)) return status;
  if (status == DriverStatus::kUndefined) {
    // The backend knows that the driver crashes on this and made no call.
    const DriverStatus answer = model::step(oracle_, thread, asked);
    ++withheld_;
    if (answer == DriverStatus::kSuccess) record(call, status, {asked, answer, "status"}, thread);
    return answer == DriverStatus::kSuccess ? status : answer;
  }
  if (status == DriverStatus::kSuccess) note_live(call);
  follow(call, status, asked, thread);
  return status;
}

}  // namespace granule::gpu
