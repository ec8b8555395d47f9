// How a call struct describes its members: name, role, and kind of object.
// From these descriptions come the text form, poisoning, leak kinds and comparison.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>

#include <granule/backend_api/export.hpp>

namespace granule {

/// What an argument is to its call.
enum class Role : std::uint8_t {
  kIn,       // a plain input
  kSize,     // an input: bytes
  kAddress,  // an input: a device address
  kStream,   // an input: the stream the call is ordered on
  kUses,     // an input: an object that must live
  kDrops,    // an input: an object or reference that the call ends, if it succeeds
  kOut,      // an output: an answer
  kMakes,    // an output: a new object or reference
};

/// What kind of object a kUses, kDrops or kMakes member names; also the kinds of leaks.
enum class ObjectKind : std::uint8_t {
  kNone,
  kReservation,
  kAllocation,  // a reference to physical memory
  kMapping,
  kDescriptor,
  kPlainMemory,
  kPinnedMemory,
  kPool,
  kPoolBlock,
  kStream,
  kEvent,
  kContext,
  kGraph,
};
GRANULE_EXPORT std::string_view name_of(ObjectKind kind) noexcept;

constexpr bool is_output(Role role) { return role == Role::kOut || role == Role::kMakes; }

/// One member of a call struct C.
template <class C, class T>
struct Field {
  std::string_view name;
  T C::*member;
  Role role;
  ObjectKind kind;
};

template <class C, class T>
constexpr Field<C, T> in(std::string_view name, T C::*m) {
  return {name, m, Role::kIn, ObjectKind::kNone};
}
template <class C, class T>
constexpr Field<C, T> bytes(std::string_view name, T C::*m) {
  return {name, m, Role::kSize, ObjectKind::kNone};
}
template <class C, class T>
constexpr Field<C, T> address(std::string_view name, T C::*m) {
  return {name, m, Role::kAddress, ObjectKind::kNone};
}
template <class C, class T>
constexpr Field<C, T> on_stream(std::string_view name, T C::*m) {
  return {name, m, Role::kStream, ObjectKind::kStream};
}
template <class C, class T>
constexpr Field<C, T> uses(std::string_view name, T C::*m, ObjectKind kind) {
  return {name, m, Role::kUses, kind};
}
template <class C, class T>
constexpr Field<C, T> drops(std::string_view name, T C::*m, ObjectKind kind) {
  return {name, m, Role::kDrops, kind};
}
template <class C, class T>
constexpr Field<C, T> out(std::string_view name, T C::*m) {
  return {name, m, Role::kOut, ObjectKind::kNone};
}
template <class C, class T>
constexpr Field<C, T> makes(std::string_view name, T C::*m, ObjectKind kind) {
  return {name, m, Role::kMakes, kind};
}

/// What is known of a call as a whole.
enum class CallFamily : std::uint8_t {
  kVmm,      // never waits, legal in captures, needs no context
  kMemory,   // plain allocations, copies, fills, queries
  kPool,     // stream-ordered pools
  kStream,   // streams, events, captures, host functions, launches
  kDevice,   // initialisation, devices, contexts
  kHarness,  // no driver call: what a test asks of the backend (gates, landings, pauses)
};

struct CallInfo {
  std::string_view name;  // the driver's name, or our own for kHarness
  CallFamily family;
  std::int32_t since = 11020;  // first CUDA version with it, as cuDriverGetVersion counts
};

}  // namespace granule
