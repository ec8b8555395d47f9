// replay, check and recordings with --backend cuda.
#include "device_commands.hpp"

#include <algorithm>
#include <cstdio>

#include <granule/prop/text.hpp>

#include "c_source.hpp"
#include "check_flags.hpp"
#include "command.hpp"
#include "conform.hpp"
#include "recording.hpp"

namespace granule::cli {

gpu::SessionOptions session_options(const DeviceFlags& flags) {
  gpu::SessionOptions options;
  options.cuda = flags.backend == "cuda";
  options.alone = flags.alone;
  options.hang_after = duration_of(flags.hang_after);
  options.known = flags.known;
  options.json = flags.json;
  options.junit = flags.junit;
  options.record = flags.record;
  options.keep_going = flags.keep_going;
  return options;
}

bool jobs_of_files(const std::vector<std::string>& files, const std::string& only,
                   const prop::RunOptions& run, std::vector<gpu::Job>& jobs) {
  bool fine = true;
  for (const std::string& file : files) {
    prop::ParseResult parsed = prop::parse_file(file);
    for (const prop::ParseError& error : parsed.errors)
      std::fprintf(stderr, "%s\n", prop::to_text(error).c_str());
    fine = fine && parsed.ok();
    for (prop::Program& program : parsed.document.programs) {
      if (!only.empty() && only != program.name) continue;
      gpu::Job job;
      job.file = file;
      job.alone = gpu::needs_process(program);
      job.program = std::move(program);
      job.options = run;
      jobs.push_back(std::move(job));
    }
  }
  return fine;
}

std::vector<gpu::Job> conform_jobs(std::uint64_t seed, std::uint64_t first, std::uint64_t count,
                                   std::uint32_t calls) {
  std::vector<gpu::Job> jobs(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    gpu::ConformOptions options;
    options.calls = calls;
    const std::uint64_t index = first + i;
    jobs[i].make = [seed, index, options] { return gpu::conform_program(seed, index, options); };
    jobs[i].program.name = "conform-" + std::to_string(seed) + "-" + std::to_string(index);
    jobs[i].options.checking = prop::Checking::kNone;
    jobs[i].options.withhold_undefined = true;
  }
  return jobs;
}

std::vector<gpu::Job> check_jobs(std::shared_ptr<const prop::CampaignOptions> campaign,
                                 std::uint64_t first, std::uint64_t count) {
  constexpr std::uint64_t kQuicker = 20;
  std::vector<gpu::Job> jobs(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t index = first + i * campaign->shards;
    jobs[i].make = [campaign, index] {
      prop::Program program = prop::campaign_program(*campaign, index);
      gpu::shorten_waits(program, kQuicker);
      return program;
    };
    jobs[i].program.name = "check-" + std::to_string(campaign->seed) + "-" + std::to_string(index);
    jobs[i].options = prop::campaign_run(*campaign, index);
    jobs[i].options.cells = false;
  }
  return jobs;
}

namespace {

int replay(const DeviceReplay& work) {
  gpu::SessionOptions options = session_options(work.flags);
  options.quiet = work.quiet;
  std::vector<gpu::Job> jobs;
  if (!jobs_of_files(work.files, work.only, work.run, jobs)) return kUsage;
  gpu::watch_interrupts();
  gpu::Session session(options);
  if (!session.open("replay", work.run.machine.seed)) return session.exit_code();
  session.run("replay", std::move(jobs));
  session.close();
  return session.exit_code();
}

int check(const DeviceCheck& work) {
  gpu::SessionOptions options = session_options(work.flags);
  options.out = work.out;
  options.shrink_time = work.shrink_time;
  options.failures = work.campaign.failures;
  if (work.target != "core") options.replay_flags = " --target " + work.target;
  const auto end = std::chrono::steady_clock::now() + work.campaign.time;
  options.stop = [end] { return std::chrono::steady_clock::now() >= end; };
  gpu::watch_interrupts();
  gpu::Session session(options);
  if (!session.open("check", work.campaign.seed)) return session.exit_code();
  constexpr std::uint64_t kBatch = 2000;
  const auto campaign = std::make_shared<const prop::CampaignOptions>(work.campaign);
  gpu::Session::How how;
  how.batch = kBatch;
  how.model_first = work.target == "core";
  how.shrink = true;
  std::uint64_t index = campaign->first + campaign->shard;
  std::uint64_t made = 0;
  bool fit = true;
  while (fit && made < campaign->programs && !session.interrupted() && !session.failed_enough()) {
    const std::uint64_t next = std::min(kBatch, campaign->programs - made);
    fit = session.run("check", check_jobs(campaign, index, next), how);
    made += next;
    index += next * campaign->shards;
  }
  session.close();
  return session.exit_code();
}

int recorded(const std::string& file) {
  std::string error;
  const std::vector<gpu::Recording> recordings = gpu::read_recordings(file, error);
  if (!error.empty()) {
    std::fprintf(stderr, "granule: %s\n", error.c_str());
    return kUsage;
  }
  std::size_t calls = 0;
  std::size_t wrong = 0;
  for (const gpu::Recording& recording : recordings) {
    calls += recording.entries.size();
    const std::vector<gpu::Divergence> found = gpu::hold_against_model(recording);
    wrong += found.empty() ? 0 : 1;
    for (const gpu::Divergence& one : found)
      std::printf("%s: call %llu: %s\n", recording.program.c_str(),
                  static_cast<unsigned long long>(one.number), gpu::to_text(one).c_str());
  }
  std::printf("%zu recorded programs, %zu calls: %zu differ from the model\n", recordings.size(),
              calls, wrong);
  return wrong == 0 ? kClean : kDiverged;
}

const bool registered = [] {
  device_work() = {replay, check, recorded, gpu::c_source};
  return true;
}();

}  // namespace
}  // namespace granule::cli
