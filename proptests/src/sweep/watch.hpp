// What the library did during a run, statement by statement: driver calls with their answers, host
// allocations, and what each statement gave. Sits outside the fault injection, so that it sees what
// the library sees.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <granule/backend_api/backend.hpp>
#include <granule/prop/run.hpp>

#include "interp/reply.hpp"

namespace granule::prop::sweep {

/// One counted call: of the library, or written in the program.
struct SeenCall {
  CallKind kind{};
  bool of_library = true;
  DriverStatus status = DriverStatus::kSuccess;
  std::uint64_t host_before = 0;  // host allocations in front of it
  bool hinted = false;            // a reservation that was granted where it was asked for
  bool elsewhere = false;         // one that was not, although it was asked for somewhere
  bool rdma = false;              // asks for memory with that property
  bool on_device = false;         // asks for memory of device 0
};

/// A reply without what it says to a person.
struct Answer {
  Reply::Kind kind = Reply::Kind::kSkipped;
  std::string_view word;  // static storage
  std::string_view detail;
  bool reported = false;  // the failure sink was told of something
  bool success() const {
    return kind == Reply::Kind::kOk || kind == Reply::Kind::kWord || kind == Reply::Kind::kValues;
  }
  bool same_as(const Answer& other) const {
    return kind == other.kind && word == other.word && detail == other.detail;
  }
};

/// One execution of a statement; a repeated one has several.
struct Span {
  std::size_t statement = 0;
  std::size_t first_call = 0;  // into calls()
  std::size_t end_call = 0;
  std::uint64_t host_begin = 0;  // allocations before it
  std::uint64_t host_end = 0;
  std::uint64_t host_failed = 0;  // in it
  std::size_t reports = 0;        // to the failure sink, in it
  std::uint64_t lost = 0;         // contexts lost to injected errors, in it
  std::uint64_t free_before = 0;  // memory of device 0 that can be had, before it
  Answer answer;
};

class Watch final : public RunObserver {
 public:
  /// Installs itself: as observer, and as the outermost decorator.
  void install(RunOptions& options);

  void before(const World& world, std::size_t statement) override;
  void after(const World& world, std::size_t statement, const Reply& reply) override;

  /// In order of execution.
  const std::vector<Span>& spans() const { return spans_; }
  const std::vector<SeenCall>& calls() const { return calls_; }
  void clear();

 private:
  class Eye;

  std::vector<Span> spans_;
  std::vector<SeenCall> calls_;
  const World* world_ = nullptr;  // while a statement runs
};

}  // namespace granule::prop::sweep
