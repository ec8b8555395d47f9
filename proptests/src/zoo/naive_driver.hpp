// How the naive resource talks to the driver: retries, waits, captures, contexts.
#pragma once

#include <set>

#include <granule/backend_api/backend.hpp>
#include <granule/backend_api/call.hpp>
#include <granule/backend_api/result.hpp>
#include <granule/backend_api/sync.hpp>
#include <granule/stream.hpp>

#include "mistakes.hpp"

namespace granule::prop::zoo {

Error driver_error(DriverStatus status, CallKind call, std::uint64_t object = 0,
                   Exhausted exhausted = Exhausted::kDevice);
Error error_of(ErrorCode code, std::string_view detail);
Error exhausted_error(Exhausted what, std::uint64_t wanted);

/// What using a stream would do to captures.
enum class CaptureVerdict : std::uint8_t { kClear, kCaptures, kDisturbs };

class NaiveDriver {
 public:
  NaiveDriver(Backend& backend, const Runtime& runtime, Mistake mistake)
      : backend_(backend), runtime_(runtime), mistake_(mistake) {}
  NaiveDriver(const NaiveDriver&) = delete;
  NaiveDriver& operator=(const NaiveDriver&) = delete;
  ~NaiveDriver();

  bool is(Mistake mistake) const { return mistake_ == mistake; }
  Backend& backend() { return backend_; }
  HostMemory& host_memory() { return runtime_.host_memory(); }

  template <class C>
  DriverStatus call(C& c) {
    runtime_.yield_point();
    return backend_.run(c);
  }
  /// Repeated while the driver says NOT_READY.
  template <class C>
  DriverStatus vmm(C& c) {
    DriverStatus status = call(c);
    for (std::uint32_t i = 0; i < retries() && status == DriverStatus::kNotReady; ++i)
      status = call(c);
    return status;
  }

  Result<CaptureVerdict> capture_verdict(const Stream& stream);
  Status wait_for(const Stream& stream);
  /// Whether all work queued on the stream is done. Never waits.
  Result<bool> is_done(const Stream& stream);
  Status clear(const Stream& stream, std::uint64_t base, std::uint64_t size);
  /// Copies between host memory and a buffer, and waits.
  Status copy(const Stream& stream, void* host, std::uint64_t base, std::uint64_t size,
              bool to_host);

 private:
  class Scope;
  std::uint32_t retries() const;
  /// Work on a device's own streams is lost with its primary context: keeps that while this lives.
  Status keep_context(const Stream& stream);

  Backend& backend_;
  Runtime runtime_;
  Mistake mistake_;
  std::set<std::int32_t> kept_;  // devices whose primary context is retained
};

}  // namespace granule::prop::zoo
