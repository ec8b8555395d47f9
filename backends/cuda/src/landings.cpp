// Landing numbers, arrival words and summaries.
#include "landings.hpp"

#include <cstring>
#include <utility>

namespace granule::cuda {
namespace {

std::uint32_t load(const std::uint32_t* word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }

}  // namespace

void ByteFold::add(const std::byte* bytes, std::uint64_t size) {
  std::uint64_t all64 = ~std::uint64_t{0};
  std::uint64_t any64 = 0;
  std::uint64_t i = 0;
  for (; i + 8 <= size; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes + i, 8);
    all64 &= word;
    any64 |= word;
  }
  for (; i < size; ++i) {
    all = static_cast<std::uint8_t>(all & std::to_integer<std::uint8_t>(bytes[i]));
    any = static_cast<std::uint8_t>(any | std::to_integer<std::uint8_t>(bytes[i]));
  }
  for (int shift = 0; shift < 64; shift += 8) {
    all = static_cast<std::uint8_t>(all & (all64 >> shift));
    any = static_cast<std::uint8_t>(any | (any64 >> shift));
  }
}

ByteSummary ByteFold::summary() const {
  if (all == any) return {ByteSummary::Kind::kUniform, all};
  // The fold of no byte at all; with a byte the OR holds every bit of the AND.
  if (all == 0xFF && any == 0) return {ByteSummary::Kind::kUnknown, 0};
  return {ByteSummary::Kind::kMixed, 0};
}

DriverStatus Landings::prepare(std::shared_ptr<ContextState> state, std::uint32_t words,
                               std::uint64_t bytes, Arrival* out) {
  {
    const std::lock_guard lock(mutex_);
    sweep();
  }
  Arrival arrival;
  DriverStatus status = state->take_cell(&arrival.cell);
  if (status != DriverStatus::kSuccess) return status;
  if (bytes != 0) {
    status = state->take_buffer(bytes, &arrival.buffer, &arrival.capacity);
    if (status != DriverStatus::kSuccess) {
      state->put_cell(arrival.cell);
      return status;
    }
  }
  arrival.state = std::move(state);
  arrival.words = words;
  arrival.size = bytes;
  *out = arrival;
  return DriverStatus::kSuccess;
}

void Landings::expect(std::uint64_t landing, const Arrival& arrival) {
  const std::lock_guard lock(mutex_);
  const auto found = expected_.find(landing);
  if (found != expected_.end()) {
    dropped_.push_back(found->second);
    found->second = arrival;
  } else {
    expected_.emplace(landing, arrival);
  }
}

void Landings::cancel(const Arrival& arrival) {
  if (arrival.state->gone()) return;
  arrival.state->put_cell(arrival.cell);
  if (arrival.buffer != nullptr) arrival.state->put_buffer(arrival.buffer, arrival.capacity);
}

bool Landings::arrived(const Arrival& arrival) {
  const std::uint32_t words = arrival.words == 0 ? 1 : arrival.words;
  for (std::uint32_t i = 0; i < words; ++i)
    if (load(arrival.cell + i) == 0) return false;
  return true;
}

ByteSummary Landings::result(const Arrival& arrival) {
  ByteFold fold;
  if (arrival.words == 0) {
    fold.add(arrival.buffer, arrival.size);
    return fold.summary();
  }
  for (std::uint32_t i = 0; i < arrival.words; ++i) {
    const std::uint32_t word = load(arrival.cell + i);
    fold.all = static_cast<std::uint8_t>(fold.all & word);
    fold.any = static_cast<std::uint8_t>(fold.any | (word >> 8));
  }
  return fold.summary();
}

DriverStatus Landings::take(std::uint64_t landing, ByteSummary* out) {
  const std::lock_guard lock(mutex_);
  const auto found = expected_.find(landing);
  if (found == expected_.end()) return DriverStatus::kInvalidValue;
  if (found->second.state->gone()) {
    expected_.erase(found);
    return DriverStatus::kContextIsDestroyed;
  }
  if (!arrived(found->second)) return DriverStatus::kNotReady;
  *out = result(found->second);
  cancel(found->second);
  expected_.erase(found);
  return DriverStatus::kSuccess;
}

void Landings::sweep() {
  std::size_t kept = 0;
  for (Arrival& arrival : dropped_) {
    if (arrival.state->gone()) continue;
    if (arrived(arrival)) {
      cancel(arrival);
    } else {
      dropped_[kept++] = arrival;
    }
  }
  dropped_.resize(kept);
}

}  // namespace granule::cuda
