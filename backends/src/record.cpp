// Recording and counting; and the one-line text of a recorded call.
#include <granule/backends/record.hpp>

#include <charconv>
#include <utility>

#include <granule/backends/trace.hpp>

namespace granule::record {

std::string to_text(const Entry& entry) {
  std::string text = "@" + std::to_string(entry.thread) + " ";
  text += name_of(entry.origin);
  text += ' ';
  text += trace::to_text(entry.call, entry.status);
  return text;
}

std::optional<Entry> entry_from_text(std::string_view line) {
  if (line.empty() || line.front() != '@') return std::nullopt;
  const std::size_t first = line.find(' ');
  if (first == std::string_view::npos) return std::nullopt;
  const std::size_t second = line.find(' ', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  Entry entry;
  const char* const end = line.data() + first;
  const auto number = std::from_chars(line.data() + 1, end, entry.thread);
  if (number.ec != std::errc{} || number.ptr != end) return std::nullopt;
  const auto origin = origin_named(line.substr(first + 1, second - first - 1));
  auto traced = trace::from_text(line.substr(second + 1));
  if (!origin || !traced) return std::nullopt;
  entry.origin = *origin;
  entry.call = traced->call;
  entry.status = traced->status;
  return entry;
}

std::uint32_t RecordBackend::thread_number() {
  if (const auto number = current_thread_number()) return *number;
  const auto next = static_cast<std::uint32_t>(threads_.size());
  return threads_.try_emplace(std::this_thread::get_id(), next).first->second;
}

DriverStatus RecordBackend::execute(Call& call) noexcept {
  const DriverStatus status = inner_.execute(call);
  const CallOrigin origin = current_origin();
  const std::lock_guard lock(mutex_);
  if (origin != CallOrigin::kHarness && status != DriverStatus::kWouldBlock)
    ++counts_[call.index()];
  if (keep_ == Keep::kCalls) entries_.push_back({thread_number(), origin, status, call});
  return status;
}

std::uint64_t RecordBackend::calls(CallKind kind) const {
  const std::lock_guard lock(mutex_);
  return counts_[static_cast<std::size_t>(kind)];
}

std::uint64_t RecordBackend::calls_in_all() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kCallCount; ++i)
    if (info_of(static_cast<CallKind>(i)).since != 0) sum += counts_[i];
  return sum;
}

void RecordBackend::mark() {
  const std::lock_guard lock(mutex_);
  counts_ = {};
}

std::vector<Entry> RecordBackend::entries() const {
  const std::lock_guard lock(mutex_);
  return entries_;
}

std::vector<Entry> RecordBackend::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(entries_, {});
}

}  // namespace granule::record
