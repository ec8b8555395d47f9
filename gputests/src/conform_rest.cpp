// Lines of everything else: contents, queries, plain memory, pools, streams, captures.
#include <algorithm>
#include <array>

#include "conform_writer.hpp"

namespace granule::gpu {

std::string ConformWriter::any_stream() { return any(streams_); }

std::string ConformWriter::any_address() {
  const std::uint64_t kind = pick(8);
  if (kind == 0) return "0";
  if (kind == 1) return "2^40";
  if (kind == 2 && !plains_.empty()) return any(plains_).name + (chance(2) ? "+64" : "");
  if (kind == 3 && !blocks_.empty()) return any(blocks_).name + (chance(2) ? "+64" : "");
  if (kind == 4 && !pinned_.empty()) return any(pinned_);
  if (places_.empty()) return "4096";
  const Place& place = any(places_);
  return address(place, pick(place.size)) + (chance(3) ? "+4096" : "");
}

void ConformWriter::contents() {
  static constexpr std::array<const char*, 6> kBytes{"0x11", "0x22", "0x5A",
                                                     "0xA5", "0x00", "0xFF"};
  static constexpr std::array<const char*, 5> kSizes{"4096", "1", "512", "64KiB", "1g"};
  const std::string byte = kBytes[pick(kBytes.size())];
  std::string size = kSizes[pick(chance(12) ? 5 : 4)];
  std::string target;
  if (!plains_.empty() && chance(4)) {
    target = any(plains_).name;
  } else if (!places_.empty()) {
    const Place& place = any(places_);
    if (place.mapped.empty()) {
      target = address(place, pick(place.size));
    } else {
      const Mapped& mapped = place.mapped[pick(place.mapped.size())];
      target = address(place, mapped.at);
      // Over the seam to what lies behind in the same place; plain memory never does.
      const std::uint64_t end = mapped.at + mapped.size;
      if (end < place.size && chance(4)) target = address(place, end) + "-2048";
    }
  } else {
    return reserve();
  }
  const std::string on = chance(2) ? " on " + any_stream() : "";
  if (on != unsettled_on_) settle();  // writes without an order leave bytes that nobody knows
  unsettled_on_ = on;
  switch (pick(6)) {
    case 0:
    case 1:
      line("cuMemsetD8 " + target + " " + byte + " " + size + on);
      unsettled_ = true;
      break;
    case 2:
      line("cuMemsetD32 " + target + " " + byte + " " + (size == "1" ? "4" : size) + on);
      unsettled_ = true;
      break;
    case 3:
      if (!on.empty()) settle();
      unsettled_on_.clear();
      line("cuMemcpyHtoD " + target + " " + byte + " " + (size == "1g" ? "4096" : size));
      unsettled_ = true;
      break;
    case 4: {
      if (places_.empty()) return;
      const Place& other = any(places_);
      line("cuMemcpyDtoD " + target + " " + address(other, pick(other.size)) + " " + size + on);
      unsettled_ = true;
      break;
    }
    default:
      settle();
      line("cuMemcpyDtoH " + target + " " + (size == "1g" ? "64KiB" : size));
      break;
  }
}

void ConformWriter::query_pointer() {
  static constexpr std::array<const char*, 15> kAttributes{
      "MEMORY_TYPE",       "DEVICE_POINTER",  "HOST_POINTER",  "RANGE_START_ADDR",
      "RANGE_SIZE",        "MAPPED",          "ACCESS_FLAGS",  "MAPPING_SIZE",
      "MAPPING_BASE_ADDR", "BUFFER_ID",       "IS_MANAGED",    "ALLOWED_HANDLE_TYPES",
      "DEVICE_ORDINAL",    "MEMORY_BLOCK_ID", "MEMPOOL_HANDLE"};
  const std::string where = any_address();
  const std::uint64_t kind = pick(5);
  if (kind == 0) return line("cuMemGetAddressRange " + where);
  line(std::string(kind == 1 ? "cuPointerGetAttributes " : "cuPointerGetAttribute ") + where + " " +
       kAttributes[pick(kAttributes.size())]);
}

void ConformWriter::plain() {
  constexpr std::size_t kMost = 8;
  const std::uint64_t kind = pick(16);
  if (kind == 0) return line("cuMemAlloc 0");
  if (kind == 1) return line("cuMemAlloc 1TiB");
  if (kind == 2) return line("cuMemFree 0");
  if (kind == 3 && !places_.empty()) return line("cuMemFree " + any(places_).name);
  if (kind == 4) {
    settle();
    if (!pinned_.empty() && chance(2)) {
      line("cuMemFreeHost " + pinned_.back());
      pinned_.pop_back();
      return;
    }
    pinned_.push_back(fresh('n'));
    return line(pinned_.back() + " = cuMemAllocHost 4096");
  }
  if (plains_.empty() || (kind < 11 && plains_.size() < kMost)) {
    static constexpr std::array<std::uint64_t, 7> kSizes{
        1, 512, 4096, 1u << 20, 2u << 20, (2u << 20) + 1, 33u << 20};
    plains_.push_back({fresh('x'), kSizes[pick(kSizes.size())]});
    return line(plains_.back().name + " = cuMemAlloc " + std::to_string(plains_.back().size));
  }
  settle();
  const std::size_t index = pick(plains_.size());
  const std::string name = plains_[index].name;
  if (kind == 11) return line("cuMemFree " + name + "+64");
  line("cuMemFree " + name);
  if (chance(6)) line("cuMemFree " + name);
  plains_.erase(plains_.begin() + static_cast<std::ptrdiff_t>(index));
}

// What a pool hands out again, gives back and reports depends on which frees have run.
void ConformWriter::settle_frees() {
  if (!frees_unsettled_) return;
  line("cuCtxSynchronize");
  frees_unsettled_ = false;
}

// This driver dies sooner or later where a block outlives its pool (13 of 13 crashes in 267
// programs, DESIGN.md), so that blocks go first.
void ConformWriter::destroy_pool(const std::string& q) {
  settle();
  for (const Block& block : blocks_)
    if (block.pool == q) line("cuMemFreeAsync " + block.name + " on " + block.stream);
  std::erase_if(blocks_, [&](const Block& block) { return block.pool == q; });
  line("cuCtxSynchronize");
  line("cuMemPoolDestroy " + q);
  std::erase(pools_, q);
}

void ConformWriter::pool() {
  if (pools_.empty() || (pools_.size() < 3 && chance(12))) {
    static constexpr std::array<const char*, 6> kOptions{
        "", "", " max=64MiB", " max=1", " handle=posix_fd", " location=host_numa:0"};
    const std::string options = kOptions[pick(pools_.empty() ? 3 : 6)];
    const std::string name = fresh('q');
    line(name + " = cuMemPoolCreate" + options);
    if (options.find("host") == std::string::npos) {
      pools_.push_back(name);
      if (options.find("max") != std::string::npos) bounded_.push_back(name);
    } else {
      line("cuMemPoolGetAccess " + name + " device:0");
      line("cuMemPoolDestroy " + name);
    }
    return;
  }
  const std::string q = any(pools_);
  static constexpr std::array<const char*, 9> kGet{
      "RESERVED_MEM_CURRENT", "RESERVED_MEM_CURRENT",      "RESERVED_MEM_HIGH",
      "USED_MEM_CURRENT",     "USED_MEM_CURRENT",          "USED_MEM_HIGH",
      "RELEASE_THRESHOLD",    "REUSE_ALLOW_OPPORTUNISTIC", "9"};
  static constexpr std::array<const char*, 10> kSet{"RELEASE_THRESHOLD max",
                                                    "RELEASE_THRESHOLD 0",
                                                    "RELEASE_THRESHOLD 100MiB",
                                                    "REUSE_FOLLOW_EVENT_DEPENDENCIES 0",
                                                    "REUSE_ALLOW_OPPORTUNISTIC 0",
                                                    "REUSE_ALLOW_INTERNAL_DEPENDENCIES 0",
                                                    "USED_MEM_HIGH 0",
                                                    "RESERVED_MEM_HIGH 0",
                                                    "USED_MEM_CURRENT 0",
                                                    "REUSE_ALLOW_OPPORTUNISTIC 1"};
  static constexpr std::array<std::uint64_t, 9> kSizes{
      0, 1, 512, 4096, 1u << 20, 5u << 20, 33u << 20, 65u << 20, 100u << 20};
  constexpr std::size_t kMost = 12;
  const std::uint64_t kind = pick(24);
  settle_frees();
  if (kind < 9 && blocks_.size() < kMost) {
    // What a request over a pool's bound costs the others was seen to differ from run to run.
    const bool bounded = std::find(bounded_.begin(), bounded_.end(), q) != bounded_.end();
    const std::size_t sizes = bounded ? kSizes.size() - 3 : kSizes.size();
    const Block block{fresh('b'), any_stream(), kSizes[pick(sizes)], q};
    line(block.name + " = cuMemAllocFromPoolAsync " + std::to_string(block.size) + " " + q +
         " on " + block.stream);
    if (block.size != 0) blocks_.push_back(block);
    if (block.size >= 4096 && chance(3)) {
      line("cuMemsetD8 " + block.name + " 0x33 4096 on " + block.stream);
      unsettled_ = true;
    }
  } else if (kind < 15 && !blocks_.empty()) {
    const std::size_t index = pick(blocks_.size());
    const Block block = blocks_[index];
    blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(index));
    settle();
    line("cuMemFreeAsync " + block.name + " on " + (chance(4) ? any_stream() : block.stream));
    frees_unsettled_ = true;
    if (chance(8)) line("cuMemFreeAsync " + block.name + " on " + block.stream);
  } else if (kind < 16) {
    line("cuMemPoolSetAttribute " + q + " " + kSet[pick(kSet.size())]);
  } else if (kind == 16) {
    line("cuMemPoolTrimTo " + q + " " + (chance(2) ? "0" : "40MiB"));
  } else if (kind == 17 && chance(3)) {
    destroy_pool(q);
  } else if (kind == 18) {
    static constexpr std::array<const char*, 6> kGrants{
        "device:0=rw", "device:0=r", "device:0=none", "host=rw", "host=none", "device:99=rw"};
    line("cuMemPoolSetAccess " + q + " " + kGrants[pick(kGrants.size())]);
  } else if (kind == 19) {
    line("cuMemPoolGetAccess " + q + (chance(2) ? " device:0" : " host"));
  } else {
    line("cuMemPoolGetAttribute " + q + " " + kGet[pick(kGet.size())]);
  }
}

