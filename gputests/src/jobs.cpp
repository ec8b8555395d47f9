// Classes of programs, and outcomes as lines for the pipe between processes.
#include "jobs.hpp"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

namespace granule::gpu {
namespace {

constexpr std::array kKinds{std::string_view("clean"),  std::string_view("unmet"),
                            std::string_view("failed"), std::string_view("diverged"),
                            std::string_view("hang"),   std::string_view("crash"),
                            std::string_view("unfit")};

bool touches_process(const prop::Statement& s) {
  using prop::Verb;
  switch (s.verb) {
    case Verb::kContext: {
      // What the thread has is put back between programs; a context of its own is made elsewhere.
      const auto* name = s.operand<prop::Name>(0);
      return name == nullptr || (name->text != "none" && name->text != "primary");
    }
    case Verb::kCuCtxCreate:
    case Verb::kCuCtxDestroy:
    case Verb::kCuDevicePrimaryCtxRetain:
    case Verb::kCuDevicePrimaryCtxRelease:
    case Verb::kCuDevicePrimaryCtxReset:
    case Verb::kCuDeviceSetMemPool:
      return true;
    default:
      return false;
  }
}

bool expects_fault(const prop::Statement& s) {
  return std::any_of(s.expected.begin(), s.expected.end(), [](const prop::Outcome& o) {
    for (const std::string* text : {&o.word, &o.detail})
      if (*text == "CUDA_ERROR_ILLEGAL_ADDRESS" || *text == "CUDA_ERROR_LAUNCH_FAILED" ||
          *text == "CUDA_ERROR_CONTEXT_IS_DESTROYED")
        return true;
    return false;
  });
}

}  // namespace

std::string_view name_of(Outcome::Kind kind) noexcept {
  return kKinds[static_cast<std::size_t>(kind)];
}

std::string to_line(const Outcome& o) {
  return nlohmann::json{{"kind", std::string(name_of(o.kind))},
                        {"signature", o.signature},
                        {"message", o.message},
                        {"name", o.name},
                        {"program", o.program},
                        {"calls", o.calls},
                        {"followed", o.followed},
                        {"skipped", o.skipped},
                        {"statements", o.statements},
                        {"seconds", o.seconds}}
      .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

bool from_line(std::string_view line, Outcome& outcome) {
  const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object()) return false;
  const std::string kind = json.value("kind", "");
  const auto found = std::find(kKinds.begin(), kKinds.end(), kind);
  if (found == kKinds.end()) return false;
  outcome.kind = static_cast<Outcome::Kind>(found - kKinds.begin());
  outcome.signature = json.value("signature", "");
  outcome.message = json.value("message", "");
  outcome.name = json.value("name", "");
  outcome.program = json.value("program", "");
  outcome.calls = json.value("calls", std::uint64_t{0});
  outcome.followed = json.value("followed", std::uint64_t{0});
  outcome.skipped = json.value("skipped", std::uint64_t{0});
  outcome.statements = json.value("statements", std::uint64_t{0});
  outcome.seconds = json.value("seconds", 0.0);
  return true;
}

bool needs_process(const prop::Program& program) {
  const auto has = [&](prop::Verb verb) {
    return std::any_of(program.statements.begin(), program.statements.end(),
                       [&](const prop::Statement& s) { return s.verb == verb; });
  };
  // What a capture forbids outlasts its stream.
  if (has(prop::Verb::kBeginCapture) && has(prop::Verb::kDestroy)) return true;
  return std::any_of(program.statements.begin(), program.statements.end(),
                     [](const prop::Statement& s) {
                       return touches_process(s) || expects_fault(s) || !s.host_function.empty();
                     });
}

void shorten_waits(prop::Program& program, std::uint64_t times) {
  for (prop::Statement& s : program.statements) {
    if (s.verb != prop::Verb::kPause && s.verb != prop::Verb::kBusy) continue;
    for (prop::Operand& operand : s.operands)
      if (auto* duration = std::get_if<prop::Duration>(&operand)) duration->nanoseconds /= times;
  }
}

std::string leading_context(const prop::Program& program) {
  for (const prop::Statement& s : program.statements) {
    if (s.verb == prop::Verb::kNeeds || s.verb == prop::Verb::kDevice) continue;
    const auto* name = s.verb == prop::Verb::kContext ? s.operand<prop::Name>(0) : nullptr;
    if (name != nullptr && (name->text == "never" || name->text == "no_init")) return name->text;
    return {};
  }
  return {};
}

}  // namespace granule::gpu
