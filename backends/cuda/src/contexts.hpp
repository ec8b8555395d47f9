// What the backend keeps in each context that it works in: the kernel module and pinned memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <granule/backend_api/calls_stream.hpp>
#include <granule/backend_api/status.hpp>

#include "driver.hpp"
#include "kernels.hpp"

namespace granule::cuda {

/// Makes a context current for a scope, if it is not already.
class PushedContext {
 public:
  PushedContext(const Driver& driver, abi::Context context);
  ~PushedContext();
  PushedContext(const PushedContext&) = delete;
  PushedContext& operator=(const PushedContext&) = delete;
  DriverStatus status() const { return status_; }

 private:
  const Driver& driver_;
  bool pushed_ = false;
  DriverStatus status_ = DriverStatus::kSuccess;
};

/// Lets the calling thread allocate and load beside stream captures for a scope.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const Driver& driver);
  ~RelaxedCapture();
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  const Driver& driver_;
  int mode_ = 2;
  bool exchanged_ = false;
};

/// Our things in one context. Host pointers in here are valid until `gone`.
class ContextState {
 public:
  static constexpr std::size_t kCellWords = 256;

  ContextState(const Driver& driver, abi::Context context) : driver_(driver), context_(context) {}
  ContextState(const ContextState&) = delete;
  ContextState& operator=(const ContextState&) = delete;

  abi::Context context() const { return context_; }
  /// True once the context was destroyed or reset: the driver has taken all of this with it.
  bool gone() const { return gone_.load(std::memory_order_acquire); }
  void set_gone(bool gone) { gone_.store(gone, std::memory_order_release); }

  /// Loads the kernels, which waits for the device; to be done before any stream is held.
  DriverStatus prepare();
  /// The function of a kernel; loads the module on the first use.
  DriverStatus function(KernelKind kind, abi::Function* out);
  /// A zeroed cell of pinned words, to be given back by put_cell.
  DriverStatus take_cell(std::uint32_t** out);
  void put_cell(std::uint32_t* cell);
  /// A pinned buffer of at least `size` bytes, to be given back by put_buffer.
  DriverStatus take_buffer(std::uint64_t size, std::byte** out, std::uint64_t* capacity);
  void put_buffer(std::byte* buffer, std::uint64_t capacity);
  /// Pinned memory of at least `size` bytes of one value, which stays as it is for good.
  DriverStatus pattern(std::uint8_t value, std::uint64_t size, const std::byte** out);
  /// Gives everything back to a living context.
  void release() noexcept;

 private:
  DriverStatus load_module();
  DriverStatus pinned(std::uint64_t size, void** out);

  struct Pattern {
    const std::byte* bytes;
    std::uint64_t size;
  };

  const Driver& driver_;
  const abi::Context context_;
  std::atomic<bool> gone_{false};
  std::mutex mutex_;
  abi::Module module_ = nullptr;
  abi::Function functions_[4] = {};
  std::vector<void*> blocks_;
  std::vector<std::uint32_t*> free_cells_;
  std::multimap<std::uint64_t, std::byte*> free_buffers_;
  std::map<std::uint8_t, Pattern> patterns_;
};

/// All contexts that the backend has worked in.
class Contexts {
 public:
  explicit Contexts(const Driver& driver) : driver_(driver) {}

  /// The context of a stream: its own, or for a default stream the current one.
  DriverStatus of_stream(abi::Stream stream, abi::Context* out) const;
  /// The state of a context; made on first use.
  std::shared_ptr<ContextState> state(abi::Context context);
  /// The state of the context of a stream.
  DriverStatus state_of(abi::Stream stream, std::shared_ptr<ContextState>* out);
  /// The context is about to go: its pinned memory is not looked at any more.
  void leaving(abi::Context context);
  /// It did not go after all.
  void staying(abi::Context context);
  /// It went.
  void forget(abi::Context context);
  /// Gives back everything in all living contexts.
  void release_all() noexcept;

 private:
  const Driver& driver_;
  std::mutex mutex_;
  std::unordered_map<abi::Context, std::shared_ptr<ContextState>> states_;
};

}  // namespace granule::cuda
