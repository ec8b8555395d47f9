// What a device holds for its caller, and giving it back after a run that did not end well.
#include <utility>

#include "follow.hpp"

namespace granule::gpu {

void Follower::note_live(const Call& device) {
  std::visit(
      [&](const auto& c) {
        using C = std::decay_t<decltype(c)>;
        std::uint64_t size = 1;
        if constexpr (requires { c.size; }) size = c.size;
        for_each_field(c, [&](const auto& field, const auto& member) {
          using T = std::remove_cvref_t<decltype(member)>;
          const bool made = field.role == Role::kMakes;
          if (!made && field.role != Role::kDrops) return;
          std::uint64_t value = 0;
          if constexpr (std::is_same_v<T, std::uint64_t>) {
            value = member;
          } else if constexpr (requires { member.value; }) {
            value = static_cast<std::uint64_t>(member.value);
          }
          if constexpr (std::is_same_v<T, AllocationHandle>) {
            std::uint64_t& count = references_[value];
            if (made) ++count;
            if (!made && count > 0) --count;
          } else if (field.kind != ObjectKind::kMapping) {
            if (made && value != 0) live_[field.kind][value] = size;
            if (!made) live_[field.kind].erase(value);
          }
        });
        if constexpr (std::is_same_v<C, MemFree>) live_[ObjectKind::kPoolBlock].erase(c.ptr.value);
        if constexpr (std::is_same_v<C, MemFreeAsync>)
          live_[ObjectKind::kPlainMemory].erase(c.ptr.value);
        Objects& mappings = live_[ObjectKind::kMapping];
        if constexpr (std::is_same_v<C, MemMap>) mappings[c.ptr.value] = c.size;
        if constexpr (std::is_same_v<C, MemUnmap>) {
          auto it = mappings.lower_bound(c.ptr.value);
          while (it != mappings.end() && it->first - c.ptr.value < c.size) it = mappings.erase(it);
        }
        if constexpr (std::is_same_v<C, CloseGate>) live_[ObjectKind::kNone][c.stream.value] = 1;
        if constexpr (std::is_same_v<C, OpenGate>) live_[ObjectKind::kNone].erase(c.stream.value);
      },
      device);
}

namespace {

/// Calls `give(value, size)` for each object of a kind.
template <class Objects, class Give>
void each(Objects& objects, Give give) {
  for (const auto& [value, size] : objects) give(value, size);
  objects.clear();
}

}  // namespace

void Follower::give_everything_back(ContextHandle primary) {
  decltype(live_) live;  // a wait below may run host functions, which call back
  {
    const std::lock_guard lock(mutex_);
    std::swap(live, live_);
  }
  const auto run = [&](auto call) { return device_.run(call); };
  const bool inside = primary && run(CtxPushCurrent{primary}) == DriverStatus::kSuccess;
  const auto wait = [&] {
    if (inside) run(CtxSynchronize{});
  };
  each(live[ObjectKind::kNone], [&](auto value, auto) { run(OpenGate{StreamHandle{value}}); });
  for (const auto& [value, size] : live[ObjectKind::kStream]) {
    StreamIsCapturing capturing{StreamHandle{value}, CaptureStatus::kNone};
    if (device_.run(capturing) != DriverStatus::kSuccess ||
        capturing.status == CaptureStatus::kNone)
      continue;
    StreamEndCapture end{StreamHandle{value}, {}};
    if (device_.run(end) == DriverStatus::kSuccess && end.graph)
      live[ObjectKind::kGraph][end.graph.value] = 1;
  }
  wait();
  each(live[ObjectKind::kGraph], [&](auto value, auto) { run(GraphDestroy{GraphHandle{value}}); });
  if (inside)
    each(live[ObjectKind::kPoolBlock], [&](auto value, auto) {
      run(MemFreeAsync{DevicePtr{value}, kLegacyStream});
    });
  wait();
  each(live[ObjectKind::kPlainMemory], [&](auto value, auto) { run(MemFree{DevicePtr{value}}); });
  each(live[ObjectKind::kPinnedMemory], [&](auto value, auto) { run(MemFreeHost{value}); });
  each(live[ObjectKind::kMapping], [&](auto value, auto size) {
    run(MemUnmap{DevicePtr{value}, size});
  });
  for (auto& [value, count] : references_)
    for (; count > 0; --count) run(MemRelease{AllocationHandle{value}});
  each(live[ObjectKind::kReservation], [&](auto value, auto size) {
    run(MemAddressFree{DevicePtr{value}, size});
  });
  each(live[ObjectKind::kDescriptor], [&](auto value, auto) {
    run(CloseDescriptor{Descriptor{static_cast<std::int32_t>(value)}});
  });
  each(live[ObjectKind::kPool], [&](auto value, auto) { run(MemPoolDestroy{PoolHandle{value}}); });
  each(live[ObjectKind::kEvent], [&](auto value, auto) { run(EventDestroy{EventHandle{value}}); });
  each(live[ObjectKind::kStream],
       [&](auto value, auto) { run(StreamDestroy{StreamHandle{value}}); });
  wait();
  if (inside) run(CtxPopCurrent{});
}

}  // namespace granule::gpu
