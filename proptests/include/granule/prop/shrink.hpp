// Shrinking a failing program to one from which nothing can be taken away.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <granule/prop/program.hpp>
#include <granule/prop/run.hpp>

namespace granule::prop {

/// What a run of a candidate showed.
struct Judgement {
  std::string signature;      // of the failure; empty: none
  std::size_t statement = 0;  // where it failed
};

/// Runs a candidate. A pure function of the program, or shrinking is not deterministic.
using Judge = std::function<Judgement(const Program&)>;

/// Interleavings of its threads that a candidate is given before it counts as one that holds.
inline constexpr std::uint32_t kInterleavingsTried = 24;

/// Runs on the model, with these options; programs with threads under several interleavings.
Judge judge_by_run(RunOptions options);

struct ShrinkOptions {
  /// Runs at most; what is found so far is then the result.
  std::uint64_t max_runs = 200000;
  /// Asked now and then; true stops, for time budgets.
  std::function<bool()> stop;
  /// Told of every success: statements left, runs so far.
  std::function<void(std::size_t statements, std::uint64_t runs)> progress;
};

struct ShrinkResult {
  Program program;
  std::string signature;  // empty: the program did not fail, and is returned as it was
  std::uint64_t runs = 0;
  /// Proven: taking away any one statement, or simplifying any one argument, loses the failure.
  bool minimal = false;
};

/// Shrinks: cuts behind the failing statement, takes away halving chunks, single statements,
/// pairs, then simplifies arguments (fewer options, smaller sizes, plainer names), until a whole
/// round changes nothing. A candidate is accepted only if it fails with the same signature.
ShrinkResult shrink(const Program& program, const Judge& judge, const ShrinkOptions& options = {});

/// Every program that differs from `program` by one simplification of statement `index`: options
/// dropped, sizes smaller, ranges whole, blocks and repeats undone. Each is simpler by a measure
/// that cannot fall for ever.
std::vector<Statement> simpler_forms(const Statement& statement);

/// The same program with short names in order of appearance (a, b, ... for buffers).
Program with_plain_names(const Program& program);

}  // namespace granule::prop
