// Counting host memory: each block carries a header in front of it that says what it is.
#include <granule/backends/count.hpp>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace granule::count {

struct CountingHostMemory::Header {
  std::uint64_t state;
  std::size_t size;
  std::size_t alignment;
  std::size_t front;  // bytes between the start of the memory and the block
};

namespace {
constexpr std::uint64_t kLive = 0x4c49564547524e4cull;
constexpr std::uint64_t kDead = 0x4445414447524e4cull;

std::byte* bytes_at(void* block) { return static_cast<std::byte*>(block); }
}  // namespace

CountingHostMemory::Header* CountingHostMemory::header_of(void* block) noexcept {
  return reinterpret_cast<Header*>(bytes_at(block) - sizeof(Header));
}

void CountingHostMemory::free_block(Header* header) noexcept {
  if (!header) return;
  std::byte* const block = reinterpret_cast<std::byte*>(header) + sizeof(Header);
  const std::align_val_t alignment{std::max(header->alignment, alignof(Header))};
  ::operator delete(block - header->front, alignment);
}

CountingHostMemory::~CountingHostMemory() {
  for (Header* header : held_back_) free_block(header);
}

void* CountingHostMemory::allocate(std::size_t size, std::size_t alignment) noexcept {
  const std::size_t aligned = std::max(alignment, alignof(Header));
  const std::size_t front = std::max(aligned, sizeof(Header));
  const std::lock_guard lock(mutex_);
  const std::uint64_t number = ++allocations_;
  for (const Failing& rule : failing_) {
    if (number < rule.first || number - rule.first >= rule.times) continue;
    ++failed_;
    return nullptr;
  }
  // More is refused on every machine alike, whatever it has: runs are to be the same everywhere.
  constexpr std::size_t kMost = std::size_t{4} << 30;
  if (size > kMost) return nullptr;
  void* memory = ::operator new (size + front, std::align_val_t{aligned}, std::nothrow);
  if (!memory) return nullptr;
  void* block = bytes_at(memory) + front;
  new (header_of(block)) Header{kLive, size, alignment, front};
  ++live_blocks_;
  live_bytes_ += size;
  peak_bytes_ = std::max(peak_bytes_, live_bytes_);
  return block;
}

void CountingHostMemory::deallocate(void* block, std::size_t size, std::size_t alignment) noexcept {
  if (!block) return;
  const std::lock_guard lock(mutex_);
  Header* header = header_of(block);
  if (header->state != kLive) {
    misuses_.push_back(header->state == kDead ? HostMisuse::kDoubleFree : HostMisuse::kForeign);
    return;
  }
  if (header->size != size) misuses_.push_back(HostMisuse::kWrongSize);
  if (header->alignment != alignment) misuses_.push_back(HostMisuse::kWrongAlignment);
  --live_blocks_;
  live_bytes_ -= header->size;
  header->state = kDead;
  // Both ends of a large block are enough to show a use after the free.
  constexpr std::size_t kPoisoned = 4096;
  auto* const bytes = static_cast<unsigned char*>(block);
  const std::size_t ends = std::min<std::size_t>(header->size, kPoisoned);
  std::memset(bytes, 0xDB, ends);
  std::memset(bytes + header->size - ends, 0xDB, ends);
  free_block(std::exchange(held_back_[next_held_], header));
  next_held_ = (next_held_ + 1) % kHeldBack;
}

void CountingHostMemory::fail(std::uint64_t nth, std::uint64_t times) {
  const std::lock_guard lock(mutex_);
  failing_.push_back({allocations_ + nth, times});
}

void CountingHostMemory::clear_faults() {
  const std::lock_guard lock(mutex_);
  failing_.clear();
}

std::uint64_t CountingHostMemory::allocations() const {
  const std::lock_guard lock(mutex_);
  return allocations_;
}
std::uint64_t CountingHostMemory::failed() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}
std::uint64_t CountingHostMemory::live_blocks() const {
  const std::lock_guard lock(mutex_);
  return live_blocks_;
}
std::uint64_t CountingHostMemory::live_bytes() const {
  const std::lock_guard lock(mutex_);
  return live_bytes_;
}
std::uint64_t CountingHostMemory::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_bytes_;
}
std::vector<HostMisuse> CountingHostMemory::take_misuses() {
  const std::lock_guard lock(mutex_);
  return std::exchange(misuses_, {});
}

}  // namespace granule::count
