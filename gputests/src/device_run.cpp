// The life of a child: open, warm up, take a baseline, run programs until something is not clean.
#include "device_run.hpp"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <utility>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <granule/prop/shrink.hpp>
#include <granule/prop/text.hpp>

#include "machine.hpp"
#include "model_device.hpp"
#include "recording.hpp"

namespace granule::gpu {
namespace {

/// What a child keeps between jobs.
class Runner {
 public:
  Runner(const DeviceRunOptions& options) : options_(options) {}

  /// Opens the driver as the first job needs it. Empty: ready; else why not.
  std::string open(const Job& first) {
    if (!options_.cuda) return {};
    context_ = leading_context(first.program);
    cuda::Options how;
    how.initialise = context_ != "no_init";
    auto opened = cuda::CudaBackend::open(how);
    if (!opened.ok()) return to_string(opened.error());
    backend_ = std::move(*opened);
    config_ = options_.profile.config;
    if (!context_.empty()) return {};
    const Status warm = backend_->warm_up();
    if (!warm.ok()) return "warming up failed: " + to_string(warm.error());
    shake_out_own_memory();
    put_back_default_pools();
    measure_free(*backend_, config_);
    baseline_ = config_;
    return {};
  }

  bool run(const Job& job, Outcome& outcome) {
    const prop::Program made = job.make ? job.make() : prop::Program{};
    const prop::Program& program = job.make ? made : job.program;
    const prop::RunReport report = run_once(program, job.options, Run::kFirst);
    outcome = outcome_of(program, report);
    outcome.name = program.name;
    // What a program expects literally does not hold where the machine itself gave way.
    if (outcome.kind == Outcome::Kind::kFailed && gave_way_) {
      outcome.kind = Outcome::Kind::kUnmet;
      outcome.message = "more of the driver's own memory or queues (" + outcome.signature + ")";
    }
    const bool wrong = outcome.kind > Outcome::Kind::kUnmet;
    if (wrong && options_.shrink_time.count() > 0 && usable()) shrink(program, job, outcome);
    return context_.empty() && !job.alone && usable();
  }

 private:
  enum class Run : std::uint8_t { kFirst, kCandidate };  // the latter: of a shrinker

  prop::RunReport run_once(const prop::Program& program, const prop::RunOptions& base, Run which) {
    prop::RunOptions options = base;
    options.make_machine = [&](const model::Config& wanted) { return machine_for(wanted, which); };
    gave_way_ = false;
    options.inspect = [&](const prop::World&) {
      if (machine_ == nullptr) return;
      gave_way_ = machine_->follower().fell_short() || machine_->follower().held_up();
      if (which == Run::kFirst && !options_.record.empty())
        append_recording(options_.record, program.name, config_, machine_->take_recording());
    };
    return prop::run(program, options);
  }

  /// How often of five it fails the same way, and the smallest program that does so.
  void shrink(const prop::Program& program, const Job& job, Outcome& outcome) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point end = Clock::now() + options_.shrink_time;
    const std::string signature = outcome.signature;
    constexpr int kTries = 5;
    int failed = 0;
    for (int i = 0; i < kTries && usable(); ++i) {
      const prop::RunReport again = run_once(program, job.options, Run::kCandidate);
      failed += again.failure && again.failure->signature == signature ? 1 : 0;
    }
    outcome.message += "\n  fails the same way in " + std::to_string(failed) + " of " +
                       std::to_string(kTries) + " further runs";
    if (failed == 0) return;
    const int tries = failed == kTries ? 1 : 3;
    const prop::Judge judge = [&](const prop::Program& candidate) {
      prop::Judgement judgement;
      for (int i = 0; i < tries && usable() && judgement.signature.empty(); ++i) {
        const prop::RunReport report = run_once(candidate, job.options, Run::kCandidate);
        if (report.failure && report.failure->signature == signature)
          judgement = {signature, report.failure->statement};
      }
      return judgement;
    };
    prop::ShrinkOptions how;
    how.stop = [&] { return Clock::now() >= end || !usable(); };
    const prop::ShrinkResult small = prop::shrink(program, judge, how);
    if (small.signature.empty()) return;
    outcome.program = prop::to_text(small.program);
    outcome.message += "; shrunk from " + std::to_string(program.statements.size()) + " to " +
                       std::to_string(small.program.statements.size()) + " statements";
  }

