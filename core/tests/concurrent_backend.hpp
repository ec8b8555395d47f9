// A driver for many threads that orders none of them: its counters are relaxed atomics, so that a
// thread sanitizer sees the core's own synchronisation and nothing else.
#pragma once

#include <atomic>
#include <cstdint>

#include <granule/backend_api/backend.hpp>

namespace granule {

inline constexpr std::uint64_t kGranule = std::uint64_t{2} << 20;

class ConcurrentBackend final : public Backend {
 public:
  DriverStatus execute(Call& call) noexcept override {
    take(calls_, 1);
    if (auto* reserve = std::get_if<MemAddressReserve>(&call)) {
      reserve->ptr = DevicePtr{take(next_address_, reserve->size)};
      add(reservations_, 1);
    } else if (std::holds_alternative<MemAddressFree>(call)) {
      add(reservations_, -1);
    } else if (auto* create = std::get_if<MemCreate>(&call)) {
      const DriverStatus refusal = refusal_.load(std::memory_order_relaxed);
      if (refusal != DriverStatus::kSuccess) return refusal;
      create->handle = AllocationHandle{take(next_handle_, 1)};
      add(handles_, 1);
    } else if (auto* import = std::get_if<MemImportFromShareableHandle>(&call)) {
      import->handle = AllocationHandle{take(next_handle_, 1)};
      add(handles_, 1);
    } else if (std::holds_alternative<MemRelease>(call)) {
      add(handles_, -1);
    } else if (std::holds_alternative<MemMap>(call)) {
      add(mappings_, 1);
    } else if (std::holds_alternative<MemUnmap>(call)) {
      add(mappings_, -1);
    } else if (auto* shared = std::get_if<MemExportToShareableHandle>(&call)) {
      shared->descriptor.value = static_cast<std::int32_t>(take(next_handle_, 1));
      add(descriptors_, 1);
    } else if (std::holds_alternative<CloseDescriptor>(call)) {
      add(descriptors_, -1);
    } else if (auto* plain = std::get_if<MemAlloc>(&call)) {
      plain->ptr = DevicePtr{take(next_address_, kGranule)};
      add(blocks_, 1);
    } else if (auto* block = std::get_if<MemAllocFromPoolAsync>(&call)) {
      block->ptr = DevicePtr{take(next_address_, kGranule)};
      add(blocks_, 1);
    } else if (std::holds_alternative<MemFree>(call) ||
               std::holds_alternative<MemFreeAsync>(call) ||
               std::holds_alternative<MemPoolDestroy>(call)) {
      add(blocks_, -1);
    } else if (auto* pool = std::get_if<MemPoolCreate>(&call)) {
      pool->pool = PoolHandle{take(next_handle_, 1)};
      add(blocks_, 1);
    } else if (auto* event = std::get_if<EventCreate>(&call)) {
      event->event = EventHandle{take(next_handle_, 1)};
      add(events_, 1);
    } else if (std::holds_alternative<EventDestroy>(call)) {
      add(events_, -1);
    } else if (std::holds_alternative<EventQuery>(call)) {
      if (take(queries_, 1) % 3 != 0) return DriverStatus::kNotReady;
    } else {
      answer_question(call);
    }
    return DriverStatus::kSuccess;
  }

  std::uint64_t calls() const { return calls_.load(); }
  /// From now on creates are refused with this; success: they work again.
  void refuse_creates(DriverStatus status) { refusal_.store(status); }
  /// What the driver holds for its clients: all 0 if everything was given back.
  std::int64_t held() const {
    return reservations_.load() + handles_.load() + mappings_.load() + descriptors_.load() +
           events_.load() + blocks_.load();
  }

 private:
  static std::uint64_t take(std::atomic<std::uint64_t>& counter, std::uint64_t by) {
    return counter.fetch_add(by, std::memory_order_relaxed);
  }
  static void add(std::atomic<std::int64_t>& counter, std::int64_t by) {
    counter.fetch_add(by, std::memory_order_relaxed);
  }
  static void answer_question(Call& call) {
    if (auto* granularity = std::get_if<MemGetAllocationGranularity>(&call))
      granularity->granularity = kGranule;
    if (auto* count = std::get_if<DeviceGetCount>(&call)) count->count = 2;
    if (auto* total = std::get_if<DeviceTotalMem>(&call)) total->total = std::uint64_t{1} << 40;
    if (auto* attribute = std::get_if<DeviceGetAttribute>(&call)) attribute->value = 1;
    if (auto* peer = std::get_if<DeviceCanAccessPeer>(&call)) peer->can = 1;
    if (auto* context = std::get_if<StreamGetCtx>(&call)) context->context = ContextHandle{7};
    if (auto* id = std::get_if<StreamGetId>(&call)) id->id = StreamId{id->stream.value};
    if (auto* retain = std::get_if<DevicePrimaryCtxRetain>(&call))
      retain->context = ContextHandle{7};
  }

  std::atomic<std::uint64_t> next_address_{std::uint64_t{1} << 36};
  std::atomic<std::uint64_t> next_handle_{1000};
  std::atomic<std::uint64_t> queries_{0};
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<DriverStatus> refusal_{DriverStatus::kSuccess};
  std::atomic<std::int64_t> reservations_{0};
  std::atomic<std::int64_t> handles_{0};
  std::atomic<std::int64_t> mappings_{0};
  std::atomic<std::int64_t> descriptors_{0};
  std::atomic<std::int64_t> events_{0};
  std::atomic<std::int64_t> blocks_{0};  // of plain memory and of pools, and the pools
};

}  // namespace granule
