// The benchmarks of this machine, run by Google Benchmark.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <string>
#include <vector>

#include "bench.hpp"
#include "command.hpp"

namespace granule::cli {
namespace {

/// The flags that Google Benchmark would have been given.
std::vector<std::string> arguments_of(const BenchFlags& flags) {
  std::string parts;
  for (const std::string& part : flags.parts) parts.append(parts.empty() ? "" : "|").append(part);
  std::vector<std::string> arguments = {
      "granule", "--benchmark_min_time=" + std::to_string(flags.seconds),
      "--benchmark_filter=^(" + (parts.empty() ? ".*" : parts) + ")/"};
  if (flags.json.empty()) return arguments;
  arguments.push_back("--benchmark_out=" + flags.json);
  arguments.emplace_back("--benchmark_out_format=json");
  return arguments;
}

int run(const BenchFlags& flags) {
  std::vector<std::string> arguments = arguments_of(flags);
  std::vector<char*> raw;
  raw.reserve(arguments.size());
  for (std::string& argument : arguments) raw.push_back(argument.data());
  int count = static_cast<int>(raw.size());
  benchmark::Initialize(&count, raw.data());
  return benchmark::RunSpecifiedBenchmarks() == 0 ? kUnfit : kClean;
}

const bool kRegistered = [] {
  bench_work().here = run;
  return true;
}();

}  // namespace
}  // namespace granule::cli
