// One run on a device from probe to exit code: what replay, check, conform and the nightly share.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "device_run.hpp"
#include "divergences.hpp"
#include "report.hpp"

namespace granule::gpu {

struct SessionOptions {
  bool cuda = true;
  std::string plant;
  bool alone = false;
  bool quiet = false;
  std::chrono::milliseconds hang_after{60000};
  std::chrono::milliseconds shrink_time{20000};
  std::string known;  // folder of divergence lists, or one list
  std::string json;
  std::string junit;
  std::string record;
  bool keep_going = false;
  std::string out;                      // folder for failing programs; empty: none are saved
  std::string replay_flags;             // for the line that reproduces: " --target zoo:NAME"
  std::uint64_t failures = UINT64_MAX;  // ends after so many failing programs
  /// Also ends when this says so.
  std::function<bool()> stop;
};

/// Prints what happens, keeps the tally, saves what fails.
class Session {
 public:
  explicit Session(SessionOptions options);

  /// Finds the machine out and reads the list of known divergences. False: exit with exit_code().
  bool open(const std::string& what, std::uint64_t seed);
  const Profile& profile() const { return profile_; }
  struct How {
    std::size_t batch = 200;   // programs of a process, at most
    bool model_first = false;  // each on the model alone first; what fails there is not run
    bool shrink = false;       // failing programs are cut down
  };
  /// Runs jobs; their outcomes are reported under `suite`. False: the machine became unfit.
  bool run(const std::string& suite, std::vector<Job> jobs, const How& how);
  bool run(const std::string& suite, std::vector<Job> jobs) {
    return run(suite, std::move(jobs), How{});
  }
  /// Runs the programs of known divergences: one that no longer diverges is a failure.
  bool run_known();
  /// Writes reports and the summary line.
  void close();

  bool interrupted() const;
  /// As many programs have failed as the options allow.
  bool failed_enough() const { return failed_ >= options_.failures; }
  /// 0, 3, 42, 43, 44 or 45.
  int exit_code() const { return exit_code_; }
  Report& report() { return report_; }
  std::uint64_t known_seen() const { return known_seen_; }
  std::uint64_t programs() const { return programs_; }

 private:
  void note(const std::string& suite, const Job& job, const Outcome& outcome);
  void save(const std::string& suite, const Job& job, const Outcome& outcome);
  void worsen(int code);

  SessionOptions options_;
  Profile profile_;
  DivergenceList known_;
  Report report_;
  std::set<std::string> saved_;  // signatures
  std::uint64_t known_seen_ = 0;
  std::uint64_t programs_ = 0;
  std::uint64_t failed_ = 0;
  int exit_code_ = 0;
  std::chrono::steady_clock::time_point begin_;
};

/// Lets an interrupt from the terminal end the run after the job in progress.
void watch_interrupts();

}  // namespace granule::gpu
