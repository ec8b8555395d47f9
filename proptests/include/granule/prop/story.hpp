// A run told step by step: what each statement gave, the driver calls that it made, and the address
// space after it. What `granule show` writes as text, as a picture and as a page.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <granule/backends/record.hpp>
#include <granule/prop/program.hpp>
#include <granule/prop/run.hpp>
#include <granule/prop/snapshot.hpp>

namespace granule::prop {

/// One statement that ran. A `repeat` is one step; of its replies and pictures the last one stays.
struct StoryStep {
  std::size_t statement = 0;
  std::uint64_t times = 1;
  std::string reply;  // as it would stand behind =>
  bool skipped = false;
  bool would_block = false;
  /// Numbers in Story::calls: of this statement's thread, and of the library's worker meanwhile.
  std::vector<std::size_t> calls;
  std::size_t picture = 0;  // number in Story::pictures
};

struct Story {
  const Program* program = nullptr;  // not owned
  RunReport report;
  std::vector<StoryStep> steps;      // in the order in which they ended; threads take turns
  std::vector<record::Entry> calls;  // of everybody until the end, in order of completion
  std::vector<Snapshot> pictures;    // different neighbours; the last is that of the end
  std::size_t dropped_pictures = 0;  // of the beginning: their steps show the first one kept
  bool failed_at(const StoryStep& step) const {
    return report.failure && report.failure->statement == step.statement;
  }
  /// The failure came after the last statement: something was left over.
  bool failed_at_the_end() const {
    return report.failure && report.failure->statement >= program->statements.size();
  }
};

/// How many pictures a story keeps: the last ones. Enough for a program that a person reads.
inline constexpr std::size_t kMostPictures = 500;

/// Whether a story has a picture for every step, or that of the end alone.
enum class Pictures : std::uint8_t { kEveryStep, kEnd };

/// Runs the program and tells of it. `program` outlives the story. The observer, the decorator and
/// `inspect` of the options are replaced. An exception that leaves the library is a failure.
Story tell(const Program& program, RunOptions options, Pictures wanted = Pictures::kEveryStep);

}  // namespace granule::prop
