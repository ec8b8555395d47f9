// granule bench: prices of the core, the model and a campaign's parts, and of a driver's calls.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "bench.hpp"
#include "command.hpp"
#include "device.hpp"

namespace granule::cli {

BenchWork& bench_work() {
  static BenchWork work;
  return work;
}

namespace {

const std::vector<std::string> kHere = {"core", "model", "check"};
const std::vector<std::string> kOnDevice = {"warm",     "growth",  "churn",
                                            "deferred", "suspend", "latency"};

void check_parts(const BenchFlags& flags) {
  const std::vector<std::string>& known = flags.backend == "model" ? kHere : kOnDevice;
  const auto unknown =
      std::find_if(flags.parts.begin(), flags.parts.end(), [&](const std::string& part) {
        return std::find(known.begin(), known.end(), part) == known.end();
      });
  if (unknown == flags.parts.end()) return;
  std::string names;
  for (const std::string& name : known) names.append(names.empty() ? "" : ", ").append(name);
  throw CLI::ValidationError("PART", "`" + *unknown + "` is none of " + names);
}

void run_bench(const BenchFlags& flags, const CLI::App& command) {
  check_parts(flags);
  if (flags.backend == "cuda") {
    for (const char* const only_here : {"--seconds", "--json"})
      if (command.count(only_here) != 0)
        throw CLI::ValidationError(only_here, "does nothing with --backend cuda");
    const auto run = bench_work().on_device;
    return set_exit_code(static_cast<ExitCode>(run ? run(flags) : no_device_work()));
  }
  if (const auto run = bench_work().here) return set_exit_code(static_cast<ExitCode>(run(flags)));
  std::fprintf(stderr,
               "granule: this build has no benchmarks: install Google Benchmark "
               "(libbenchmark-dev) and configure again\n");
  set_exit_code(kUnfit);
}

void add_bench(CLI::App& app) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* command = app.add_subcommand("bench", "Measure what operations and calls cost");
  command->add_option("PART", flags->parts, "What is measured; all, unless named");
  command->add_option("--backend", flags->backend, "model: on this machine; cuda: on device 0")
      ->check(CLI::IsMember({"model", "cuda"}))
      ->capture_default_str();
  command->add_option("--seconds", flags->seconds, "Time for each benchmark, at least")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--json", flags->json, "Write the results to this file, as JSON");
  command->footer(
      "Without a GPU:\n"
      "  core      operations over a driver that does nothing: the core's own time\n"
      "  model     driver calls on the reference model, by live objects\n"
      "  check     a campaign's parts: generating, running, printing, reading, shrinking\n"
      "With --backend cuda, the bare driver calls of each case beside it:\n"
      "  warm      allocations without a driver call\n"
      "  growth    growing buffers\n"
      "  churn     allocate and free in a random order\n"
      "  deferred  deferred frees behind a running kernel\n"
      "  suspend   suspend and resume\n"
      "  latency   each driver call by size and threads; launches beside mapping work\n"
      "Exit code 3: no benchmarks in this build, or no usable driver.\n\nExamples:\n"
      "  granule bench core\n"
      "  granule bench --backend cuda warm churn");
  command->callback([flags, command] { run_bench(*flags, *command); });
}

const Command kCommand(85, add_bench);

}  // namespace
}  // namespace granule::cli
