// Recorded calls as C statements; values that the driver gave become variables.
#include "c_source.hpp"

#include <iterator>
#include <map>
#include <sstream>

#include <granule/backends/trace.hpp>

namespace granule::gpu {
namespace {

constexpr const char* kHead = R"(/* build: cc repro.c -o repro -I/usr/local/cuda/include -lcuda */
#include )"
                              R"(<cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static int differences = 0;
static void show(const char* what, CUresult got, const char* wanted) {
  const char* name = "?";
  cuGetErrorName(got, &name);
  if (strcmp(name, wanted) != 0) ++differences;
  printf("%s %-60s %s (recorded: %s)\n", strcmp(name, wanted) ? "DIFFERS" : "same   ", what, name,
         wanted);
}
#define DO(call, wanted) show(#call, (call), wanted)

static void environment(void) {
  int version = 0;
  char line[256] = "";
  struct utsname system_name;
  FILE* file = fopen("/proc/driver/nvidia/version", "r");
  uname(&system_name);
  cuDriverGetVersion(&version);
  printf("CUDA driver API %d\nkernel %s %s\n", version, system_name.release, system_name.machine);
  if (file && fgets(line, sizeof line, file)) printf("driver %s", line);
  if (file) fclose(file);
  fflush(stdout);
  if (system("nvidia-smi --query-gpu=name,mig.mode.current --format=csv,noheader") != 0)
    printf("GPU name and MIG mode unknown\n");
}

static CUmemAllocationProp props(int type, int location, int id, int handles, int compression,
                                 int rdma) {
  CUmemAllocationProp p;
  memset(&p, 0, sizeof p);
  p.type = (CUmemAllocationType)type;
  p.location.type = (CUmemLocationType)location;
  p.location.id = id;
  p.requestedHandleTypes = (CUmemAllocationHandleType)handles;
  p.allocFlags.compressionType = (unsigned char)compression;
  p.allocFlags.gpuDirectRDMACapable = (unsigned char)rdma;
  return p;
}
)";

std::string number(std::uint64_t value) { return std::to_string(value) + "ull"; }

class Writer {
 public:
  std::string write(const std::string& program, const std::vector<record::Entry>& entries) {
    for (const record::Entry& entry : entries) {
      entry_ = &entry;
      std::visit([&](const auto& c) { call(c); }, entry.call);
    }
    std::ostringstream out;
    out << "/* The driver calls of `" << program << "`, as recorded. */\n"
        << kHead << "\nint main(void) {\n";
    for (const auto& [key, name] : names_)
      out << "  " << type_of(static_cast<ObjectKind>(key.first)) << " " << name << " = 0;\n";
    out << "  CUmemAllocationProp prop;\n  CUmemAccessDesc access[16];\n  size_t n1 = 0, n2 = 0;\n"
           "  unsigned long long flags = 0;\n  static unsigned char host[1 << 20];\n"
           "  (void)n1; (void)n2; (void)flags; (void)host; (void)prop; (void)access;\n"
           "  cuInit(0);\n  environment();\n"
        << body_.str() << "  printf(\"%d differences\\n\", differences);\n"
        << "  return differences != 0;\n}\n";
    return out.str();
  }

 private:
  static const char* type_of(ObjectKind kind) {
    switch (kind) {
      case ObjectKind::kAllocation:
        return "CUmemGenericAllocationHandle";
      case ObjectKind::kDescriptor:
        return "int";
      case ObjectKind::kPool:
        return "CUmemoryPool";
      case ObjectKind::kStream:
        return "CUstream";
      case ObjectKind::kEvent:
        return "CUevent";
      case ObjectKind::kContext:
        return "CUcontext";
      case ObjectKind::kGraph:
        return "CUgraph";
      case ObjectKind::kPinnedMemory:
        return "void*";
      default:
        return "CUdeviceptr";
    }
  }

