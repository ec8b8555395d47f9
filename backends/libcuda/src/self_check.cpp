// granule_sim.h: what a program that knows that it is simulated may ask.
#include <granule_sim.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "descriptors.hpp"
#include "entry.hpp"
#include "report.hpp"

#define GRANULE_SIM_ENTRY extern "C" __attribute__((visibility("default")))

namespace granule::libcuda {
namespace {

/// Objects are numbered in the order of making, misuse likewise: a snapshot holds both.
constexpr unsigned kMisuseBits = 24;
constexpr std::uint64_t kMisuseMask = (std::uint64_t{1} << kMisuseBits) - 1;

Report report_since(granule_sim_snapshot_t since) {
  look_for_closed_descriptors();
  return make_report(Session::get(), since >> kMisuseBits, since & kMisuseMask);
}

}  // namespace

GRANULE_SIM_ENTRY int granule_sim_fail(const char* fault) {
  return fault != nullptr && Session::get().add_fault(fault) ? 0 : 1;
}
GRANULE_SIM_ENTRY void granule_sim_no_faults() { Session::get().clear_faults(); }
GRANULE_SIM_ENTRY unsigned long long granule_sim_faults_delivered() {
  return Session::get().books().failed_calls.size();
}

GRANULE_SIM_ENTRY granule_sim_snapshot_t granule_sim_snapshot() {
  look_for_closed_descriptors();
  Session& session = Session::get();
  return session.last_object() << kMisuseBits | (session.last_misuse() & kMisuseMask);
}

GRANULE_SIM_ENTRY unsigned long long granule_sim_findings(granule_sim_snapshot_t since) {
  return report_since(since).open_findings();
}

GRANULE_SIM_ENTRY int granule_sim_expect_no_leak(granule_sim_snapshot_t since, char* text,
                                                 unsigned long long size) {
  const Report report = report_since(since);
  if (text != nullptr && size != 0) *text = '\0';
  if (report.open_findings() == 0) return 0;
  std::string all;
  for (const Finding& finding : report.findings)
    if (!finding.suppressed) all += to_text(finding);
  if (text != nullptr && size != 0) {
    const std::size_t count = std::min<std::size_t>(all.size(), size - 1);
    std::memcpy(text, all.data(), count);
    text[count] = '\0';
  } else {
    std::fputs(all.c_str(), stderr);
  }
  Session::get().mark_reported(since >> kMisuseBits, since & kMisuseMask);
  return 1;
}

GRANULE_SIM_ENTRY void granule_sim_pause(unsigned long long nanoseconds) {
  Pause pause;
  pause.duration_ns = nanoseconds;
  ask(pause);
}

}  // namespace granule::libcuda
