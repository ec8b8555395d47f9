// The allocation history of a PyTorch memory snapshot.
#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "alloclog.hpp"
#include "plain.hpp"

namespace granule::alloclog {
namespace {

using Ref = Plain::Ref;
using Kind = Plain::Kind;

constexpr const char* kHowTo =
    "; record with torch.cuda.memory._record_memory_history() before the work and write the file "
    "with torch.cuda.memory._dump_snapshot(FILE) behind it";

/// What the events of one device are called in a snapshot, and which of them count.
enum class Meaning : std::uint8_t { kAllocate, kFree, kFailed, kOther, kUnknown };

Meaning meaning_of(std::string_view action, Level level) {
  const bool blocks = level == Level::kBlocks;
  const auto at_level = [&](bool here, Meaning meaning) {
    return here ? meaning : Meaning::kOther;
  };
  if (action == "alloc") return at_level(blocks, Meaning::kAllocate);
  if (action == "free_completed") return at_level(blocks, Meaning::kFree);
  if (action == "segment_alloc" || action == "segment_map")
    return at_level(!blocks, Meaning::kAllocate);
  if (action == "segment_free" || action == "segment_unmap")
    return at_level(!blocks, Meaning::kFree);
  if (action == "oom") return Meaning::kFailed;
  if (action == "free_requested" || action == "snapshot") return Meaning::kOther;
  return Meaning::kUnknown;
}

class SnapshotReader {
 public:
  SnapshotReader(const Plain& plain, Level level, std::size_t most_events)
      : plain_(plain), level_(level), most_events_(most_events) {}

  Trace read(Ref root, std::optional<std::uint32_t> only) {
    Ref traces = 0;
    const Plain::Value* value = plain_.find(root, "device_traces", &traces);
    if (!value || value->kind != Kind::kList)
      fail(std::string("expected a dict with `device_traces`, a list for each device") + kHowTo);
    const std::vector<Ref>& devices = plain_.items(traces);
    constexpr std::size_t kMost = 1024;
    if (devices.size() > kMost) fail("expected at most 1024 devices in `device_traces`");
    for (std::size_t device = 0; device < devices.size(); ++device) {
      if (only && *only != device) continue;
      where_ = "device_traces[" + std::to_string(device) + "]";
      if (plain_[devices[device]].kind != Kind::kList) fail("expected a list of events");
      read_device(static_cast<std::uint32_t>(device), plain_.items(devices[device]));
    }
    in_order_of_time();
    if (trace_.events.empty()) trace_.notes.push_back(std::string("no allocation in it") + kHowTo);
    for (const auto& [action, count] : unknown_)
      trace_.notes.push_back("events `" + action +
                             "`, which are not known here, left out: " + std::to_string(count));
    if (parts_ != 0)
      trace_.notes.push_back(
          "unmaps of a part of what was mapped at once, which a program cannot "
          "say (the rest stays until it is unmapped): " +
          std::to_string(parts_));
    trace_.place_name = "event";
    return std::move(trace_);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw Unreadable{
        {0, 0, ReadError::kNoOffset, where_.empty() ? message : where_ + ": " + message}};
  }

  void read_device(std::uint32_t device, const std::vector<Ref>& events) {
    // A pickle may name one list a million times; no honest one holds more events than bytes.
    if (events.size() > most_events_) fail("more events than the file has bytes");
    most_events_ -= events.size();
    const std::string list = where_;
    for (std::size_t i = 0; i < events.size(); ++i) {
      where_ = list + "[" + std::to_string(i) + "]";
      read_event(device, i, events[i]);
    }
  }

  std::uint64_t number(Ref event, const char* key) const {
    const Plain::Value* value = plain_.find(event, key);
    if (!value) fail(std::string("expected `") + key + "`, which is not there");
    if ((value->kind != Kind::kInteger && value->kind != Kind::kFloat) || !value->fits)
      fail(std::string("expected `") + key + "` to be a number from 0 to 2^64 - 1");
    return value->number;
  }

