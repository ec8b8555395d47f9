// The loop of a run: needs, order of threads, repeats, what each reply means for the run.
#include <algorithm>
#include <deque>

#include <granule/prop/rng.hpp>
#include <granule/prop/text.hpp>

#include "../sched/host_order.hpp"
#include "cell.hpp"
#include "invariants.hpp"
#include "judge.hpp"
#include "outcome.hpp"
#include "prepare.hpp"
#include "run_once.hpp"
#include "threads.hpp"
#include "world.hpp"

namespace granule::prop {
namespace {

/// Runs statements in order and judges their replies.
class Runner {
 public:
  explicit Runner(World& world)
      : world_(world), rng_(world.options.thread_seed, 0x7EAD), judge_(world) {}

  void run_all() {
    const auto& statements = world_.program.statements;
    std::size_t at = 0;
    while (at < statements.size() && !stopped_) {
      if (statements[at].thread.empty()) {
        run_statement(at++);
        continue;
      }
      std::size_t end = at;
      while (end < statements.size() && !statements[end].thread.empty()) ++end;
      if (world_.scheduler) {
        run_fibres(at, end);
      } else {
        run_threads(at, end);
      }
      at = end;
    }
    enter_thread("");
  }

 private:
  /// The statements of each thread of neighbouring blocks, threads in order of appearance.
  std::vector<std::deque<std::size_t>> queues_of(std::size_t begin, std::size_t end) const {
    std::vector<std::deque<std::size_t>> queues;
    std::vector<std::string_view> names;
    for (std::size_t i = begin; i < end; ++i) {
      const std::string& name = world_.program.statements[i].thread;
      std::size_t k = 0;
      while (k < names.size() && names[k] != name) ++k;
      if (k == names.size()) {
        names.push_back(name);
        queues.emplace_back();
      }
      queues[k].push_back(i);
    }
    return queues;
  }

  /// One fibre a thread; the scheduler changes between them where the library passes the seam.
  void run_fibres(std::size_t begin, std::size_t end) {
    std::vector<sched::ThreadIndex> fibres;
    for (std::deque<std::size_t>& queue : queues_of(begin, end)) {
      const std::string name = world_.program.statements[queue.front()].thread;
      fibres.push_back(world_.scheduler->start(name, [this, queue = std::move(queue)] {
        for (const std::size_t index : queue)
          if (!stopped_) run_statement(index);
      }));
    }
    for (const sched::ThreadIndex fibre : fibres) world_.scheduler->join(fibre);
    if (stopped_ || world_.sticky || world_.options.checking == Checking::kNone) return;
    world_.statement = end - 1;
    world_.scheduler->settle();
    const PinScope pinned(world_);
    if (auto failure = check_invariants(world_, nullptr, true)) {
      failure->statement = world_.statement;
      fail(std::move(*failure));
    }
  }

  void run_threads(std::size_t begin, std::size_t end) {
    std::vector<std::deque<std::size_t>> queues = queues_of(begin, end);
    std::size_t turn = 0;
    while (!queues.empty() && !stopped_) {
      if (world_.options.thread_seed != 0) turn = rng_.below(queues.size());
      turn %= queues.size();
      run_statement(queues[turn].front());
      queues[turn].pop_front();
      if (queues[turn].empty()) {
        queues.erase(queues.begin() + static_cast<std::ptrdiff_t>(turn));
      } else {
        ++turn;
      }
    }
  }

  void enter_thread(const std::string& name) {
    ThreadState& state = world_.threads[name];
    if (!name.empty() && state.number == 0)
      state.number = static_cast<std::uint32_t>(world_.threads.size());
    world_.set_thread(state.number);
    if (state.started || name.empty()) return;
    state.started = true;
    if (world_.without_context) return;
    const ThreadScope number(state.number);
    CtxSetCurrent current;
    current.context = world_.primary;
    world_.harness_call(current);
  }

