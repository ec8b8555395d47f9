// Benchmarks of a campaign's parts: generating, running, printing, reading, shrinking.
#include <benchmark/benchmark.h>

#include <granule/prop/campaign.hpp>
#include <granule/prop/generate.hpp>
#include <granule/prop/run.hpp>
#include <granule/prop/shrink.hpp>
#include <granule/prop/text.hpp>
#include <granule/prop/zoo.hpp>

namespace granule::prop {
namespace {

void generate_programs(benchmark::State& state) {
  std::uint64_t index = 0;
  for (auto _ : state) benchmark::DoNotOptimize(generate(1, index++));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(generate_programs)->Name("check/generate_programs");

/// Whole programs of 30 operations; argument 0: how much is checked.
void run_programs(benchmark::State& state) {
  CampaignOptions options;
  options.run.checking = static_cast<Checking>(state.range(0));
  std::uint64_t index = 0;
  std::uint64_t operations = 0;
  std::uint64_t calls = 0;
  for (auto _ : state) {
    const Program program = campaign_program(options, index);
    const RunReport report = run_guarded(program, campaign_run(options, index));
    operations += report.executed;
    calls += report.model_calls;
    ++index;
  }
  state.SetItemsProcessed(state.iterations());
  state.counters["operations"] =
      benchmark::Counter(static_cast<double>(operations), benchmark::Counter::kIsRate);
  state.counters["model_calls"] =
      benchmark::Counter(static_cast<double>(calls), benchmark::Counter::kIsRate);
}
BENCHMARK(run_programs)->Name("check/run_programs")->ArgName("checking")->Arg(0)->Arg(1)->Arg(2);

void print_programs(benchmark::State& state) {
  const Program program = generate(1, 1);
  for (auto _ : state) benchmark::DoNotOptimize(to_text(program));
}
BENCHMARK(print_programs)->Name("check/print_programs");

void read_programs(benchmark::State& state) {
  const std::string text = to_text(generate(1, 1));
  for (auto _ : state) benchmark::DoNotOptimize(parse(text, "p.granule"));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}
BENCHMARK(read_programs)->Name("check/read_programs");

void shrink_canary(benchmark::State& state) {
  CampaignOptions options;
  options.programs = 1000;
  options.run.target = zoo_target("canary");
  const CampaignResult found = run_campaign(options);
  if (found.failures.empty()) return state.SkipWithError("the canary was not found");
  const std::uint64_t index = found.failures[0].index;
  const Program program = campaign_program(options, index);
  const Judge judge = judge_by_run(campaign_run(options, index));
  std::size_t left = 0;
  for (auto _ : state) left = shrink(program, judge).program.statements.size();
  state.counters["statements"] = static_cast<double>(left);
}
BENCHMARK(shrink_canary)->Name("check/shrink_canary")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace granule::prop
