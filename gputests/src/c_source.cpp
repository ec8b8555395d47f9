// The frame of a reproduction in C, and the names of what its calls made.
#include "c_source.hpp"

#include <algorithm>
#include <iterator>

#include <granule/backends/trace.hpp>

#include "c_writer.hpp"

namespace granule::gpu {

template <class C>
void CWriter::call(const C&) {
  line("/* " + trace::to_text(entry_->call, entry_->status) + " */");
}

std::string CWriter::write(const std::string& program, const std::vector<record::Entry>& entries) {
  std::uint32_t thread = 0;
  for (const record::Entry& entry : entries) {
    entry_ = &entry;
    if (entry.thread != thread) line("/* thread " + std::to_string(entry.thread) + " */");
    thread = entry.thread;
    std::visit([&](const auto& c) { call(c); }, entry.call);
  }
  std::ostringstream out;
  out << "/* The driver calls of `" << program << "`, as recorded; all on one thread. */\n"
      << kCHead << "\nint main(void) {\n";
  for (const auto& [key, name] : names_)
    out << "  " << type_of(static_cast<ObjectKind>(key.first)) << " " << name << " = 0;\n";
  out << "  CUmemAllocationProp prop;\n  CUmemPoolProps pool_prop;\n  CUmemLocation where;\n"
         "  CUmemAccessDesc access[16];\n  CUcontext popped = 0;\n"
         "  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;\n"
         "  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;\n"
         "  CUdeviceptr base = 0;\n  size_t n1 = 0, n2 = 0;\n  int i1 = 0;\n"
         "  unsigned long long flags = 0;\n  cuuint64_t u1 = 0;\n"
         "  CUmemAccess_flags right = CU_MEM_ACCESS_FLAGS_PROT_NONE;\n"
         "  static unsigned char host[1 << 20];\n"
         "  (void)n1, (void)n2, (void)i1, (void)flags, (void)u1, (void)right, (void)host;\n"
         "  (void)prop, (void)pool_prop, (void)where, (void)access, (void)popped, (void)status;\n"
         "  (void)mode, (void)base, (void)hold, (void)let_go, (void)kernel, (void)host_function;\n"
         "  (void)props, (void)pool_props, (void)place;\n"
         "  cuInit(0);\n  environment();\n"
      << body_.str() << "  printf(\"%d differences\\n\", differences);\n"
      << "  return differences != 0;\n}\n";
  return out.str();
}

const char* CWriter::type_of(ObjectKind kind) {
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

std::string CWriter::made(ObjectKind kind, std::uint64_t value, std::uint64_t size) {
  static constexpr const char* kLetters[] = {"o", "p", "h", "m", "fd", "x", "pin",
                                             "q", "b", "s", "e", "c",  "g"};
  const std::string name = kLetters[static_cast<int>(kind)] + std::to_string(++next_);
  names_[{static_cast<int>(kind), next_}] = name;
  if (kind == ObjectKind::kPinnedMemory) {
    pinned_[value] = {size, name};
  } else if (size != 0) {
    ranges_[value] = {size, name};
  } else {
    values_[{static_cast<int>(kind), value}] = name;
  }
  return name;
}

std::string CWriter::slot(ObjectKind kind, std::uint64_t value, std::uint64_t size) {
  return "&" + made(kind, succeeded() ? value : 0, succeeded() ? size : 0);
}

std::string CWriter::value(ObjectKind kind, std::uint64_t v) const {
  if (v == 0) return "0";
  if (kind == ObjectKind::kStream && v == kLegacyStream.value) return "CU_STREAM_LEGACY";
  if (kind == ObjectKind::kStream && v == kPerThreadStream.value) return "CU_STREAM_PER_THREAD";
  const auto found = values_.find({static_cast<int>(kind), v});
  if (found != values_.end()) return found->second;
  return "(" + std::string(type_of(kind)) + ")" + number(v);
}

std::string CWriter::ptr(DevicePtr p) const {
  const auto after = ranges_.upper_bound(p.value);
  if (after != ranges_.begin()) {
    const auto& [base, range] = *std::prev(after);
    const std::uint64_t offset = p.value - base;
    if (offset == 0) return range.second;
    if (offset <= range.first * 4) return range.second + " + " + number(offset);
  }
  return number(p.value);
}

std::string CWriter::word(DevicePtr p) const {
  const auto after = pinned_.upper_bound(p.value);
  if (after != pinned_.begin()) {
    const auto& [base, range] = *std::prev(after);
    if (p.value - base < range.first)
      return "(CUdeviceptr)(size_t)" + range.second + " + " + number(p.value - base);
  }
  return ptr(p);
}

std::string CWriter::props(const AllocationProperties& p) {
  return "props(" + std::to_string(p.type) + ", " + plain(p.location.type) + ", " +
         std::to_string(p.location.id) + ", " + plain(p.handle_types) + ", " +
         std::to_string(p.compression) + ", " + std::to_string(p.rdma) + ")";
}

void CWriter::emit(const std::string& text) {
  const DriverStatus status = entry_->status;
  if (status == DriverStatus::kWouldBlock || status == DriverStatus::kUndefined)
    return line("/* not made, " + std::string(name_of(status)) + ": " + text + " */");
  line("DO(" + text + ", \"" + std::string(name_of(status)) + "\");");
}

void CWriter::beside(const std::string& what, const std::string& format,
                     const std::string& expression, const std::string& recorded) {
  if (!succeeded()) return;
  line("printf(\"  " + what + " " + format + ", recorded " + recorded + "\\n\", " + expression +
       ");");
}

void CWriter::set_access(const AccessEntries& entries) {
  std::uint32_t i = 0;
  for (const AccessEntry& one : entries) {
    const std::string at = "access[" + std::to_string(i++) + "]";
    line(at + ".location = " + place(one.location) + "; " + at + ".flags = (CUmemAccess_flags)" +
         plain(one.access) + ";");
  }
}

void CWriter::fill_host(const HostSource& source, std::uint64_t size) {
  const std::uint64_t bytes = std::min<std::uint64_t>(size, 1u << 20);
  line("memset(host, " + std::to_string(source.pattern) + ", " + number(bytes) + ");" +
       (source.uniform ? "" : " /* the recorded bytes are not known */"));
}

std::string c_source(const std::string& program, const std::vector<record::Entry>& entries) {
  return CWriter().write(program, entries);
}

}  // namespace granule::gpu
