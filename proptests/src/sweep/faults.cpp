// Points to faults to `fail` statements.
#include "faults.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "codes.hpp"

namespace granule::prop::sweep {
namespace {

/// How often the library makes a call again that is not ready (core, driver.hpp).
constexpr std::uint64_t kRetries = 8;

bool is_expectation(const Statement& s) {
  const std::string_view spelling = spelling_of(s.verb);
  return spelling.rfind("expect ", 0) == 0 || spelling.rfind("require ", 0) == 0;
}

/// True if a statement that would block takes back calls which later faults would have to count.
bool takes_back(const Program& bare, const Span& span, std::size_t statement) {
  const Statement& s = bare.statements[statement];
  return span.answer.kind == Reply::Kind::kWouldBlock && (!s.thread.empty() || s.repeat);
}

/// Counts calls and host allocations from the last anchor on.
class Counter {
 public:
  /// True if that anchor is another one than before.
  bool enter(std::size_t anchor, std::uint64_t host) {
    if (any_ && anchor == anchor_) return false;
    any_ = true;
    anchor_ = anchor;
    host_ = host;
    calls_.fill(0);
    return true;
  }
  std::uint64_t next(CallKind kind) { return ++calls_[static_cast<std::size_t>(kind)]; }
  std::uint64_t host() const { return host_; }

 private:
  bool any_ = false;
  std::size_t anchor_ = 0;
  std::uint64_t host_ = 0;
  std::array<std::uint64_t, kCallCount> calls_{};
};

void add_host_faults(const Point& point, const SweepBreadth& breadth, std::vector<Fault>& faults) {
  if (!breadth.host) return;
  faults.push_back({point, 1, DriverStatus::kSuccess, FaultClass::kHost});
  if (breadth.from_then_on)
    faults.push_back({point, Fault::kAlways, DriverStatus::kSuccess, FaultClass::kHost});
}

void add_not_ready(const Point& point, const SweepBreadth& breadth, std::vector<Fault>& faults) {
  if (!breadth.not_ready) return;
  const auto add = [&](std::uint64_t times) {
    faults.push_back({point, times, DriverStatus::kNotReady, FaultClass::kNotReady});
  };
  if (is_retried(point.kind)) {
    for (const std::uint64_t times : {std::uint64_t{3}, kRetries, kRetries + 1}) add(times);
  } else if (is_query_of_work(point.kind)) {
    for (const std::uint64_t times : {std::uint64_t{1}, std::uint64_t{3}}) add(times);
  } else {
    return;
  }
  if (breadth.from_then_on) add(Fault::kAlways);
}

void add_call_faults(const Point& point, const SweepBreadth& breadth, std::vector<Fault>& faults) {
  if (!breadth.calls) return;
  for (const DriverStatus code : plausible_codes(point.kind)) {
    for (const bool after : {false, true}) {
      const bool can = point.status == DriverStatus::kSuccess && has_effect(point.kind);
      if (after && (!breadth.after || !can)) continue;
      const FaultClass how = after ? FaultClass::kDone : FaultClass::kRefused;
      faults.push_back({point, 1, code, how});
      if (breadth.from_then_on) faults.push_back({point, Fault::kAlways, code, how});
    }
    if (!breadth.every_code) break;
  }
  add_not_ready(point, breadth, faults);
  if (!breadth.contexts) return;
  for (const FaultClass how : {FaultClass::kSticky, FaultClass::kSurfacing})
    faults.push_back({point, 1, DriverStatus::kLaunchFailed, how});
}

/// What happens round the calls of one anchor rather than to one of them.
class Surroundings {
 public:
  void add(const Point& point, std::vector<Fault>& faults) {
    if (!any_ || point.anchor != anchor_) *this = Surroundings();
    any_ = true;
    anchor_ = point.anchor;
    if (point.call.hinted && !std::exchange(hint_, true))
      faults.push_back({point, 1, DriverStatus::kSuccess, FaultClass::kHint});
    const bool made = point.kind == kind_of<MemCreate> && point.status == DriverStatus::kSuccess;
    if (made && point.call.on_device && point.free_before != 0 && !std::exchange(stolen_, true))
      faults.push_back({point, 1, DriverStatus::kOutOfMemory, FaultClass::kStolen});
    if (made && point.call.rdma && !std::exchange(property_, true))
      faults.push_back({point, Fault::kAlways, DriverStatus::kNotSupported, FaultClass::kProperty});
  }

