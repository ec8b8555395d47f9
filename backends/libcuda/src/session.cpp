// Executing calls: faults, patience, ledger, findings.
#include "session.hpp"

#include <dlfcn.h>
#include <limits.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include <granule/backends/origin.hpp>
#include <granule/backends/record.hpp>
#include <granule/backends/trace.hpp>

namespace granule::libcuda {
namespace {

/// What the driver itself said to this thread's last call.
struct Witnessed {
  bool reached = false;
  DriverStatus status = DriverStatus::kSuccess;
};
thread_local Witnessed witnessed;

class Witness final : public Backend {
 public:
  explicit Witness(Backend& inner) : inner_(inner) {}
  DriverStatus execute(Call& call) noexcept override {
    const DriverStatus status = inner_.execute(call);
    witnessed = {true, status};
    return status;
  }

 private:
  Backend& inner_;
};

std::string option_text() {
  const char* text = std::getenv("GRANULE_SIM");
  return text != nullptr ? text : "";
}

/// The file that this library was loaded from.
std::string own_path() {
  Dl_info info{};
  static const int here = 0;
  char path[PATH_MAX];
  if (dladdr(&here, &info) == 0 || realpath(info.dli_fname, path) == nullptr) return {};
  return path;
}

/// A library that is named as the real driver and is this very one stands in for it: it simulates,
/// and leaves faults and reports to the one that watches it.
Options chosen_options() {
  Options options = parse_options(option_text());
  char real[PATH_MAX];
  if (!options.watch || realpath(options.real.c_str(), real) == nullptr || own_path() != real)
    return options;
  Options stand_in;
  stand_in.profile = options.profile;
  stand_in.memory = options.memory;
  stand_in.devices = options.devices;
  stand_in.driver = options.driver;
  stand_in.python = false;
  stand_in.silent = true;
  return stand_in;
}

/// Calls that act on what the client believes to hold, by name of what a refusal of theirs means.
/// Those that ask for something new are not here: trying is no misuse.
const char* refusal_of(const Call& call) {
  if (std::holds_alternative<MemMap>(call)) return "bad_map";
  if (std::holds_alternative<MemSetAccess>(call)) return "bad_access";
  if (std::holds_alternative<MemRetainAllocationHandle>(call)) return "bad_retain";
  if (std::holds_alternative<MemUnmap>(call)) return "bad_unmap";
  if (std::holds_alternative<MemAddressFree>(call)) return "bad_address_free";
  if (std::holds_alternative<MemRelease>(call)) return "bad_release";
  if (std::holds_alternative<MemFree>(call) || std::holds_alternative<MemFreeAsync>(call) ||
      std::holds_alternative<MemFreeHost>(call))
    return "bad_free";
  if (std::holds_alternative<MemPoolDestroy>(call)) return "bad_pool_destroy";
  return nullptr;
}

/// Whether a sweep can fail such a call: what makes or changes something, not what drops it.
bool is_point(const Call& call, bool all) {
  const CallInfo& info = info_of(kind(call));
  if (info.family == CallFamily::kHarness || info.family == CallFamily::kDevice || info.since == 0)
    return false;
  if (all) return true;
  return std::visit(
      [](const auto& one) {
        bool drops = false;
        for_each_field(one, [&](const auto& field, const auto&) {
          drops = drops || field.role == Role::kDrops;
        });
        return !drops;
      },
      call);
}

bool needs_context(const Call& call) {
  return std::holds_alternative<MemAlloc>(call) || std::holds_alternative<MemAllocHost>(call) ||
         std::holds_alternative<StreamCreate>(call) || std::holds_alternative<EventCreate>(call);
}

}  // namespace

Session& Session::get() {
  static auto* const session = new Session;
  return *session;
}

Session::Session() : options_(chosen_options()) {
  for (const std::string& error : options_.errors)
    std::fprintf(stderr, "granule sim: not understood: %s\n", error.c_str());
  std::string why;
  driver_ = make_driver(options_, why);
  if (!driver_) {
    std::fprintf(stderr, "granule sim: %s\n", why.c_str());
    return;
  }
  witness_ = std::make_unique<Witness>(*driver_);
  faults_ = std::make_unique<fault::FaultBackend>(*witness_);
  for (const fault::FaultRule& rule : options_.fail) faults_->add(rule);
  if (options_.record.empty()) return;
  recording_ = std::fopen(options_.record.c_str(), "ae");
  if (recording_ == nullptr)
    std::fprintf(stderr, "granule sim: %s cannot be written\n", options_.record.c_str());
}

bool Session::initialized() const noexcept {
  return initialized_.load(std::memory_order_relaxed) && in_own_process();
}

DriverStatus Session::ask(Call& call) noexcept {
  const OriginScope origin(CallOrigin::kHarness);
  return driver_ ? driver_->execute(call) : DriverStatus::kNoDevice;
}

std::uint64_t Session::current_context() {
  Call current = CtxGetCurrent{};
  ask(current);
  return std::get<CtxGetCurrent>(current).context.value;
}

DriverStatus Session::execute_patiently(Call& call) noexcept {
  using Clock = std::chrono::steady_clock;
  DriverStatus status = faults_->execute(call);
  if (status != DriverStatus::kWouldBlock) return status;
  const auto give_up = Clock::now() + std::chrono::milliseconds(options_.hang_ms);
  while (status == DriverStatus::kWouldBlock && Clock::now() < give_up) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    status = faults_->execute(call);
  }
  return status;
}

