// What a failure is called, and how a person is told of it.
#include <granule/prop/run.hpp>
#include <granule/prop/text.hpp>

namespace granule::prop {

std::string_view name_of(Failure::Kind kind) noexcept {
  switch (kind) {
    case Failure::Kind::kResult:
      return "result";
    case Failure::Kind::kExpect:
      return "expect";
    case Failure::Kind::kSkipped:
      return "skipped";
    case Failure::Kind::kUndefined:
      return "undefined";
    case Failure::Kind::kContents:
      return "contents";
    case Failure::Kind::kInvariant:
      return "invariant";
    case Failure::Kind::kViolation:
      return "violation";
    case Failure::Kind::kFinish:
      return "finish";
    case Failure::Kind::kRequire:
      return "require";
    case Failure::Kind::kDiverged:
      return "diverged";
    case Failure::Kind::kThreads:
      return "threads";
  }
  return "result";
}

std::string describe(const Program& program, const Failure& failure) {
  std::string text = failure.line == 0 ? "at the end" : "line " + std::to_string(failure.line);
  if (failure.statement < program.statements.size())
    text += ": " + to_text(program.statements[failure.statement]);
  return text + "\n  " + std::string(name_of(failure.kind)) + ": " + failure.message;
}

}  // namespace granule::prop
