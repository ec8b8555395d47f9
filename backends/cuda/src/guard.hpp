// Which handles are alive, so that calls on which the driver is known to crash are not made.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>

#include <granule/backend_api/call.hpp>

namespace granule::cuda {

/// Follows handles through the calls that make and drop them. Thread-safe; it is never locked
/// while the driver works, so two threads that race for one handle are on their own.
class Guard {
 public:
  /// Whether the driver is known to survive the call. Null handles and the default streams are
  /// always admitted.
  template <class C>
  bool admits(const C& call) const {
    if (std::is_same_v<C, OpenGate>) return true;  // no driver call; its stream may be gone
    const std::lock_guard lock(mutex_);
    bool safe = special(call);
    for_each_field(call, [&](const auto& field, const auto& member) {
      if constexpr (requires { member.value; }) {
        if (field.role == Role::kStream || field.role == Role::kUses || field.role == Role::kDrops)
          safe = safe && known(field.kind, static_cast<std::uint64_t>(member.value), kCare<C>);
      }
    });
    return safe;
  }

  /// Notes what a successful call made and dropped. `context` is the current one, for streams
  /// and events, which go with it.
  template <class C>
  void note(const C& call, ContextHandle context) {
    const std::lock_guard lock(mutex_);
    for_each_field(call, [&](const auto& field, const auto& member) {
      if constexpr (requires { member.value; }) {
        const auto value = static_cast<std::uint64_t>(member.value);
        if (field.role == Role::kMakes) made(field.kind, value, context.value);
        if (field.role == Role::kDrops) dropped(field.kind, value);
        using M = std::remove_cvref_t<decltype(member)>;
        // The driver took it for what it is: a descriptor that another process sent.
        if constexpr (std::is_same_v<C, MemImportFromShareableHandle> &&
                      std::is_same_v<M, Descriptor>)
          made(ObjectKind::kDescriptor, value, 0);
        if constexpr (std::is_same_v<M, ContextHandle>) {
          if (field.role == Role::kOut) made(ObjectKind::kContext, value, 0);
        } else if constexpr (std::is_same_v<M, PoolHandle>) {
          if (field.role == Role::kOut) made(ObjectKind::kPool, value, 0);
        }
      }
    });
    extra(call);
  }

  /// A context went: its streams and events went with it.
  void context_gone(ContextHandle context);

 private:
  /// How a call treats an allocation handle whose last reference was released.
  enum class Care : std::uint8_t {
    kAnswers,  // the driver answers
    kMapped,   // it answers while a mapping keeps the memory
    kCrashes,  // it crashes, or reads stale data
  };
  template <class C>
  static constexpr Care kCare = std::is_same_v<C, MemRelease> ? Care::kAnswers
                                : std::is_same_v<C, MemMap>   ? Care::kMapped
                                                              : Care::kCrashes;

  bool known(ObjectKind kind, std::uint64_t value, Care care) const;
  void made(ObjectKind kind, std::uint64_t value, std::uint64_t context);
  void dropped(ObjectKind kind, std::uint64_t value);
  bool mapped(std::uint64_t handle) const;

  template <class C>
  bool special(const C&) const {
    return true;
  }
  bool special(const CloseDescriptor& call) const;
  template <class C>
  void extra(const C&) {}
  void extra(const MemMap& call);
  void extra(const MemUnmap& call);

  struct Mapping {
    std::uint64_t size;
    std::uint64_t handle;
  };
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::uint64_t> allocations_;  // handle -> references, 0: dead
  std::map<std::uint64_t, Mapping> mappings_;                     // by start address
  std::unordered_map<std::uint64_t, std::uint64_t> streams_;      // -> context
  std::unordered_map<std::uint64_t, std::uint64_t> events_;       // -> context
  std::unordered_set<std::uint64_t> pools_;                       // destroyed ones too
  std::unordered_set<std::uint64_t> contexts_;
  std::unordered_set<std::uint64_t> graphs_;
  std::unordered_set<std::uint64_t> descriptors_;
};

}  // namespace granule::cuda