  void run_statement(std::size_t index) {
    const Statement& s = world_.program.statements[index];
    world_.statement = index;
    const ClaimScope claim(world_, s);
    if (stopped_) return;  // another thread has failed meanwhile
    enter_thread(s.thread);
    const ThreadScope number(world_.threads[s.thread].number);
    if (!s.repeat) return perform(s, claim);
    for (std::uint64_t i = s.repeat->first; i <= s.repeat->last && !stopped_; ++i) {
      world_.sizes.counter = i;
      perform(s, claim);
    }
    world_.sizes.counter = 0;
  }

  void perform(const Statement& s, const ClaimScope& claim) {
    Tap& tap = world_.driver();
    const Tap::Counts counts = tap.counts();
    std::optional<fault::FaultBackend::Saved> faults;
    if (world_.any_fault) faults = world_.faults->save();
    tap.traffic = {};
    ++world_.report.executed;
    const bool watched = world_.options.checking != Checking::kNone;
    Foreseen before = watched ? foresee(world_, s) : Foreseen{};
    const std::uint64_t fired = world_.faults->fired_in_all();
    const std::uint64_t lost = lost_contexts(world_);
    const std::uint64_t followed = world_.machine->followed();
    RunObserver* observer = world_.options.observer;
    if (observer) observer->before(world_, world_.statement);
    const Reply reply = execute(world_, s);
    if (observer) observer->after(world_, world_.statement, reply);
    const bool took_over = world_.machine->followed() != followed;
    before.hindered = world_.faults->fired_in_all() != fired;
    if (before.hindered) world_.fault_fired = true;
    const bool alone_so_far = claim.is_alone();
    const bool quiet = claim.is_quiet();  // other threads may go on in here
    const bool alone = alone_so_far && !claim.has_company();
    const PinScope pinned(world_);
    if (!alone) forget_foreseen(before);
    if (claim.had_library_turns()) before.need = 0;  // what is free by now was not then
    if (!alone || !quiet) world_.visible.clear();
    // What would block may have begun: its memory stays until it can go on.
    if (!alone || !quiet || reply.kind == Reply::Kind::kWouldBlock) world_.figures.reset();
    const std::uint64_t lost_now = lost_contexts(world_) - lost;
    // What was queued in lost contexts is lost too, whoever's call lost them: also one that would
    // block, or of a worker's turn since the last statement.
    if (lost_contexts(world_) != 0) world_.sticky = true;
    const std::uint64_t fired_now = world_.faults->fired_in_all() - fired;
    if (reply.kind == Reply::Kind::kWouldBlock && alone) {
      tap.restore(counts);
      if (faults) world_.faults->restore(*faults);
    }
    if (is_sticky(tap.traffic.sticky)) {
      world_.sticky = true;
      // A status that was made up ends no work; contexts that were lost do.
      world_.misled = world_.misled || fired_now > lost_now;
    }
    world_.last_failed = !reply.success();
    note(s, reply);
    if (stopped_) return;
    if (auto failure = judge_.judge(s, reply, took_over)) return fail(std::move(*failure));
    if (world_.report.status == RunStatus::kUnmet) {
      stopped_ = true;
      return;
    }
    if (reply.kind == Reply::Kind::kSkipped) return;
    if (world_.sticky) return check_after_loss(watched && quiet);
    if (auto failure = check_landings(world_, false)) return fail(std::move(*failure));
    if (!watched) return;
    auto failure = check_outcome(world_, s, reply, before);
    restore_context();
    if (!failure && !quiet) return;  // others are at work: the figures need not agree just now
    const bool full = world_.options.checking == Checking::kFull;
    if (!failure) failure = check_invariants(world_, &s, full);
    if (failure) fail_here(std::move(*failure));
  }

  /// Of a machine whose contexts are lost: the library still knows what it holds.
  void check_after_loss(bool watched) {
    restore_context();
    if (!watched || world_.misled || !world_.machine->is_model()) return;
    if (auto failure = check_holdings(world_)) fail_here(std::move(*failure));
  }

  void fail_here(Failure failure) {
    failure.statement = world_.statement;
    fail(std::move(failure));
  }

