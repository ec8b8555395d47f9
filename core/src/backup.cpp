// Copies of what a suspended buffer held, to the host's memory and back.
#include <algorithm>

#include "context_scope.hpp"
#include "extend.hpp"

namespace granule::detail {

namespace {

Stream copy_stream(const Record& record) {
  return record.primary.forgotten ? Stream::legacy(record.primary.stream.device())
                                  : record.primary.stream;
}

// Whether a copy can write the memory. The CPU copies what the host has access to, or no device,
// and the process dies where the host may not write (F22, F26).
bool can_be_written(const AccessEntries& entries, DeviceId device) {
  bool any_device = false;
  Access by_device = Access::kNone;
  Access by_host = Access::kNone;
  for (const AccessEntry& entry : entries) {
    if (entry.location.type != LocationType::kDevice) {
      by_host = entry.access;
      continue;
    }
    any_device = true;
    if (entry.location == device_location(device)) by_device = entry.access;
  }
  if (by_host != Access::kNone && by_host != Access::kReadWrite) return false;
  return (any_device ? by_device : by_host) == Access::kReadWrite;
}

}  // namespace

// From here on a copy may be at work. Where the record's own stream was destroyed, the copy's one
// becomes a use of the record.
Status ResourceCore::begin_copy(Record& record) {
  const Stream stream = copy_stream(record);
  const bool empty = record.further.empty();
  const StreamUse* const last = empty ? nullptr : &record.further.back();
  if (Status used = used_on(record, stream); !used) return used;
  if (!record.further.empty() && &record.further.back() != last)
    record.copy_use = &record.further.back();
  record.copying = true;
  return {};
}

// All copies are known to have ended.
void ResourceCore::end_copy(Record& record) noexcept {
  record.copying = false;
  if (!record.copy_use) return;
  {
    const Lock lock(mutex_);
    record.further.erase(record.further.iterator_to(*record.copy_use));
  }
  order_.drop_marker(*record.copy_use);
  unmake(driver_.runtime(), std::exchange(record.copy_use, nullptr));
}

// One copy, or for memory of the host one a mapping: of a range of which the host may reach a part,
// the CPU copies all, and the process dies at the rest (F22).
Status ResourceCore::queue_copies(const Record& record, const Stream& stream, bool to_host) {
  if (properties_.location.type == LocationType::kDevice)
    return queue_copy(record, {record.base, record.size}, stream, to_host);
  Status queued;
  for_each_in_chain(record, [&](const Mapping& mapping) {
    const std::uint64_t end = std::min(mapping.end(), record.base + record.size);
    if (queued.ok() && mapping.base < end)
      queued = queue_copy(record, {mapping.base, end - mapping.base}, stream, to_host);
  });
  return queued;
}

Status ResourceCore::queue_copy(const Record& record, const AddressRange& part,
                                const Stream& stream, bool to_host) {
  std::uint8_t* const host = record.backup + (part.base - record.base);
  DriverStatus status = DriverStatus::kSuccess;
  if (to_host) {
    MemcpyDtoHAsync copy{host, DevicePtr{part.base}, part.size, stream.handle(), 0};
    status = driver_.call(copy);
    if (status == DriverStatus::kSuccess) return {};
    return driver_error(status, kind_of<MemcpyDtoHAsync>, part.base);
  }
  MemcpyHtoDAsync copy{DevicePtr{part.base}, HostSource{host, 0, false}, part.size,
                       stream.handle()};
  status = driver_.call(copy);
  if (status == DriverStatus::kSuccess) return {};
  return driver_error(status, kind_of<MemcpyHtoDAsync>, part.base);
}

// Copies on the buffer's own stream, which is known not to capture: the synchronous forms would
// use the null stream and end the capture of any blocking stream (S61).
Status ResourceCore::copy_and_wait(Record& record, bool to_host) {
  const Stream stream = copy_stream(record);
  const ContextScope scope(driver_, stream);
  if (!scope.status().ok()) return scope.status();
  const RelaxedScope relaxed(driver_);
  if (!relaxed.status().ok()) return relaxed.status();
  if (Status begun = begin_copy(record); !begun) return begun;
  // Whatever is answered, it may be queued: the record stays `copying` until a wait.
  if (Status queued = queue_copies(record, stream, to_host); !queued) return queued;
  StreamSynchronize wait{stream.handle()};
  const DriverStatus status = driver_.call(wait);
  if (status != DriverStatus::kSuccess)
    return driver_error(status, kind_of<StreamSynchronize>, stream.handle().value);
  end_copy(record);
  return {};
}

// The stream of the copies is not the record's own where that was destroyed: it is asked, too, and
// waited for before anything is queued there.
Status ResourceCore::may_copy(const Record& record) {
  StreamUse use;
  use.stream = copy_stream(record);
  Result<CaptureVerdict> verdict = order_.capture_verdict(use);
  if (!verdict) return verdict.error();
  if (*verdict != CaptureVerdict::kClear) {
    Error error = make_error(ErrorCode::kCapturing, "a copy would disturb a capture: end it first");
    error.object = use.stream.handle().value;
    return error;
  }
  if (!record.primary.forgotten) return {};  // waited for with the record's other streams
  const RelaxedScope relaxed(driver_);
  if (!relaxed.status().ok()) return relaxed.status();
  return order_.wait_for(use);
}

// Waits for a copy that a failed suspend or resume may have left in a stream.
Status ResourceCore::settle_copy(Record& record) {
  if (!record.copying) return {};
  if (Status may = refuse_if_capturing(record); !may) return may;
  if (Status waited = wait_for(record); !waited) return waited;
  end_copy(record);
  return {};
}

Status ResourceCore::take_backup(Record& record) {
  if (record.size == 0) return {};
  if (Status may = may_copy(record); !may) return may;
  const DeviceId device = copy_stream(record).device();
  bool closed = false;
  {
    const Lock lock(mutex_);
    for_each_in_chain(record, [&](const Mapping& mapping) {
      closed = closed || !can_be_written(mapping.chunk->access->entries, device);
    });
  }
  if (closed)
    return make_error(ErrorCode::kInvalidArgument,
                      "memory to be backed up could not be written again: its access forbids it");
  record.backup = static_cast<std::uint8_t*>(
      driver_.runtime().host_memory().allocate(record.size, kBackupAlignment));
  if (!record.backup) return host_memory_error(record.size);
  record.backup_size = record.size;
  return copy_and_wait(record, true);
}

}  // namespace granule::detail
