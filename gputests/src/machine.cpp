// A followed device as a machine of the interpreter.
#include "machine.hpp"

#include <cstdio>
#include <utility>

namespace granule::gpu {

FollowingMachine::FollowingMachine(Backend& device, model::Config config, Options options)
    : options_(std::move(options)),
      device_(device),
      threads_(device),
      oracle_(following(std::move(config))),
      follower_(options_.set_device_thread ? device_ : static_cast<Backend&>(threads_), oracle_,
                ModelError(options_.plant)) {
  if (!options_.without_context && !options_.without_init) keep_primaries();
  if (options_.careful) follower_.spare_pools();
  if (options_.record) recorder_ = std::make_unique<record::RecordBackend>(follower_);
  follower_.set_look([this](const Call& allocation) { return look_at_pool(allocation); }, true);
}

// What was seen of streams and pools stands around the allocations, so that a later run can follow.
std::vector<record::Entry> FollowingMachine::take_recording() {
  std::vector<record::Entry> all;
  if (!recorder_) return all;
  auto look = follower_.looks().begin();
  for (record::Entry& entry : recorder_->take()) {
    const auto* from = std::get_if<MemAllocFromPoolAsync>(&entry.call);
    const std::uint32_t thread = entry.thread;
    const PoolHandle handle = from != nullptr ? from->pool : PoolHandle{};
    const bool made = shows_frees(entry.call) && (entry.status == DriverStatus::kSuccess ||
                                                  entry.status == DriverStatus::kOutOfMemory);
    if (!made || look == follower_.looks().end()) {
      all.push_back(std::move(entry));
      continue;
    }
    for (const StreamHandle done : look->done)
      all.push_back({thread, CallOrigin::kHarness, DriverStatus::kSuccess, StreamQuery{done}});
    all.push_back(std::move(entry));
    if (look->reserved)
      all.push_back(
          {thread, CallOrigin::kHarness, DriverStatus::kSuccess,
           MemPoolGetAttribute{handle, PoolAttribute::kReservedMemCurrent, *look->reserved}});
    ++look;
  }
  return all;
}

std::optional<std::uint64_t> FollowingMachine::look_at_pool(const Call& allocation) {
  const OriginScope scope(CallOrigin::kHarness);
  MemPoolGetAttribute get;
  get.attribute = PoolAttribute::kReservedMemCurrent;
  if (const auto* from = std::get_if<MemAllocFromPoolAsync>(&allocation)) {
    get.pool = from->pool;
  } else {
    StreamGetCtx where;
    where.stream = std::get<MemAllocAsync>(allocation).stream;
    // A default stream's context is that of the program's own thread, which need not be this one.
    if (where.stream.value <= kPerThreadStream.value) return std::nullopt;
    if (device_.run(where) != DriverStatus::kSuccess) return std::nullopt;
    CtxPushCurrent push{where.context};
    if (device_.run(push) != DriverStatus::kSuccess) return std::nullopt;
    CtxGetDevice device;
    device_.run(device);
    CtxPopCurrent pop;
    device_.run(pop);
    DeviceGetMemPool current;
    current.device = device.device;
    if (device_.run(current) != DriverStatus::kSuccess) return std::nullopt;
    get.pool = current.pool;
  }
  if (device_.run(get) != DriverStatus::kSuccess) return std::nullopt;
  return get.value;
}

FollowingMachine::~FollowingMachine() {
  if (follower_.sticky()) return;  // nothing can be given back; the process is done for
  follower_.give_everything_back(primaries_.empty() ? ContextHandle{} : primaries_.front());
}

void FollowingMachine::set_thread(std::uint32_t number) {
  follower_.set_thread(number);
  if (options_.set_device_thread) {
    options_.set_device_thread(number);
  } else {
    threads_.set_thread(number);
  }
}

// The owner of a device holds one reference of each primary context, the oracle must have it too.
void FollowingMachine::keep_primaries() {
  const OriginScope scope(CallOrigin::kHarness);
  Init init;
  follower_.run(init);
  const std::size_t devices = oracle_.config().devices.size();
  for (std::size_t i = 0; i < devices; ++i) {
    DevicePrimaryCtxRetain retain;
    retain.device.value = static_cast<std::int32_t>(i);
    const bool kept = follower_.run(retain) == DriverStatus::kSuccess;
    primaries_.push_back(kept ? retain.context : ContextHandle{});
    DevicePrimaryCtxRelease release;
    release.device = retain.device;
    if (kept) device_.run(release);
  }
}

void FollowingMachine::compare_free() {
  for (std::size_t i = 0; i < primaries_.size(); ++i) {
    if (!primaries_[i]) continue;
    const auto device = static_cast<std::int32_t>(i);
    std::optional<std::uint64_t> free = device_free(primaries_[i]);
    if (free && !follower_.agrees_on_free(device, *free) && follower_.look_for_progress())
      free = device_free(primaries_[i]);
    if (free) follower_.compare_free(device, *free);
  }
}

std::optional<std::uint64_t> FollowingMachine::device_free(ContextHandle context) {
  CtxPushCurrent push{context};
  if (device_.run(push) != DriverStatus::kSuccess) return std::nullopt;
  MemGetInfo info;
  const DriverStatus status = device_.run(info);
  CtxPopCurrent pop;
  device_.run(pop);
  if (status != DriverStatus::kSuccess) return std::nullopt;
  return info.free;
}

std::optional<prop::MachineFinding> FollowingMachine::after_statement() {
  if (options_.compare_free && !follower_.sticky() && !follower_.diverged()) compare_free();
  if (!follower_.diverged()) return std::nullopt;
  const std::vector<Divergence> found = follower_.take_divergences();
  if (options_.keep_going) {
    for (const Divergence& one : found) std::printf("differs: %s\n", to_text(one).c_str());
    return std::nullopt;
  }
  if (found.empty()) return std::nullopt;
  return prop::MachineFinding{found.front().signature, to_text(found.front())};
}

}  // namespace granule::gpu