  /// Others were at work meanwhile: what was there before explains nothing.
  static void forget_foreseen(Foreseen& before) {
    before.need = 0;
    before.room_behind = false;
    before.input_size = UINT64_MAX;
    before.capturing.clear();  // a `sync` of the program may have ended it
  }

  /// Where injected faults kept the library from putting the caller's context back.
  void restore_context() {
    for (std::int32_t& left = world_.driver().traffic.contexts; left > 0; --left) {
      CtxPopCurrent pop;
      world_.harness_call(pop);
    }
  }

  void note(const Statement& s, const Reply& reply) {
    RunReport& report = world_.report;
    if (reply.kind == Reply::Kind::kSkipped) {
      ++report.skipped_count;
      constexpr std::size_t kMost = 100;
      if (report.skipped.size() < kMost)
        report.skipped.push_back(std::to_string(s.line.number) + ": " + prop::to_text(s) + ": " +
                                 reply.why);
    }
    if (world_.options.cells) report.cells.push_back(cell_of(world_, s.verb, reply));
    if (world_.options.keep_steps)
      report.steps.push_back({world_.statement, prop::to_text(reply),
                              reply.kind == Reply::Kind::kSkipped,
                              reply.kind == Reply::Kind::kWouldBlock});
  }

  void fail(Failure failure) {
    if (failure.line == 0 && failure.statement < world_.program.statements.size())
      failure.line = world_.program.statements[failure.statement].line.number;
    world_.report.status = RunStatus::kFailed;
    world_.report.failure = std::move(failure);
    stopped_ = true;
  }

  World& world_;
  Rng rng_;
  Judge judge_;
  bool stopped_ = false;
};

void close_report(World& world) {
  RunReport& report = world.report;
  report.calls = world.driver().calls();
  report.model_calls = world.oracle().calls();
  report.host_allocs = world.host_memory.allocations();
  report.faults_fired = world.faults->fired_in_all();
  report.fired_by_class = world.faults->fired_by_class();
  const auto count = [&](fault::FaultClass kind) -> std::uint64_t& {
    return report.fired_by_class[static_cast<std::size_t>(kind)];
  };
  count(fault::FaultClass::kStolen) = world.stolen;
  count(fault::FaultClass::kHost) = world.host_memory.failed();
  report.warnings = world.sink.reports.size();
  report.followed = world.followed_count + world.machine->followed();
}

/// A difference that shows while everything is given back hides what it led to.
void fail_at_end(World& world, MachineFinding found) {
  Failure failure;
  failure.kind = Failure::Kind::kDiverged;
  failure.statement = world.program.statements.size();
  failure.signature = "diverged " + found.signature;
  failure.message = std::move(found.message);
  world.report.status = RunStatus::kFailed;
  world.report.failure = std::move(failure);
}

RunReport run_in(World& world) {
  const Program& program = world.program;
  const RunOptions& options = world.options;
  world.report.unmet = unmet_needs(world);
  if (!world.report.unmet.empty()) {
    world.report.status = RunStatus::kUnmet;
    return std::move(world.report);
  }
  start(world);
  Runner(world).run_all();
  if (options.inspect) options.inspect(world);
  if (world.report.status != RunStatus::kFailed && options.finish) {
    world.statement = program.statements.size();
    if (world.scheduler) world.scheduler->settle();
    const PinScope pinned(world);  // a worker runs where its end is waited for
    if (auto failure = finish(world)) {
      failure->statement = program.statements.size();
      world.report.status = RunStatus::kFailed;
      world.report.failure = std::move(*failure);
    }
    if (auto found = world.machine->after_statement()) fail_at_end(world, std::move(*found));
  }
  close_report(world);
  return std::move(world.report);
}

}  // namespace

RunReport run_once(const Program& program, const RunOptions& options) {
  if (needs_scheduler(program, options)) return run_scheduled(program, options, run_in);
  World world(program, options);
  return run_in(world);
}

}  // namespace granule::prop