void ConformWriter::stream() {
  constexpr std::size_t kMost = 6;
  const std::string s = any_stream();
  switch (pick(9)) {
    case 0:
      return line("cuStreamQuery " + s);
    case 1:
      return line("cuStreamSynchronize " + s);
    case 2:
      return line("cuStreamIsCapturing " + s);
    case 3:
      return line("cuCtxSynchronize");
    default:
      break;
  }
  if (events_.empty() || (events_.size() < kMost && chance(4))) {
    events_.push_back(fresh('e'));
    return line(events_.back() + " = cuEventCreate");
  }
  const std::string e = any(events_);
  switch (pick(6)) {
    case 0:
      line("cuEventDestroy " + e);
      std::erase(events_, e);
      return;
    case 1:
      return line("cuEventQuery " + e);
    case 2:
      return line("cuEventSynchronize " + e);
    case 3:
      return line("cuStreamWaitEvent " + s + " " + e + (chance(8) ? " flags=7" : ""));
    default:
      return line("cuEventRecord " + e + " on " + s);
  }
}

void ConformWriter::held() {
  settle();
  const std::string s = streams_[pick(2)];  // a non-blocking one
  const std::string e = fresh('e');
  line(e + " = cuEventCreate");
  line("hold " + s);
  line("cuEventRecord " + e + " on " + s);
  const std::uint64_t steps = 1 + pick(6);
  for (std::uint64_t i = 0; i < steps; ++i) {
    switch (pick(9)) {
      case 0:
        line("cuStreamSynchronize " + s);
        break;
      case 1:
        line("cuEventSynchronize " + e);
        break;
      case 2:
        line("cuCtxSynchronize");
        break;
      case 3:
        line("cuStreamQuery " + s);
        break;
      case 4:
        line("cuEventQuery " + e);
        break;
      case 5:
        reserve();
        break;
      case 6:
        create();
        break;
      case 7:
        get_access();
        break;
      default:
        line("cuStreamWaitEvent " + any_stream() + " " + e);
        break;
    }
  }
  line("release " + s);
  line("cuStreamSynchronize " + s);
  line("cuCtxSynchronize");
  line("cuEventDestroy " + e);
}

void ConformWriter::capture() {
  settle();
  line("cuCtxSynchronize");
  static constexpr std::array<const char*, 3> kModes{"global", "thread_local", "relaxed"};
  const std::string s = streams_[pick(2)];
  line("begin_capture " + s + " " + kModes[pick(kModes.size())]);
  const std::uint64_t steps = 1 + pick(5);
  for (std::uint64_t i = 0; i < steps; ++i) {
    switch (pick(9)) {
      case 0:
        line("cuStreamIsCapturing " + s);
        break;
      case 1:
        reserve();
        break;
      case 2:
        create();
        break;
      case 3:
        get_access();
        break;
      case 4:
        line("cuMemGetInfo");
        break;
      case 5:
        line("cuStreamQuery " + streams_[2]);
        break;
      case 6:
        line("cuStreamIsCapturing " + streams_[2]);
        break;
      case 7:
        query_pointer();
        break;
      default:
        line("cuStreamQuery " + s);
        break;
    }
  }
  line("end_capture " + s);
}

void ConformWriter::information() {
  if (chance(3) && !places_.empty()) return get_access();
  line("cuMemGetInfo");
}

}  // namespace granule::gpu
