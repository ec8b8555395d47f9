// Count, then fail: the runs of one program.
#include "one.hpp"

#include <algorithm>
#include <utility>

#include <granule/prop/campaign.hpp>

#include "codes.hpp"

namespace granule::prop::sweep {
namespace {

constexpr unsigned kPairShift = 32;

/// Programs that only make driver calls have no library to be failed; one that misuses the library
/// on purpose says what must be reported, which a fault may change; and one that loses its contexts
/// does little after that.
bool is_of_library(const Program& program) {
  bool uses = false;
  for (const Statement& s : program.statements) {
    if (s.verb == Verb::kExpectViolation || s.has("sticky") || s.has("surfacing")) return false;
    uses = uses || s.verb == Verb::kResourceVmm || s.verb == Verb::kResourcePool ||
           s.verb == Verb::kResourceRecycler;
  }
  return uses;
}

/// A program with faults of its own: whose error is the first is not for a sweep to say.
bool has_own_faults(const Program& program) {
  return std::any_of(program.statements.begin(), program.statements.end(), [](const Statement& s) {
    return s.verb == Verb::kFail || s.verb == Verb::kFailHostAlloc;
  });
}

std::size_t length_of(const Program& bare) {
  return static_cast<std::size_t>(
      std::count_if(bare.statements.begin(), bare.statements.end(), [](const Statement& s) {
        return s.verb != Verb::kMark && s.verb != Verb::kNeeds && s.verb != Verb::kDevice;
      }));
}

/// The first of a pair: refused once, by its likeliest code.
bool may_be_first(const Fault& fault) {
  const bool once = fault.times == 1;
  if (!once || (fault.kind != FaultClass::kRefused && fault.kind != FaultClass::kHost))
    return false;
  return fault.point.host || fault.status == plausible_codes(fault.point.kind)[0];
}

/// A code that tells the second fault from the first.
DriverStatus other_code(CallKind kind, DriverStatus first) {
  for (const DriverStatus code : plausible_codes(kind))
    if (code != first) return code;
  return first == DriverStatus::kUnknown ? DriverStatus::kInvalidValue : DriverStatus::kUnknown;
}

/// The program with what the statement may give, for a failure that only a sweep can see.
Program annotated(const Program& faulted, const std::vector<std::size_t>& fails,
                  const WrongAnswer& wrong) {
  Program program = faulted;
  for (std::size_t i = 0; i < program.statements.size(); ++i)
    if (original_of(i, fails) == wrong.statement) program.statements[i].expected = wrong.expected;
  return program;
}

Failure failure_of(const Program& bare, const WrongAnswer& wrong) {
  Failure failure;
  failure.kind = Failure::Kind::kResult;
  failure.statement = wrong.statement;
  failure.signature =
      "first error of " + std::string(spelling_of(bare.statements[wrong.statement].verb));
  failure.message = wrong.message;
  return failure;
}

void note_unfired(std::uint64_t run, SweepCounts& counts) {
  ++counts.unfired;
  counts.first_unfired = std::min(counts.first_unfired, run);
}

class Nobody final : public Listener {
 public:
  bool begin(std::uint64_t) override { return true; }
  void violation(std::uint64_t, const Failure&, Program) override {}
};

}  // namespace

ProgramSweep::ProgramSweep(const Program& program, const SweepBreadth& breadth, RunOptions options)
    : program_(program),
      breadth_(breadth),
      options_(std::move(options)),
      bare_(without_expectations(program)),
      faulted_(bare_),
      own_faults_(has_own_faults(program)) {
  options_.strict = false;
  options_.keep_steps = false;
  options_.cells = false;
  options_.inspect = nullptr;
  watch_.install(options_);
}

RunReport ProgramSweep::run_watched(const Program& program) {
  return run_guarded(program, options_);
}

bool ProgramSweep::count(Listener& listener, SweepCounts& counts) {
  if (!listener.begin(0)) return false;
  ++counts.programs;
  const bool of_library = is_of_library(program_);
  const RunReport report = of_library ? run_watched(program_) : RunReport();
  if (report.failure) {
    ++counts.violations;
    listener.violation(0, *report.failure, program_);
    return false;
  }
  if (!of_library || report.status != RunStatus::kClean ||
      run_watched(bare_).status != RunStatus::kClean) {
    ++counts.not_swept;
    return false;
  }
  base_ = answers_of(bare_.statements.size(), watch_, {});
  std::vector<Point> points = points_of(bare_, watch_);
  if (own_faults_)  // a call that the program fails itself
    std::erase_if(points, [](const Point& p) { return p.status != DriverStatus::kSuccess; });
  for (const Point& point : points) ++(point.host ? counts.host_points : counts.call_points);
  faults_ = faults_of(points, breadth_);
  firsts_.clear();
  if (length_of(bare_) > breadth_.pairs_up_to) return true;
  for (std::size_t i = 0; i < faults_.size(); ++i)
    if (may_be_first(faults_[i])) firsts_.push_back(i);
  return true;
}

SweepCounts ProgramSweep::sweep(std::uint64_t part, std::uint64_t parts, Listener& listener) {
  SweepCounts counts;
  const bool swept = count(listener, counts);
  if (part != 0) counts = {};  // what all parts see is the first one's to count
  if (!swept) return counts;
  for (std::size_t i = part; i < faults_.size(); i += parts) {
    if (!listener.begin(i + 1)) return counts;
    run_single(i, listener, counts);
  }
  for (std::size_t i = part; i < firsts_.size(); i += parts)
    if (!run_pairs(firsts_[i], listener, counts)) return counts;
  return counts;
}

void ProgramSweep::run_single(std::size_t index, Listener& listener, SweepCounts& counts) {
  const Fault& fault = faults_[index];
  const Program& faulted = faulted_.with(fault);
  const RunReport report = run_watched(faulted);
  ++counts.runs;
  ++counts.by_class[static_cast<std::size_t>(fault.kind)];
  if (!has_fired(fault, watch_, faulted_.fails())) note_unfired(index + 1, counts);
  std::optional<WrongAnswer> wrong;
  if (!report.failure && !own_faults_)
    wrong = judge_one(fault, base_, answers_of(base_.size(), watch_, faulted_.fails()));
  judge(index + 1, report, faulted, wrong, listener, counts);
}

ProgramSweep::Seconds ProgramSweep::seconds_of(const Fault& first) {
  Seconds seconds;
  if (run_watched(faulted_.with(first)).failure) return seconds;  // told of already
  const std::vector<std::size_t> fails = faulted_.fails();
  seconds.alone = answers_of(base_.size(), watch_, fails);
  // A statement that would block takes its faults back: they strike again, where a second would.
  if (seconds.alone[first.point.statement].kind == Reply::Kind::kWouldBlock) return seconds;
  for (Point& point : points_of(bare_, watch_, fails)) {
    if (!is_behind(first.point, point)) continue;
    if (point.host && !breadth_.host) continue;
    if (own_faults_ && point.status != DriverStatus::kSuccess) continue;
    Fault second;
    if (point.host) second.kind = FaultClass::kHost;
    second.status = point.host ? DriverStatus::kSuccess : other_code(point.kind, first.status);
    second.point = point;
    seconds.faults.push_back(second);
  }
  return seconds;
}

bool ProgramSweep::run_pairs(std::size_t index, Listener& listener, SweepCounts& counts) {
  const Fault& first = faults_[index];
  const std::uint64_t number = static_cast<std::uint64_t>(index + 1) << kPairShift;
  if (!listener.begin(number)) return false;
  const Seconds seconds = seconds_of(first);
  for (std::size_t i = 0; i < seconds.faults.size(); ++i) {
    const std::uint64_t run = number + i + 1;
    if (!listener.begin(run)) return false;
    run_pair(run, first, seconds.faults[i], seconds, listener, counts);
  }
  return true;
}

void ProgramSweep::run_pair(std::uint64_t run, const Fault& first, const Fault& second,
                            const Seconds& seconds, Listener& listener, SweepCounts& counts) {
  const Program& faulted = faulted_.with(first, second);
  const RunReport report = run_watched(faulted);
  ++counts.runs;
  ++counts.pairs;
  const std::vector<std::size_t>& fails = faulted_.fails();
  if (!have_fired(first, second, watch_, fails)) note_unfired(run, counts);
  std::optional<WrongAnswer> wrong;
  if (!report.failure && !own_faults_)
    wrong = judge_two(first, second, base_, seconds.alone, answers_of(base_.size(), watch_, fails));
  judge(run, report, faulted, wrong, listener, counts);
}

void ProgramSweep::judge(std::uint64_t run, const RunReport& report, const Program& faulted,
                         const std::optional<WrongAnswer>& wrong, Listener& listener,
                         SweepCounts& counts) {
  if (!report.failure && !wrong) return;
  ++counts.violations;
  if (report.failure) return listener.violation(run, *report.failure, faulted);
  listener.violation(run, failure_of(bare_, *wrong), annotated(faulted, faulted_.fails(), *wrong));
}

Program ProgramSweep::program_of(std::uint64_t run) {
  Nobody nobody;
  SweepCounts counts;
  const std::uint64_t single = run >> kPairShift != 0 ? run >> kPairShift : run;
  if (run == 0 || !count(nobody, counts) || single > faults_.size()) return program_;
  const Fault& first = faults_[single - 1];
  if (run >> kPairShift == 0) return faulted_.with(first);
  const std::uint64_t k = run & ((std::uint64_t{1} << kPairShift) - 1);
  if (k == 0) return faulted_.with(first);
  const Seconds seconds = seconds_of(first);
  return k > seconds.faults.size() ? program_ : faulted_.with(first, seconds.faults[k - 1]);
}

}  // namespace granule::prop::sweep