  /// The variable of an object that a call makes.
  std::string made(ObjectKind kind, std::uint64_t value, std::uint64_t size = 0) {
    static constexpr const char* kLetters[] = {"o", "p", "h", "m", "fd", "x", "host",
                                               "q", "b", "s", "e", "c",  "g"};
    const std::string name = kLetters[static_cast<int>(kind)] + std::to_string(++next_);
    names_[{static_cast<int>(kind), next_}] = name;
    if (size != 0) {
      ranges_[value] = {size, name};
    } else {
      values_[{static_cast<int>(kind), value}] = name;
    }
    return name;
  }
  std::string value(ObjectKind kind, std::uint64_t v) const {
    if (v == 0) return "0";
    if (kind == ObjectKind::kStream && v == kLegacyStream.value) return "CU_STREAM_LEGACY";
    if (kind == ObjectKind::kStream && v == kPerThreadStream.value) return "CU_STREAM_PER_THREAD";
    const auto found = values_.find({static_cast<int>(kind), v});
    if (found != values_.end()) return found->second;
    return "(" + std::string(type_of(kind)) + ")" + number(v);
  }
  std::string ptr(DevicePtr p) const {
    const auto after = ranges_.upper_bound(p.value);
    if (after != ranges_.begin()) {
      const auto& [base, range] = *std::prev(after);
      const std::uint64_t offset = p.value - base;
      if (offset == 0) return range.second;
      if (offset <= range.first * 4) return range.second + " + " + number(offset);
    }
    return number(p.value);
  }
  std::string stream(StreamHandle s) const { return value(ObjectKind::kStream, s.value); }
  bool succeeded() const { return entry_->status == DriverStatus::kSuccess; }

  void line(const std::string& text) { body_ << "  " << text << "\n"; }
  void emit(const std::string& text) {
    const DriverStatus status = entry_->status;
    if (status == DriverStatus::kWouldBlock || status == DriverStatus::kUndefined) {
      return line("/* not made, " + std::string(name_of(status)) + ": " + text + " */");
    }
    line("DO(" + text + ", \"" + std::string(name_of(status)) + "\");");
  }
  std::string slot(ObjectKind kind, std::uint64_t v, std::uint64_t size = 0) {
    return "&" + made(kind, succeeded() ? v : 0, succeeded() ? size : 0);
  }
  void set_props(const AllocationProperties& p) {
    line("prop = props(" + std::to_string(p.type) + ", " +
         std::to_string(static_cast<int>(p.location.type)) + ", " + std::to_string(p.location.id) +
         ", " + std::to_string(static_cast<unsigned>(p.handle_types)) + ", " +
         std::to_string(p.compression) + ", " + std::to_string(p.rdma) + ");");
  }
  void set_access(const AccessEntries& entries) {
    std::uint32_t i = 0;
    for (const AccessEntry& one : entries) {
      const std::string at = "access[" + std::to_string(i++) + "]";
      line(at + ".location.type = (CUmemLocationType)" +
           std::to_string(static_cast<int>(one.location.type)) + "; " + at + ".location.id = " +
           std::to_string(one.location.id) + "; " + at + ".flags = (CUmemAccess_flags)" +
           std::to_string(static_cast<unsigned>(one.access)) + ";");
    }
  }

