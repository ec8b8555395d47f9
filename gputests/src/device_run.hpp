// Runs of programs on a followed device inside a child process; the profile of the machine.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "jobs.hpp"
#include "profile.hpp"

namespace granule::gpu {

/// How the children of a run work.
struct DeviceRunOptions {
  bool cuda = true;         // false: a second model in the device's place
  std::string plant;        // an error of the model that follows, to be found; empty: none
  bool keep_going = false;  // differences are printed only
  std::string record;       // file that recordings are appended to; empty: none
  Profile profile;          // cuda: what probe() found
  std::chrono::milliseconds shrink_time{0};  // 0: failing programs are not shrunk
};

/// Asks a child process of its own for the machine's profile, with free memory after a warm-up.
/// `unfit` of the result says why the machine cannot be used.
Profile probe(bool cuda);

/// The runner of a child.
MakeRunner make_runner(const DeviceRunOptions& options);

/// What a report of the interpreter means as an outcome.
Outcome outcome_of(const prop::Program& program, const prop::RunReport& report);

/// One line of JSON for a profile, and back.
std::string to_line(const Profile& profile);
std::optional<Profile> profile_from_line(const std::string& line);

}  // namespace granule::gpu
