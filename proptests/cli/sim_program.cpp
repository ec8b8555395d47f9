// Calls to statements, one function for each kind of call that programs can say.
#include "sim_program.hpp"

#include <fstream>
#include <type_traits>

#include <granule/backend_api/call.hpp>
#include <granule/backends/names.hpp>
#include <granule/backends/record.hpp>

#include "sim_names.hpp"

namespace granule::cli {
namespace {

std::string location_text(const Location& location) {
  const std::string_view name = trace::spelling(location.type);
  const std::string word = name.empty() ? "device" : std::string(name);
  const bool numbered =
      location.type == LocationType::kDevice || location.type == LocationType::kHostNuma;
  return numbered ? word + ":" + std::to_string(location.id) : word;
}

std::string byte_text(std::uint32_t value) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  return std::string("0x") + kDigits[value >> 4 & 15] + kDigits[value & 15];
}

/// Writes statements; keeps the names of what the calls made. An empty statement: programs have
/// no word for the call, or need none.
class Writer {
 public:
  std::string statement(const Call& call, bool made) {
    return std::visit([&](const auto& one) { return write(one, made); }, call);
  }
  /// Declarations of default streams that statements so far need and have not got.
  std::string declarations() { return std::exchange(declarations_, {}); }

 private:
  std::string at(DevicePtr ptr) const {
    for (const bool dead : {false, true})
      for (const RangeNames* names : {&plain_, &blocks_, &pinned_, &reservations_})
        if (const auto found = names->find(ptr.value, dead)) return *found;
    return std::to_string(ptr.value);
  }
  std::string on(StreamHandle stream) {
    if (stream.value > kPerThreadStream.value) return " on " + streams_.name(stream.value);
    const bool own = stream == kPerThreadStream;
    bool& declared = own ? own_declared_ : legacy_declared_;
    if (!declared) declarations_ += own ? "stream own per_thread\n" : "stream legacy legacy\n";
    declared = true;
    return own ? " on own" : " on legacy";
  }
  static std::string properties(const AllocationProperties& p) {
    std::string text;
    if (!(p.location == Location{})) text += " location=" + location_text(p.location);
    const std::string_view type = trace::spelling(p.handle_types);
    if (p.handle_types != HandleType::kNone && !type.empty())
      text += " handle=" + std::string(type);
    if (p.rdma != 0) text += " rdma";
    if (p.type != 1) text += " type=" + std::to_string(p.type);
    if (p.compression != 0) text += " compression=" + std::to_string(p.compression);
    if (p.usage != 0) text += " usage=" + std::to_string(p.usage);
    return text;
  }
  static std::string flags(std::uint64_t value) {
    return value != 0 ? " flags=" + std::to_string(value) : "";
  }
  static std::string access(const AccessEntries& entries) {
    std::string text;
    for (const AccessEntry& entry : entries) {
      const std::string_view word = trace::spelling(entry.access);
      text +=
          " " + location_text(entry.location) + "=" +
          (word.empty() ? std::to_string(static_cast<unsigned>(entry.access)) : std::string(word));
    }
    return text;
  }
  /// The name of what was made, or one that nothing uses if the call failed.
  template <class Names, class... Args>
  std::string maker(bool made, Names& names, Args... args) {
    return (made ? names.make(args...) : "failed" + std::to_string(++failed_)) + " = ";
  }

  template <class C>
  std::string write(const C&, bool) {
    return {};
  }

  // virtual memory management
  std::string write(const MemAddressReserve& c, bool made) {
    std::string text = "cuMemAddressReserve " + program_size(c.size);
    if (c.alignment != 0) text += " align=" + program_size(c.alignment);
    if (c.hint.value != 0) text += " at=" + at(c.hint);
    return maker(made, reservations_, c.ptr.value, c.size) + text + flags(c.flags);
  }
  std::string write(const MemAddressFree& c, bool made) {
    const std::string text = "cuMemAddressFree " + at(c.ptr) + " " + program_size(c.size);
    if (made) reservations_.drop(c.ptr.value);
    return text;
  }
  std::string write(const MemCreate& c, bool made) {
    return maker(made, handles_, c.handle.value) + "cuMemCreate " + program_size(c.size) +
           properties(c.properties) + flags(c.flags);
  }
  std::string write(const MemRelease& c, bool made) {
    return "cuMemRelease " + (made ? handles_.drop(c.handle.value) : handles_.name(c.handle.value));
  }
  std::string write(const MemRetainAllocationHandle& c, bool made) {
    return maker(made, handles_, c.handle.value) + "cuMemRetainAllocationHandle " + at(c.ptr);
  }
  std::string write(const MemMap& c, bool) {
    return "cuMemMap " + at(c.ptr) + " " + program_size(c.size) + " " +
           handles_.name(c.handle.value) +
           (c.offset != 0 ? " offset=" + program_size(c.offset) : "") + flags(c.flags);
  }
  std::string write(const MemUnmap& c, bool) {
    return "cuMemUnmap " + at(c.ptr) + " " + program_size(c.size);
  }
  std::string write(const MemSetAccess& c, bool) {
    return "cuMemSetAccess " + at(c.ptr) + " " + program_size(c.size) + access(c.access);
  }
  std::string write(const MemExportToShareableHandle& c, bool made) {
    const auto value = static_cast<std::uint64_t>(c.descriptor.value);
    return maker(made, descriptors_, value) + "cuMemExportToShareableHandle " +
           handles_.name(c.handle.value) + " " + std::string(trace::spelling(c.type));
  }
  std::string write(const MemImportFromShareableHandle& c, bool made) {
    const auto value = static_cast<std::uint64_t>(c.descriptor.value);
    return maker(made, handles_, c.handle.value) + "cuMemImportFromShareableHandle " +
           descriptors_.name(value) + " " + std::string(trace::spelling(c.type));
  }
  std::string write(const CloseDescriptor& c, bool) {
    return "close " + descriptors_.drop(static_cast<std::uint64_t>(c.descriptor.value));
  }

