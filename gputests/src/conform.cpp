// The mix of a conformance program: which families of calls, how often each, and its clean end.
#include "conform.hpp"

#include <array>

#include <granule/prop/text.hpp>

#include "conform_writer.hpp"

namespace granule::gpu {

ConformWriter::ConformWriter(prop::Rng rng, const ConformOptions& options)
    : rng_(rng), options_(options) {}

std::string ConformWriter::write() {
  line("granule 1");
  for (const char* kind : {"nonblocking", "nonblocking", "blocking"}) {
    streams_.push_back(fresh('s'));
    line("stream " + streams_.back() + " " + kind);
  }
  using Step = void (ConformWriter::*)();
  struct Family {
    Step step;
    std::uint32_t weight;
  };
  std::vector<Family> families{
      {&ConformWriter::reserve, 10},     {&ConformWriter::free_place, 7},
      {&ConformWriter::create, 10},      {&ConformWriter::release, 7},
      {&ConformWriter::retain, 5},       {&ConformWriter::map, 16},
      {&ConformWriter::unmap, 8},        {&ConformWriter::set_access, 10},
      {&ConformWriter::get_access, 14},  {&ConformWriter::share, 4},
      {&ConformWriter::query_handle, 4}, {&ConformWriter::query_pointer, 8},
      {&ConformWriter::information, 3},  {&ConformWriter::plain, 6},
      {&ConformWriter::stream, 6},       {&ConformWriter::held, 1}};
  if (options_.contents) families.push_back({&ConformWriter::contents, 8});
  if (options_.pools) families.push_back({&ConformWriter::pool, 14});
  if (options_.captures) families.push_back({&ConformWriter::capture, 1});
  // Each program leans its own way: a family is left out, rare, usual or frequent.
  std::vector<std::uint32_t> weights;
  std::uint64_t sum = 0;
  for (const Family& family : families) {
    static constexpr std::array<std::uint32_t, 6> kFactors{0, 1, 4, 4, 4, 12};
    weights.push_back(family.weight * kFactors[pick(kFactors.size())]);
    sum += weights.back();
  }
  if (sum == 0) sum = weights[0] = 1;
  while (lines_ < options_.calls) {
    std::uint64_t at = pick(sum);
    std::size_t i = 0;
    while (at >= weights[i]) at -= weights[i++];
    (this->*families[i].step)();
  }
  settle();
  line("cuCtxSynchronize");
  // Pool memory goes back on a stream: freeing it by cuMemFree leaves the pool's figures wrong.
  for (const Block& block : blocks_) line("cuMemFreeAsync " + block.name + " on " + block.stream);
  line("cuCtxSynchronize");
  for (const std::string& q : pools_) line("cuMemPoolDestroy " + q);
  return text_;
}

std::string conform_text(std::uint64_t seed, std::uint64_t index, const ConformOptions& options) {
  return ConformWriter(prop::Rng(seed, index), options).write();
}

prop::Program conform_program(std::uint64_t seed, std::uint64_t index,
                              const ConformOptions& options) {
  prop::ParseResult parsed =
      prop::parse(conform_text(seed, index, options), std::to_string(index) + ".granule");
  if (parsed.document.programs.empty()) return {};
  prop::Program program = std::move(parsed.document.programs.front());
  program.name = "conform-" + std::to_string(seed) + "-" + std::to_string(index);
  return program;
}

}  // namespace granule::gpu