DriverStatus Session::execute(Call& call) noexcept {
  if (!driver_) return DriverStatus::kNoDevice;
  if (!in_own_process()) return DriverStatus::kNotInitialized;
  try {
    calls_.fetch_add(1, std::memory_order_relaxed);
    const SiteId site = Ledger::makes(call) ? here() : 0;
    std::vector<Object> dropped = ledger_.take_dropped(call);
    witnessed = {};
    const DriverStatus status = execute_patiently(call);
    const bool injected = status != DriverStatus::kSuccess &&
                          (!witnessed.reached || witnessed.status == DriverStatus::kSuccess);
    if (status == DriverStatus::kSuccess) {
      if (site != 0) ledger_.add_made(call, needs_context(call) ? current_context() : 0, site);
      if (std::holds_alternative<Init>(call)) initialized_ = true;
    } else if (!(injected && witnessed.reached)) {
      ledger_.put_back(std::move(dropped));
    }
    if (recording_ != nullptr) write_down(call, status, injected);
    after_call(call, status, injected);
    if (status == DriverStatus::kWouldBlock) return DriverStatus::kLaunchTimeout;
    if (status == DriverStatus::kUndefined) return DriverStatus::kInvalidHandle;
    if (status == DriverStatus::kUnavailable) return DriverStatus::kNotSupported;
    return status;
  } catch (const std::bad_alloc&) {
    return DriverStatus::kOutOfMemory;
  }
}

/// At once, so that a process that dies leaves what it did.
void Session::write_down(const Call& call, DriverStatus status, bool injected) {
  const std::string line = record::to_text({0, CallOrigin::kProgram, status, call});
  const std::lock_guard lock(mutex_);
  if (std::holds_alternative<Init>(call)) {
    const std::uint64_t memory = memory_of(options_);
    for (int device = 0; device < options_.devices; ++device)
      std::fprintf(recording_, "device %d memory=%lluMiB\n", device,
                   static_cast<unsigned long long>(memory >> 20));
  }
  std::fprintf(recording_, "%s%s\n", line.c_str(), injected ? " !injected" : "");
  std::fflush(recording_);
}

void Session::after_call(const Call& call, DriverStatus status, bool injected) {
  std::vector<Misuse> found = driver_->take_misuse();
  if (status == DriverStatus::kWouldBlock)
    found.push_back({"hang", "a wait that nothing in the process ended: given up"});
  const char* refusal = refusal_of(call);
  const bool judged =
      status == DriverStatus::kInvalidValue || status == DriverStatus::kInvalidHandle ||
      status == DriverStatus::kInvalidContext ||
      (status == DriverStatus::kNotSupported && std::holds_alternative<MemMap>(call));
  if (found.empty() && refusal != nullptr && judged && !injected && initialized())
    found.push_back({refusal, trace::to_text(call) + " => " + std::string(name_of(status))});
  if (found.empty() && !injected && !options_.points) return;
  const SiteId site = found.empty() ? 0 : here();
  const std::lock_guard lock(mutex_);
  for (Misuse& misuse : found)
    misuse_.push_back({std::move(misuse.kind), std::move(misuse.message),
                       std::string(name_of(kind(call))), site, ++misuse_count_});
  if (injected)
    failed_calls_.push_back(trace::to_text(call) + " => " + std::string(name_of(status)));
  if (options_.points && is_point(call, options_.all_points))
    points_.emplace_back(name_of(kind(call)));
}

void Session::settle() {
  if (options_.watch) return;
  Pause pause;
  pause.duration_ns = std::uint64_t{1} << 50;
  Call call = pause;
  ask(call);
  for (Misuse& misuse : driver_->take_misuse())
    add_misuse(std::move(misuse.kind), std::move(misuse.message), "work that nothing waited for");
}

void Session::note_unsupported(const char* name) {
  const std::lock_guard lock(mutex_);
  ++unsupported_[name];
}

void Session::add_misuse(std::string kind, std::string message, std::string call) {
  const SiteId site = here();
  const std::lock_guard lock(mutex_);
  misuse_.push_back({std::move(kind), std::move(message), std::move(call), site, ++misuse_count_});
}

Session::Books Session::books(std::uint64_t leaks_after) const {
  Books books;
  books.leaks = ledger_.leaks(leaks_after);
  books.calls = calls_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < options_.fail.size() && faults_; ++i)
    books.fired.push_back(faults_->fired(i));
  const std::lock_guard lock(mutex_);
  books.misuse = misuse_;
  books.unsupported = unsupported_;
  books.failed_calls = failed_calls_;
  books.points = points_;
  return books;
}

bool Session::add_fault(const std::string& text) {
  const auto rule = parse_fault(text);
  if (rule && faults_) faults_->add(*rule);
  return rule.has_value() && faults_ != nullptr;
}

void Session::clear_faults() {
  if (faults_) faults_->clear();
}

void Session::mark_reported(std::uint64_t objects_after, std::uint64_t misuse_after) {
  ledger_.forget(objects_after);
  const std::lock_guard lock(mutex_);
  misuse_.erase(std::remove_if(misuse_.begin(), misuse_.end(),
                               [&](const FoundMisuse& one) { return one.number > misuse_after; }),
                misuse_.end());
}

std::uint64_t Session::last_misuse() const {
  const std::lock_guard lock(mutex_);
  return misuse_count_;
}

}  // namespace granule::libcuda
