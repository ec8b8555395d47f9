// A backend that writes down every call with its answer, and counts calls by kind.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <granule/backend_api/backend.hpp>
#include <granule/backend_api/export.hpp>
#include <granule/backends/origin.hpp>

namespace granule::record {

/// One call as it was made and answered.
struct Entry {
  std::uint32_t thread = 0;  // logical number, or by first appearance in this recording
  CallOrigin origin = CallOrigin::kLibrary;
  DriverStatus status = DriverStatus::kSuccess;
  Call call;  // with its outputs
};

/// "@THREAD ORIGIN CALL => STATUS ..." on one line (see trace.hpp for the rest of it).
GRANULE_EXPORT std::string to_text(const Entry& entry);
/// The entry of such a line, or nothing if it is none.
GRANULE_EXPORT std::optional<Entry> entry_from_text(std::string_view line);

/// Whether the calls themselves are kept, or only counted.
enum class Keep : std::uint8_t { kCounts, kCalls };

/// Records and counts. Entries are in order of completion. Counts leave out calls of the harness
/// and answers of kWouldBlock (those had no effect). Thread-safe; the inner backend is called
/// without the lock.
class GRANULE_EXPORT RecordBackend final : public Backend {
 public:
  explicit RecordBackend(Backend& inner, Keep keep = Keep::kCalls) noexcept
      : inner_(inner), keep_(keep) {}

  DriverStatus execute(Call& call) noexcept override;

  /// Calls of that kind since the start, or since the last mark().
  std::uint64_t calls(CallKind kind) const;
  /// Driver calls of any kind since then; harness calls and close(2) are none.
  std::uint64_t calls_in_all() const;
  /// Lets counting begin anew; the entries stay.
  void mark();
  /// A copy of the entries so far.
  std::vector<Entry> entries() const;
  /// The entries since the last take.
  std::vector<Entry> take();

 private:
  std::uint32_t thread_number();

  Backend& inner_;
  const Keep keep_;
  mutable std::mutex mutex_;
  std::array<std::uint64_t, kCallCount> counts_{};
  std::map<std::thread::id, std::uint32_t> threads_;
  std::vector<Entry> entries_;
};

}  // namespace granule::record
