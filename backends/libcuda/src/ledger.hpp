// What the client holds of the driver, object by object, with the site that made it. Follows the
// roles of the fields of each call; knows no driver.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include <granule/backend_api/call.hpp>

#include "sites.hpp"

namespace granule::libcuda {

struct Object {
  ObjectKind kind = ObjectKind::kNone;
  std::uint64_t value = 0;  // handle, address or descriptor
  std::uint64_t size = 0;   // bytes; 0: unknown or none
  std::uint64_t context = 0;
  std::uint64_t number = 0;  // of its making, from 1
  CallKind call{};           // that made it
  SiteId site = 0;
  bool told = false;  // as a leak
};

/// Objects by kind and value. Thread-safe. A dropping call takes its objects out before it is made
/// and puts them back if it fails, so that another thread that is given the same value meanwhile
/// is not mistaken for it.
class Ledger {
 public:
  /// Whether a call of that kind makes something that is kept here.
  static bool makes(const Call& call);
  /// Takes out what the call is about to drop.
  std::vector<Object> take_dropped(const Call& call);
  void put_back(std::vector<Object> objects);
  /// Enters what a successful call made. `context` is the caller's.
  void add_made(const Call& call, std::uint64_t context, SiteId site);

  /// All objects in order of making; those of kinds that end with the process are left out.
  std::vector<Object> leaks(std::uint64_t after = 0) const;
  /// Objects younger than that are no leaks any more: somebody was told.
  void forget(std::uint64_t after);
  /// Whether the primary context of a device is retained.
  bool holds_primary(std::int32_t device) const;
  /// The number of the object made last.
  std::uint64_t last_number() const;

 private:
  static constexpr std::size_t kKinds = static_cast<std::size_t>(ObjectKind::kGraph) + 1;
  using Objects = std::multimap<std::uint64_t, Object>;

  Objects& of(ObjectKind kind) { return objects_[static_cast<std::size_t>(kind)]; }
  void take_one(ObjectKind kind, std::uint64_t value, std::vector<Object>& out);
  void take_context(std::uint64_t context, std::vector<Object>& out);
  std::uint64_t size_of_new(const Call& call) const;

  mutable std::mutex mutex_;
  std::array<Objects, kKinds> objects_;
  std::map<std::int32_t, std::uint64_t> primaries_;  // device -> context
  std::uint64_t made_ = 0;
};

/// Whether an object of that kind that is never dropped counts as a leak.
bool counts_as_leak(ObjectKind kind);
/// "handle", "mapping", "reservation", "pool", "pointer", "descriptor", ...
const char* leak_name(ObjectKind kind);

}  // namespace granule::libcuda
