// Adaptor: the throwing allocate / noexcept deallocate shape of RMM and CCCL memory resources over
// a VirtualMemoryResource. Header-only; bring your own stream type by converting it to a Stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include <granule/backend_api/checked.hpp>
#include <granule/resource.hpp>

namespace granule {

/// Hands out plain pointers and finds the buffer again by its address. Thread-safe. A deallocation
/// of a pointer that was not handed out does nothing but tell the failure sink.
class MemoryResourceAdaptor {
 public:
  /// Every allocation starts at a granule, so any alignment up to the granularity is met.
  explicit MemoryResourceAdaptor(VirtualMemoryResource resource,
                                 FailureSink& sink = stderr_failure_sink())
      : resource_(std::move(resource)), sink_(&sink) {}
  MemoryResourceAdaptor(const MemoryResourceAdaptor&) = delete;
  MemoryResourceAdaptor& operator=(const MemoryResourceAdaptor&) = delete;

  /// At least `bytes` bytes, usable at once, freed in the order of `stream` unless deallocate names
  /// another. 0 bytes: null. Throws OutOfMemory (a std::bad_alloc) or BackendError.
  void* allocate(const Stream& stream, std::size_t bytes, std::size_t alignment = 256) {
    if (alignment > resource_.properties().granularity || !is_power_of_two(alignment)) {
      Error error;
      error.code = ErrorCode::kInvalidArgument;
      error.detail = "an alignment is a power of two and at most the granularity";
      throw_error(error);
    }
    Buffer buffer = resource_.allocate(stream, bytes).value();
    if (buffer.size() == 0) return nullptr;
    const std::uint64_t at = buffer.ptr().value;
    const std::lock_guard<std::mutex> lock(mutex_);
    buffers_.emplace(at, std::move(buffer));
    return reinterpret_cast<void*>(at);  // NOLINT: device addresses travel as pointers here
  }

  /// Gives the block back in the order of `stream`. Null is a no-op. Failures go to the sink, with
  /// `bytes`. The alignment is only there for the shape: the buffer is found by its address.
  void deallocate(const Stream& stream, void* ptr, std::size_t bytes,
                  std::size_t /*alignment*/ = 256) noexcept {
    if (ptr == nullptr) return;
    const auto at = reinterpret_cast<std::uint64_t>(ptr);  // NOLINT: as above
    Buffer buffer;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto found = buffers_.find(at);
      if (found != buffers_.end()) {
        buffer = std::move(found->second);
        buffers_.erase(found);
      }
    }
    Error error;
    error.code = ErrorCode::kInvalidArgument;
    error.detail = "not a pointer of this resource";
    Status closed = buffer.is_closed() ? Status(error) : buffer.close(stream);
    // What could not be closed goes the destructor's way when `buffer` ends here.
    if (!closed.ok())
      sink_->report({FailureKind::kReleaseFailed, closed.error(), DevicePtr{at}, bytes});
  }

  const VirtualMemoryResource& resource() const { return resource_; }
  friend bool operator==(const MemoryResourceAdaptor& a, const MemoryResourceAdaptor& b) {
    return &a == &b;
  }

 private:
  VirtualMemoryResource resource_;
  FailureSink* sink_;
  std::mutex mutex_;
  std::map<std::uint64_t, Buffer> buffers_;
};

}  // namespace granule
