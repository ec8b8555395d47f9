// Comparing the answers of a faulted run with those without.
#include "verdict.hpp"

#include <algorithm>

#include <granule/backend_api/result.hpp>

namespace granule::prop::sweep {
namespace {

Outcome word_outcome(std::string_view word) {
  Outcome outcome;
  outcome.word = std::string(word);
  return outcome;
}

Outcome error_outcome(std::string_view word, std::string_view detail = {}) {
  Outcome outcome;
  outcome.kind = Outcome::Kind::kError;
  outcome.word = std::string(word);
  outcome.detail = std::string(detail);
  return outcome;
}

bool is_capture_status(DriverStatus status) {
  return status >= DriverStatus::kStreamCaptureUnsupported &&
         status <= DriverStatus::kStreamCaptureWrongThread;
}

/// The errors by which a caller is told of that fault.
std::vector<Outcome> errors_of(const Fault& fault) {
  if (fault.point.host)
    return {error_outcome(name_of(ErrorCode::kOutOfMemory), name_of(Exhausted::kHost))};
  if (fault.kind == FaultClass::kHint) return {error_outcome(name_of(ErrorCode::kOutOfMemory))};
  std::vector<Outcome> errors{error_outcome(name_of(ErrorCode::kDriver), name_of(fault.status))};
  if (fault.status == DriverStatus::kOutOfMemory)
    errors.push_back(error_outcome(name_of(ErrorCode::kOutOfMemory)));
  if (fault.status == DriverStatus::kNotSupported || fault.status == DriverStatus::kNotPermitted)
    errors.push_back(error_outcome(name_of(ErrorCode::kUnsupported)));
  if (is_capture_status(fault.status)) {  // or what a capture holds back was wanted
    errors.push_back(error_outcome(name_of(ErrorCode::kCapturing)));
    errors.push_back(error_outcome(name_of(ErrorCode::kOutOfMemory)));
  }
  return errors;
}

bool is_among(const Answer& answer, const std::vector<Outcome>& errors) {
  if (answer.kind != Reply::Kind::kError) return false;
  return std::any_of(errors.begin(), errors.end(), [&](const Outcome& o) {
    return answer.word == o.word && (o.detail.empty() || answer.detail == o.detail);
  });
}

std::string in_words(const Answer& answer) {
  if (answer.success()) return answer.word.empty() ? "ok" : std::string(answer.word);
  std::string text = answer.kind == Reply::Kind::kError ? "error " : "";
  text += answer.word;
  return answer.detail.empty() ? text : text + ":" + std::string(answer.detail);
}

std::string cause_of(const Fault& fault) {
  if (fault.kind == FaultClass::kHint) return "a hint that was not honoured";
  if (fault.kind == FaultClass::kStolen) return "memory that another tenant had taken";
  if (fault.is_of_contexts())
    return "contexts that were lost with " + std::string(name_of(fault.status));
  return fault.point.host ? "a host allocation that failed"
                          : std::string(name_of(fault.point.kind)) + ", which answered " +
                                std::string(name_of(fault.status));
}

}  // namespace

namespace {

/// What a call shows of a fault that is not of contexts or host memory.
bool shows(const SeenCall& call, const Fault& fault) {
  if (fault.kind == FaultClass::kHint) return call.elsewhere;
  return call.kind == fault.point.kind && call.status == fault.status;
}

}  // namespace

bool has_fired(const Fault& fault, const Watch& watch, const std::vector<std::size_t>& fails) {
  return std::any_of(watch.spans().begin(), watch.spans().end(), [&](const Span& span) {
    const auto statement = original_of(span.statement, fails);
    // Whether anything is refused for it depends on what the library can give back.
    if (fault.kind == FaultClass::kStolen) return !statement && span.answer.success();
    if (!statement || *statement < fault.point.anchor) return false;
    if (fault.point.host) return span.host_failed != 0;
    if (fault.is_of_contexts()) return span.lost != 0;
    const auto begin = watch.calls().begin();
    return std::any_of(begin + static_cast<std::ptrdiff_t>(span.first_call),
                       begin + static_cast<std::ptrdiff_t>(span.end_call),
                       [&](const SeenCall& call) { return shows(call, fault); });
  });
}

bool have_fired(const Fault& first, const Fault& second, const Watch& watch,
                const std::vector<std::size_t>& fails) {
  if (!has_fired(first, watch, fails) || !has_fired(second, watch, fails)) return false;
  if (!first.point.host || !second.point.host) return true;
  std::uint64_t failed = 0;
  for (const Span& span : watch.spans()) failed += span.host_failed;
  return failed >= 2;
}

std::vector<Answer> answers_of(std::size_t statements, const Watch& watch,
                               const std::vector<std::size_t>& fails) {
  std::vector<Answer> answers(statements);
  for (const Span& span : watch.spans()) {
    const auto statement = original_of(span.statement, fails);
    if (!statement) continue;
    Answer& answer = answers[*statement];
    if (answer.kind == Reply::Kind::kSkipped || !span.answer.success()) answer = span.answer;
  }
  return answers;
}

std::optional<WrongAnswer> judge_one(const Fault& fault, const std::vector<Answer>& base,
                                     const std::vector<Answer>& answers) {
  const std::size_t at = fault.point.statement;
  const Answer& before = base[at];
  const Answer& now = answers[at];
  if (fault.is_passing()) {
    if (now.same_as(before) || !before.success()) return std::nullopt;
    const std::string_view word = before.word.empty() ? std::string_view("ok") : before.word;
    return WrongAnswer{at,
                       {word_outcome(word)},
                       "a call that was not ready " + std::to_string(fault.times) +
                           " times is to be made again, unnoticed; the statement gave " +
                           in_words(now)};
  }
  if (!before.success() || now.kind != Reply::Kind::kError) return std::nullopt;
  std::vector<Outcome> allowed = errors_of(fault);
  if (is_among(now, allowed)) return std::nullopt;
  // Something on the way to more room failed, and was reported there: then there is no room.
  if (now.reported && now.word == name_of(ErrorCode::kOutOfMemory)) return std::nullopt;
  allowed.insert(allowed.begin(), word_outcome("ok"));
  return WrongAnswer{
      at, std::move(allowed),
      "the first error was that of " + cause_of(fault) + "; reported was " + in_words(now)};
}

std::optional<WrongAnswer> judge_two(const Fault& first, const Fault& second,
                                     const std::vector<Answer>& base,
                                     const std::vector<Answer>& alone,
                                     const std::vector<Answer>& answers) {
  const std::size_t at = first.point.statement;
  const std::vector<Outcome> allowed = errors_of(first);
  if (second.point.statement != at || !base[at].success() || !is_among(alone[at], allowed))
    return std::nullopt;
  if (answers[at].same_as(alone[at])) return std::nullopt;
  return WrongAnswer{at,
                     {error_outcome(alone[at].word, alone[at].detail)},
                     "the first error was that of " + cause_of(first) + "; after a second fault, " +
                         cause_of(second) + ", the statement gave " + in_words(answers[at])};
}

}  // namespace granule::prop::sweep
