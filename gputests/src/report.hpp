// What a run writes for machines: JSON lines as it goes, JUnit XML at its end.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "jobs.hpp"
#include "profile.hpp"

namespace granule::gpu {

class Report {
 public:
  /// Either path may be empty. JSON lines are appended.
  Report(const std::string& json, std::string junit);

  /// The machine and the seeds of the run.
  void begin(const Profile& profile, const std::string& what, std::uint64_t seed);
  void add(const std::string& suite, const std::string& name, const Outcome& outcome);
  /// Writes the XML. False: it could not be written.
  bool finish();

  std::uint64_t count(Outcome::Kind kind) const;
  std::uint64_t calls() const { return calls_; }
  std::uint64_t followed() const { return followed_; }

 private:
  struct Case {
    std::string suite;
    std::string name;
    Outcome outcome;
  };
  std::ofstream json_;
  std::string junit_;
  std::string what_;
  std::string machine_;
  std::vector<Case> cases_;  // only with a JUnit file, clean ones of campaigns left out
  std::map<Outcome::Kind, std::uint64_t> counts_;
  std::uint64_t calls_ = 0;
  std::uint64_t followed_ = 0;
};

}  // namespace granule::gpu
