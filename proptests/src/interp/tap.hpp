// The outermost decorator of a run: counts calls by origin, keeps the ledger of what callers were
// told they hold apart from what was made behind a call reported as failed, and collects misuse.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include <granule/backend_api/backend.hpp>
#include <granule/backends/origin.hpp>
#include <granule/model/model.hpp>

namespace granule::prop {

/// Signed sums of ledger fields.
struct Holdings {
  std::int64_t reservations = 0;
  std::int64_t reserved_bytes = 0;
  std::int64_t handles = 0;
  std::int64_t mappings = 0;
  std::int64_t mapped_bytes = 0;
  std::int64_t allocated_bytes = 0;
  std::int64_t descriptors = 0;
  Holdings& operator+=(const Holdings& other);
  Holdings operator-(const Holdings& other) const;
  Holdings negative() const;  // the fields below 0, the others 0
  friend Holdings operator+(Holdings a, const Holdings& b) { return a += b; }
  friend bool operator==(const Holdings&, const Holdings&) = default;
};
Holdings holdings_of(const model::Ledger& ledger);

/// Misuse with who made the call during which it was found.
struct Finding {
  model::Violation violation;
  CallOrigin origin = CallOrigin::kHarness;
};

/// What the library asked the driver for since the statement began, where success alone does not
/// show it.
struct Asked {
  bool wish = false;                 // memory with an optional property
  bool plain = false;                // the last memory that it got has none
  bool refused = false;              // some call failed, and not for want of memory
  std::uint32_t not_ready = 0;       // answers of VMM calls that ask for another try
  bool not_ready_elsewhere = false;  // other calls said so: they are not made again
  DriverStatus granularity = DriverStatus::kSuccess;  // of the last query
  std::optional<std::uint64_t> threshold;             // set for a pool
};

class Tap final : public Backend {
 public:
  Tap(Backend& inner, model::DriverState& oracle);

  DriverStatus execute(Call& call) noexcept override;

  /// What the library, the program or the harness was told that it holds.
  const Holdings& held_by(CallOrigin origin) const {
    return held_[static_cast<std::size_t>(origin)];
  }
  /// Differences made by calls that were reported as failed.
  const Holdings& orphaned() const { return orphaned_; }
  /// Of those, releases: things that callers may believe in and that are gone. Never positive.
  const Holdings& lost_unknown() const { return lost_unknown_; }
  /// And mappings that are there, unknown to who made them, unless he looked.
  const Holdings& made_unknown() const { return made_unknown_; }
  bool any_orphan() const { return any_orphan_; }

  /// Calls of the library and the program.
  std::uint64_t calls(CallKind kind) const { return counts_[static_cast<std::size_t>(kind)]; }
  std::uint64_t calls() const { return total_; }

  struct Counts {
    std::array<std::uint32_t, kCallCount> by_kind{};
    std::uint64_t total = 0;
  };
  Counts counts() const { return {counts_, total_}; }
  void restore(const Counts& counts) {
    counts_ = counts.by_kind;
    total_ = counts.total;
  }

  /// What happened since the statement began.
  struct Traffic {
    std::uint64_t calls = 0;          // of the library
    std::uint64_t created_bytes = 0;  // by the library
    DriverStatus sticky = DriverStatus::kSuccess;
    std::int32_t contexts = 0;  // pushed and not popped, by the library
    Asked asked;
  };
  Traffic traffic;

  /// Objects that the library was given and has not tried to give back. An attempt is enough: what
  /// comes of it is the driver's affair.
  struct Objects {
    std::int64_t events = 0;
    std::int64_t contexts = 0;  // primary ones, retained
    std::int64_t pools = 0;
  };
  const Objects& objects() const { return objects_; }

  std::vector<Finding> take_findings();

 private:
  void count_objects(const Call& call, DriverStatus status);
  void learn_asked(const Call& call, DriverStatus status);
  /// Keeps or counts an effect that the caller was not told of.
  void learn_orphan(const Call& call, const Holdings& change);
  /// True if the call took down what was mapped behind its caller's back.
  bool ends_orphan(const Call& call);
  void learn(CallOrigin origin, const Call& call, DriverStatus status);

  Backend& inner_;
  model::DriverState& oracle_;
  Holdings last_;
  std::array<Holdings, 3> held_{};
  Holdings orphaned_;
  Holdings lost_unknown_;
  Holdings made_unknown_;
  std::vector<std::uint64_t> orphan_maps_;  // places that were mapped, unknown to the caller
  bool any_orphan_ = false;
  std::array<std::uint32_t, kCallCount> counts_{};
  std::uint64_t total_ = 0;
  Objects objects_;
  std::vector<Finding> findings_;
};

}  // namespace granule::prop