 private:
  bool any_ = false;
  std::size_t anchor_ = 0;
  bool hint_ = false;
  bool stolen_ = false;
  bool property_ = false;
};

}  // namespace

bool is_behind(const Point& first, const Point& second) {
  if (first.host == second.host) return second.at > first.at;
  return first.host ? second.host_before > first.at : second.at >= first.host_before;
}

bool Fault::is_passing() const {
  return status == DriverStatus::kNotReady && times <= kRetries && is_retried(point.kind);
}

Program without_expectations(const Program& program) {
  Program bare = program;
  for (Statement& s : bare.statements) {
    s.expected.clear();
    const bool check = s.verb == Verb::kCheck;
    if (!check && !is_expectation(s)) continue;
    Statement instead;
    instead.line = s.line;
    instead.thread = s.thread;
    instead.verb = check ? Verb::kSync : Verb::kMark;
    s = std::move(instead);
  }
  return bare;
}

std::size_t anchor_of(const Program& program, std::size_t index) {
  while (index > 0 && !program.statements[index].thread.empty() &&
         !program.statements[index - 1].thread.empty())
    --index;
  return index;
}

std::optional<std::size_t> original_of(std::size_t index, const std::vector<std::size_t>& fails) {
  std::size_t before = 0;  // `fail` statements in front
  for (const std::size_t anchor : fails) {
    if (index == anchor + before) return std::nullopt;
    if (index > anchor + before) ++before;
  }
  return index - before;
}

std::vector<Point> points_of(const Program& bare, const Watch& watch,
                             const std::vector<std::size_t>& fails) {
  std::vector<Point> points;
  Counter counter;
  std::uint64_t free_before = 0;
  for (const Span& span : watch.spans()) {
    const auto statement = original_of(span.statement, fails);
    if (!statement) continue;
    const std::size_t anchor = anchor_of(bare, *statement);
    if (counter.enter(anchor, span.host_begin)) free_before = span.free_before;
    if (!takes_back(bare, span, *statement))
      for (std::size_t i = span.first_call; i < span.end_call; ++i) {
        const SeenCall& call = watch.calls()[i];
        const std::uint64_t nth = counter.next(call.kind);
        if (call.of_library)
          points.push_back({anchor, *statement, false, call.kind, nth, i, call.host_before,
                            call.status, call, free_before});
      }
    for (std::uint64_t i = span.host_begin; i < span.host_end; ++i)
      points.push_back({anchor,
                        *statement,
                        true,
                        CallKind{},
                        i - counter.host() + 1,
                        i,
                        i,
                        DriverStatus::kSuccess,
                        {},
                        free_before});
  }
  return points;
}

std::vector<Fault> faults_of(const std::vector<Point>& points, const SweepBreadth& breadth) {
  std::vector<Fault> faults;
  Surroundings surroundings;
  for (const Point& point : points) {
    point.host ? add_host_faults(point, breadth, faults) : add_call_faults(point, breadth, faults);
    if (breadth.surroundings) surroundings.add(point, faults);
  }
  return faults;
}

namespace {

/// The statements that are no `fail`.
std::optional<Statement> surrounding_of(const Fault& fault) {
  Statement s;
  if (fault.kind == FaultClass::kHint) {
    s.verb = Verb::kIgnoreHints;
    s.operands.emplace_back(Word{"on"});
    return s;
  }
  if (fault.kind != FaultClass::kStolen) return std::nullopt;
  s.verb = Verb::kSteal;
  s.operands.emplace_back(Size::bytes(fault.point.free_before));
  return s;
}

}  // namespace

Statement statement_of(const Fault& fault) {
  if (std::optional<Statement> other = surrounding_of(fault)) return *std::move(other);
  Statement s;
  s.verb = fault.point.host ? Verb::kFailHostAlloc : Verb::kFail;
  if (!fault.point.host) s.operands.emplace_back(Word{std::string(name_of(fault.point.kind))});
  if (fault.kind == FaultClass::kProperty) {
    s.options.push_back({"if", Operand(Word{"rdma"})});
    s.options.push_back({"with", Operand(Word{std::string(name_of(fault.status))})});
    return s;
  }
  s.options.push_back({"nth", Operand(Size::bytes(fault.point.nth))});
  if (fault.times != 1)
    s.options.push_back(
        {"times",
         Operand(Word{fault.times == Fault::kAlways ? "all" : std::to_string(fault.times)})});
  if (fault.point.host) return s;
  if (fault.kind == FaultClass::kDone) s.options.push_back({"after", std::nullopt});
  if (fault.is_of_contexts()) s.options.push_back({std::string(name_of(fault.kind)), std::nullopt});
  s.options.push_back({"with", Operand(Word{std::string(name_of(fault.status))})});
  return s;
}

void FaultedProgram::place(std::vector<std::size_t> fails) {
  if (fails == fails_) return;
  fails_ = std::move(fails);
  program_.name = bare_.name;
  program_.statements.clear();
  program_.statements.reserve(bare_.statements.size() + fails_.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < bare_.statements.size(); ++i) {
    for (; next < fails_.size() && fails_[next] == i; ++next) program_.statements.emplace_back();
    program_.statements.push_back(bare_.statements[i]);
  }
}

const Program& FaultedProgram::with(const Fault& fault) {
  place({fault.point.anchor});
  program_.statements[fault.point.anchor] = statement_of(fault);
  return program_;
}

const Program& FaultedProgram::with(const Fault& first, const Fault& second) {
  place({first.point.anchor, second.point.anchor});
  program_.statements[first.point.anchor] = statement_of(first);
  program_.statements[second.point.anchor + 1] = statement_of(second);
  return program_;
}

}  // namespace granule::prop::sweep