  std::unique_ptr<prop::Machine> machine_for(const model::Config& wanted, Run which) {
    if (!options_.cuda) return make_model_machine(wanted, options_.plant);
    FollowingMachine::Options how;
    how.without_context = !context_.empty();
    how.without_init = context_ == "no_init";
    model::Config config = config_;
    config.seed = wanted.seed;
    how.keep_going = options_.keep_going;
    how.record = which == Run::kFirst && !options_.record.empty();
    how.careful = which == Run::kCandidate;
    how.plant = options_.plant;
    auto machine = std::make_unique<FollowingMachine>(*backend_, config, std::move(how));
    machine_ = machine.get();
    return machine;
  }

  /// Short of memory, a driver gives back what it keeps idle in its contexts: once, before the
  /// baseline, rather than in the middle of a program.
  void shake_out_own_memory() {
    for (std::size_t i = 0; i < config_.devices.size(); ++i) {
      MemCreate hopeless;
      hopeless.size = std::uint64_t{1} << 40;
      hopeless.properties.location = device_location(DeviceId{static_cast<std::int32_t>(i)});
      backend_->run(hopeless);
      DevicePrimaryCtxRetain retain;
      retain.device.value = static_cast<std::int32_t>(i);
      if (backend_->run(retain) != DriverStatus::kSuccess) continue;
      CtxPushCurrent push{retain.context};
      if (backend_->run(push) == DriverStatus::kSuccess) {
        MemAlloc plain;
        plain.size = hopeless.size;
        backend_->run(plain);
        CtxPopCurrent pop;
        backend_->run(pop);
      }
      DevicePrimaryCtxRelease release;
      release.device = retain.device;
      backend_->run(release);
    }
  }

  /// The default pools outlive programs: empty, with the settings and marks of fresh ones. False:
  /// one of them is not.
  bool put_back_default_pools() {
    const auto devices = static_cast<std::int32_t>(config_.devices.size());
    bool fresh = true;
    for (std::int32_t i = 0; i < devices; ++i) {
      DeviceGetDefaultMemPool get;
      get.device.value = i;
      if (backend_->run(get) != DriverStatus::kSuccess) continue;  // it has none
      const auto set = [&](PoolAttribute attribute, std::uint64_t value) {
        MemPoolSetAttribute call{get.pool, attribute, value};
        fresh = backend_->run(call) == DriverStatus::kSuccess && fresh;
      };
      for (const PoolAttribute reuse :
           {PoolAttribute::kReuseFollowEventDependencies, PoolAttribute::kReuseAllowOpportunistic,
            PoolAttribute::kReuseAllowInternalDependencies})
        set(reuse, 1);
      set(PoolAttribute::kReleaseThreshold, 0);
      MemPoolTrimTo trim{get.pool, 0};
      backend_->run(trim);
      set(PoolAttribute::kReservedMemHigh, 0);
      set(PoolAttribute::kUsedMemHigh, 0);
      for (const PoolAttribute high :
           {PoolAttribute::kReservedMemHigh, PoolAttribute::kUsedMemHigh}) {
        MemPoolGetAttribute left{get.pool, high, 0};
        fresh = backend_->run(left) == DriverStatus::kSuccess && left.value == 0 && fresh;
      }
      for (std::int32_t peer = 0; peer < devices; ++peer) {
        if (peer == i) continue;
        MemPoolSetAccess none;
        none.pool = get.pool;
        none.access.push({device_location(DeviceId{peer}), Access::kNone});
        backend_->run(none);
      }
    }
    return fresh;
  }

  /// The thread as programs find it: no context, captures of others in the way. A program that
  /// ended early may have left it otherwise.
  void put_back_thread() {
    ThreadExchangeStreamCaptureMode mode;
    mode.mode = CaptureMode::kGlobal;
    backend_->run(mode);
    constexpr int kDeepest = 64;
    for (int i = 0; i < kDeepest; ++i) {
      CtxGetCurrent current;
      if (backend_->run(current) != DriverStatus::kSuccess || !current.context) return;
      CtxPopCurrent pop;
      backend_->run(pop);
    }
  }

  /// Whether the device is as the first program found it.
  bool usable() {
    if (!options_.cuda) return true;
    put_back_thread();
    backend_->open_all_gates();  // a stream that stays held holds up what comes later
    if (!context_.empty()) return true;
    model::Config now = config_;
    measure_free(*backend_, now);
    constexpr std::uint64_t kOwn = std::uint64_t{64} << 20;
    for (std::size_t i = 0; i < now.devices.size(); ++i) {
      // What a driver holds for itself moves a little; a program's own leak is found as such.
      const std::uint64_t was = baseline_.devices[i].memory;
      const std::uint64_t is = now.devices[i].memory;
      if ((was > is ? was - is : is - was) > kOwn) return false;
    }
    if (!is_healthy() || !put_back_default_pools()) return false;
    config_ = now;
    return true;
  }

