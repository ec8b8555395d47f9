// Names of one driver in the terms of another: handles by value, plain and pool memory by range.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include <granule/backend_api/call.hpp>

namespace granule::gpu {

/// What kind of handle a type of the interface is; -1: none.
enum class IdKind : int {
  kNone = -1,
  kAllocation,
  kPool,
  kStream,
  kEvent,
  kContext,
  kGraph,
  kStreamId,
  kDescriptor,
  kBufferId,  // the two numbers that pointer queries answer
  kBlockId,
};
template <class T>
inline constexpr IdKind kIdKind = IdKind::kNone;
template <>
inline constexpr IdKind kIdKind<AllocationHandle> = IdKind::kAllocation;
template <>
inline constexpr IdKind kIdKind<PoolHandle> = IdKind::kPool;
template <>
inline constexpr IdKind kIdKind<StreamHandle> = IdKind::kStream;
template <>
inline constexpr IdKind kIdKind<EventHandle> = IdKind::kEvent;
template <>
inline constexpr IdKind kIdKind<ContextHandle> = IdKind::kContext;
template <>
inline constexpr IdKind kIdKind<GraphHandle> = IdKind::kGraph;
template <>
inline constexpr IdKind kIdKind<StreamId> = IdKind::kStreamId;
template <>
inline constexpr IdKind kIdKind<Descriptor> = IdKind::kDescriptor;

/// The one-to-one relation of a device's values with an oracle's. A reservation's addresses are
/// the same on both sides and are not in here.
class Renamer {
 public:
  /// A new object: forgets whatever either value meant before.
  void learn(IdKind kind, std::uint64_t device, std::uint64_t oracle);
  void forget(IdKind kind, std::uint64_t device);
  bool knows(IdKind kind, std::uint64_t device) const;
  /// The oracle's value; for one that was never learnt a value that the oracle does not know.
  std::uint64_t id(IdKind kind, std::uint64_t device) const;

  void learn_range(std::uint64_t device, std::uint64_t size, std::uint64_t oracle);
  void forget_range(std::uint64_t device);
  bool in_range(std::uint64_t device) const;
  /// The oracle's address of a device address: inside a known range the same place of the oracle's
  /// range, the same number elsewhere. The end of a range is elsewhere: a reservation may begin
  /// there.
  std::uint64_t address(std::uint64_t device) const;

  /// An input of a call. Hints of a reserve are to be left alone by the caller.
  template <class T>
  T input(const T& value, ObjectKind kind) const {
    T out = value;
    if constexpr (std::is_same_v<T, DevicePtr>) {
      out.value = address(value.value);
    } else if constexpr (kIdKind<T> != IdKind::kNone) {
      out.value =
          static_cast<decltype(out.value)>(id(kIdKind<T>, static_cast<std::uint64_t>(value.value)));
    } else if constexpr (std::is_same_v<T, std::uint64_t>) {
      if (kind == ObjectKind::kPinnedMemory) out = address(value);
    }
    return out;
  }

 private:
  struct Range {
    std::uint64_t size = 0;
    std::uint64_t oracle = 0;
  };
  using Key = std::pair<int, std::uint64_t>;
  std::map<Key, std::uint64_t> to_oracle_;
  std::map<Key, std::uint64_t> to_device_;
  std::map<std::uint64_t, Range> ranges_;  // by device base
};

}  // namespace granule::gpu
