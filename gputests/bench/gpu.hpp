// What the GPU benchmarks share: a machine, timings with their spread, and tables.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <granule/backend_api/checked.hpp>
#include <granule/backends/cuda.hpp>
#include <granule/resource.hpp>

namespace granule::bench {

inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

inline std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

/// Ends the benchmark with a message if a driver call failed: figures of failed calls mean nothing.
inline void must(DriverStatus status, std::string_view what) {
  if (status == DriverStatus::kSuccess) return;
  std::fprintf(stderr, "%.*s: %.*s\n", static_cast<int>(what.size()), what.data(),
               static_cast<int>(name_of(status).size()), name_of(status).data());
  std::exit(1);
}
inline void must(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", to_string(status.error()).c_str());
  std::exit(1);
}
template <class T>
T must(Result<T> result) {
  if (!result.ok()) must(result.status());
  return std::move(*result);
}
template <class C>
C call(Backend& backend, C c) {
  must(backend.run(c), C::info.name);
  return c;
}

/// Timings of one thing, in ns.
class Samples {
 public:
  void reserve(std::size_t n) { values_.reserve(n); }
  void add(std::uint64_t ns) { values_.push_back(ns); }
  std::size_t size() const { return values_.size(); }
  std::uint64_t at(double share) {
    if (values_.empty()) return 0;
    std::sort(values_.begin(), values_.end());
    const auto index = static_cast<std::size_t>(share * static_cast<double>(values_.size() - 1));
    return values_[index];
  }
  /// One row: name, n, median, p10, p90, p99.
  void print(const std::string& name) {
    std::printf("%-46s %7zu %11llu %11llu %11llu %11llu\n", name.c_str(), size(),
                static_cast<unsigned long long>(at(0.5)), static_cast<unsigned long long>(at(0.1)),
                static_cast<unsigned long long>(at(0.9)),
                static_cast<unsigned long long>(at(0.99)));
    std::fflush(stdout);
  }
  static void head(const char* title) {
    std::printf("\n%s\n%-46s %7s %11s %11s %11s %11s\n", title, "ns", "n", "median", "p10", "p90",
                "p99");
  }

 private:
  std::vector<std::uint64_t> values_;
};

template <class F>
void time_once(Samples& samples, F&& f) {
  const std::uint64_t start = now_ns();
  f();
  samples.add(now_ns() - start);
}

inline std::string size_text(std::uint64_t bytes) {
  if (bytes % kGiB == 0) return std::to_string(bytes / kGiB) + " GiB";
  if (bytes % kMiB == 0) return std::to_string(bytes / kMiB) + " MiB";
  return std::to_string(bytes) + " B";
}

/// A driver with device 0's primary context current, and a bound stream.
struct Gpu {
  explicit Gpu(std::unique_ptr<cuda::CudaBackend> opened);
  std::unique_ptr<cuda::CudaBackend> backend;
  StreamHandle raw;
  Stream stream;  // bound as never capturing
  Stream asked;   // the same stream, asked about captures
  std::uint64_t free_bytes();
};

void run_latency(Gpu& gpu);  // B5
void run_warm(Gpu& gpu);     // B1
void run_growth(Gpu& gpu);   // B2
void run_churn(Gpu& gpu);    // B3
void run_deferred(Gpu& gpu);
void run_suspend(Gpu& gpu);  // B7
/// The parts of those names (warm, growth, ...), in their own order; all of them if none is named.
void run_parts(Gpu& gpu, const std::vector<std::string>& wanted);

}  // namespace granule::bench
