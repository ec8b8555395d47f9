// The real driver as a Backend: every Call answered by libcuda.so.1, opened at run time.
#pragma once

#include <cstdint>
#include <memory>

#include <granule/backend_api/backend.hpp>
#include <granule/backend_api/export.hpp>
#include <granule/backend_api/result.hpp>

namespace granule::cuda {

/// How a CudaBackend is opened.
struct Options {
  /// The driver library; null for the system's libcuda.so.1.
  const char* library = nullptr;
  /// Whether open calls cuInit and looks for devices. Without it the first Init call of the
  /// program does; until then the driver answers NOT_INITIALIZED.
  bool initialise = true;
  /// Answer kUndefined, and make no call, where the driver is known to crash: allocation handles,
  /// streams, events, pools, contexts and graphs that this backend never returned or that are
  /// gone, and cuMemcpy at an address that nobody mapped. Null handles go to the driver.
  bool guard = true;
  /// Reads of up to this many bytes look at all of them; larger ones at the first and last bytes
  /// of the range and at both sides of every multiple of 2 MiB in it, where mappings can meet.
  std::uint64_t full_read_limit = std::uint64_t{8} << 20;
};

/// The driver behind the Backend interface.
///
/// Makes no context current and leaves none changed: what is current on a thread is the
/// program's affair, and a call that needs a context fails without one as the driver has it.
/// Kernels, pinned landing buffers and gate words are made per context when they are first
/// needed (see warm_up). Thread-safe as the driver is. In a child made by fork every call
/// answers NOT_INITIALIZED: CUDA does not survive a fork, so open a backend in the child only.
///
/// A gate (CloseGate) is a wait of the stream on a word of pinned host memory. While one is
/// closed, calls that would wait for its stream do not return; the caller decides which those
/// are. Every gate is opened by the destructor.
class GRANULE_EXPORT CudaBackend final : public Backend {
 public:
  struct Impl;

  /// Opens the driver. Errors: kUnsupported without a usable driver library or without a device
  /// (driver: NO_DEVICE), kDriver where cuInit fails for another reason.
  static Result<std::unique_ptr<CudaBackend>> open(const Options& options = {});
  ~CudaBackend() override;

  DriverStatus execute(Call& call) noexcept override;

  /// Runs every kernel, copy, event, stream operation, mapping and pool call once in the primary
  /// context of each device and allocates the pinned buffers there, so that none of it moves a
  /// free-memory baseline taken afterwards. Makes 32 streams at once for the same reason: on an
  /// H200 every fourth stream takes 2 MiB, which the context keeps. Retains the primary contexts
  /// until the backend goes; leaves the current context as it was. Needs an idle device.
  Status warm_up();

  /// Opens all gates that are closed.
  void open_all_gates() noexcept;

  /// For the other files of this library.
  Impl& impl() noexcept { return *impl_; }

 private:
  explicit CudaBackend(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace granule::cuda
