// A program that fails without the planted defect as well does not show it.
#include <utility>

#include "run_once.hpp"

namespace granule::prop {

RunReport run(const Program& program, const RunOptions& options) {
  RunReport report = run_once(program, options);
  if (report.status != RunStatus::kFailed || !options.baseline) return report;
  RunOptions without;
  without.strict = options.strict;
  without.checking = options.checking;
  without.finish = options.finish;
  without.machine = options.machine;
  without.thread_seed = options.thread_seed;
  without.interleave = options.interleave;
  without.promise_no_captures = options.promise_no_captures;
  without.withhold_undefined = options.withhold_undefined;
  without.target = options.baseline;
  without.make_machine = options.make_machine;
  const RunReport beside = run_once(program, without);
  if (beside.status != RunStatus::kFailed) return report;
  report.status = RunStatus::kUnmet;
  report.unmet = "it fails without the planted defect as well (" + beside.failure->signature + ")";
  report.failure.reset();
  return report;
}

}  // namespace granule::prop
