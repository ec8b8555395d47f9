// Writing a log as a program.
#include "program_of.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace granule::alloclog {
namespace {

constexpr std::uint64_t kGranule = std::uint64_t{2} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

std::uint64_t added(std::uint64_t a, std::uint64_t b) { return a + b < a ? UINT64_MAX : a + b; }

std::uint64_t whole_granules(std::uint64_t bytes) {
  return added(bytes, kGranule - 1) / kGranule * kGranule;
}

/// In the largest unit that leaves no remainder.
std::string size_text(std::uint64_t bytes) {
  for (const auto& [unit, shift] :
       {std::pair("GiB", 30u), std::pair("MiB", 20u), std::pair("KiB", 10u)})
    if (bytes != 0 && bytes % (std::uint64_t{1} << shift) == 0)
      return std::to_string(bytes >> shift) + unit;
  return std::to_string(bytes);
}

/// Device memory in use, in whole granules, and the most that any order of the threads may need.
class Usage {
 public:
  void allocate(std::uint32_t thread, std::uint64_t bytes) {
    Net& net = net_[thread];
    net.now += static_cast<std::int64_t>(bytes);
    if (net.now > net.most) {
      most_of_threads_ = added(most_of_threads_, static_cast<std::uint64_t>(net.now - net.most));
      net.most = net.now;
    }
    peak_ = std::max(peak_, added(base_, most_of_threads_));
  }
  void free(std::uint32_t thread, std::uint64_t bytes) {
    net_[thread].now -= static_cast<std::int64_t>(bytes);
  }
  /// All threads have come to the same point.
  void join() {
    std::int64_t sum = 0;
    for (const auto& [thread, net] : net_) sum += net.now;
    base_ = static_cast<std::uint64_t>(static_cast<std::int64_t>(base_) + sum);
    most_of_threads_ = 0;
    net_.clear();
  }
  std::uint64_t peak() const { return peak_; }

 private:
  struct Net {
    std::int64_t now = 0;
    std::int64_t most = 0;
  };
  std::map<std::uint32_t, Net> net_;
  std::uint64_t base_ = 0;
  std::uint64_t most_of_threads_ = 0;
  std::uint64_t peak_ = 0;
};

struct Live {
  std::uint64_t number = 0;  // of the buffer; 0: freed
  bool absent = false;       // not freed, but the program has no buffer for it
  std::uint64_t size = 0;
  std::uint64_t place = 0;  // of the allocation, or of the free
  std::uint32_t thread = 0;
  std::uint64_t phase = 0;  // in which it was allocated
};

/// One device of the log: its number in the program, and what lives on it.
struct Device {
  std::uint32_t number = 0;
  std::unordered_map<std::uint64_t, Live> pointers;
  std::vector<Live> null;  // buffers of size 0 at the null pointer
  Usage usage;
};

/// What a device of a program may hold: a petabyte. More is a log's mistake.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 50;

class Writer {
 public:
  Writer(const Trace& trace, const ProgramOptions& options) : trace_(trace), options_(options) {}

  Written write() {
    for (const Event& event : trace_.events) number_device(event.device);
    for (const Event& event : trace_.events) {
      if (statements_ >= options_.limit) {
        ++written_.left_out;
        continue;
      }
      write_event(event);
    }
    end_phase();
    for (const auto& [name, device] : devices_) {
      for (const auto& [pointer, live] : device.pointers) written_.live += live.number != 0 ? 1 : 0;
      for (const Live& live : device.null) written_.live += live.number != 0 ? 1 : 0;
    }
    written_.devices = static_cast<std::uint32_t>(devices_.size());
    written_.streams = static_cast<std::uint32_t>(stream_names_.size());
    written_.threads = static_cast<std::uint32_t>(threads_.size());
    written_.text = head() + body_;
    return std::move(written_);
  }

 private:
  void number_device(std::uint32_t device) {
    devices_.try_emplace(device);
    std::uint32_t number = 0;
    for (auto& [name, one] : devices_) one.number = number++;
  }