  /// No sticky error: cuMemGetInfo answers.
  bool is_healthy() {
    DevicePrimaryCtxRetain retain;
    if (backend_->run(retain) != DriverStatus::kSuccess) return false;
    CtxPushCurrent push{retain.context};
    bool healthy = backend_->run(push) == DriverStatus::kSuccess;
    if (healthy) {
      MemGetInfo info;
      healthy = backend_->run(info) == DriverStatus::kSuccess;
      CtxPopCurrent pop;
      backend_->run(pop);
    }
    DevicePrimaryCtxRelease release;
    backend_->run(release);
    return healthy;
  }

  const DeviceRunOptions options_;
  std::unique_ptr<cuda::CudaBackend> backend_;
  model::Config config_;    // as the device is now
  model::Config baseline_;  // as it was at first
  std::string context_;
  FollowingMachine* machine_ = nullptr;  // of the run in progress
  bool gave_way_ = false;                // the last one's: short of memory, or of queues
};

Profile probe_here() {
  Profile profile;
  auto opened = cuda::CudaBackend::open();
  if (!opened.ok()) {
    profile.unfit = to_string(opened.error());
    return profile;
  }
  profile = profile_of(**opened);
  if (!profile.unfit.empty()) return profile;
  const Status warm = (*opened)->warm_up();
  if (!warm.ok()) {
    profile.unfit = "warming up failed: " + to_string(warm.error());
    return profile;
  }
  constexpr unsigned kSamples = 1000;
  const std::uint64_t noise = idle_noise(**opened, kSamples);
  if (noise != 0)
    profile.unfit = "free memory moves by " + std::to_string(noise) + " bytes while nothing runs";
  measure_free(**opened, profile.config);
  return profile;
}

}  // namespace

Outcome outcome_of(const prop::Program& program, const prop::RunReport& report) {
  Outcome outcome;
  outcome.calls = report.calls;
  outcome.followed = report.followed;
  outcome.skipped = report.skipped_count;
  outcome.statements = report.executed;
  if (report.status == prop::RunStatus::kUnmet) {
    outcome.kind = Outcome::Kind::kUnmet;
    outcome.message = report.unmet;
  } else if (report.failure) {
    const bool diverged = report.failure->kind == prop::Failure::Kind::kDiverged;
    outcome.kind = diverged ? Outcome::Kind::kDiverged : Outcome::Kind::kFailed;
    outcome.signature = report.failure->signature;
    outcome.message = prop::describe(program, *report.failure);
  }
  return outcome;
}

Profile probe(bool cuda) {
  Profile profile;
  if (!cuda) {
    profile.driver = "model";
    profile.gpu = "simulated device";
    return profile;
  }
  int ends[2] = {-1, -1};
  profile.unfit = "no child process could be made";
  if (pipe(ends) != 0) return profile;
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    const std::string line = to_line(probe_here());
    const ssize_t written = write(ends[1], line.data(), line.size());
    _exit(written == static_cast<ssize_t>(line.size()) ? 0 : 1);
  }
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    return profile;
  }
  std::string text;
  constexpr int kPatience = 120'000;  // ms
  for (;;) {
    pollfd wait{ends[0], POLLIN, 0};
    if (poll(&wait, 1, kPatience) <= 0) {
      kill(child, SIGKILL);
      profile.unfit = "the driver has not started within two minutes";
      break;
    }
    char bytes[4096];
    const ssize_t n = read(ends[0], bytes, sizeof bytes);
    if (n <= 0) break;
    text.append(bytes, static_cast<std::size_t>(n));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (const auto found = profile_from_line(text)) return *found;
  if (WIFSIGNALED(status) && !text.empty()) profile.unfit = "the driver crashed while starting";
  return profile;
}

MakeRunner make_runner(const DeviceRunOptions& options) {
  return [options](const Job& first, std::string& why) -> RunJob {
    auto runner = std::make_shared<Runner>(options);
    why = runner->open(first);
    if (!why.empty()) return nullptr;
    return [runner](const Job& job, Outcome& outcome) { return runner->run(job, outcome); };
  };
}

}  // namespace granule::gpu
