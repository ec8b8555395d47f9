// A checklist for one run on a real GPU: makes calls, compares, remembers a row for each.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <granule/backends/cuda.hpp>

namespace granule::smoke {

inline constexpr std::uint64_t kKiB = 1024;
inline constexpr std::uint64_t kMiB = 1024 * kKiB;
/// One granule of today's devices.
inline constexpr std::uint64_t g = 2 * kMiB;

/// Rows of expected and observed results.
class Smoke {
 public:
  struct Row {
    std::string what;
    std::string note;
    std::string wanted;
    std::string got;
  };

  explicit Smoke(cuda::CudaBackend& backend) : backend_(backend) {}

  /// Makes the call, notes its status against `wanted`, and returns it with its outputs.
  template <class C>
  C run(C call, DriverStatus wanted, std::string note) {
    const DriverStatus status = backend_.run(call);
    used_.set(static_cast<std::size_t>(kind_of<C>));
    add(std::string(C::info.name), std::move(note), std::string(name_of(wanted)),
        std::string(name_of(status)));
    return call;
  }
  template <class C>
  C ok(C call, std::string note) {
    return run(call, DriverStatus::kSuccess, std::move(note));
  }
  /// Notes a value against the wanted one.
  template <class A, class B>
  void equal(std::string what, A got, B wanted) {
    add(std::move(what), "", text(wanted), text(got));
  }
  void add(std::string what, std::string note, std::string wanted, std::string got);
  /// Notes for each call of the interface that nobody made it.
  void demand_every_call();

  /// Notes free memory against what it was at the first such row.
  void same_free(std::string what);

  cuda::CudaBackend& backend() { return backend_; }
  bool passed() const;
  /// All rows, the mismatches marked and repeated at the end.
  void print() const;

 private:
  template <class T>
  static std::string text(const T& value) {
    if constexpr (std::is_same_v<T, ByteSummary>) {
      if (value.kind == ByteSummary::Kind::kUniform) return "all " + std::to_string(value.byte);
      return value.kind == ByteSummary::Kind::kMixed ? "mixed" : "unknown";
    } else if constexpr (std::is_same_v<T, bool>) {
      return value ? "true" : "false";
    } else if constexpr (std::is_enum_v<T>) {
      return std::to_string(static_cast<std::int64_t>(value));
    } else {
      return std::to_string(value);
    }
  }

  cuda::CudaBackend& backend_;
  std::bitset<kCallCount> used_;
  std::vector<Row> rows_;
  std::uint64_t free_at_first_ = 0;
};

/// A pinned allocation on device 0, or what `handle` asks for.
inline MemCreate create_call(std::uint64_t size, HandleType handle = HandleType::kNone) {
  MemCreate create;
  create.size = size;
  create.properties.handle_types = handle;
  return create;
}
inline MemSetAccess access_call(DevicePtr ptr, std::uint64_t size, Access access) {
  MemSetAccess call{ptr, size, {}};
  call.access.push({device_location({0}), access});
  return call;
}
inline DevicePtr plus(DevicePtr ptr, std::uint64_t offset) { return {ptr.value + offset}; }
inline ByteSummary all_of(std::uint8_t byte) { return {ByteSummary::Kind::kUniform, byte}; }
inline ByteSummary mixed() { return {ByteSummary::Kind::kMixed, 0}; }

/// `size` bytes of mapped read-write memory in chunks of g, by calls that are not checked.
DevicePtr map_chunks(cuda::CudaBackend& backend, std::uint64_t size);
void unmap_chunks(cuda::CudaBackend& backend, DevicePtr base, std::uint64_t size);

// The parts. `devices` makes the primary context of device 0 current and leaves it so.
void without_context(Smoke& s);
ContextHandle devices(Smoke& s);
void mappings(Smoke& s);
void memory(Smoke& s);
void pools(Smoke& s);
void streams(Smoke& s);
/// Prints which first uses move free memory after warm_up, and by how much.
void noise(cuda::CudaBackend& backend);
/// A kernel fault: the context is lost afterwards, so this needs a process of its own.
void fault(Smoke& s);

}  // namespace granule::smoke
