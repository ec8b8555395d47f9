// The shrinker: delta debugging over statements, then over arguments, to a proven minimum.
#include <granule/prop/shrink.hpp>

#include <algorithm>
#include <utility>

#include <granule/prop/campaign.hpp>
#include <granule/prop/interleave.hpp>

namespace granule::prop {
namespace {

class Shrinker {
 public:
  Shrinker(const Program& program, const Judge& judge, const ShrinkOptions& options)
      : judge_(judge), options_(options), best_(program) {}

  ShrinkResult run() {
    const Judgement first = judged(best_);
    ShrinkResult result;
    signature_ = first.signature;
    if (!signature_.empty()) {
      cut_behind(first.statement);
      bool changed = true;
      while (changed && !stopped()) {
        changed = drop_chunks();
        changed = drop_single() || changed;
        if (!changed) changed = drop_pairs();
        changed = simplify() || changed;
      }
      result.minimal = !stopped();
      rename();
    }
    result.program = std::move(best_);
    result.signature = signature_;
    result.runs = runs_;
    return result;
  }

 private:
  Judgement judged(const Program& program) {
    ++runs_;
    return judge_(program);
  }

  bool stopped() {
    stopped_ = stopped_ || runs_ >= options_.max_runs || (options_.stop && options_.stop());
    return stopped_;
  }

  /// Keeps the candidate if it fails in the same way.
  bool accept(Program candidate) {
    if (stopped()) return false;
    const Judgement found = judged(candidate);
    if (found.signature != signature_) return false;
    best_ = std::move(candidate);
    cut_behind(found.statement);
    if (options_.progress) options_.progress(best_.statements.size(), runs_);
    return true;
  }

  /// What stands behind the failing statement plays no part.
  void cut_behind(std::size_t statement) {
    if (statement + 1 >= best_.statements.size()) return;
    const std::string& thread = best_.statements[statement].thread;
    if (!thread.empty()) return;  // later lines of the block may have run before
    Program candidate = best_;
    candidate.statements.resize(statement + 1);
    if (judged(candidate).signature == signature_) best_ = std::move(candidate);
  }

  static Program without(const Program& program, std::size_t begin, std::size_t end) {
    Program result;
    result.name = program.name;
    result.statements.reserve(program.statements.size());
    for (std::size_t i = 0; i < program.statements.size(); ++i)
      if (i < begin || i >= end) result.statements.push_back(program.statements[i]);
    return result;
  }

  /// Chunks of half the program, a quarter, ... two statements; from the end to the start.
  bool drop_chunks() {
    bool changed = false;
    for (std::size_t size = best_.statements.size() / 2; size >= 2; size /= 2) {
      std::size_t end = best_.statements.size();
      while (end > 0 && !stopped()) {
        const std::size_t begin = end > size ? end - size : 0;
        changed = accept(without(best_, begin, end)) || changed;
        end = std::min(begin, best_.statements.size());
      }
    }
    return changed;
  }

  bool drop_single() {
    bool changed = false;
    for (std::size_t i = best_.statements.size(); i > 0 && !stopped(); --i) {
      if (i > best_.statements.size()) continue;
      changed = accept(without(best_, i - 1, i)) || changed;
    }
    return changed;
  }

  /// Two statements that only make sense together, such as hold and release.
  bool drop_pairs() {
    constexpr std::size_t kMost = 24;
    if (best_.statements.size() > kMost) return false;
    for (std::size_t i = best_.statements.size(); i > 1; --i)
      for (std::size_t k = i - 1; k > 0; --k) {
        if (stopped()) return false;
        Program candidate = without(without(best_, i - 1, i), k - 1, k);
        if (accept(std::move(candidate))) return true;
      }
    return false;
  }

  bool simplify() {
    bool changed = false;
    for (std::size_t i = 0; i < best_.statements.size(); ++i)
      while (simplify_one(i)) changed = true;
    return changed;
  }

  bool simplify_one(std::size_t index) {
    if (index >= best_.statements.size()) return false;
    for (Statement& simpler : simpler_forms(best_.statements[index])) {
      if (stopped()) return false;
      Program candidate = best_;
      candidate.statements[index] = std::move(simpler);
      if (accept(std::move(candidate))) return true;
    }
    return false;
  }

  void rename() {
    Program candidate = with_plain_names(best_);
    if (candidate == best_) return;
    if (judged(candidate).signature == signature_) best_ = std::move(candidate);
  }

  const Judge& judge_;
  const ShrinkOptions& options_;
  Program best_;
  std::string signature_;
  std::uint64_t runs_ = 0;
  bool stopped_ = false;
};

}  // namespace

Judge judge_by_run(RunOptions options) {
  options.inspect = nullptr;
  options.keep_steps = false;
  options.cells = false;
  // A smaller program passes other points of the seam: the same seed is another interleaving of it.
  return [options = std::move(options), wanted = std::string()](const Program& program) mutable {
    const std::uint32_t tries = is_interleaved(program, options) ? kInterleavingsTried : 1;
    RunOptions one = options;
    for (std::uint32_t i = 0; i < tries; ++i) {
      one.thread_seed = options.thread_seed + i;
      const RunReport report = run_guarded(program, one);
      if (!report.failure) continue;
      if (wanted.empty()) wanted = report.failure->signature;
      if (report.failure->signature == wanted || i + 1 == tries)
        return Judgement{report.failure->signature, report.failure->statement};
    }
    return Judgement{};
  };
}

ShrinkResult shrink(const Program& program, const Judge& judge, const ShrinkOptions& options) {
  return Shrinker(program, judge, options).run();
}

}  // namespace granule::prop
