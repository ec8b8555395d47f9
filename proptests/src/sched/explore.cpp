// Depth-first enumeration of interleavings, within a bound on pre-emptions.
#include <granule/prop/interleave.hpp>

#include "../interp/threads.hpp"

namespace granule::prop {
namespace {

/// What to take next after a run that took `choices`; false if there is nothing left.
bool advance(const std::vector<ThreadChoice>& choices, std::uint32_t bound,
             std::vector<std::uint16_t>& told) {
  std::vector<std::uint32_t> spent(choices.size() + 1, 0);  // pre-emptions before each point
  for (std::size_t i = 0; i < choices.size(); ++i)
    spent[i + 1] = spent[i] + (choices[i].preempts && choices[i].taken != 0 ? 1 : 0);
  for (std::size_t i = choices.size(); i > 0; --i) {
    const ThreadChoice& last = choices[i - 1];
    if (last.taken + 1 >= last.options) continue;
    if (spent[i - 1] + (last.preempts ? 1 : 0) > bound) continue;
    told.clear();
    for (std::size_t k = 0; k + 1 < i; ++k) told.push_back(choices[k].taken);
    told.push_back(static_cast<std::uint16_t>(last.taken + 1));
    return true;
  }
  return false;
}

}  // namespace

ExploreResult explore(const Program& program, RunOptions options, const ExploreOptions& bounds) {
  ExploreResult result;
  options.interleave.how = Interleave::kTold;
  options.interleave.told.clear();
  while (result.runs < bounds.max_runs) {
    RunReport report = run(program, options);
    ++result.runs;
    const std::vector<ThreadChoice> choices = std::move(report.choices);
    if (report.failure) {
      for (const ThreadChoice& choice : choices) result.told.push_back(choice.taken);
      while (!result.told.empty() && result.told.back() == 0) result.told.pop_back();
      result.failed = std::move(report);
      return result;
    }
    if (!advance(choices, bounds.preemptions, options.interleave.told)) {
      result.complete = true;
      return result;
    }
  }
  return result;
}

bool is_interleaved(const Program& program, const RunOptions& options) {
  return options.interleave.how != Interleave::kTold && needs_scheduler(program, options);
}

std::optional<std::uint64_t> failing_seed(const Program& program, RunOptions options,
                                          const std::string& signature, std::uint32_t tries) {
  const std::uint64_t first = options.thread_seed;
  for (std::uint32_t i = 0; i < tries; ++i) {
    options.thread_seed = first + i;
    const RunReport report = run(program, options);
    if (!report.failure) continue;
    if (signature.empty() || report.failure->signature == signature) return options.thread_seed;
  }
  return std::nullopt;
}

}  // namespace granule::prop