  void note(Oddity oddity, const Event& event, const std::string& what) {
    constexpr std::uint64_t kShown = 3;
    if (++written_.oddities[static_cast<std::size_t>(oddity)] > kShown) return;
    std::string where = trace_.place_name + " " + std::to_string(event.place);
    if (devices_.size() > 1) where = "device " + std::to_string(event.device) + ", " + where;
    written_.examples.push_back(where + ": " + what);
  }

  /// A statement of the event's thread.
  void say(const Event& event, const std::string& text) {
    if (options_.thread_blocks) {
      blocks_[event.thread] += "  " + text + "\n";
    } else {
      body_ += text;
      body_ += '\n';
    }
    if (text[0] != '#') ++statements_;
  }

  /// Ends the blocks that run together. What follows runs behind all of them.
  void end_phase() {
    for (auto& [name, device] : devices_) device.usage.join();
    if (blocks_.empty()) return;
    if (phase_ != 0) body_ += "mark\n";
    for (const auto& [thread, text] : blocks_)
      body_ += "thread t" + std::to_string(thread) + " {\n" + text + "}\n";
    blocks_.clear();
    ++phase_;
  }

  /// A buffer that another thread made in blocks that still run may not be there yet.
  void order_behind(const Live& live, const Event& event) {
    if (options_.thread_blocks && live.phase == phase_ && live.thread != event.thread) end_phase();
  }

  const std::string& stream_of(const Event& event) {
    std::uint64_t handle = event.stream;
    if (handle == 0) handle = options_.per_thread_default ? 2 : 1;
    // A thread of the log is many in the program, or a part of one: its default stream has a
    // stand-in, which also waits for the legacy stream.
    const bool per_thread = handle == 2;
    const std::uint32_t device = devices_.at(event.device).number;
    std::string& name = stream_names_[{device, handle, per_thread ? event.thread : 0}];
    if (!name.empty()) return name;
    std::string kind = options_.blocking_streams || per_thread ? " blocking" : "";
    if (handle == 1) {
      name = "legacy" + std::to_string(device);
      kind = " legacy";
    } else if (per_thread) {
      name = "default_of_t" + std::to_string(event.thread) + "_" + std::to_string(device);
    } else {
      name = "s" + std::to_string(++made_streams_);
    }
    stream_lines_ +=
        "stream " + name + kind + (device == 0 ? "" : " device=" + std::to_string(device)) + "\n";
    return name;
  }

  void write_event(const Event& event) {
    threads_[event.thread] = true;
    switch (event.action) {
      case Action::kAllocate:
        return allocate(event);
      case Action::kFree:
        return free(event);
      case Action::kFailed:
        note(Oddity::kFailure, event,
             "an allocation of " + std::to_string(event.size) + " bytes failed");
        say(event, "# here an allocation of " + size_text(event.size) + " failed");
    }
  }

  void allocate(const Event& event) {
    Device& device = devices_.at(event.device);
    if (event.size > kMostBytes || held_ + whole_granules(event.size) > kMostBytes) {
      note(Oddity::kFailure, event,
           "an allocation of " + std::to_string(event.size) + " bytes, which no device has");
      return;
    }
    if (event.pointer != 0) {
      const auto found = device.pointers.find(event.pointer);
      if (found != device.pointers.end() && found->second.number != 0) {
        note(Oddity::kNoFree, event,
             "the pointer is allocated again, without a free since " + trace_.place_name + " " +
                 std::to_string(found->second.place));
        close(event, device, found->second);
      }
    }
    const bool absent = event.size == 0 && options_.resource.rfind("vmm", 0) != 0;
    const Live live{absent ? 0 : ++buffers_, absent, event.size, event.place, event.thread, phase_};
    (event.pointer == 0 ? device.null.emplace_back() : device.pointers[event.pointer]) = live;
    if (absent)
      return note(Oddity::kEmpty, event, "an allocation of 0 bytes, which only vmm resources have");
    say(event, "a" + std::to_string(live.number) + " = allocate r" + std::to_string(device.number) +
                   " " + size_text(event.size) + " on " + stream_of(event));
    device.usage.allocate(event.thread, whole_granules(event.size));
    held_ += whole_granules(event.size);
    live_bytes_ += event.size;
    written_.live_bytes = std::max(written_.live_bytes, live_bytes_);
    ++written_.allocations;
  }

