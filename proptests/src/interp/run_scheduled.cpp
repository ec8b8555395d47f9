// A run on fibres of the calling thread; and what becomes of one whose threads get stuck.
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "threads.hpp"

namespace granule::prop {
namespace {

/// A world whose threads got stuck in the middle of something: nothing of it can be given back. It
/// stays reachable, so that a leak checker sees that this is meant.
void abandon(std::unique_ptr<World> world) {
  static std::mutex mutex;
  static std::vector<std::unique_ptr<World>>& abandoned = *new std::vector<std::unique_ptr<World>>;
  const std::lock_guard lock(mutex);
  abandoned.push_back(std::move(world));
}

void fail_stuck(RunReport& report, const Program& program, std::size_t statement,
                const sched::ThreadFinding& stuck) {
  Failure failure;
  failure.kind = Failure::Kind::kThreads;
  failure.statement = statement;
  if (statement < program.statements.size())
    failure.line = program.statements[statement].line.number;
  failure.signature = stuck.signature;
  failure.message = stuck.message;
  report.status = RunStatus::kFailed;
  report.failure = std::move(failure);
}

void note_stuck(World& world, const sched::ThreadFinding& stuck) {
  if (world.options.inspect) world.options.inspect(world);
  if (world.report.status != RunStatus::kFailed)
    fail_stuck(world.report, world.program, world.statement, stuck);
}

}  // namespace

RunReport run_scheduled(const Program& program, const RunOptions& options,
                        RunReport (*run_in)(World& world)) {
  std::vector<ThreadChoice> choices;
  // A stuck world may keep what it was made over.
  auto scheduler = std::make_unique<sched::Scheduler>(
      sched::make_policy(options.interleave, options.thread_seed, choices));
  std::unique_ptr<World> world;
  std::unique_ptr<ThreadLuggage> luggage;
  RunReport report;
  const ThreadMarks marks = exchange_thread_marks({});
  try {
    scheduler->run([&] {
      world = std::make_unique<World>(program, options, scheduler.get());
      luggage = std::make_unique<ThreadLuggage>(*world);
      scheduler->on_change = [&](sched::ThreadIndex from, sched::ThreadIndex to) {
        luggage->change(from, to);
      };
      report = run_in(*world);
      world.reset();
    });
  } catch (...) {
    exchange_thread_marks(marks);
    if (world) abandon(std::move(world));
    scheduler->abandon();
    scheduler.release();  // NOLINT(bugprone-unused-return-value): the world's objects know it
    throw;
  }
  exchange_thread_marks(marks);
  if (scheduler->is_stuck()) {
    if (world) {
      note_stuck(*world, scheduler->stuck());
      report = std::move(world->report);
      abandon(std::move(world));
    } else if (report.status != RunStatus::kFailed) {
      fail_stuck(report, program, program.statements.size(), scheduler->stuck());
    }
    scheduler->abandon();
    scheduler.release();  // NOLINT(bugprone-unused-return-value)
  }
  report.choices = std::move(choices);
  return report;
}

}  // namespace granule::prop
