// The driver's answer to a call, by the driver's own numbers and names.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <granule/backend_api/export.hpp>

namespace granule {

/// CUresult, plus answers of our own above 0x7f000000 that no driver gives.
enum class DriverStatus : std::int32_t {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kDeinitialized = 4,
  kStubLibrary = 34,
  kDeviceUnavailable = 46,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidContext = 201,
  kMapFailed = 205,
  kUnmapFailed = 206,
  kAlreadyMapped = 208,
  kNotMapped = 211,
  kEccUncorrectable = 214,
  kUnsupportedLimit = 215,
  kContextAlreadyInUse = 216,
  kPeerAccessUnsupported = 217,
  kInvalidPtx = 218,
  kOperatingSystem = 304,
  kInvalidHandle = 400,
  kIllegalState = 401,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
  kLaunchTimeout = 702,
  kPeerAccessAlreadyEnabled = 704,
  kPeerAccessNotEnabled = 705,
  kPrimaryContextActive = 708,
  kContextIsDestroyed = 709,
  kAssert = 710,
  kHostMemoryAlreadyRegistered = 712,
  kHostMemoryNotRegistered = 713,
  kHardwareStackError = 714,
  kIllegalInstruction = 715,
  kMisalignedAddress = 716,
  kInvalidAddressSpace = 717,
  kInvalidPc = 718,
  kLaunchFailed = 719,
  kNotPermitted = 800,
  kNotSupported = 801,
  kSystemNotReady = 802,
  kSystemDriverMismatch = 803,
  kStreamCaptureUnsupported = 900,
  kStreamCaptureInvalidated = 901,
  kStreamCaptureMerge = 902,
  kStreamCaptureUnmatched = 903,
  kStreamCaptureUnjoined = 904,
  kStreamCaptureIsolation = 905,
  kStreamCaptureImplicit = 906,
  kCapturedEvent = 907,
  kStreamCaptureWrongThread = 908,
  kTimeout = 909,
  kGraphExecUpdateFailure = 910,
  kExternalDevice = 911,
  kUnknown = 999,
  /// Our own: the call would wait for something that cannot happen; it had no effect.
  kWouldBlock = 0x7f000001,
  /// Our own: this driver has no such function.
  kUnavailable = 0x7f000002,
  /// Our own: the driver crashes on such a call, so it is not made; undefined behaviour.
  kUndefined = 0x7f000003,
};

/// The driver's name of a status ("CUDA_ERROR_OUT_OF_MEMORY", "CUDA_SUCCESS"; our own:
/// "would_block", "unavailable", "undefined"); an unknown number gives "CUDA_ERROR_(unlisted)".
GRANULE_EXPORT std::string_view name_of(DriverStatus status) noexcept;
/// The status with that name, or nothing.
GRANULE_EXPORT std::optional<DriverStatus> status_named(std::string_view name) noexcept;
/// True for the errors after which a context answers nothing else (driver contract, section 16).
GRANULE_EXPORT bool is_sticky(DriverStatus status) noexcept;

}  // namespace granule