  template <class C>
  void call(const C&) {
    line("/* " + trace::to_text(entry_->call, entry_->status) + " */");
  }
  void call(const Init&) { emit("cuInit(0)"); }
  void call(const MemAddressReserve& c) {
    emit("cuMemAddressReserve(" + slot(ObjectKind::kReservation, c.ptr.value, c.size) + ", " +
         number(c.size) + ", " + number(c.alignment) + ", " + ptr(c.hint) + ", " + number(c.flags) +
         ")");
  }
  void call(const MemAddressFree& c) {
    emit("cuMemAddressFree(" + ptr(c.ptr) + ", " + number(c.size) + ")");
  }
  void call(const MemCreate& c) {
    set_props(c.properties);
    emit("cuMemCreate(" + slot(ObjectKind::kAllocation, c.handle.value) + ", " + number(c.size) +
         ", &prop, " + number(c.flags) + ")");
  }
  std::string handle(AllocationHandle h) const { return value(ObjectKind::kAllocation, h.value); }
  void call(const MemRelease& c) { emit("cuMemRelease(" + handle(c.handle) + ")"); }
  void call(const MemRetainAllocationHandle& c) {
    emit("cuMemRetainAllocationHandle(" + slot(ObjectKind::kAllocation, c.handle.value) +
         ", (void*)(" + ptr(c.ptr) + "))");
  }
  void call(const MemMap& c) {
    emit("cuMemMap(" + ptr(c.ptr) + ", " + number(c.size) + ", " + number(c.offset) + ", " +
         handle(c.handle) + ", " + number(c.flags) + ")");
  }
  void call(const MemUnmap& c) { emit("cuMemUnmap(" + ptr(c.ptr) + ", " + number(c.size) + ")"); }
  void call(const MemSetAccess& c) {
    set_access(c.access);
    emit("cuMemSetAccess(" + ptr(c.ptr) + ", " + number(c.size) + ", access, " +
         std::to_string(c.access.count) + ")");
  }
  void call(const MemGetAccess& c) {
    line("prop = props(1, " + std::to_string(static_cast<int>(c.location.type)) + ", " +
         std::to_string(c.location.id) + ", 0, 0, 0);");
    emit("cuMemGetAccess(&flags, &prop.location, " + ptr(c.ptr) + ")");
    line("printf(\"  access %llu, recorded " + std::to_string(static_cast<unsigned>(c.access)) +
         "\\n\", flags);");
  }
  void call(const MemExportToShareableHandle& c) {
    emit("cuMemExportToShareableHandle(" +
         slot(ObjectKind::kDescriptor, static_cast<std::uint64_t>(c.descriptor.value)) + ", " +
         handle(c.handle) + ", (CUmemAllocationHandleType)" +
         std::to_string(static_cast<unsigned>(c.type)) + ", " + number(c.flags) + ")");
  }
  void call(const MemImportFromShareableHandle& c) {
    const std::string fd =
        value(ObjectKind::kDescriptor, static_cast<std::uint64_t>(c.descriptor.value));
    emit("cuMemImportFromShareableHandle(" + slot(ObjectKind::kAllocation, c.handle.value) +
         ", (void*)(long)" + fd + ", (CUmemAllocationHandleType)" +
         std::to_string(static_cast<unsigned>(c.type)) + ")");
  }
  void call(const CloseDescriptor& c) {
    line("close(" + value(ObjectKind::kDescriptor, static_cast<std::uint64_t>(c.descriptor.value)) +
         ");");
  }
  void call(const MemGetInfo& c) {
    emit("cuMemGetInfo(&n1, &n2)");
    line("printf(\"  free %zu, recorded " + std::to_string(c.free) + "\\n\", n1);");
  }
  void call(const MemAlloc& c) {
    emit("cuMemAlloc(" + slot(ObjectKind::kPlainMemory, c.ptr.value, c.size) + ", " +
         number(c.size) + ")");
  }
  void call(const MemFree& c) { emit("cuMemFree(" + ptr(c.ptr) + ")"); }
  void call(const MemsetD8& c) {
    emit("cuMemsetD8(" + ptr(c.ptr) + ", " + std::to_string(c.value) + ", " + number(c.size) + ")");
  }
  void call(const MemsetD8Async& c) {
    emit("cuMemsetD8Async(" + ptr(c.ptr) + ", " + std::to_string(c.value) + ", " + number(c.size) +
         ", " + stream(c.stream) + ")");
  }
  void call(const MemcpyDtoH& c) {
    const std::uint64_t size = c.size < (1u << 20) ? c.size : (1u << 20);
    emit("cuMemcpyDtoH(host, " + ptr(c.src) + ", " + number(size) + ")");
    line("printf(\"  first byte 0x%02x\\n\", host[0]);");
  }
  void call(const MemcpyDtoD& c) {
    emit("cuMemcpyDtoD(" + ptr(c.dst) + ", " + ptr(c.src) + ", " + number(c.size) + ")");
  }
  void call(const MemcpyDtoDAsync& c) {
    emit("cuMemcpyDtoDAsync(" + ptr(c.dst) + ", " + ptr(c.src) + ", " + number(c.size) + ", " +
         stream(c.stream) + ")");
  }
  void call(const MemPoolCreate& c) {
    line(
        "{ CUmemPoolProps pp; memset(&pp, 0, sizeof pp); pp.allocType = "
        "CU_MEM_ALLOCATION_TYPE_PINNED; "
        "pp.location.type = (CUmemLocationType)" +
        std::to_string(static_cast<int>(c.properties.location.type)) +
        "; pp.location.id = " + std::to_string(c.properties.location.id) + ";");
    emit("cuMemPoolCreate(" + slot(ObjectKind::kPool, c.pool.value) + ", &pp)");
    line("}");
  }
  std::string pool(PoolHandle q) const { return value(ObjectKind::kPool, q.value); }
  void call(const MemPoolDestroy& c) { emit("cuMemPoolDestroy(" + pool(c.pool) + ")"); }
  void call(const MemPoolTrimTo& c) {
    emit("cuMemPoolTrimTo(" + pool(c.pool) + ", " + number(c.keep) + ")");
  }
  void call(const MemAllocAsync& c) {
    emit("cuMemAllocAsync(" + slot(ObjectKind::kPoolBlock, c.ptr.value, c.size) + ", " +
         number(c.size) + ", " + stream(c.stream) + ")");
  }
  void call(const MemAllocFromPoolAsync& c) {
    emit("cuMemAllocFromPoolAsync(" + slot(ObjectKind::kPoolBlock, c.ptr.value, c.size) + ", " +
         number(c.size) + ", " + pool(c.pool) + ", " + stream(c.stream) + ")");
  }
  void call(const MemFreeAsync& c) {
    emit("cuMemFreeAsync(" + ptr(c.ptr) + ", " + stream(c.stream) + ")");
  }
  void call(const StreamCreate& c) {
    emit("cuStreamCreate(" + slot(ObjectKind::kStream, c.stream.value) + ", " +
         std::to_string(c.flags) + ")");
  }
  void call(const StreamDestroy& c) { emit("cuStreamDestroy(" + stream(c.stream) + ")"); }
  void call(const StreamQuery& c) { emit("cuStreamQuery(" + stream(c.stream) + ")"); }
  void call(const StreamSynchronize& c) { emit("cuStreamSynchronize(" + stream(c.stream) + ")"); }
  std::string event(EventHandle e) const { return value(ObjectKind::kEvent, e.value); }
  void call(const EventCreate& c) {
    emit("cuEventCreate(" + slot(ObjectKind::kEvent, c.event.value) + ", " +
         std::to_string(c.flags) + ")");
  }
  void call(const EventDestroy& c) { emit("cuEventDestroy(" + event(c.event) + ")"); }
  void call(const EventRecord& c) {
    emit("cuEventRecord(" + event(c.event) + ", " + stream(c.stream) + ")");
  }
  void call(const EventQuery& c) { emit("cuEventQuery(" + event(c.event) + ")"); }
  void call(const EventSynchronize& c) { emit("cuEventSynchronize(" + event(c.event) + ")"); }
  void call(const StreamWaitEvent& c) {
    emit("cuStreamWaitEvent(" + stream(c.stream) + ", " + event(c.event) + ", " +
         std::to_string(c.flags) + ")");
  }
  std::string context(ContextHandle c) const { return value(ObjectKind::kContext, c.value); }
  void call(const DevicePrimaryCtxRetain& c) {
    emit("cuDevicePrimaryCtxRetain(" + slot(ObjectKind::kContext, c.context.value) + ", " +
         std::to_string(c.device.value) + ")");
  }
  void call(const CtxSetCurrent& c) { emit("cuCtxSetCurrent(" + context(c.context) + ")"); }
  void call(const CtxSynchronize&) { emit("cuCtxSynchronize()"); }
  void call(const Pause& c) { line("usleep(" + std::to_string(c.duration_ns / 1000) + ");"); }

  const record::Entry* entry_ = nullptr;
  std::ostringstream body_;
  std::map<std::pair<int, std::uint64_t>, std::string> names_;   // (kind, number) -> variable
  std::map<std::pair<int, std::uint64_t>, std::string> values_;  // (kind, value) -> variable
  std::map<std::uint64_t, std::pair<std::uint64_t, std::string>> ranges_;
  std::uint64_t next_ = 0;
};

}  // namespace

std::string c_source(const std::string& program, const std::vector<record::Entry>& entries) {
  return Writer().write(program, entries);
}

}  // namespace granule::gpu