  void read_event(std::uint32_t device, std::size_t index, Ref ref) {
    const Plain::Value* action = plain_.find(ref, "action");
    if (!action || action->kind != Kind::kText)
      fail("expected an event: a dict with a text `action`");
    const Meaning meaning = meaning_of(action->text, level_);
    if (meaning == Meaning::kUnknown) ++unknown_[std::string(action->text.substr(0, 40))];
    if (meaning == Meaning::kUnknown || meaning == Meaning::kOther) return;
    Event event;
    event.action = meaning == Meaning::kAllocate ? Action::kAllocate
                   : meaning == Meaning::kFree   ? Action::kFree
                                                 : Action::kFailed;
    event.device = device;
    event.size = number(ref, "size");
    event.stream = plain_.find(ref, "stream") ? number(ref, "stream") : 0;
    event.place = index;
    // A failure tells the free memory of the device where the others tell an address.
    if (meaning != Meaning::kFailed) event.pointer = number(ref, "addr");
    const bool timed = plain_.find(ref, "time_us") != nullptr;
    const std::uint64_t time = timed ? number(ref, "time_us") : 0;
    untimed_ = untimed_ || !timed;
    if (action->text == "segment_map") mapped_[{device, event.pointer}] = event.size;
    if (action->text == "segment_unmap") return unmap(event, time);
    add(event, time);
  }

  void add(const Event& event, std::uint64_t time) {
    trace_.events.push_back(event);
    times_.push_back(time);
  }

  /// An expandable segment is unmapped in other pieces than it was mapped in.
  void unmap(Event event, std::uint64_t time) {
    const std::uint64_t begin = event.pointer;
    const std::uint64_t end = event.size > UINT64_MAX - begin ? UINT64_MAX : begin + event.size;
    auto at = mapped_.lower_bound({event.device, begin});
    bool part = false;
    std::uint64_t found = 0;
    while (at != mapped_.end() && at->first.first == event.device && at->first.second < end) {
      const auto [key, size] = *at;
      if (size > end - key.second) {
        part = true;
        break;
      }
      event.pointer = key.second;
      event.size = size;
      add(event, time);
      found += size;
      at = mapped_.erase(at);
    }
    if (part || (found != 0 && found < end - begin)) ++parts_;
    if (found == 0 && !part) {
      const bool inside = at != mapped_.begin() && (--at)->first.first == event.device &&
                          at->second > begin - at->first.second;
      inside ? void(++parts_) : add(event, time);  // else it was mapped before the trace begins
    }
  }

  /// Devices side by side. The order on one device is the snapshot's, whatever its clock says.
  void in_order_of_time() {
    const auto other = [&](const Event& event) {
      return event.device != trace_.events.front().device;
    };
    if (std::none_of(trace_.events.begin(), trace_.events.end(), other)) return;
    if (untimed_) {
      trace_.notes.emplace_back("events have no `time_us`: one device's come behind the other's");
      return;
    }
    std::map<std::uint32_t, std::uint64_t> latest;
    std::vector<std::pair<std::uint64_t, std::size_t>> order;
    for (std::size_t i = 0; i < trace_.events.size(); ++i) {
      std::uint64_t& last = latest[trace_.events[i].device];
      last = std::max(last, times_[i]);
      order.emplace_back(last, i);
    }
    std::sort(order.begin(), order.end());
    std::vector<Event> sorted;
    sorted.reserve(order.size());
    for (const auto& [time, i] : order) sorted.push_back(trace_.events[i]);
    trace_.events = std::move(sorted);
  }

  const Plain& plain_;
  Level level_;
  std::size_t most_events_;
  std::string where_;
  Trace trace_;
  std::vector<std::uint64_t> times_;  // of trace_.events, in microseconds
  bool untimed_ = false;
  std::map<std::string, std::uint64_t> unknown_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> mapped_;  // address to size
  std::uint64_t parts_ = 0;
};

}  // namespace

Trace read_torch_snapshot(std::string_view text, Level level, std::optional<std::uint32_t> device) {
  Plain plain;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool pickle = !text.empty() && static_cast<unsigned char>(text[0]) == 0x80;
  const bool json = first != std::string_view::npos && text[first] == '{';
  if (!pickle && !json)
    throw Unreadable{
        {0, 0, 0,
         std::string("expected a pickle (its first byte is 0x80) or a JSON object") + kHowTo}};
  const Ref root = pickle ? read_pickle(text, plain) : read_json(text, plain);
  return SnapshotReader(plain, level, text.size()).read(root, device);
}

}  // namespace granule::alloclog
