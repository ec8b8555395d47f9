// Checks on the calls that pass: use of values that a failed call left behind, and lockstep with
// a second backend that must answer the same.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include <granule/backend_api/backend.hpp>
#include <granule/backend_api/export.hpp>
#include <granule/backends/origin.hpp>

namespace granule::check {

/// True if a handle, descriptor or address of the call is poison, or an address shortly behind it.
GRANULE_EXPORT bool uses_poison_or_near(const Call& call) noexcept;

/// Reports calls that use a poisoned value and refuses them with kInvalidValue (a real driver
/// might crash on them). The callback runs on the calling thread, must not throw and must be
/// thread-safe if several threads make calls.
class GRANULE_EXPORT PoisonCheckBackend final : public Backend {
 public:
  using Report = std::function<void(const Call& call, CallOrigin origin)>;
  PoisonCheckBackend(Backend& inner, Report report) : inner_(inner), report_(std::move(report)) {}

  DriverStatus execute(Call& call) noexcept override;

 private:
  Backend& inner_;
  Report report_;
};

/// What two backends disagreed on.
struct Difference {
  std::uint64_t number = 0;  // of the call, from 1
  Call real;                 // as the first backend answered it
  DriverStatus real_status = DriverStatus::kSuccess;
  Call model;  // as the second backend answered it, in its own addresses and handles
  DriverStatus model_status = DriverStatus::kSuccess;
  std::string field;  // name of the output that differs; "status" for the status itself
};

/// Makes each call on `real`, then on `model`, and compares status and outputs. Addresses and
/// handles of the two are related by a one-to-one renaming that grows with each object made; the
/// caller sees only the answers of `real`. Calls are serialised. After a difference in status the
/// two no longer hold the same objects: expect follow-up differences.
class GRANULE_EXPORT LockstepBackend final : public Backend {
 public:
  using Report = std::function<void(const Difference&)>;
  /// `report` must not throw and must not make calls on this backend.
  LockstepBackend(Backend& real, Backend& model, Report report)
      : real_(real), model_(model), report_(std::move(report)) {}

  DriverStatus execute(Call& call) noexcept override;

 private:
  struct Range {
    std::uint64_t size = 0;
    std::uint64_t model_base = 0;
  };

  std::uint64_t model_address(std::uint64_t real) const;
  template <class T>
  T renamed(const T& real) const;
  template <class C>
  void learn(const C& real, const C& model);
  template <class C>
  std::string first_difference(const C& real, const C& model) const;
  void forget(const Call& real);

  Backend& real_;
  Backend& model_;
  Report report_;
  std::mutex mutex_;
  std::uint64_t number_ = 0;
  std::map<std::uint64_t, Range> addresses_;                    // by base in `real`
  std::map<std::pair<int, std::uint64_t>, std::uint64_t> ids_;  // (kind of handle, real) -> model
};

}  // namespace granule::check
