// Comparing what a statement gave with what the program says it must give.
#include "world.hpp"

namespace granule::prop {
namespace {

bool word_matches(World& world, const Outcome& outcome, const Reply& reply) {
  if (outcome.word == "ok") return reply.success();
  if (outcome.word == "would_block") return reply.kind == Reply::Kind::kWouldBlock;
  if (outcome.word == "undefined") return reply.kind == Reply::Kind::kUndefined;
  switch (reply.kind) {
    case Reply::Kind::kWord:
    case Reply::Kind::kDriverError:
      return reply.word == outcome.word;
    case Reply::Kind::kValues: {
      const auto value = world.value_of(outcome.word);
      return value && reply.count == 1 && reply.values[0] == *value;
    }
    default:
      return false;
  }
}

bool error_matches(const Outcome& outcome, const Reply& reply) {
  if (outcome.word == "driver" && reply.kind == Reply::Kind::kDriverError)
    return outcome.detail.empty() || outcome.detail == reply.word;
  return reply.kind == Reply::Kind::kError && reply.word == outcome.word &&
         (outcome.detail.empty() || outcome.detail == reply.detail);
}

bool values_match(World& world, const Outcome& outcome, const Reply& reply) {
  if (reply.kind != Reply::Kind::kValues || reply.count != outcome.values.size()) return false;
  for (std::size_t i = 0; i < outcome.values.size(); ++i) {
    const auto value = world.address(outcome.values[i]);
    if (!value || *value != reply.values[i]) return false;
  }
  return true;
}

}  // namespace

bool matches(World& world, const Statement& statement, const Reply& reply) {
  if (statement.expected.empty()) return reply.kind != Reply::Kind::kUndefined;
  for (const Outcome& outcome : statement.expected) {
    switch (outcome.kind) {
      case Outcome::Kind::kWord:
        if (word_matches(world, outcome, reply)) return true;
        break;
      case Outcome::Kind::kError:
        if (error_matches(outcome, reply)) return true;
        break;
      case Outcome::Kind::kValues:
        if (values_match(world, outcome, reply)) return true;
        break;
    }
  }
  return false;
}

std::string to_text(const Reply& reply) {
  switch (reply.kind) {
    case Reply::Kind::kOk:
      return "ok";
    case Reply::Kind::kWord:
    case Reply::Kind::kDriverError:
    case Reply::Kind::kWouldBlock:
    case Reply::Kind::kUndefined:
      return std::string(reply.word);
    case Reply::Kind::kError:
      return "error " + std::string(reply.word) +
             (reply.detail.empty() ? "" : ":" + std::string(reply.detail));
    case Reply::Kind::kValues: {
      std::string text;
      for (std::uint8_t i = 0; i < reply.count; ++i) {
        if (i > 0) text += ' ';
        text += std::to_string(reply.values[i]);
      }
      return text;
    }
    case Reply::Kind::kSkipped:
      return "skipped: " + reply.why;
    case Reply::Kind::kFailed:
    case Reply::Kind::kContents:
    case Reply::Kind::kUnmet:
      return reply.why;
  }
  return {};
}

}  // namespace granule::prop
