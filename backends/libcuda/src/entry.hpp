// What the C entry points share: how one is declared, and the way from C arguments to a call value
// and back. Each entry point checks for null outputs, makes the call, and writes outputs only if it
// succeeded, as the driver does.
#pragma once

#include <cstddef>
#include <cstdint>

#include <granule/backend_api/call.hpp>
#include <granule/backends/driver_abi.hpp>

#include "more_abi.hpp"
#include "per_thread.hpp"
#include "session.hpp"

/// Begins the definition of an entry point. The exported symbol of that name leads here, or to the
/// real driver (symbols.cpp).
#define GRANULE_ENTRY(name) \
  extern "C" __attribute__((visibility("hidden"))) ::granule::abi::Result granule_entry_##name
/// Calls another entry point.
#define GRANULE_CALL(name) granule_entry_##name

namespace granule::libcuda {

inline constexpr abi::Result kOk = 0;
inline constexpr abi::Result kBadValue = static_cast<int>(DriverStatus::kInvalidValue);
inline constexpr abi::Result kBadHandle = static_cast<int>(DriverStatus::kInvalidHandle);
inline constexpr abi::Result kBadDevice = static_cast<int>(DriverStatus::kInvalidDevice);
inline constexpr abi::Result kBadContext = static_cast<int>(DriverStatus::kInvalidContext);
inline constexpr abi::Result kNotInit = static_cast<int>(DriverStatus::kNotInitialized);
inline constexpr abi::Result kUnsupported = static_cast<int>(DriverStatus::kNotSupported);

/// Makes the client's call; its outputs are in `call` afterwards.
template <class C>
abi::Result submit(C& call) noexcept {
  Call any(call);
  const DriverStatus status = Session::get().execute(any);
  call = *std::get_if<C>(&any);
  return static_cast<abi::Result>(status);
}

/// Makes the client's call and, if it succeeds, puts one output where the client wants it.
template <class C, class T, class Value>
abi::Result submit_for(C call, T* out, Value value) noexcept {
  const abi::Result result = submit(call);
  if (result == kOk) *out = value(call);
  return result;
}

/// Makes a call of the library's own.
template <class C>
abi::Result ask(C& call) noexcept {
  Call any(call);
  const DriverStatus status = Session::get().ask(any);
  call = *std::get_if<C>(&any);
  return static_cast<abi::Result>(status);
}

/// What an entry point that makes no call answers first.
inline abi::Result ready() noexcept { return Session::get().initialized() ? kOk : kNotInit; }

/// The same for one with an output that must not be null.
inline abi::Result ready_for(const void* out) noexcept {
  if (!Session::get().initialized()) return kNotInit;
  return out == nullptr ? kBadValue : kOk;
}

/// Records that an entry point has no meaning here, and refuses it.
inline abi::Result unsupported(const char* name) noexcept {
  Session::get().note_unsupported(name);
  return Session::get().initialized() ? kUnsupported : kNotInit;
}

inline StreamHandle stream_of(abi::Stream stream) noexcept {
  const auto value = reinterpret_cast<std::uint64_t>(stream);
  if (value == 0 && null_is_per_thread) return kPerThreadStream;
  return StreamHandle{value};
}

template <class T>
std::uint64_t value_of(T* pointer) noexcept {
  return reinterpret_cast<std::uint64_t>(pointer);
}
template <class P>
P pointer_of(std::uint64_t value) noexcept {
  return reinterpret_cast<P>(value);
}

}  // namespace granule::libcuda
