// Claims of statements and the luggage of threads.
#include "threads.hpp"

#include <algorithm>

namespace granule::prop {
namespace {

void add_range(const Statement& s, std::size_t index, std::vector<std::string>& names) {
  if (const auto* range = s.operand<Range>(index)) names.push_back(range->name);
}

void add_name(const Statement& s, std::size_t index, std::vector<std::string>& names) {
  if (const auto* name = s.operand<Name>(index)) names.push_back(name->text);
}

void add_all(const Statement& s, std::vector<std::string>& names) {
  for (std::size_t i = 0; i < s.operands.size(); ++i) add_name(s, i, names);
}

/// What the statement says. False: it is of a kind that runs alone.
bool claim_of_words(const Statement& s, sched::NameClaim& claim) {
  if (s.repeat || !s.host_function.empty()) return false;
  for (const std::string_view key : {"on", "at"})
    if (const auto* name = s.value<Name>(key)) claim.reads.push_back(name->text);
  if (!s.target.empty()) claim.changes.push_back(s.target);
  switch (s.verb) {
    case Verb::kAllocate:
    case Verb::kGrow:
    case Verb::kExport:
    case Verb::kImport:
    case Verb::kReserveProbe:
    case Verb::kCollect:
    case Verb::kTrim:
    case Verb::kBusy:
    case Verb::kHold:
    case Verb::kRelease:
    case Verb::kWait:
    case Verb::kSync:
      add_all(s, claim.reads);
      return true;
    case Verb::kFill:
    case Verb::kUse:
    case Verb::kCheck:
    case Verb::kCopy:
      add_range(s, 0, claim.reads);
      add_range(s, 1, claim.reads);
      return true;
    case Verb::kHolder:
      add_name(s, 0, claim.changes);
      add_name(s, 1, claim.reads);
      return true;
    case Verb::kResize:
    case Verb::kShrink:
    case Verb::kSuspend:
    case Verb::kResume:
    case Verb::kClose:
    case Verb::kDrop:
    case Verb::kUsed:
    case Verb::kMove:
    case Verb::kRecord:
    case Verb::kDestroy:
      add_all(s, claim.changes);
      return true;
    default:
      return false;
  }
}

void add_streams(const World& world, const std::string& own, const std::vector<Segment>& segments,
                 std::vector<std::string>& names) {
  if (!own.empty()) names.push_back(own);
  for (const auto& [name, object] : world.objects) {
    const auto* stream = std::get_if<StreamObject>(&object);
    if (!stream) continue;
    const bool told = std::any_of(segments.begin(), segments.end(), [&](const Segment& segment) {
      return segment.extent && segment.extent->is_told(stream->lane);
    });
    if (told) names.push_back(name);
  }
}

}  // namespace

sched::NameClaim claim_of(World& world, const Statement& s) {
  sched::NameClaim claim;
  if (!claim_of_words(s, claim)) {
    claim = {};
    claim.alone = true;
    return claim;
  }
  std::vector<std::string> named = claim.changes;
  named.insert(named.end(), claim.reads.begin(), claim.reads.end());
  for (const std::string& name : named) {
    if (const auto* buffer = world.find_as<BufferObject>(name))
      add_streams(world, buffer->stream, buffer->segments, claim.reads);
    if (const auto* holder = world.find_as<HolderObject>(name))
      add_streams(world, holder->stream, holder->segments, claim.reads);
  }
  // The last handle of a resource ends with whatever the resource is in the middle of.
  for (const std::string& name : claim.changes)
    if (world.find_as<std::shared_ptr<ResourceObject>>(name)) claim.alone = true;
  return claim;
}

ClaimScope::ClaimScope(World& world, const Statement& s) : world_(world) {
  sched::Scheduler* const scheduler = world.scheduler;
  if (!scheduler) return;
  sched::NameClaim claim = claim_of(world, s);
  for (;;) {
    scheduler->take(claim);
    sched::NameClaim now = claim_of(world, s);  // while it waited the names may have changed hands
    if (now == claim) break;
    scheduler->give_back();
    claim = std::move(now);
  }
  if (claim.alone) scheduler->settle();
  alone_at_start_ = scheduler->others_busy() == 0 && scheduler->library_rests();
  claims_ = scheduler->claims();
  turns_ = scheduler->library_turns();
}

ClaimScope::~ClaimScope() {
  if (world_.scheduler) world_.scheduler->give_back();
}

bool ClaimScope::is_alone() const {
  if (!world_.scheduler) return true;
  return alone_at_start_ && !has_company() && world_.scheduler->others_busy() == 0 &&
         world_.scheduler->library_turns() == turns_;
}

bool ClaimScope::has_company() const {
  return world_.scheduler && world_.scheduler->claims() != claims_;
}

bool ClaimScope::had_library_turns() const {
  return world_.scheduler && world_.scheduler->library_turns() != turns_;
}

bool ClaimScope::is_quiet() const {
  if (!world_.scheduler) return true;
  return world_.scheduler->others_busy() == 0 && world_.scheduler->may_settle() &&
         world_.scheduler->others_busy() == 0;
}

PinScope::PinScope(World& world) : world_(world) {
  if (world_.scheduler) world_.scheduler->pin(true);
}
PinScope::~PinScope() {
  if (world_.scheduler) world_.scheduler->pin(false);
}

void ThreadLuggage::change(sched::ThreadIndex from, sched::ThreadIndex to) {
  if (pieces_.size() <= std::max(from, to)) pieces_.resize(std::max(from, to) + 1);
  Piece& left = pieces_[from];
  left.marks = exchange_thread_marks({});
  left.statement = world_.statement;
  left.counter = world_.sizes.counter;
  left.in_host_function = world_.in_host_function;
  left.last_failed = world_.last_failed;
  left.traffic = world_.driver().traffic;
  left.number = world_.present_thread;
  left.known = true;
  Piece& taken = pieces_[to];
  if (!taken.known) taken.number = kLibraryThread + to;  // until it enters a block of the program
  exchange_thread_marks(taken.marks);
  world_.statement = taken.statement;
  world_.sizes.counter = taken.counter;
  world_.in_host_function = taken.in_host_function;
  world_.last_failed = taken.last_failed;
  world_.driver().traffic = taken.traffic;
  world_.set_thread(taken.number);
}

bool needs_scheduler(const Program& program, const RunOptions& options) {
  if (options.make_machine) return false;  // a device's threads cannot be told when to run
  return std::any_of(program.statements.begin(), program.statements.end(), [&](const Statement& s) {
    const bool threads = !s.thread.empty() && options.interleave.how != Interleave::kStatements;
    return threads || (s.verb == Verb::kResourceVmm && s.has("worker"));
  });
}

}  // namespace granule::prop
