// Divergences, expectations, misuse, and what threads do to each other.
#include "judge.hpp"

#include <algorithm>
#include <utility>

#include <granule/prop/text.hpp>

#include "../sched/host_order.hpp"
#include "../sched/scheduler.hpp"
#include "outcome.hpp"

namespace granule::prop {
namespace {

/// Expectations of counts, sizes and equality of addresses, which other places change.
bool depends_on_places(Verb verb) {
  switch (verb) {
    case Verb::kExpectFree:
    case Verb::kExpectReservations:
    case Verb::kExpectHandles:
    case Verb::kExpectMappings:
    case Verb::kExpectMapped:
    case Verb::kExpectCalls:
    case Verb::kExpectSame:
    case Verb::kExpectDiffer:
    case Verb::kExpectStat:
      return true;
    default:
      return false;
  }
}

/// True if the statement says that it meets a kernel fault.
bool names_fault(const Statement& s) {
  return std::any_of(s.expected.begin(), s.expected.end(), [](const Outcome& o) {
    return o.word == "CUDA_ERROR_ILLEGAL_ADDRESS" || o.detail == "CUDA_ERROR_ILLEGAL_ADDRESS" ||
           o.word == "undefined";
  });
}

/// The place of a buffer, or of a decoy, is another one than the program says.
bool is_placed_elsewhere(const Statement& s, const Reply& reply) {
  const auto is_place = [](std::string_view word) { return word == "kept" || word == "moved"; };
  if (reply.kind == Reply::Kind::kSkipped) return s.verb == Verb::kDecoy;
  return reply.kind == Reply::Kind::kWord && is_place(reply.word) &&
         std::any_of(s.expected.begin(), s.expected.end(),
                     [&](const Outcome& o) { return is_place(o.word); });
}

}  // namespace

Judge::Judge(World& world) : world_(world) {
  for (const Statement& s : world.program.statements) {
    if (s.verb == Verb::kExpectViolation) tolerated_.push_back(s.operand<Word>(0)->text);
    uses_library_ = uses_library_ || s.verb == Verb::kResourceVmm ||
                    s.verb == Verb::kResourcePool || s.verb == Verb::kResourceRecycler;
  }
}

std::optional<Failure> Judge::judge(const Statement& s, const Reply& reply, bool took_over) {
  if (auto found = of_machine()) return found;
  if (auto found = of_reply(s, reply, took_over)) return found;
  if (world_.report.status == RunStatus::kUnmet) return std::nullopt;
  if (auto found = of_findings(s)) return found;
  return of_threads(s, reply);
}

Failure Judge::failure(Failure::Kind kind, std::string signature, std::string message) const {
  Failure failure;
  failure.kind = kind;
  failure.statement = world_.statement;
  failure.signature = std::move(signature);
  failure.message = std::move(message);
  return failure;
}

/// The driver's answers have left what the oracle allows.
std::optional<Failure> Judge::of_machine() const {
  auto found = world_.machine->after_statement();
  if (!found) return std::nullopt;
  return failure(Failure::Kind::kDiverged, "diverged " + found->signature,
                 std::move(found->message));
}

/// On hardware and under other verdicts the places are the driver's: what a program says of them,
/// and of what follows from them, gives way to the ledger. True if the reply may stand although
/// it is not the expected one.
bool Judge::follows(const Statement& s, const Reply& reply, bool took_over) const {
  const model::Verdict verdict = world_.oracle().config().verdict;
  const bool model = world_.machine->is_model();
  if (model && verdict == model::Verdict::kExact) return false;
  const bool worst = model && verdict == model::Verdict::kAdversarial;
  if (reply.kind != Reply::Kind::kFailed && reply.kind != Reply::Kind::kSkipped &&
      matches(world_, s, reply))
    return false;
  // The oracle took over a choice of the driver in this statement: how much of the last free
  // memory there is, for one. It has judged the answer already.
  if (!model && took_over && reply.kind != Reply::Kind::kContents) {
    world_.followed = true;
    ++world_.followed_count;
    return true;
  }
  const bool placed = is_placed_elsewhere(s, reply);
  if (placed) world_.followed = true;
  const bool counts = depends_on_places(s.verb) && reply.kind == Reply::Kind::kFailed;
  if (!placed && !((world_.followed || worst) && counts)) return false;
  ++world_.followed_count;
  return true;
}

std::optional<Failure> Judge::of_reply(const Statement& s, const Reply& reply,
                                       bool took_over) const {
  const std::string verb(spelling_of(s.verb));
  if (follows(s, reply, took_over)) return std::nullopt;
  switch (reply.kind) {
    case Reply::Kind::kSkipped:
      if (!world_.options.strict) return std::nullopt;
      return failure(Failure::Kind::kSkipped, "skipped " + verb, "skipped: " + reply.why);
    case Reply::Kind::kFailed:
      return failure(Failure::Kind::kExpect, verb, reply.why);
    case Reply::Kind::kContents:
      return failure(Failure::Kind::kContents, "contents " + verb, reply.why);
    case Reply::Kind::kUnmet:
      return unmet_require(reply);
    default:
      break;
  }
  if (matches(world_, s, reply)) return std::nullopt;
  const bool tolerated = world_.options.withhold_undefined || world_.misled;
  if (reply.kind == Reply::Kind::kUndefined && tolerated) return std::nullopt;
  if (reply.kind == Reply::Kind::kUndefined)
    return failure(Failure::Kind::kUndefined, "undefined " + verb,
                   "the driver would crash, or answer anything, on this call");
  const std::string got = prop::to_text(reply);
  const std::string kind = reply.kind == Reply::Kind::kValues ? "a value" : got;
  return failure(Failure::Kind::kResult, verb + " gave " + kind,
                 "expected " + prop::to_text(s.expected) + ", got " + got +
                     (reply.why.empty() ? "" : " (" + reply.why + ")"));
}

std::optional<Failure> Judge::unmet_require(const Reply& reply) const {
  const bool placed =
      world_.machine->is_model() && world_.oracle().config().verdict == model::Verdict::kExact;
  if (placed) return failure(Failure::Kind::kRequire, "require", reply.why);
  world_.report.status = RunStatus::kUnmet;
  world_.report.unmet = reply.why;
  return std::nullopt;
}

bool Judge::is_misuse(const Finding& finding, const Statement& s) const {
  const auto kind = finding.violation.kind;
  for (const std::string& word : tolerated_)
    if (word == name_of(kind)) return false;
  const bool library = finding.origin == CallOrigin::kLibrary;
  if (world_.misled) return false;
  switch (kind) {
    case model::ViolationKind::kUnportable:  // a second try of what was done behind its back
      return library && !world_.any_orphan();
    case model::ViolationKind::kUnmappedUse:
    case model::ViolationKind::kNoAccess:
      return uses_library_ && !names_fault(s) && !world_.misused;
    case model::ViolationKind::kUnorderedFree:
      return library && !world_.misused;
    default:
      return library;
  }
}

std::optional<Failure> Judge::of_findings(const Statement& s) {
  for (Finding& finding : world_.driver().take_findings())
    world_.findings.push_back(std::move(finding));
  for (; judged_ < world_.findings.size(); ++judged_) {
    const Finding& finding = world_.findings[judged_];
    if (!is_misuse(finding, s)) continue;
    const std::string kind(name_of(finding.violation.kind));
    return failure(Failure::Kind::kViolation, "violation " + kind,
                   kind + ": " + finding.violation.message);
  }
  return std::nullopt;
}

/// Threads did something to each other that no order between them allows.
std::optional<Failure> Judge::of_threads(const Statement& s, const Reply& reply) const {
  if (!world_.scheduler) return std::nullopt;
  const bool makes = s.verb == Verb::kAllocate || s.verb == Verb::kGrow || s.verb == Verb::kImport;
  const auto* made = makes && reply.success() ? world_.find_as<BufferObject>(s.target) : nullptr;
  if (made && made->buffer && !made->buffer->is_closed())
    world_.threaded->order().expect_known(made->buffer->ptr().value, made->buffer->size());
  for (sched::ThreadFinding& finding : world_.scheduler->take_findings()) {
    if (world_.misled) continue;
    return failure(Failure::Kind::kThreads, std::move(finding.signature),
                   std::move(finding.message));
  }
  return std::nullopt;
}

}  // namespace granule::prop
