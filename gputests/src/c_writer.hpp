// Writes recorded calls as statements of C. Values that the driver gave become variables.
#pragma once

#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <granule/backends/record.hpp>

namespace granule::gpu {

/// Includes and helper functions of every reproduction.
extern const char* const kCHead;

class CWriter {
 public:
  /// The whole source. Runs of the same entries give the same text.
  std::string write(const std::string& program, const std::vector<record::Entry>& entries);

 private:
  // c_source.cpp
  static const char* type_of(ObjectKind kind);
  /// The variable of an object that a call makes; `size` not 0: of a range of addresses.
  std::string made(ObjectKind kind, std::uint64_t value, std::uint64_t size);
  std::string slot(ObjectKind kind, std::uint64_t value, std::uint64_t size = 0);
  std::string value(ObjectKind kind, std::uint64_t v) const;
  std::string ptr(DevicePtr p) const;
  /// Pinned host memory as the device sees it, or device memory.
  std::string word(DevicePtr p) const;
  std::string stream(StreamHandle s) const { return value(ObjectKind::kStream, s.value); }
  std::string event(EventHandle e) const { return value(ObjectKind::kEvent, e.value); }
  std::string pool(PoolHandle q) const { return value(ObjectKind::kPool, q.value); }
  std::string handle(AllocationHandle h) const { return value(ObjectKind::kAllocation, h.value); }
  std::string context(ContextHandle c) const { return value(ObjectKind::kContext, c.value); }
  static std::string number(std::uint64_t v) { return std::to_string(v) + "ull"; }
  template <class Enum>
  static std::string plain(Enum v) {
    return std::to_string(static_cast<long long>(v));
  }
  static std::string place(const Location& l) {
    return "place(" + plain(l.type) + ", " + std::to_string(l.id) + ")";
  }
  static std::string props(const AllocationProperties& p);
  bool succeeded() const { return entry_->status == DriverStatus::kSuccess; }
  void line(const std::string& text) { body_ << "  " << text << "\n"; }
  void emit(const std::string& text);
  /// Prints a variable of the source beside what was recorded.
  void beside(const std::string& what, const std::string& format, const std::string& expression,
              const std::string& recorded);
  void set_access(const AccessEntries& entries);
  void fill_host(const HostSource& source, std::uint64_t size);

  template <class C>
  void call(const C&);  // a comment: no driver has it
  // c_calls_vmm.cpp
  void call(const MemAddressReserve& c);
  void call(const MemAddressFree& c);
  void call(const MemCreate& c);
  void call(const MemRelease& c);
  void call(const MemRetainAllocationHandle& c);
  void call(const MemMap& c);
  void call(const MemUnmap& c);
  void call(const MemSetAccess& c);
  void call(const MemGetAccess& c);
  void call(const MemGetAllocationGranularity& c);
  void call(const MemGetAllocationPropertiesFromHandle& c);
  void call(const MemExportToShareableHandle& c);
  void call(const MemImportFromShareableHandle& c);
  void call(const CloseDescriptor& c);
  void call(const MemPoolCreate& c);
  void call(const MemPoolDestroy& c);
  void call(const MemPoolTrimTo& c);
  void call(const MemPoolSetAttribute& c);
  void call(const MemPoolGetAttribute& c);
  void call(const MemPoolSetAccess& c);
  void call(const MemPoolGetAccess& c);
  void call(const DeviceGetDefaultMemPool& c);
  void call(const DeviceGetMemPool& c);
  void call(const DeviceSetMemPool& c);
  void call(const MemAllocAsync& c);
  void call(const MemAllocFromPoolAsync& c);
  void call(const MemFreeAsync& c);
  // c_calls_memory.cpp
  void call(const MemGetInfo& c);
  void call(const MemAlloc& c);
  void call(const MemFree& c);
  void call(const MemAllocHost& c);
  void call(const MemFreeHost& c);
  void call(const MemGetAddressRange& c);
  void call(const PointerGetAttribute& c);
  void call(const PointerGetAttributes& c);
  void call(const MemsetD8& c);
  void call(const MemsetD8Async& c);
  void call(const MemsetD32& c);
  void call(const MemsetD32Async& c);
  void call(const MemcpyHtoD& c);
  void call(const MemcpyHtoDAsync& c);
  void call(const MemcpyDtoH& c);
  void call(const MemcpyDtoHAsync& c);
  void call(const MemcpyDtoD& c);
  void call(const MemcpyDtoDAsync& c);
  void call(const Memcpy& c);
  // c_calls_stream.cpp
  void call(const Init& c);
  void call(const DeviceGetAttribute& c);
  void call(const CtxSetCurrent& c);
  void call(const CtxPushCurrent& c);
  void call(const CtxPopCurrent& c);
  void call(const CtxSynchronize& c);
  void call(const CtxCreate& c);
  void call(const CtxDestroy& c);
  void call(const DevicePrimaryCtxRetain& c);
  void call(const DevicePrimaryCtxRelease& c);
  void call(const DevicePrimaryCtxReset& c);
  void call(const CloseGate& c);
  void call(const OpenGate& c);
  void call(const Pause& c);
  void call(const StreamCreate& c);
  void call(const StreamDestroy& c);
  void call(const StreamQuery& c);
  void call(const StreamSynchronize& c);
  void call(const StreamWaitEvent& c);
  void call(const StreamIsCapturing& c);
  void call(const StreamBeginCapture& c);
  void call(const StreamEndCapture& c);
  void call(const GraphDestroy& c);
  void call(const ThreadExchangeStreamCaptureMode& c);
  void call(const EventCreate& c);
  void call(const EventDestroy& c);
  void call(const EventRecord& c);
  void call(const EventQuery& c);
  void call(const EventSynchronize& c);
  void call(const LaunchHostFunc& c);
  void call(const LaunchKernel& c);
  void call(const StreamWriteValue64& c);
  void call(const StreamWaitValue32& c);

  const record::Entry* entry_ = nullptr;
  std::ostringstream body_;
  std::map<std::pair<int, std::uint64_t>, std::string> names_;   // (kind, number) -> variable
  std::map<std::pair<int, std::uint64_t>, std::string> values_;  // (kind, value) -> variable
  std::map<std::uint64_t, std::pair<std::uint64_t, std::string>> ranges_;
  std::map<std::uint64_t, std::pair<std::uint64_t, std::string>> pinned_;  // by host address
  std::uint64_t next_ = 0;
};

}  // namespace granule::gpu