  // plain memory
  std::string write(const MemAlloc& c, bool made) {
    return maker(made, plain_, c.ptr.value, c.size) + "cuMemAlloc " + program_size(c.size);
  }
  std::string write(const MemFree& c, bool made) {
    const std::string text = "cuMemFree " + at(c.ptr);
    if (made) plain_.drop(c.ptr.value);
    if (made) blocks_.drop(c.ptr.value);
    return text;
  }

  // fills and copies
  std::string fill(const char* name, DevicePtr ptr, std::uint32_t value, std::uint64_t size) {
    return name + std::string(" ") + at(ptr) + " " + byte_text(value & 0xff) + " " +
           program_size(size);
  }
  std::string write(const MemsetD8& c, bool) { return fill("cuMemsetD8", c.ptr, c.value, c.size); }
  std::string write(const MemsetD8Async& c, bool) {
    return fill("cuMemsetD8", c.ptr, c.value, c.size) + on(c.stream);
  }
  std::string write(const MemsetD32& c, bool) {
    return fill("cuMemsetD32", c.ptr, c.value, c.size);
  }
  std::string write(const MemsetD32Async& c, bool) {
    return fill("cuMemsetD32", c.ptr, c.value, c.size) + on(c.stream);
  }
  std::string write(const MemcpyHtoD& c, bool) {
    return fill("cuMemcpyHtoD", c.dst, c.src.pattern, c.size);
  }
  std::string write(const MemcpyHtoDAsync& c, bool) {
    return fill("cuMemcpyHtoD", c.dst, c.src.pattern, c.size) + on(c.stream);
  }
  std::string write(const MemcpyDtoH& c, bool) {
    return "cuMemcpyDtoH " + at(c.src) + " " + program_size(c.size);
  }
  std::string write(const MemcpyDtoHAsync& c, bool) {
    return "cuMemcpyDtoH " + at(c.src) + " " + program_size(c.size) + on(c.stream);
  }
  std::string write(const MemcpyDtoD& c, bool) {
    return "cuMemcpyDtoD " + at(c.dst) + " " + at(c.src) + " " + program_size(c.size);
  }
  std::string write(const MemcpyDtoDAsync& c, bool) {
    return "cuMemcpyDtoD " + at(c.dst) + " " + at(c.src) + " " + program_size(c.size) +
           on(c.stream);
  }
  std::string write(const LaunchKernel& c, bool) {
    if (c.kind == KernelKind::kSpin) return {};
    return "kernel_read " + at(c.ptr) + " " + program_size(c.size) + on(c.stream);
  }

