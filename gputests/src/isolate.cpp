// Child processes: one a batch of jobs, watched for hangs and crashes.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>

#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "follow.hpp"
#include "jobs.hpp"

namespace granule::gpu {
namespace {

using Indexes = std::vector<std::size_t>;
using Clock = std::chrono::steady_clock;

void write_line(int fd, const std::string& line) {
  const std::string text = line + "\n";
  std::size_t at = 0;
  while (at < text.size()) {
    const ssize_t n = write(fd, text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(1);  // the parent is gone
    at += static_cast<std::size_t>(n);
  }
}

constexpr int kUnfitCode = 3;
constexpr std::size_t kMostBefore = 256;  // jobs that are searched for what spoils a later one
constexpr std::size_t kLogBytes = 1024;
constexpr int kMostPatience = 10;  // times hang_after, for a program whose calls go on

/// The life of a child: makes its runner, runs its jobs, says what came of each.
[[noreturn]] void child_main(int fd, const std::vector<Job>& jobs, const Indexes& batch,
                             const MakeRunner& make, char* log) {
  log_calls_to(log, kLogBytes);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGINT, SIG_IGN);  // the parent decides when to end
  std::string why;
  RunJob run = make(jobs[batch.front()], why);
  if (!run) {
    write_line(fd, "unfit " + why);
    _exit(kUnfitCode);
  }
  for (const std::size_t index : batch) {
    write_line(fd, "start " + std::to_string(index));
    Outcome outcome;
    const auto begin = Clock::now();
    const bool again = run(jobs[index], outcome);
    outcome.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    write_line(fd, "done " + std::to_string(index) + " " + to_line(outcome));
    if (!again) break;
  }
  run = nullptr;  // everything goes back
  std::fflush(nullptr);
  _exit(0);
}

/// A child as its parent sees it.
class Child {
 public:
  Child(const std::vector<Job>& jobs, const Indexes& batch, const MakeRunner& make) {
    int ends[2] = {-1, -1};
    if (pipe(ends) != 0) return;
    void* shared =
        mmap(nullptr, kLogBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    log_ = shared == MAP_FAILED ? nullptr : static_cast<char*>(shared);
    std::fflush(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[0]);
      child_main(ends[1], jobs, batch, make, log_);
    }
    close(ends[1]);
    fd_ = ends[0];
  }
  ~Child() {
    if (pid_ > 0) kill_and_wait();
    if (fd_ >= 0) close(fd_);
    if (log_ != nullptr) munmap(log_, kLogBytes);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  bool started() const { return pid_ > 0; }
  /// The last call that the device was asked to make.
  std::string last_call() const { return log_ == nullptr ? std::string() : std::string(log_); }
  enum class Got : std::uint8_t { kLine, kEnd, kTimeout };
  /// The next line of the child.
  Got next(std::string& line, Clock::time_point until) {
    for (;;) {
      const std::size_t end = buffer_.find('\n');
      if (end != std::string::npos) {
        line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return Got::kLine;
      }
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
      if (left <= 0) return Got::kTimeout;
      pollfd wait{fd_, POLLIN, 0};
      const int ready = poll(&wait, 1, static_cast<int>(std::min<long long>(left, 1000)));
      if (ready <= 0) continue;
      char bytes[65536];
      const ssize_t n = read(fd_, bytes, sizeof bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return Got::kEnd;
      buffer_.append(bytes, static_cast<std::size_t>(n));
    }
  }
  void kill_and_wait() {
    kill(pid_, SIGKILL);
    wait();
  }
  /// The signal that ended the child; 0: it exited, and `code` says how.
  int wait(int* code = nullptr) {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    if (code != nullptr && WIFEXITED(status)) *code = WEXITSTATUS(status);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }

 private:
  pid_t pid_ = -1;
  int fd_ = -1;
  char* log_ = nullptr;
  std::string buffer_;
};

/// What came of one child.
struct Ended {
  std::map<std::size_t, Outcome> outcomes;
  std::optional<std::size_t> culprit;  // in hand when the child hung or crashed
  bool hang = false;
  int signal = 0;
  std::string last_call;
  bool unfit = false;
  std::string why;
};

class Isolation {
 public:
  Isolation(const std::vector<Job>& jobs, const MakeRunner& make, const IsolationOptions& options,
            std::vector<Outcome>& outcomes)
      : jobs_(jobs), make_(make), options_(options), outcomes_(outcomes) {
    outcomes_.resize(jobs.size());
    known_.resize(jobs.size(), false);
  }

  bool run() {
    Indexes left;
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if (options_.all_alone || jobs_[i].alone) {
        if (!run_batch({i})) return false;
      } else {
        left.push_back(i);
      }
      if (stopped()) return true;
    }
    std::size_t at = 0;
    while (at < left.size() && !stopped()) {
      Indexes batch;
      for (; at < left.size() && batch.size() < options_.batch; ++at)
        if (!known_[left[at]]) batch.push_back(left[at]);
      while (!batch.empty() && !stopped()) {
        if (!run_batch(batch)) return false;
        std::erase_if(batch, [&](std::size_t i) { return known_[i]; });
      }
    }
    return true;
  }

 private:
  bool stopped() const { return options_.stop && options_.stop(); }

  void settle(std::size_t index, const Outcome& outcome) {
    const bool fatal =
        outcome.kind == Outcome::Kind::kCrash || outcome.kind == Outcome::Kind::kHang;
    // A process that dies behind its last job takes that job's good name.
    if (known_[index] && !(fatal && outcomes_[index].kind == Outcome::Kind::kClean)) return;
    known_[index] = true;
    outcomes_[index] = outcome;
    if (options_.done) options_.done(index, outcome);
  }

  /// Runs a batch until its child ends. False: unfit.
  bool run_batch(const Indexes& batch) {
    const Ended ended = run_child(batch, true);
    if (ended.unfit) {
      Outcome outcome;
      outcome.kind = Outcome::Kind::kUnfit;
      outcome.message = ended.why;
      settle(batch.front(), outcome);
      return false;
    }
    if (!ended.culprit) {
      // A child that ended without a word about any of its jobs must not be started for ever.
      if (ended.outcomes.empty() && !stopped()) {
        Outcome outcome;
        outcome.kind = Outcome::Kind::kCrash;
        outcome.signature = "child ended at its start";
        settle(batch.front(), outcome);
      }
      return true;
    }
    condemn(batch, *ended.culprit, ended);
    return true;
  }

  static Outcome fatal_outcome(const Ended& ended) {
    Outcome outcome;
    outcome.kind = ended.hang ? Outcome::Kind::kHang : Outcome::Kind::kCrash;
    outcome.signature = ended.hang ? "hang" : "crash by signal " + std::to_string(ended.signal);
    outcome.message = ended.hang ? "the program has not ended in time"
                                 : "the process died: " + std::string(strsignal(ended.signal));
    if (!ended.last_call.empty()) outcome.message += "; the last call was " + ended.last_call;
    const std::string name = ended.last_call.substr(0, ended.last_call.find(' '));
    if (!name.empty()) outcome.signature += " in " + name;
    return outcome;
  }

  /// Finds out whose fault a hang or crash was: the job in hand, or one before it.
  void condemn(const Indexes& batch, std::size_t culprit, const Ended& ended) {
    Outcome outcome = fatal_outcome(ended);
    Indexes before;
    for (const std::size_t index : batch) {
      if (index == culprit) break;
      before.push_back(index);
    }
    if (before.empty() || stopped()) return settle(culprit, outcome);
    const Ended alone = run_child({culprit}, false);
    if (alone.culprit) return settle(culprit, outcome);
    // Clean by itself: take away what it does not need of the jobs before it.
    if (before.size() > kMostBefore)
      before.erase(before.begin(), before.end() - static_cast<std::ptrdiff_t>(kMostBefore));
    const auto end = Clock::now() + options_.search_time;
    const auto dies_behind = [&](Indexes some) {
      some.push_back(culprit);
      return run_child(some, false).culprit.has_value();
    };
    for (std::size_t parts = 2; before.size() > 1 && !stopped() && Clock::now() < end;) {
      const std::size_t size = (before.size() + parts - 1) / parts;
      bool smaller = false;
      for (std::size_t at = 0; at < before.size() && !smaller && Clock::now() < end; at += size) {
        Indexes rest = before;
        const auto from = rest.begin() + static_cast<std::ptrdiff_t>(at);
        rest.erase(from, from + static_cast<std::ptrdiff_t>(std::min(size, rest.size() - at)));
        if (rest.empty() || !dies_behind(rest)) continue;
        before = std::move(rest);
        parts = std::max<std::size_t>(parts - 1, 2);
        smaller = true;
      }
      if (smaller) continue;
      if (size == 1) break;
      parts = std::min(parts * 2, before.size());
    }
    outcome.message += "; clean by itself, not behind ";
    constexpr std::size_t kNamed = 5;
    for (std::size_t i = 0; i < std::min(kNamed, before.size()); ++i)
      outcome.message += (i == 0 ? "" : ", ") + jobs_[before[i]].program.name;
    if (before.size() > kNamed)
      outcome.message += " and " + std::to_string(before.size() - kNamed) + " more";
    settle(culprit, outcome);
  }

  Ended run_child(const Indexes& batch, bool keep) {
    Ended ended;
    Child child(jobs_, batch, make_);
    if (!child.started()) {
      ended.unfit = true;
      ended.why = "no child process could be made";
      return ended;
    }
    std::optional<std::size_t> in_hand;
    std::string line;
    auto until = Clock::now() + options_.hang_after;
    std::string seen;
    int patience = kMostPatience;
    for (;;) {
      const Child::Got got = child.next(line, until);
      if (got == Child::Got::kTimeout) {
        // Driver calls that still come and go are no hang, only many.
        if (std::string now = child.last_call(); now != seen && patience-- > 0) {
          seen = std::move(now);
          until = Clock::now() + options_.hang_after;
          continue;
        }
        ended.hang = true;
        ended.culprit = in_hand ? *in_hand : batch.front();
        ended.last_call = child.last_call();
        child.kill_and_wait();
        return ended;
      }
      if (got == Child::Got::kEnd) break;
      until = Clock::now() + options_.hang_after;
      patience = kMostPatience;
      read_line(line, in_hand, ended, keep);
      if (!in_hand && stopped()) {
        child.kill_and_wait();
        return ended;
      }
    }
    int code = 0;
    ended.signal = child.wait(&code);
    ended.last_call = child.last_call();
    if (ended.signal != 0) ended.culprit = in_hand ? *in_hand : batch.back();
    return ended;
  }

  void read_line(const std::string& line, std::optional<std::size_t>& in_hand, Ended& ended,
                 bool keep) {
    if (line.rfind("unfit ", 0) == 0) {
      ended.unfit = true;
      ended.why = line.substr(6);
    } else if (line.rfind("start ", 0) == 0) {
      in_hand = std::strtoull(line.c_str() + 6, nullptr, 10);
    } else if (line.rfind("done ", 0) == 0) {
      char* rest = nullptr;
      const std::size_t index = std::strtoull(line.c_str() + 5, &rest, 10);
      Outcome outcome;
      if (index < jobs_.size() && *rest == ' ' && from_line(rest + 1, outcome)) {
        ended.outcomes[index] = outcome;
        if (keep) settle(index, outcome);
      }
      in_hand.reset();
    }
  }

  const std::vector<Job>& jobs_;
  const MakeRunner& make_;
  const IsolationOptions& options_;
  std::vector<Outcome>& outcomes_;
  std::vector<bool> known_;
};

}  // namespace

bool run_isolated(const std::vector<Job>& jobs, const MakeRunner& make,
                  const IsolationOptions& options, std::vector<Outcome>& outcomes) {
  return Isolation(jobs, make, options, outcomes).run();
}

}  // namespace granule::gpu
