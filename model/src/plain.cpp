// cuMemGetInfo, cuMemAlloc memory and pinned host memory.
#include <algorithm>
#include <cstdlib>

#include "calls.hpp"
#include "streams.hpp"
#include "vmm.hpp"

namespace granule::model {
namespace {

constexpr std::uint64_t kPlainUnit = 512;
constexpr std::uint64_t kPinnedStep = 2 * kMiB;
constexpr std::uint64_t kMostPinned = std::uint64_t{1} << 40;

std::uint64_t block_unit(const State& state) { return round_up(2 * kMiB, granule_of(state)); }

/// A new 2 MiB (or larger) block of device memory with addresses.
std::optional<std::uint64_t> new_block(State& state, std::int32_t device, std::uint64_t size,
                                       bool small) {
  if (!take_memory(state, device_location({device}), size, true)) return std::nullopt;
  const auto base = state.plain_addresses().choose(size, 1, 0, state.config.placement, false);
  if (!base) {
    give_memory(state, device_location({device}), size);
    return std::nullopt;
  }
  state.plain_addresses().take(*base, size);
  PlainBlock& block = state.plain_blocks[*base];
  block.size = size;
  block.device = device;
  block.small = small;
  return base;
}

/// The lowest place for `size` bytes in a small block.
std::optional<std::uint64_t> room_in(const PlainBlock& block, std::uint64_t size) {
  std::uint64_t at = 0;
  for (const auto& [offset, used] : block.pieces) {
    if (offset - at >= size) return at;
    at = offset + used;
  }
  if (block.size - at >= size) return at;
  return std::nullopt;
}

struct Placed {
  std::uint64_t address = 0;
  std::uint64_t block = 0;
};

std::optional<Placed> place_plain(State& state, std::int32_t device, std::uint64_t size) {
  const std::uint64_t unit = block_unit(state);
  if (size >= 2 * kMiB) {
    const auto base = new_block(state, device, round_up(size, unit), false);
    if (!base) return std::nullopt;
    return Placed{*base, *base};
  }
  const std::uint64_t rounded = round_up(size, kPlainUnit);
  for (auto& [base, block] : state.plain_blocks) {
    if (!block.small || block.device != device) continue;
    if (const auto offset = room_in(block, rounded)) {
      block.pieces[*offset] = rounded;
      return Placed{base + *offset, base};
    }
  }
  const auto base = new_block(state, device, unit, true);
  if (!base) return std::nullopt;
  state.plain_blocks[*base].pieces[0] = rounded;
  return Placed{*base, *base};
}

using PlainIterator = std::map<std::uint64_t, PlainMemory>::iterator;

void give_block_back(State& state, std::uint64_t address, const PlainMemory& memory) {
  const auto block = state.plain_blocks.find(memory.block);
  if (block->second.small) block->second.pieces.erase(address - block->first);
  if (!block->second.pieces.empty()) return;
  give_memory(state, device_location({block->second.device}), block->second.size);
  state.plain_addresses().give(block->first, block->second.size);
  state.plain_blocks.erase(block);
}

void uncount_plain(State& state, const PlainMemory& memory) {
  state.ledger.plain_blocks -= 1;
  state.ledger.plain_bytes -= memory.size;
}

void erase_plain(State& state, PlainIterator it) {
  give_block_back(state, it->first, it->second);
  uncount_plain(state, it->second);
  state.plain.erase(it);
}

DriverStatus refuse_free(State& state, DevicePtr ptr) {
  violate(state, ViolationKind::kForeignFree,
          "free of " + hex(ptr.value) + ", which is no allocation");
  return DriverStatus::kInvalidValue;
}

}  // namespace

DriverStatus run_call(State& state, ThreadId thread, MemGetInfo& call) {
  std::uint64_t context = 0;
  const DriverStatus current = need_context(state, thread, context);
  if (current != DriverStatus::kSuccess) return current;
  const auto index = static_cast<std::size_t>(state.contexts.at(context).device);
  call.free = state.devices[index].free;
  call.total = state.devices[index].total;
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId thread, MemAlloc& call) {
  call.ptr = {};  // written by failing calls too
  std::uint64_t context = 0;
  const DriverStatus current = need_context(state, thread, context);
  if (current != DriverStatus::kSuccess) return current;
  const DriverStatus allowed = check_capture_allows(state, thread);
  if (allowed != DriverStatus::kSuccess) return allowed;
  if (call.size == 0) return DriverStatus::kInvalidValue;
  const std::int32_t device = state.contexts.at(context).device;
  if (call.size > AddressSpace::kTop) {
    empty_pools(state, device_location({device}));
    return DriverStatus::kOutOfMemory;
  }
  const auto placed = place_plain(state, device, call.size);
  if (!placed) return DriverStatus::kOutOfMemory;
  PlainMemory& made = state.plain[placed->address];
  made.size = call.size;
  made.block = placed->block;
  made.device = device;
  made.context = ContextHandle{context};
  made.buffer_id = state.next_id++;
  state.ledger.plain_blocks += 1;
  state.ledger.plain_bytes += call.size;
  call.ptr = DevicePtr{placed->address};
  return DriverStatus::kSuccess;
}

DriverStatus free_plain_now(State& state, DevicePtr ptr) {
  const auto it = state.plain.find(ptr.value);
  if (it == state.plain.end()) return refuse_free(state, ptr);
  if (state.pending_memory_work != 0) {
    if (has_unordered_work(state, kNone, ptr.value, it->second.size)) {
      violate(state, ViolationKind::kUnorderedFree,
              "free of " + hex(ptr.value) + " while queued work uses it");
    }
    cut_pending_work(state, ptr.value, it->second.size, -1);
  }
  erase_plain(state, it);
  return DriverStatus::kSuccess;
}

DriverStatus free_plain_on(State& state, std::uint64_t stream, DevicePtr ptr) {
  const auto it = state.plain.find(ptr.value);
  if (it == state.plain.end()) return refuse_free(state, ptr);
  const std::uint64_t size = it->second.size;
  if (state.pending_memory_work == 0 || !has_unordered_work(state, kNone, ptr.value, size)) {
    erase_plain(state, it);
    return DriverStatus::kSuccess;
  }
  if (has_unordered_work(state, stream, ptr.value, size)) {
    violate(state, ViolationKind::kUnorderedFree,
            "free of " + hex(ptr.value) + " on a stream while unordered work uses it");
  }
  uncount_plain(state, it->second);
  state.dying_plain.insert(state.plain.extract(it));
  Work free;
  free.kind = WorkKind::kFreePlain;
  free.dst = ptr.value;
  enqueue(state, stream, std::move(free));
  return DriverStatus::kSuccess;
}

void plain_free_has_run(State& state, std::uint64_t base, const StreamPoint& point) {
  const auto it = state.dying_plain.find(base);
  if (it != state.dying_plain.end()) it->second.freed = point;
}

// Measured: the memory comes back when the stream is waited for, not when the free has run.
void observe_plain_frees(State& state, const StreamPoint& point) {
  for (auto it = state.dying_plain.begin(); it != state.dying_plain.end();) {
    const auto here = it++;
    const StreamPoint& freed = here->second.freed;
    if (freed.stream == point.stream && freed.position <= point.position)
      finish_plain_free(state, here->first);
  }
}

void finish_plain_free(State& state, std::uint64_t base) {
  const auto it = state.dying_plain.find(base);
  if (it == state.dying_plain.end()) return;
  give_block_back(state, base, it->second);
  state.dying_plain.erase(it);
}

DriverStatus run_call(State& state, ThreadId thread, MemFree& call) {
  if (call.ptr.value == 0) return DriverStatus::kSuccess;
  const auto plain = state.plain.find(call.ptr.value);
  const auto block = state.pools.block_at(call.ptr);
  std::int32_t device = 0;
  if (plain != state.plain.end()) device = plain->second.device;
  if (block && block->pool->place().type == LocationType::kDevice) {
    device = block->pool->place().id;
  }
  const DriverStatus sticky = state.devices[static_cast<std::size_t>(device)].sticky;
  if (sticky != DriverStatus::kSuccess) return sticky;
  const DriverStatus allowed = check_capture_allows(state, thread);
  if (allowed != DriverStatus::kSuccess) return allowed;
  if (const auto freed = free_pool_block(state, call.ptr)) return *freed;
  if (plain == state.plain.end()) {
    violate(state, ViolationKind::kForeignFree,
            "cuMemFree of " + hex(call.ptr.value) + ", which is no allocation");
    return DriverStatus::kInvalidValue;
  }
  const DriverStatus waited = wait_for_context(state, device, 0, false);
  if (waited != DriverStatus::kSuccess) return waited;
  erase_plain(state, state.plain.find(call.ptr.value));
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId thread, MemAllocHost& call) {
  call.host = 0;
  std::uint64_t context = 0;
  const DriverStatus current = need_context(state, thread, context);
  if (current != DriverStatus::kSuccess) return current;
  const DriverStatus allowed = check_capture_allows(state, thread);
  if (allowed != DriverStatus::kSuccess) return allowed;
  if (call.size == 0) return DriverStatus::kInvalidValue;
  if (call.size > kMostPinned) return DriverStatus::kOutOfMemory;
  PinnedMemory made;
  made.size = call.size;
  made.context = ContextHandle{context};
  made.buffer_id = state.next_id++;
  std::uint64_t address = state.next_pinned;
  if (state.config.real_pinned) {
    // Zeroed by whoever provides the pages, so that what is not touched costs nothing.
    constexpr std::uint64_t kPage = 4096;
    void* const whole = std::calloc(static_cast<std::size_t>(call.size + kPage), 1);
    if (whole == nullptr) return DriverStatus::kOutOfMemory;
    auto* bytes =
        reinterpret_cast<std::uint8_t*>(round_up(reinterpret_cast<std::uint64_t>(whole), kPage));
    made.real = {bytes, [whole](std::uint8_t*) { std::free(whole); }};
    address = reinterpret_cast<std::uint64_t>(bytes);
  } else {
    state.next_pinned += round_up(call.size, kPinnedStep);
  }
  state.pinned.emplace(address, std::move(made));
  state.ledger.pinned_blocks += 1;
  call.host = address;
  return DriverStatus::kSuccess;
}

DriverStatus run_call(State& state, ThreadId thread, MemFreeHost& call) {
  const auto it = state.pinned.find(call.host);
  if (it == state.pinned.end()) {
    if (call.host != 0) {
      violate(state, ViolationKind::kForeignFree,
              "cuMemFreeHost of " + hex(call.host) + ", which is no allocation");
    }
    return DriverStatus::kInvalidValue;
  }
  const auto home = state.contexts.find(it->second.context.value);
  const std::int32_t device = home == state.contexts.end() ? 0 : home->second.device;
  const DriverStatus sticky = state.devices[static_cast<std::size_t>(device)].sticky;
  if (sticky != DriverStatus::kSuccess) return sticky;
  const DriverStatus allowed = check_capture_allows(state, thread);
  if (allowed != DriverStatus::kSuccess) return allowed;
  const DriverStatus waited = wait_for_context(state, device, 0, false);
  if (waited != DriverStatus::kSuccess) return waited;
  state.host_words.erase(state.host_words.lower_bound(call.host),
                         state.host_words.lower_bound(call.host + it->second.size));
  state.pinned.erase(call.host);
  state.ledger.pinned_blocks -= 1;
  return DriverStatus::kSuccess;
}

}  // namespace granule::model
