// What `granule bench` runs, filled in by the parts that are built into the command.
#pragma once

#include <string>
#include <vector>

namespace granule::cli {

struct BenchFlags {
  std::string backend = "model";
  std::vector<std::string> parts;  // empty: all
  double seconds = 0.5;            // for each benchmark, at least
  std::string json;                // file for the results; empty: none
};

/// Each returns an exit code; null: not built into this command.
struct BenchWork {
  int (*here)(const BenchFlags& flags) = nullptr;
  int (*on_device)(const BenchFlags& flags) = nullptr;
};
BenchWork& bench_work();

}  // namespace granule::cli
