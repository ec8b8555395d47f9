// One simulated (or watched) driver for the whole process: what stands between the C entry points
// and the backend. It executes calls, injects faults, keeps the ledger and gathers findings.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <granule/backends/fault.hpp>

#include "driver.hpp"
#include "ledger.hpp"
#include "options.hpp"
#include "own_process.hpp"
#include "profile.hpp"
#include "sites.hpp"

namespace granule::libcuda {

/// A misuse with the call that showed it.
struct FoundMisuse {
  std::string kind;
  std::string message;
  std::string call;
  SiteId site = 0;
  std::uint64_t number = 0;  // from 1
};

/// Thread-safe. Never destroyed: other libraries make calls while the process ends.
class Session {
 public:
  static Session& get();

  /// Executes a call for the client. What the driver's status becomes in C.
  DriverStatus execute(Call& call) noexcept;
  /// Asks the driver for the library's own sake: no fault, no record, no ledger.
  DriverStatus ask(Call& call) noexcept;

  /// Whether cuInit has succeeded in this process (a forked child must call it again, in vain).
  bool initialized() const noexcept;
  const Profile& profile() const { return profile_named(options_.profile); }
  const Options& options() const { return options_; }

  /// Enters in the ledger that a call's objects are gone, without making it.
  void drop(const Call& call) { ledger_.take_dropped(call); }
  /// Whether the client holds the device's primary context.
  bool primary_retained(int device) const { return ledger_.holds_primary(device); }
  /// Lets all queued work run that nothing holds, so that what it does wrong is known.
  void settle();
  /// A call that nothing here implements was made.
  void note_unsupported(const char* name);
  /// Something that the library itself found wrong.
  void add_misuse(std::string kind, std::string message, std::string call);

  // For reports.
  struct Books {
    std::vector<Object> leaks;
    std::vector<FoundMisuse> misuse;
    std::map<std::string, std::uint64_t> unsupported;
    std::vector<std::uint64_t> fired;       // by rule
    std::vector<std::string> failed_calls;  // faults delivered, in order
    std::vector<std::string> points;
    std::uint64_t calls = 0;
  };
  Books books(std::uint64_t leaks_after = 0) const;
  const Sites& sites() const { return sites_; }
  bool in_own_process() const noexcept { return process_.holds(); }

  // For programs that test themselves (granule_sim.h).
  bool add_fault(const std::string& text);
  void clear_faults();
  std::uint64_t last_object() const { return ledger_.last_number(); }
  std::uint64_t last_misuse() const;
  /// What is younger was reported to the program itself: the final report leaves it out.
  void mark_reported(std::uint64_t objects_after, std::uint64_t misuse_after);

 private:
  Session();
  DriverStatus execute_patiently(Call& call) noexcept;
  void write_down(const Call& call, DriverStatus status, bool injected);
  void after_call(const Call& call, DriverStatus status, bool injected);
  SiteId here() { return sites_.capture(options_.python); }
  std::uint64_t current_context();

  Options options_;
  OwnProcess process_;
  std::atomic<bool> initialized_{false};
  std::unique_ptr<Driver> driver_;
  std::unique_ptr<Backend> witness_;  // notes what reaches the driver
  std::unique_ptr<fault::FaultBackend> faults_;
  std::FILE* recording_ = nullptr;
  Sites sites_;
  Ledger ledger_;

  mutable std::mutex mutex_;
  std::vector<FoundMisuse> misuse_;
  std::uint64_t misuse_count_ = 0;
  std::map<std::string, std::uint64_t> unsupported_;
  std::vector<std::string> failed_calls_;
  std::vector<std::string> points_;
  std::atomic<std::uint64_t> calls_{0};
};

}  // namespace granule::libcuda
