// What a statement gave, before it is compared with what was expected.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <granule/backend_api/result.hpp>
#include <granule/backend_api/status.hpp>

namespace granule::prop {

struct Reply {
  enum class Kind : std::uint8_t {
    kOk,
    kWord,         // alias, kept, moved, rw, active, ...
    kValues,       // numbers, addresses, handles
    kDriverError,  // a driver call failed: `word` is the code's name
    kError,        // the library failed: `word` and `detail`
    kWouldBlock,
    kUndefined,
    kSkipped,   // an operand does not exist: `why`
    kFailed,    // a check did not hold: `why`
    kContents,  // bytes are not what was written: `why`
    kUnmet,     // a `require` did not hold: `why`
  };
  Kind kind = Kind::kOk;
  std::string_view word;    // static storage
  std::string_view detail;  // static storage
  std::array<std::uint64_t, 4> values{};
  std::uint8_t count = 0;
  std::string why;

  bool success() const { return kind == Kind::kOk || kind == Kind::kWord || kind == Kind::kValues; }

  static Reply ok() { return {}; }
  static Reply word_of(std::string_view text) {
    Reply reply;
    reply.kind = Kind::kWord;
    reply.word = text;
    return reply;
  }
  static Reply value(std::uint64_t number) {
    Reply reply;
    reply.kind = Kind::kValues;
    reply.values[0] = number;
    reply.count = 1;
    return reply;
  }
  static Reply pair(std::uint64_t first, std::uint64_t second) {
    Reply reply = value(first);
    reply.values[1] = second;
    reply.count = 2;
    return reply;
  }
  static Reply because(Kind kind, std::string why) {
    Reply reply;
    reply.kind = kind;
    reply.why = std::move(why);
    return reply;
  }
  static Reply skipped(std::string why) { return because(Kind::kSkipped, std::move(why)); }
  static Reply failed(std::string why) { return because(Kind::kFailed, std::move(why)); }

  static Reply of(DriverStatus status) {
    Reply reply;
    if (status == DriverStatus::kSuccess) return reply;
    reply.kind = status == DriverStatus::kWouldBlock  ? Kind::kWouldBlock
                 : status == DriverStatus::kUndefined ? Kind::kUndefined
                                                      : Kind::kDriverError;
    reply.word = name_of(status);
    return reply;
  }
  static Reply of(const Error& error) {
    if (error.driver == DriverStatus::kWouldBlock || error.driver == DriverStatus::kUndefined)
      return of(error.driver);
    Reply reply;
    reply.kind = Kind::kError;
    reply.word = name_of(error.code);
    reply.detail =
        error.code == ErrorCode::kDriver ? name_of(error.driver) : name_of(error.exhausted);
    reply.why = to_string(error);
    return reply;
  }
  static Reply of(const Status& status) { return status.ok() ? ok() : of(status.error()); }
};

/// As it would stand behind =>.
std::string to_text(const Reply& reply);

}  // namespace granule::prop
