// Programs are made on all processors, before the children are forked.
#include "prepare.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>

#include <granule/prop/campaign.hpp>

#include "device_run.hpp"

namespace granule::gpu {
namespace {

std::optional<Outcome> prepare_one(Job& job, bool model_first) {
  if (job.make) {
    job.program = job.make();
    job.make = nullptr;
    job.alone = job.alone || needs_process(job.program);
  }
  if (!model_first) return std::nullopt;
  const prop::RunReport report = prop::run_guarded(job.program, job.options);
  if (report.status != prop::RunStatus::kFailed) return std::nullopt;
  Outcome outcome = outcome_of(job.program, report);
  outcome.name = job.program.name;
  outcome.signature = "on the model: " + outcome.signature;
  return outcome;
}

}  // namespace

std::vector<std::optional<Outcome>> prepare(std::vector<Job>& jobs, bool model_first,
                                            const std::function<bool()>& stop) {
  std::vector<std::optional<Outcome>> outcomes(jobs.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < jobs.size(); i = next++) {
      if (stop && stop()) return;
      outcomes[i] = prepare_one(jobs[i], model_first);
    }
  };
  const std::size_t most = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < std::min(most, jobs.size()); ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

}  // namespace granule::gpu
