// Writing recordings, reading them, and playing them to a follower in the device's place.
#include "recording.hpp"

#include <fstream>
#include <optional>
#include <sstream>

#include <granule/backends/origin.hpp>

namespace granule::gpu {
namespace {

constexpr const char* kHeader = "granule recording 1";

std::string machine_line(const model::Config& machine) {
  std::ostringstream out;
  out << "machine version=" << machine.driver_version << " numa=" << machine.numa_nodes;
  for (const model::DeviceConfig& device : machine.devices)
    out << " device memory=" << device.memory << " granularity=" << device.granularity
        << " posix_fd=" << device.posix_fd << " fabric=" << device.fabric << " rdma=" << device.rdma
        << " pools=" << device.pools << " peers=" << device.peers;
  return out.str();
}

model::Config read_machine(const std::string& line) {
  model::Config machine;
  machine.devices.clear();
  std::istringstream in(line);
  std::string token;
  while (in >> token) {
    if (token == "device") machine.devices.emplace_back();
    const std::size_t equals = token.find('=');
    if (equals == std::string::npos) continue;
    const std::string key = token.substr(0, equals);
    const std::uint64_t value = std::strtoull(token.c_str() + equals + 1, nullptr, 10);
    if (key == "version") machine.driver_version = static_cast<std::int32_t>(value);
    if (key == "numa") machine.numa_nodes = static_cast<std::uint32_t>(value);
    if (machine.devices.empty()) continue;
    model::DeviceConfig& device = machine.devices.back();
    if (key == "memory") device.memory = value;
    if (key == "granularity") device.granularity = value;
    if (key == "posix_fd") device.posix_fd = value != 0;
    if (key == "fabric") device.fabric = value != 0;
    if (key == "rdma") device.rdma = value != 0;
    if (key == "pools") device.pools = value != 0;
    if (key == "peers") device.peers = value != 0;
  }
  if (machine.devices.empty()) machine.devices.emplace_back();
  return machine;
}

/// Answers each call as it was answered when it was recorded.
class Playback final : public Backend {
 public:
  DriverStatus execute(Call& call) noexcept override {
    asked_ = true;
    call = next_->call;
    return next_->status;
  }
  void set_next(const record::Entry& entry) {
    next_ = &entry;
    asked_ = false;
  }
  bool asked() const { return asked_; }

 private:
  const record::Entry* next_ = nullptr;
  bool asked_ = false;
};

/// What was seen of a pool behind its allocation, if that is what comes next.
std::optional<std::uint64_t> look_behind(const std::vector<record::Entry>& entries,
                                         std::size_t index) {
  if (index + 1 >= entries.size() || entries[index + 1].origin != CallOrigin::kHarness) return {};
  const auto* get = std::get_if<MemPoolGetAttribute>(&entries[index + 1].call);
  if (get == nullptr || get->attribute != PoolAttribute::kReservedMemCurrent) return {};
  return get->value;
}

bool is_own_answer(DriverStatus status) {
  return status == DriverStatus::kWouldBlock || status == DriverStatus::kUndefined;
}

}  // namespace

bool append_recording(const std::string& path, const std::string& program,
                      const model::Config& machine, const std::vector<record::Entry>& entries) {
  std::ofstream out(path, std::ios::app);
  if (out.tellp() == 0) out << "# " << kHeader << "\n";
  out << "program " << program << "\n" << machine_line(machine) << "\n";
  for (const record::Entry& entry : entries) out << record::to_text(entry) << "\n";
  out.flush();
  return out.good();
}

std::vector<Recording> read_recordings(const std::string& path, std::string& error) {
  std::vector<Recording> all;
  std::ifstream in(path);
  if (!in) {
    error = path + ": cannot be read";
    return all;
  }
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    if (line.empty() || line[0] == '#') continue;
    if (line.rfind("program ", 0) == 0) {
      all.push_back({line.substr(8), {}, {}});
      continue;
    }
    if (all.empty()) all.emplace_back();
    if (line.rfind("machine ", 0) == 0) {
      all.back().machine = read_machine(line);
      continue;
    }
    const auto entry = record::entry_from_text(line);
    if (!entry) {
      error = path + ":" + std::to_string(number) + ": not a recorded call: " + line;
      return all;
    }
    all.back().entries.push_back(*entry);
  }
  return all;
}

std::vector<Divergence> hold_against_model(const Recording& recording) {
  model::DriverState oracle(following(recording.machine));
  Playback playback;
  Follower follower(playback, oracle);
  // The device's owner held its primary contexts before the recording began.
  Call init = Init{};
  model::step(oracle, model::ThreadId{0}, init);
  for (std::size_t i = 0; i < recording.machine.devices.size(); ++i) {
    DevicePrimaryCtxRetain retain;
    retain.device.value = static_cast<std::int32_t>(i);
    Call call = retain;
    model::step(oracle, model::ThreadId{0}, call);
  }
  for (std::size_t i = 0; i < recording.entries.size(); ++i) {
    const record::Entry& entry = recording.entries[i];
    const auto seen = is_pool_allocation(entry.call) ? look_behind(recording.entries, i)
                                                     : std::optional<std::uint64_t>{};
    if (seen) ++i;
    follower.set_look([seen](const Call&) { return seen; }, false);
    if (entry.call.index() == static_cast<std::size_t>(kind_of<Pause>)) continue;
    playback.set_next(entry);
    follower.set_thread(entry.thread);
    const OriginScope origin(entry.origin);
    Call call = entry.call;
    const DriverStatus status = follower.execute(call);
    if (is_own_answer(status) == is_own_answer(entry.status) || playback.asked()) continue;
    Divergence found;
    found.call = record::to_text(entry);
    found.field = "status";
    found.device_says = std::string(name_of(entry.status));
    found.model_says = std::string(name_of(status));
    found.signature = std::string(name_of(kind(entry.call))) + " status " + found.device_says +
                      " " + found.model_says;
    follower.report(std::move(found));
  }
  return follower.take_divergences();
}

}  // namespace granule::gpu
