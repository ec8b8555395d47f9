// A driver that does nothing, keeps a log of what it was asked, and answers chosen calls as a test
// says; a sink that keeps reports; host memory that counts.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <granule/failure_sink.hpp>

#include "null_backend.hpp"

namespace granule {

class ScriptedBackend final : public Backend {
 public:
  DriverStatus execute(Call& call) noexcept override {
    DriverStatus status = DriverStatus::kSuccess;
    const auto asked = script;  // which may set another one
    const auto answered = asked ? asked(call) : std::nullopt;
    const auto refused = answered ? answered : refusal(call);
    status = refused ? *refused : inner_.execute(call);
    log.push_back(call);
    return status;
  }

  /// The nth call of that kind from here on, and the times - 1 after it, answer `status`.
  template <class C>
  void fail(DriverStatus status, std::size_t nth = 1, std::size_t times = 1) {
    rules_.push_back({kind_of<C>, status, nth, times, 0});
  }
  void lift() { rules_.clear(); }

  template <class C>
  std::size_t count() const {
    return static_cast<std::size_t>(std::count_if(
        log.begin(), log.end(), [](const Call& call) { return kind(call) == kind_of<C>; }));
  }
  /// The last call of that kind; it must be there.
  template <class C>
  const C& last() const {
    const C* found = nullptr;
    for (const Call& call : log)
      if (const auto* one = std::get_if<C>(&call)) found = one;
    return *found;
  }
  /// The names of the calls since number `from`, with a blank between.
  std::string calls(std::size_t from = 0) const {
    std::string names;
    for (std::size_t i = from; i < log.size(); ++i)
      names += (names.empty() ? "" : " ") + std::string(name_of(kind(log[i]))).substr(2);
    return names;
  }

  /// Asked first; what it answers is the answer.
  std::function<std::optional<DriverStatus>(Call&)> script;
  std::vector<Call> log;

 private:
  struct Rule {
    CallKind call;
    DriverStatus status;
    std::size_t nth;
    std::size_t times;
    std::size_t seen;
  };

  std::optional<DriverStatus> refusal(const Call& call) {
    std::optional<DriverStatus> answer;
    for (Rule& rule : rules_) {
      if (rule.call != kind(call)) continue;
      ++rule.seen;
      if (rule.seen >= rule.nth && rule.seen - rule.nth < rule.times && !answer)
        answer = rule.status;
    }
    return answer;
  }

  NullBackend inner_;
  std::vector<Rule> rules_;
};

class KeptReports final : public FailureSink {
 public:
  void report(const FailureReport& report) noexcept override { reports.push_back(report); }
  std::vector<FailureReport> reports;
};

/// Counts what is out, and spoils what is given back; the nth allocation from a `fail` on, and
/// those behind it, give nothing.
class CountedMemory final : public HostMemory {
 public:
  void* allocate(std::size_t size, std::size_t alignment) noexcept override {
    if (fail_in != 0 && --fail_in == 0) return nullptr;
    ++blocks;
    bytes += size;
    return default_host_memory().allocate(size, alignment);
  }
  void deallocate(void* block, std::size_t size, std::size_t alignment) noexcept override {
    --blocks;
    bytes -= size;
    std::memset(block, 0xDB, std::min<std::size_t>(size, 4096));
    default_host_memory().deallocate(block, size, alignment);
  }
  std::size_t fail_in = 0;
  std::size_t blocks = 0;
  std::size_t bytes = 0;
};

}  // namespace granule
