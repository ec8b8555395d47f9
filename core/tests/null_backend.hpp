// A driver that does nothing: every call succeeds at once. For the core's own time and for tests
// of what the core refuses before any call. It checks nothing; the model is there for that.
#pragma once

#include <granule/backend_api/backend.hpp>

namespace granule {

class NullBackend final : public Backend {
 public:
  static constexpr std::uint64_t kGranule = 2u << 20;

  DriverStatus execute(Call& call) noexcept override {
    ++calls;
    if (auto* c = std::get_if<MemAddressReserve>(&call)) {
      c->ptr = DevicePtr{next_address_};
      next_address_ += c->size;
    } else if (auto* create = std::get_if<MemCreate>(&call)) {
      create->handle = AllocationHandle{++next_handle_};
    } else if (auto* granularity = std::get_if<MemGetAllocationGranularity>(&call)) {
      granularity->granularity = kGranule;
    } else if (auto* count = std::get_if<DeviceGetCount>(&call)) {
      count->count = 2;
    } else if (auto* total = std::get_if<DeviceTotalMem>(&call)) {
      total->total = 1ull << 40;
    } else if (auto* attribute = std::get_if<DeviceGetAttribute>(&call)) {
      attribute->value = 1;
    } else if (auto* peer = std::get_if<DeviceCanAccessPeer>(&call)) {
      peer->can = 1;
    } else if (auto* context = std::get_if<StreamGetCtx>(&call)) {
      context->context = ContextHandle{7};
    } else if (auto* id = std::get_if<StreamGetId>(&call)) {
      id->id = StreamId{c_stream_id(id->stream)};
    } else if (auto* event = std::get_if<EventCreate>(&call)) {
      event->event = EventHandle{++next_handle_};
    } else if (auto* retain = std::get_if<DevicePrimaryCtxRetain>(&call)) {
      retain->context = ContextHandle{7};
    }
    return DriverStatus::kSuccess;
  }

  std::uint64_t calls = 0;

 private:
  static std::uint64_t c_stream_id(StreamHandle stream) { return stream.value; }
  std::uint64_t next_address_ = 1ull << 36;
  std::uint64_t next_handle_ = 100;
};

inline constexpr std::uint64_t kG = NullBackend::kGranule;

}  // namespace granule
