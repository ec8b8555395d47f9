// The model asked as the device was: choices forced on it, answers compared, and asked again with
// other progress or another grant where the device was free to differ.
#include "follow.hpp"

#include <utility>
#include <vector>

#include "compare.hpp"

namespace granule::gpu {

bool shows_frees(const Call& call) {
  return is_pool_allocation(call) || std::holds_alternative<StreamDestroy>(call) ||
         std::holds_alternative<MemPoolDestroy>(call) || std::holds_alternative<CloseGate>(call);
}

bool is_pool_allocation(const Call& call) {
  return std::holds_alternative<MemAllocAsync>(call) ||
         std::holds_alternative<MemAllocFromPoolAsync>(call);
}

std::uint64_t Follower::oracle_pool(const Call& call, model::ThreadId thread) {
  if (const auto* from = std::get_if<MemAllocFromPoolAsync>(&call)) return from->pool.value;
  const auto* alloc = std::get_if<MemAllocAsync>(&call);
  if (alloc == nullptr) return 0;
  std::int32_t device = 0;
  Call context = StreamGetCtx{alloc->stream, {}};
  if (model::step(oracle_, thread, context) != DriverStatus::kSuccess) return 0;
  Call push = CtxPushCurrent{std::get<StreamGetCtx>(context).context};
  if (model::step(oracle_, thread, push) == DriverStatus::kSuccess) {
    Call where = CtxGetDevice{};
    model::step(oracle_, thread, where);
    device = std::get<CtxGetDevice>(where).device.value;
    Call pop = CtxPopCurrent{};
    model::step(oracle_, thread, pop);
  }
  Call pool = DeviceGetMemPool{DeviceId{device}, {}};
  if (model::step(oracle_, thread, pool) != DriverStatus::kSuccess) return 0;
  return std::get<DeviceGetMemPool>(pool).pool.value;
}

// What a pool hands out depends on which frees have run: the streams are asked before, and the
// pool's size behind the call shows whether that was all.
void Follower::look_at_streams(const Call& call, model::ThreadId thread) {
  done_.clear();
  if (shows_frees(call)) ask_streams(thread);
}

// A pool that was destroyed behind frees gives its memory back when they have run, with no call.
bool Follower::look_for_progress() {
  const std::lock_guard lock(mutex_);
  done_.clear();
  ask_streams(thread_);
  return !done_.empty();
}

void Follower::ask_streams(model::ThreadId thread) {
  if (!look_at_streams_ || captures_ != 0 || oracle_.pending_work() == 0) return;
  const OriginScope scope(CallOrigin::kHarness);
  const auto look = [&](StreamHandle stream) {
    Call query = StreamQuery{stream};
    if (unlocked([&] { return device_.execute(query); }) != DriverStatus::kSuccess) return;
    const Call asked = renamed_inputs(names_, query);
    oracle_.advance_stream(thread, std::get<StreamQuery>(asked).stream);
    done_.push_back(stream);
  };
  std::vector<StreamHandle> streams;
  for (const auto& [value, unused] : live_[ObjectKind::kStream])
    streams.push_back(StreamHandle{value});
  for (const StreamHandle stream : streams) look(stream);
  look(kLegacyStream);
}

void Follower::look_at_pool(const Call& device, bool unsettled) {
  reserved_.reset();
  if (!shows_frees(device)) return;
  if (look_ && is_pool_allocation(device) && unsettled && captures_ == 0 && pool_in_use_ != 0)
    reserved_ = unlocked([&] { return look_(device); });
  looks_.push_back({done_, reserved_});
}

std::uint64_t Follower::oracle_reserved(model::ThreadId thread) {
  Call get = MemPoolGetAttribute{PoolHandle{pool_in_use_}, PoolAttribute::kReservedMemCurrent, 0};
  if (model::step(oracle_, thread, get) != DriverStatus::kSuccess) return 0;
  return std::get<MemPoolGetAttribute>(get).value;
}

void Follower::force_choices(const Call& device) {
  const auto* create = std::get_if<MemCreate>(&device);
  const auto* import = std::get_if<MemImportFromShareableHandle>(&device);
  if (const auto* reserve = std::get_if<MemAddressReserve>(&device)) {
    oracle_.force_next_reserve(reserve->ptr.value);
  } else if (create != nullptr || import != nullptr) {
    const AllocationHandle handle = create != nullptr ? create->handle : import->handle;
    oracle_.force_next_handle(handle.value);
  } else if (pool_in_use_ != 0) {
    const auto shift = pool_shift_.find(pool_in_use_);
    if (shift == pool_shift_.end()) return;
    const auto* one = std::get_if<MemAllocAsync>(&device);
    const auto* from = std::get_if<MemAllocFromPoolAsync>(&device);
    const std::uint64_t ptr = one != nullptr ? one->ptr.value : from->ptr.value;
    if (ptr != 0) oracle_.force_next_pool_block(ptr - shift->second);
  }
}

Follower::Try Follower::attempt(const Call& device, DriverStatus status, const Call& asked,
                                model::ThreadId thread) {
  Try tried{asked, DriverStatus::kSuccess, {}};
  if (status == DriverStatus::kSuccess) force_choices(device);
  tried.status = error_.step(oracle_, thread, tried.call);
  oracle_.clear_forced();
  const auto* mark = std::get_if<MemPoolGetAttribute>(&tried.call);
  const bool free_mark = mark != nullptr && mark->attribute == PoolAttribute::kReservedMemHigh &&
                         refused_pools_.count(mark->pool.value) != 0;
  if (tried.status != status) {
    tried.field = "status";
  } else if (free_mark) {  // what a refused request left there differs from run to run
  } else if (status == DriverStatus::kSuccess) {
    tried.field = first_difference(names_, without_own_memory(device, thread), tried.call);
    if (tried.field.empty() && pool_in_use_ != 0 && pool_shift_.count(pool_in_use_) != 0) {
      const auto* one = std::get_if<MemAllocAsync>(&device);
      const std::uint64_t ptr =
          one != nullptr ? one->ptr.value : std::get<MemAllocFromPoolAsync>(device).ptr.value;
      const auto* other = std::get_if<MemAllocAsync>(&tried.call);
      const std::uint64_t placed = other != nullptr
                                       ? other->ptr.value
                                       : std::get<MemAllocFromPoolAsync>(tried.call).ptr.value;
      if (ptr != 0 && placed != ptr - pool_shift_.at(pool_in_use_)) tried.field = "ptr";
    }
    const auto* reserve = std::get_if<MemAddressReserve>(&device);
    if (reserve != nullptr && std::get<MemAddressReserve>(tried.call).ptr != reserve->ptr)
      tried.field = "ptr";
  }
  if (tried.field.empty() && reserved_ && oracle_reserved(thread) != *reserved_)
    tried.field = "reserved";
  return tried;
}

Call Follower::without_own_memory(const Call& device, model::ThreadId thread) {
  Call adjusted = device;
  auto* info = std::get_if<MemGetInfo>(&adjusted);
  if (info == nullptr || own_memory_.empty()) return adjusted;
  Call where = CtxGetDevice{};
  if (model::step(oracle_, thread, where) != DriverStatus::kSuccess) return adjusted;
  const auto own = own_memory_.find(std::get<CtxGetDevice>(where).device.value);
  if (own != own_memory_.end()) info->free -= static_cast<std::uint64_t>(own->second);
  return adjusted;
}

// How much of the last free memory can be had is the device's choice.
bool Follower::retry_grant(Try& tried, const Call& device, DriverStatus status, const Call& asked,
                           model::ThreadId thread, const model::DriverState& before) {
  const bool granted = status == DriverStatus::kSuccess;
  const bool refused = status == DriverStatus::kOutOfMemory;
  if (!(granted && tried.status == DriverStatus::kOutOfMemory) &&
      !(refused && tried.status == DriverStatus::kSuccess))
    return false;
  const model::DriverState after = oracle_;
  oracle_ = before;
  oracle_.force_next_grant(granted);
  Try next = attempt(device, status, asked, thread);
  if (!next.field.empty()) {
    oracle_ = after;
    return false;
  }
  tried = std::move(next);
  ++followed_;
  return true;
}

bool Follower::retry(Try& tried, const Call& device, DriverStatus status, const Call& asked,
                     model::ThreadId thread, const model::DriverState& before) {
  const model::DriverState after = oracle_;
  const auto again = [&](const auto& change) {
    oracle_ = before;
    change();
    Try next = attempt(device, status, asked, thread);
    if (!next.field.empty()) return false;
    tried = std::move(next);
    ++followed_;
    return true;
  };
  if (is_sticky(status)) {
    if (again([&] { oracle_.reveal_faults(); })) return true;
    if (again([&] {
          oracle_.drain();
          oracle_.reveal_faults();
        }))
      return true;
  }
  if (is_pool_allocation(device)) {
    for (const StreamHandle stream : streams_)
      if (again([&] { oracle_.advance_frees(thread, stream); })) return true;
    if (again([&] {
          for (const StreamHandle stream : streams_) oracle_.advance_frees(thread, stream);
        }))
      return true;
  }
  for (const StreamHandle stream : streams_)
    if (again([&] { oracle_.advance_stream(thread, stream); })) return true;
  if (again([&] { oracle_.drain(); })) return true;
  oracle_ = after;
  return false;
}

}  // namespace granule::gpu
