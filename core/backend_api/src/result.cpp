// Names and texts of errors, and the default host memory.
#include <granule/backend_api/result.hpp>

#include <granule/backend_api/sync.hpp>

namespace granule {

std::string_view name_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kOutOfMemory:
      return "out_of_memory";
    case ErrorCode::kInvalidArgument:
      return "invalid_argument";
    case ErrorCode::kOverflow:
      return "overflow";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kClosed:
      return "closed";
    case ErrorCode::kWrongResource:
      return "wrong_resource";
    case ErrorCode::kSuspended:
      return "suspended";
    case ErrorCode::kCapturing:
      return "capturing";
    case ErrorCode::kDriver:
      return "driver";
  }
  return "driver";
}

std::string_view name_of(Exhausted what) noexcept {
  switch (what) {
    case Exhausted::kNone:
      return "";
    case Exhausted::kDevice:
      return "device";
    case Exhausted::kAddresses:
      return "addresses";
    case Exhausted::kBudget:
      return "budget";
    case Exhausted::kPending:
      return "pending";
    case Exhausted::kHost:
      return "host";
  }
  return "";
}

std::string to_string(const Error& error) {
  std::string text(name_of(error.code));
  if (error.code == ErrorCode::kDriver) {
    text = name_of(error.driver);
  } else if (error.exhausted != Exhausted::kNone) {
    text += " (";
    text += name_of(error.exhausted);
    text += ')';
  }
  if (!error.call.empty()) {
    text += " in ";
    text += error.call;
    if (error.code != ErrorCode::kDriver && error.driver != DriverStatus::kSuccess) {
      text += " (";
      text += name_of(error.driver);
      text += ')';
    }
  }
  if (error.wanted != 0 || error.available != 0) {
    text += ": " + std::to_string(error.wanted) + " bytes wanted, " +
            std::to_string(error.available) + " to be had";
  }
  if (!error.detail.empty()) {
    text += ": ";
    text += error.detail;
  }
  return text;
}

void throw_error(const Error& error) {
  if (error.code == ErrorCode::kOutOfMemory) throw OutOfMemory(error);
  throw BackendError(error);
}

namespace {
class NewHostMemory final : public HostMemory {
 public:
  void* allocate(std::size_t size, std::size_t alignment) noexcept override {
    return ::operator new(size, std::align_val_t(alignment), std::nothrow);
  }
  void deallocate(void* block, std::size_t, std::size_t alignment) noexcept override {
    ::operator delete(block, std::align_val_t(alignment));
  }
};
}  // namespace

HostMemory& default_host_memory() noexcept {
  static NewHostMemory memory;
  return memory;
}

}  // namespace granule