  // pools
  std::string write(const MemPoolCreate& c, bool made) {
    return maker(made, pools_, c.pool.value) +
           "cuMemPoolCreate location=" + location_text(c.properties.location) +
           (c.max_size != 0 ? " max=" + program_size(c.max_size) : "");
  }
  std::string write(const MemPoolDestroy& c, bool made) {
    return "cuMemPoolDestroy " + (made ? pools_.drop(c.pool.value) : pools_.name(c.pool.value));
  }
  std::string write(const MemPoolTrimTo& c, bool) {
    return "cuMemPoolTrimTo " + pools_.name(c.pool.value) + " " + program_size(c.keep);
  }
  std::string write(const MemPoolSetAttribute& c, bool) {
    return "cuMemPoolSetAttribute " + pools_.name(c.pool.value) + " " +
           std::string(trace::spelling(c.attribute)) + " " + program_size(c.value);
  }
  std::string write(const MemPoolSetAccess& c, bool) {
    return "cuMemPoolSetAccess " + pools_.name(c.pool.value) + access(c.access);
  }
  std::string write(const DeviceGetDefaultMemPool& c, bool made) {
    if (!made || pools_.known(c.pool.value)) return {};
    return pools_.make(c.pool.value) + " = cuDeviceGetDefaultMemPool " +
           std::to_string(c.device.value);
  }
  std::string write(const MemAllocAsync& c, bool made) {
    return maker(made, blocks_, c.ptr.value, c.size) + "cuMemAllocAsync " + program_size(c.size) +
           on(c.stream);
  }
  std::string write(const MemAllocFromPoolAsync& c, bool made) {
    return maker(made, blocks_, c.ptr.value, c.size) + "cuMemAllocFromPoolAsync " +
           program_size(c.size) + " " + pools_.name(c.pool.value) + on(c.stream);
  }
  std::string write(const MemFreeAsync& c, bool made) {
    const std::string text = "cuMemFreeAsync " + at(c.ptr) + on(c.stream);
    if (made) plain_.drop(c.ptr.value);
    if (made) blocks_.drop(c.ptr.value);
    return text;
  }

  // streams and events
  std::string write(const StreamCreate& c, bool made) {
    if (!made) return {};
    return "stream " + streams_.make(c.stream.value) +
           (c.flags == kStreamNonBlocking ? " nonblocking" : " blocking");
  }
  std::string write(const StreamDestroy& c, bool made) {
    return made ? "destroy " + streams_.drop(c.stream.value) : std::string{};
  }
  std::string write(const StreamSynchronize& c, bool) {
    return "cuStreamSynchronize " + on(c.stream).substr(4);
  }
  std::string write(const StreamWaitEvent& c, bool) {
    return "cuStreamWaitEvent " + on(c.stream).substr(4) + " " + events_.name(c.event.value);
  }
  std::string write(const EventCreate& c, bool made) {
    return maker(made, events_, c.event.value) + "cuEventCreate";
  }
  std::string write(const EventDestroy& c, bool made) {
    return "cuEventDestroy " + (made ? events_.drop(c.event.value) : events_.name(c.event.value));
  }
  std::string write(const EventRecord& c, bool) {
    return "cuEventRecord " + events_.name(c.event.value) + on(c.stream);
  }
  std::string write(const EventSynchronize& c, bool) {
    return "cuEventSynchronize " + events_.name(c.event.value);
  }
  std::string write(const CtxSynchronize&, bool) { return "cuCtxSynchronize"; }

  RangeNames reservations_{"v"};
  RangeNames plain_{"m"};
  RangeNames blocks_{"x"};
  RangeNames pinned_{"p"};
  HandleNames handles_{"h"};
  HandleNames descriptors_{"f"};
  HandleNames pools_{"q"};
  HandleNames streams_{"s"};
  HandleNames events_{"e"};
  std::string declarations_;
  bool legacy_declared_ = false;
  bool own_declared_ = false;
  std::uint64_t failed_ = 0;
};

constexpr const char* kInjected = " !injected";

/// "cuMemMap nth=2 with X" as it stands before the very call that it fails.
std::string fault_before(const std::string& fault, std::string_view call) {
  std::string text = "fail " + std::string(call) + " nth=1";
  if (fault.find(" after") != std::string::npos) text += " after";
  const std::size_t with = fault.find(" with ");
  return with == std::string::npos ? "" : text + fault.substr(with);
}

}  // namespace

bool write_program(const std::string& calls, const std::string& program,
                   const std::vector<std::string>& faults, bool leaks, std::string& error) {
  std::ifstream in(calls);
  std::ofstream out(program);
  if (!out) {
    error = program + " could not be written";
    return false;
  }
  out << "granule 1\n# recorded by granule sim\n";
  Writer writer;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("device ", 0) == 0) out << line << "\n";
    const std::size_t mark = line.find(kInjected);
    const bool injected = mark != std::string::npos;
    const auto entry = record::entry_from_text(line.substr(0, mark));
    if (!entry) continue;
    const bool made = entry->status == DriverStatus::kSuccess;
    const std::string statement = writer.statement(entry->call, made);
    out << writer.declarations();
    if (statement.empty()) continue;
    for (const std::string& fault : faults)
      if (injected && fault.find(name_of(entry->status)) != std::string::npos) {
        out << fault_before(fault, name_of(kind(entry->call))) << "\n";
        break;
      }
    out << statement;
    if (!made && entry->status != DriverStatus::kWouldBlock)
      out << " => " << name_of(entry->status);
    out << "\n";
  }
  if (leaks) out << "expect leak none\n";
  return static_cast<bool>(out);
}

}  // namespace granule::cli
