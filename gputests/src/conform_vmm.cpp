// Lines of the virtual memory calls, their misuse included.
#include <algorithm>
#include <array>

#include "conform_writer.hpp"

namespace granule::gpu {

std::string ConformWriter::address(const Place& place, std::uint64_t at) const {
  return at == 0 ? place.name : place.name + "+" + granules(at);
}

void ConformWriter::settle() {
  if (!unsettled_) return;
  line("cuCtxSynchronize");
  unsettled_ = false;
}

std::size_t ConformWriter::live_memory() {
  std::vector<std::size_t> live;
  for (std::size_t i = 0; i < memories_.size(); ++i)
    if (!memories_[i].names.empty()) live.push_back(i);
  return live.empty() ? SIZE_MAX : any(live);
}

void ConformWriter::reserve() {
  constexpr std::size_t kMost = 12;
  const std::uint64_t kind = pick(24);
  static constexpr std::array<const char*, 14> kOdd{
      "0",          "1",           "4KiB",          "3g-4KiB",          "2g+64KiB",
      "2g align=3", "2g align=3g", "2g flags=1",    "2g at=4096",       "2^47",
      "2^63",       "2g at=2^47",  "1g align=2^47", "2g align=2g at=1g"};
  if (kind < 3) return line("cuMemAddressReserve " + std::string(kOdd[pick(kOdd.size())]));
  if (places_.size() >= kMost) return free_place();
  static constexpr std::array<std::uint64_t, 10> kSizes{1, 2, 3, 4, 8, 15, 16, 17, 32, 48};
  Place place;
  place.size = kSizes[pick(kSizes.size())];
  std::string more;
  if (kind < 5) more = " align=" + granules(std::uint64_t{1} << pick(8));
  if (kind >= 5 && kind < 10 && !places_.empty()) {
    const Place& near = any(places_);
    const std::uint64_t at = chance(3) ? pick(near.size + 4) : near.size;
    more = " at=" + near.name + "+" + granules(at);
  }
  if (kind == 10) more = " at=" + std::to_string(16 + pick(64)) + "GiB";
  place.name = fresh('v');
  line(place.name + " = cuMemAddressReserve " + granules(place.size) + more);
  places_.push_back(std::move(place));
}

void ConformWriter::free_place() {
  if (places_.empty()) return reserve();
  const std::size_t index = pick(places_.size());
  Place& place = places_[index];
  const std::uint64_t kind = pick(10);
  if (kind == 0) return line("cuMemAddressFree " + place.name + " " + granules(place.size + 1));
  if (kind == 1) return line("cuMemAddressFree " + address(place, 1) + " 1g");
  if (kind == 2)
    return line("cuMemAddressFree " + place.name + " " + granules(place.size) + "-4KiB");
  const std::string exact = "cuMemAddressFree " + place.name + " " + granules(place.size);
  if (!place.mapped.empty()) {
    if (kind < 6) return line(exact);  // refused
    settle();
    line("cuMemUnmap " + place.name + " " + granules(place.size));
    for (const Mapped& mapped : place.mapped) --memories_[mapped.memory].mappings;
  }
  line(exact);
  if (chance(4)) line(exact);  // twice
  places_.erase(places_.begin() + static_cast<std::ptrdiff_t>(index));
}

void ConformWriter::create() {
  constexpr std::size_t kMost = 16;
  static constexpr std::array<const char*, 16> kOdd{"0",
                                                    "1",
                                                    "g/2",
                                                    "1g+4KiB",
                                                    "1TiB",
                                                    "2^63",
                                                    "1g flags=1",
                                                    "1g location=device:9",
                                                    "1g type=0",
                                                    "1g location=host handle=posix_fd",
                                                    "1g location=host_numa:99",
                                                    "1g handle=win32",
                                                    "1g compression=7",
                                                    "1g handle=fabric",
                                                    "1g location=host_numa_current",
                                                    "max"};
  const std::uint64_t kind = pick(24);
  if (kind < 2) {
    const std::string odd = kOdd[pick(kOdd.size())];
    return line("cuMemCreate " + (odd == "g/2" ? std::string("1g-1MiB") : odd));
  }
  std::size_t live = 0;
  for (const Memory& memory : memories_) live += memory.names.empty() ? 0u : 1u;
  if (live >= kMost) return release();
  static constexpr std::array<std::uint64_t, 8> kSizes{1, 1, 1, 2, 2, 3, 4, 16};
  Memory memory;
  memory.size = kSizes[pick(kSizes.size())];
  std::string more;
  if (kind < 6) {
    more = " handle=posix_fd";
    memory.exportable = true;
  } else if (kind == 6) {
    more = " location=host_numa:0";
    memory.on_host = true;
  } else if (kind == 7) {
    more = " rdma";
  } else if (kind == 8) {
    more = " compression=1";
  } else if (kind == 9) {
    more = " usage=1";
  }
  memory.names.push_back(fresh('h'));
  line(memory.names.back() + " = cuMemCreate " + granules(memory.size) + more);
  memories_.push_back(std::move(memory));
}

void ConformWriter::drop_reference(Memory& memory, std::size_t index) {
  line("cuMemRelease " + memory.names[index]);
  memory.names.erase(memory.names.begin() + static_cast<std::ptrdiff_t>(index));
}

void ConformWriter::release() {
  if (chance(30)) return line("cuMemRelease 0");
  const std::size_t index = live_memory();
  if (index == SIZE_MAX) return create();
  Memory& memory = memories_[index];
  drop_reference(memory, pick(memory.names.size()));
}

void ConformWriter::retain() {
  std::vector<std::size_t> with;
  for (std::size_t i = 0; i < places_.size(); ++i)
    if (!places_[i].mapped.empty()) with.push_back(i);
  if (with.empty() || chance(8)) {
    return line("cuMemRetainAllocationHandle " + any_address());
  }
  const Place& place = places_[any(with)];
  const Mapped& mapped = place.mapped[pick(place.mapped.size())];
  const std::string name = fresh('h');
  line(name + " = cuMemRetainAllocationHandle " + address(place, mapped.at + pick(mapped.size)) +
       (chance(3) ? "+512" : ""));
  memories_[mapped.memory].names.push_back(name);
}

void ConformWriter::map() {
  const std::size_t index = live_memory();
  if (index == SIZE_MAX) return create();
  if (places_.empty()) return reserve();
  Memory& memory = memories_[index];
  Place& place = any(places_);
  const std::string handle = any(memory.names);
  const std::string size = granules(memory.size);
  switch (pick(16)) {
    case 0:
      return line("cuMemMap " + place.name + " " + granules(memory.size + 1) + " " + handle);
    case 1:
      return line("cuMemMap " + place.name + " " + size + " " + handle + " offset=1g");
    case 2:
      return line("cuMemMap " + place.name + "+4096 " + size + " " + handle);
    case 3:
      return line("cuMemMap " + place.name + " " + size + " " + handle + " flags=1");
    case 4:
      return line("cuMemMap " + place.name + " 0 " + handle);
    case 5:
      return line("cuMemMap " + place.name + " " + size + " 0");
    default:
      break;
  }
  // The first gap that is large enough, or on purpose one that is taken.
  std::uint64_t at = 0;
  for (const Mapped& mapped : place.mapped)
    if (at + memory.size > mapped.at) at = mapped.at + mapped.size;
  if (at + memory.size < place.size && chance(3)) at += pick(place.size - memory.size - at + 1);
  if (at + memory.size > place.size) {
    // Never over the end of the reservation: the driver takes that, and what lies behind breaks
    // later.
    if (!place.mapped.empty() && place.mapped.front().at + memory.size <= place.size)
      line("cuMemMap " + address(place, place.mapped.front().at) + " " + size + " " + handle);
    return;
  }
  line("cuMemMap " + address(place, at) + " " + size + " " + handle);
  const Mapped made{at, memory.size, index, false};
  place.mapped.insert(
      std::upper_bound(place.mapped.begin(), place.mapped.end(), made,
                       [](const Mapped& a, const Mapped& b) { return a.at < b.at; }),
      made);
  ++memory.mappings;
  if (!chance(4)) {
    line("cuMemSetAccess " + address(place, at) + " " + size + " device:0=rw");
    for (Mapped& mapped : place.mapped)
      if (mapped.at == at) mapped.usable = true;
  }
}

void ConformWriter::unmap() {
  if (places_.empty()) return reserve();
  Place& place = any(places_);
  settle();
  const std::uint64_t kind = pick(12);
  if (kind == 0) return line("cuMemUnmap " + place.name + "+4096 1g");
  if (kind == 1) return line("cuMemUnmap " + place.name + " 0");
  if (place.mapped.empty()) return line("cuMemUnmap " + place.name + " " + granules(place.size));
  const std::size_t index = pick(place.mapped.size());
  const Mapped mapped = place.mapped[index];
  if (kind == 2 && mapped.size > 1)
    return line("cuMemUnmap " + address(place, mapped.at) + " 1g");  // cuts it
  if (kind == 3) {
    line("cuMemUnmap " + place.name + " " + granules(place.size));
    for (const Mapped& one : place.mapped) --memories_[one.memory].mappings;
    place.mapped.clear();
    return;
  }
  line("cuMemUnmap " + address(place, mapped.at) + " " + granules(mapped.size));
  --memories_[mapped.memory].mappings;
  place.mapped.erase(place.mapped.begin() + static_cast<std::ptrdiff_t>(index));
}

void ConformWriter::set_access() {
  if (places_.empty()) return reserve();
  Place& place = any(places_);
  settle();
  static constexpr std::array<const char*, 12> kGrants{"device:0=rw",
                                                       "device:0=rw",
                                                       "device:0=r",
                                                       "device:0=none",
                                                       "device:0=rw host=none",
                                                       "host=rw",
                                                       "device:99=rw",
                                                       "device:0=2",
                                                       "device:0=r device:0=rw",
                                                       "host=none",
                                                       "host_numa:7=none",
                                                       "device:0=rw device:99=r"};
  const std::uint64_t grant = pick(kGrants.size());
  if (place.mapped.empty() || chance(5)) {
    for (Mapped& mapped : place.mapped) mapped.usable = false;
    const std::uint64_t from = pick(place.size);
    return line("cuMemSetAccess " + address(place, from) + " " +
                granules(1 + pick(place.size - from)) + " " + kGrants[grant]);
  }
  const std::size_t first = pick(place.mapped.size());
  const std::size_t last = first + pick(place.mapped.size() - first);
  const std::uint64_t from = place.mapped[first].at;
  const std::uint64_t to = place.mapped[last].at + place.mapped[last].size;
  line("cuMemSetAccess " + address(place, from) + " " + granules(to - from) + " " + kGrants[grant]);
  for (std::size_t i = first; i <= last; ++i) place.mapped[i].usable = first == last && grant < 2;
}

void ConformWriter::get_access() {
  if (places_.empty()) return reserve();
  const Place& place = any(places_);
  static constexpr std::array<const char*, 6> kWho{"device:0", "device:0",  "device:0",
                                                   "host",     "device:99", "host_numa:3"};
  const std::string who = kWho[pick(kWho.size())];
  line("cuMemGetAccess " + address(place, pick(place.size)) + (chance(4) ? "+4096 " : " ") + who);
}

void ConformWriter::share() {
  constexpr std::size_t kMost = 6;
  if (!descriptors_.empty() && (descriptors_.size() >= kMost || chance(3))) {
    const std::size_t index = pick(descriptors_.size());
    line("close " + descriptors_[index]);
    descriptors_.erase(descriptors_.begin() + static_cast<std::ptrdiff_t>(index));
    described_.erase(described_.begin() + static_cast<std::ptrdiff_t>(index));
    return;
  }
  if (!descriptors_.empty() && chance(2)) {
    const std::size_t index = pick(descriptors_.size());
    Memory memory;
    memory.size = memories_[described_[index]].size;
    memory.names.push_back(fresh('h'));
    line(memory.names.back() + " = cuMemImportFromShareableHandle " + descriptors_[index] +
         " posix_fd");
    memories_.push_back(std::move(memory));
    return;
  }
  const std::size_t index = live_memory();
  if (index == SIZE_MAX) return create();
  const std::string handle = any(memories_[index].names);
  if (!memories_[index].exportable || chance(8))
    return line("cuMemExportToShareableHandle " + handle +
                (memories_[index].exportable ? " fabric" : " posix_fd"));
  descriptors_.push_back(fresh('f'));
  described_.push_back(index);
  line(descriptors_.back() + " = cuMemExportToShareableHandle " + handle + " posix_fd");
}

void ConformWriter::query_handle() {
  static constexpr std::array<const char*, 7> kFields{
      "type", "handle_types", "location_type", "location_id", "compression", "rdma", "usage"};
  const std::size_t index = live_memory();
  if (index == SIZE_MAX || chance(5))
    return line(chance(2) ? "cuMemGetAllocationGranularity minimum"
                          : "cuMemGetAllocationGranularity recommended location=host_numa:0");
  line("cuMemGetAllocationPropertiesFromHandle " + any(memories_[index].names) + " " +
       kFields[pick(kFields.size())]);
}

}  // namespace granule::gpu
