// Names of driver statuses.
#include <granule/backend_api/status.hpp>

#include <array>

namespace granule {
namespace {

struct Named {
  DriverStatus status;
  std::string_view name;
};

constexpr std::array kNames{
    Named{DriverStatus::kSuccess, "CUDA_SUCCESS"},
    Named{DriverStatus::kInvalidValue, "CUDA_ERROR_INVALID_VALUE"},
    Named{DriverStatus::kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
    Named{DriverStatus::kNotInitialized, "CUDA_ERROR_NOT_INITIALIZED"},
    Named{DriverStatus::kDeinitialized, "CUDA_ERROR_DEINITIALIZED"},
    Named{DriverStatus::kStubLibrary, "CUDA_ERROR_STUB_LIBRARY"},
    Named{DriverStatus::kDeviceUnavailable, "CUDA_ERROR_DEVICE_UNAVAILABLE"},
    Named{DriverStatus::kNoDevice, "CUDA_ERROR_NO_DEVICE"},
    Named{DriverStatus::kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE"},
    Named{DriverStatus::kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT"},
    Named{DriverStatus::kMapFailed, "CUDA_ERROR_MAP_FAILED"},
    Named{DriverStatus::kUnmapFailed, "CUDA_ERROR_UNMAP_FAILED"},
    Named{DriverStatus::kAlreadyMapped, "CUDA_ERROR_ALREADY_MAPPED"},
    Named{DriverStatus::kNotMapped, "CUDA_ERROR_NOT_MAPPED"},
    Named{DriverStatus::kEccUncorrectable, "CUDA_ERROR_ECC_UNCORRECTABLE"},
    Named{DriverStatus::kUnsupportedLimit, "CUDA_ERROR_UNSUPPORTED_LIMIT"},
    Named{DriverStatus::kContextAlreadyInUse, "CUDA_ERROR_CONTEXT_ALREADY_IN_USE"},
    Named{DriverStatus::kPeerAccessUnsupported, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"},
    Named{DriverStatus::kInvalidPtx, "CUDA_ERROR_INVALID_PTX"},
    Named{DriverStatus::kOperatingSystem, "CUDA_ERROR_OPERATING_SYSTEM"},
    Named{DriverStatus::kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE"},
    Named{DriverStatus::kIllegalState, "CUDA_ERROR_ILLEGAL_STATE"},
    Named{DriverStatus::kNotFound, "CUDA_ERROR_NOT_FOUND"},
    Named{DriverStatus::kNotReady, "CUDA_ERROR_NOT_READY"},
    Named{DriverStatus::kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS"},
    Named{DriverStatus::kLaunchOutOfResources, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
    Named{DriverStatus::kLaunchTimeout, "CUDA_ERROR_LAUNCH_TIMEOUT"},
    Named{DriverStatus::kPeerAccessAlreadyEnabled, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"},
    Named{DriverStatus::kPeerAccessNotEnabled, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED"},
    Named{DriverStatus::kPrimaryContextActive, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE"},
    Named{DriverStatus::kContextIsDestroyed, "CUDA_ERROR_CONTEXT_IS_DESTROYED"},
    Named{DriverStatus::kAssert, "CUDA_ERROR_ASSERT"},
    Named{DriverStatus::kHostMemoryAlreadyRegistered, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"},
    Named{DriverStatus::kHostMemoryNotRegistered, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"},
    Named{DriverStatus::kHardwareStackError, "CUDA_ERROR_HARDWARE_STACK_ERROR"},
    Named{DriverStatus::kIllegalInstruction, "CUDA_ERROR_ILLEGAL_INSTRUCTION"},
    Named{DriverStatus::kMisalignedAddress, "CUDA_ERROR_MISALIGNED_ADDRESS"},
    Named{DriverStatus::kInvalidAddressSpace, "CUDA_ERROR_INVALID_ADDRESS_SPACE"},
    Named{DriverStatus::kInvalidPc, "CUDA_ERROR_INVALID_PC"},
    Named{DriverStatus::kLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED"},
    Named{DriverStatus::kNotPermitted, "CUDA_ERROR_NOT_PERMITTED"},
    Named{DriverStatus::kNotSupported, "CUDA_ERROR_NOT_SUPPORTED"},
    Named{DriverStatus::kSystemNotReady, "CUDA_ERROR_SYSTEM_NOT_READY"},
    Named{DriverStatus::kSystemDriverMismatch, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"},
    Named{DriverStatus::kStreamCaptureUnsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
    Named{DriverStatus::kStreamCaptureInvalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
    Named{DriverStatus::kStreamCaptureMerge, "CUDA_ERROR_STREAM_CAPTURE_MERGE"},
    Named{DriverStatus::kStreamCaptureUnmatched, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED"},
    Named{DriverStatus::kStreamCaptureUnjoined, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"},
    Named{DriverStatus::kStreamCaptureIsolation, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"},
    Named{DriverStatus::kStreamCaptureImplicit, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"},
    Named{DriverStatus::kCapturedEvent, "CUDA_ERROR_CAPTURED_EVENT"},
    Named{DriverStatus::kStreamCaptureWrongThread, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD"},
    Named{DriverStatus::kTimeout, "CUDA_ERROR_TIMEOUT"},
    Named{DriverStatus::kGraphExecUpdateFailure, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE"},
    Named{DriverStatus::kExternalDevice, "CUDA_ERROR_EXTERNAL_DEVICE"},
    Named{DriverStatus::kUnknown, "CUDA_ERROR_UNKNOWN"},
    Named{DriverStatus::kWouldBlock, "would_block"},
    Named{DriverStatus::kUnavailable, "unavailable"},
    Named{DriverStatus::kUndefined, "undefined"},
};

}  // namespace

std::string_view name_of(DriverStatus status) noexcept {
  for (const Named& named : kNames)
    if (named.status == status) return named.name;
  return "CUDA_ERROR_(unlisted)";
}

std::optional<DriverStatus> status_named(std::string_view name) noexcept {
  for (const Named& named : kNames)
    if (named.name == name) return named.status;
  return std::nullopt;
}

bool is_sticky(DriverStatus status) noexcept {
  switch (status) {
    case DriverStatus::kEccUncorrectable:
    case DriverStatus::kIllegalAddress:
    case DriverStatus::kLaunchTimeout:
    case DriverStatus::kAssert:
    case DriverStatus::kHardwareStackError:
    case DriverStatus::kIllegalInstruction:
    case DriverStatus::kMisalignedAddress:
    case DriverStatus::kInvalidAddressSpace:
    case DriverStatus::kInvalidPc:
    case DriverStatus::kLaunchFailed:
    case DriverStatus::kContextIsDestroyed:
    case DriverStatus::kDeinitialized:
      return true;
    default:
      return false;
  }
}

}  // namespace granule