  void close(const Event& event, Device& device, Live& live) {
    if (live.absent) {
      live = {0, false, 0, event.place, 0, 0};
      return;
    }
    order_behind(live, event);
    say(event, "close a" + std::to_string(live.number) + " on " + stream_of(event));
    device.usage.free(event.thread, whole_granules(live.size));
    held_ -= whole_granules(live.size);
    live_bytes_ -= live.size;
    ++written_.frees;
    live = {0, false, 0, event.place, 0, 0};
  }

  void free(const Event& event) {
    Device& device = devices_.at(event.device);
    if (event.pointer == 0) {  // legal, whether or not anything was allocated there
      if (device.null.empty()) return;
      close(event, device, device.null.back());
      device.null.pop_back();
      return;
    }
    const auto found = device.pointers.find(event.pointer);
    if (found == device.pointers.end())
      return note(Oddity::kUnknownFree, event,
                  "a free of a pointer that the log does not allocate");
    if (found->second.number == 0 && !found->second.absent) {
      note(Oddity::kDoubleFree, event,
           "a second free; the first is " + trace_.place_name + " " +
               std::to_string(found->second.place));
      say(event, "# here a pointer is freed a second time");
      return;
    }
    if (event.size != found->second.size)
      note(Oddity::kOtherSize, event,
           "a free of " + std::to_string(event.size) + " bytes; allocated were " +
               std::to_string(found->second.size));
    close(event, device, found->second);
  }

  std::string resource_line(std::uint32_t device) const {
    std::string line = "resource r" + std::to_string(device) + " " + options_.resource;
    if (device == 0) return line + "\n";
    const bool vmm = options_.resource.rfind("vmm", 0) == 0;
    return line + (vmm ? " location=device:" : " device=") + std::to_string(device) + "\n";
  }

  /// Setup. Devices are made large enough for what the log held at once, with room for the holes
  /// of a pool.
  std::string head() const {
    constexpr std::uint64_t kDefault = 64 * kGiB;
    std::string text = "granule 1\n# from " + options_.source + "\n";
    if (devices_.size() > 1) text += "needs devices=" + std::to_string(devices_.size()) + "\n";
    for (const auto& [name, device] : devices_) {
      const std::uint64_t peak = std::min(added(device.usage.peak(), kGiB), kMostBytes);
      const std::uint64_t memory = std::max(kDefault, std::bit_ceil(2 * peak));
      if (devices_.size() > 1 || memory != kDefault)
        text += "device " + std::to_string(device.number) + " memory=" + size_text(memory) +
                (devices_.size() > 1 ? "  # device " + std::to_string(name) + " of the log" : "") +
                "\n";
    }
    for (const auto& [name, device] : devices_)
      if (device.number == 0)
        text += "needs memory=" + size_text((device.usage.peak() / kGiB + 1) * kGiB) + "\n";
    text += stream_lines_;
    for (const auto& [name, device] : devices_) text += resource_line(device.number);
    return text;
  }

  const Trace& trace_;
  const ProgramOptions& options_;
  Written written_;
  std::string body_;
  std::string stream_lines_;
  std::map<std::uint32_t, Device> devices_;  // by the log's number
  std::map<std::uint32_t, bool> threads_;
  std::map<std::uint32_t, std::string> blocks_;  // of this phase, by thread
  using StreamKey =
      std::tuple<std::uint32_t, std::uint64_t, std::uint32_t>;  // device, handle, thread
  std::map<StreamKey, std::string> stream_names_;
  std::uint64_t made_streams_ = 0;
  std::uint64_t buffers_ = 0;
  std::uint64_t statements_ = 0;
  std::uint64_t phase_ = 0;
  std::uint64_t live_bytes_ = 0;
  std::uint64_t held_ = 0;  // bytes, in whole granules
};

}  // namespace

Written program_of(const Trace& trace, const ProgramOptions& options) {
  return Writer(trace, options).write();
}

}  // namespace granule::alloclog
