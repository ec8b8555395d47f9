// Fault injection: a backend that refuses chosen calls, or makes them and reports them as failed.
// What to fail is data (FaultRule), so that programs, generators and sweeps can hold it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <granule/backend_api/backend.hpp>
#include <granule/backend_api/export.hpp>
#include <granule/backends/origin.hpp>

namespace granule::fault {

/// When an injected failure is reported.
enum class Timing : std::uint8_t {
  kBefore,  // the call is refused; the inner backend never sees it
  kAfter,   // the call is made, its outputs are poisoned and it is reported as failed
  /// Right before the call the contexts are lost to an error of earlier work. What is queued never
  /// runs, and every call but those of VMM answers the status for good; VMM calls work (S32).
  kSticky,
  /// The same, but nobody is told yet: the status surfaces at the first later call that looks at
  /// work, whatever it was made for, and is sticky from there on.
  kSurfacing,
};

/// Kinds of misfortune, as statistics and sweeps tell them apart.
enum class FaultClass : std::uint8_t {
  kRefused,    // before any effect
  kDone,       // done, but reported as failed
  kNotReady,   // for a while
  kProperty,   // calls that ask for a property are refused
  kSticky,     // the contexts are lost, and say so
  kSurfacing,  // they are lost, which comes out later
  kHint,       // a hint was not honoured
  kStolen,     // another tenant has the memory
  kHost,       // a host allocation failed
};
inline constexpr std::size_t kFaultClasses = 9;
/// "refused", "done", "not_ready", "property", "sticky", "surfacing", "hint", "stolen", "host".
GRANULE_EXPORT std::string_view name_of(FaultClass kind) noexcept;

/// Which calls of a kind are meant.
enum class Condition : std::uint8_t {
  kNone,
  kRdma,  // the call asks for memory that can be registered for GPUDirect RDMA
};

/// "Fail the nth matching call, and the times - 1 after it, with that status."
struct FaultRule {
  static constexpr std::uint64_t kAlways = UINT64_MAX;

  /// Nothing: any driver call (harness calls and close(2) are none).
  std::optional<CallKind> call = std::nullopt;
  Condition condition = Condition::kNone;
  std::uint64_t nth = 1;    // counted from 1, from when the rule was added
  std::uint64_t times = 1;  // kAlways: all from the nth on
  DriverStatus status = DriverStatus::kUnknown;
  Timing timing = Timing::kBefore;
};

/// True if the rule looks at such a call at all (whatever its number).
GRANULE_EXPORT bool matches(const FaultRule& rule, const Call& call) noexcept;

/// What a rule does. Hints, stolen memory and host memory are no rules.
GRANULE_EXPORT FaultClass class_of(const FaultRule& rule) noexcept;

/// A call that was made although its caller was told that it failed.
struct Orphan {
  std::size_t rule = 0;  // number that add() gave
  Call actual;           // with the outputs that the caller never saw
};

/// Refuses or falsifies calls by rules. Only calls of the library and of the program count towards
/// rules and can fail; those with CallOrigin::kHarness pass. Every failed call, injected or not,
/// leaves here with poisoned outputs. A call answered kWouldBlock had no effect and is not counted.
/// Thread-safe; the inner backend is called without the lock.
class GRANULE_EXPORT FaultBackend final : public Backend {
 public:
  explicit FaultBackend(Backend& inner) noexcept : inner_(inner) {}

  DriverStatus execute(Call& call) noexcept override;

  /// Adds a rule and returns its number. Where several rules fire on one call, the first decides.
  std::size_t add(const FaultRule& rule);
  /// Lifts all rules and the hint switch. Numbers start again from 0.
  void clear();
  /// Address hints are granted elsewhere: no reservation lands where it was asked for.
  void set_ignore_hints(bool on);
  /// Who loses the contexts for kSticky (at once) and kSurfacing rules; without it they do nothing.
  /// Called without the lock, on the thread of the call.
  using LoseContexts = std::function<void(DriverStatus status, bool at_once)>;
  void set_lose_contexts(LoseContexts lose) { lose_contexts_ = std::move(lose); }

  /// How many calls that rule has failed since it was added; 0 for an unknown number.
  std::uint64_t fired(std::size_t rule) const;
  /// How many calls that rule has looked at.
  std::uint64_t seen(std::size_t rule) const;
  /// How many calls were failed by any rule, lifted ones included.
  std::uint64_t fired_in_all() const;
  /// The same by class, hints that were not honoured included.
  std::array<std::uint64_t, kFaultClasses> fired_by_class() const;
  /// Calls of the library and the program so far, failed ones included.
  std::uint64_t counted_calls() const;
  /// The calls made but reported as failed since the last take.
  std::vector<Orphan> orphans() const;
  /// The same, which are then forgotten; a ledger leaves them out.
  std::vector<Orphan> take_orphans();

 private:
  struct Entry {
    FaultRule rule;
    std::uint64_t seen = 0;
    std::uint64_t fired = 0;
  };

 public:
  /// Rules with their counts, so that an operation that turned out to block can be uncounted.
  struct Saved {
    std::vector<Entry> rules;
    std::uint64_t counted = 0;
    std::uint64_t fired_in_all = 0;
    std::array<std::uint64_t, kFaultClasses> by_class{};
    std::uint64_t generation = 0;
  };
  Saved save() const;
  /// Goes back to `saved`, unless the rules were lifted in between.
  void restore(const Saved& saved);

 private:
  struct Decision {
    std::optional<std::size_t> rule;
    DriverStatus status = DriverStatus::kSuccess;
    Timing timing = Timing::kBefore;
    std::uint64_t generation = 0;
  };

  Decision decide(const Call& call);
  void undo_count(const Call& call, const Decision& decision);
  void undo_firing(const Decision& decision);
  void note_hint();
  bool ignores_hints() const;
  DriverStatus forward(Call& call);

  Backend& inner_;
  LoseContexts lose_contexts_;
  mutable std::mutex mutex_;
  std::vector<Entry> rules_;
  std::vector<Orphan> orphans_;
  std::uint64_t generation_ = 0;  // of the rule list; moves with clear()
  std::uint64_t counted_ = 0;
  std::uint64_t fired_in_all_ = 0;
  std::array<std::uint64_t, kFaultClasses> by_class_{};
  bool ignore_hints_ = false;
};

}  // namespace granule::fault
