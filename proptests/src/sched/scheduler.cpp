// Fibres, crossings of the seam, and who waits for what.
#include "scheduler.hpp"

#include <algorithm>
#include <utility>

namespace granule::prop::sched {

Scheduler::Scheduler(std::unique_ptr<Policy> policy) : policy_(std::move(policy)) {}
Scheduler::~Scheduler() = default;

// ---- threads ------------------------------------------------------------------------------------

void Scheduler::enter(void* argument) {
  auto& thread = *static_cast<Thread*>(argument);
  Scheduler& self = *thread.scheduler;
  try {
    thread.body();
  } catch (...) {
    self.escaped_ = std::current_exception();
  }
  if (self.escaped_) self.leave();
  thread.state = State::kDone;
  if (thread.number == 0) self.leave();
  self.block();  // for good: nobody makes it ready again
}

void Scheduler::leave() {
  Fibre::change(*threads_[current_].fibre, outside_, true);
  std::abort();  // nobody comes back here
}

void Scheduler::run(std::function<void()> main) {
  start("main", std::move(main));
  current_ = 0;
  Fibre::change(outside_, *threads_[0].fibre);
  if (escaped_) std::rethrow_exception(std::exchange(escaped_, nullptr));
}

void Scheduler::abandon() {
  for (Thread& thread : threads_) thread.fibre->abandon();
}

ThreadIndex Scheduler::start(std::string name, std::function<void()> body) {
  const auto number = static_cast<ThreadIndex>(threads_.size());
  Thread& made = threads_.emplace_back();
  made.name = std::move(name);
  made.body = std::move(body);
  made.scheduler = this;
  made.number = number;
  made.fibre = std::make_unique<Fibre>(&Scheduler::enter, &made);
  if (number != 0) {
    Thread& parent = threads_[current_];
    made.clock.join(parent.clock);
    parent.clock.tick(current_);
  }
  made.clock.tick(number);
  return number;
}

void Scheduler::join(ThreadIndex thread) {
  Thread& self = threads_[current_];
  self.joins = thread;
  self.state = State::kJoin;
  block();
  self.clock.join(threads_[thread].clock);
}

// ---- who runs -----------------------------------------------------------------------------------

bool Scheduler::can_go_on(const Thread& thread) const {
  switch (thread.state) {
    case State::kReady:
      return true;
    case State::kLock:
      for (const Mutex& mutex : mutexes_)
        if (mutex.address == thread.waits_for) return !mutex.owner;
      return true;
    case State::kDriver:
      return thread.driver_hopeless || thread.driver_moves != driver_moves_;
    case State::kClaim:
      return !conflicts(thread.claim, thread.number);
    case State::kJoin:
      return threads_[thread.joins].state == State::kDone;
    case State::kSettle:
      return library_rests();
    case State::kCondition:
    case State::kDone:
      return false;
  }
  return false;
}

bool Scheduler::library_rests() const {
  return std::all_of(threads_.begin(), threads_.end(), [](const Thread& thread) {
    return !thread.of_library || thread.state == State::kCondition || thread.state == State::kDone;
  });
}

bool Scheduler::may_settle() {
  if (!library_rests() && policy_->rests()) settle();
  return library_rests();
}

void Scheduler::settle() {
  if (library_rests()) return;
  threads_[current_].state = State::kSettle;
  block();
}

void Scheduler::gather() {
  ready_.clear();
  for (const Thread& thread : threads_)
    if (can_go_on(thread)) ready_.push_back(thread.number);
}

// Nobody can run: the earliest deadline passes, or a wait in the driver is answered that it cannot
// end. False if there is neither.
bool Scheduler::wake_somebody() {
  Thread* first = nullptr;
  for (Thread& thread : threads_)
    if (thread.state == State::kCondition && thread.deadline &&
        (!first || *thread.deadline < *first->deadline))
      first = &thread;
  Thread* waits = nullptr;
  for (Thread& thread : threads_)
    if (thread.state == State::kDriver && !waits) waits = &thread;
  // A thread of the library's that only looks from time to time does not end anybody's wait.
  if (waits && (!first || first->driver_moves == driver_moves_)) {
    waits->driver_hopeless = true;
    return true;
  }
  if (!first) return false;
  first->driver_moves = driver_moves_;
  now_ns_ = std::max(now_ns_, *first->deadline);
  first->timed_out = true;
  first->state = State::kReady;
  return true;
}

void Scheduler::change_to(ThreadIndex next) {
  threads_[next].state = State::kReady;
  if (next == current_) return;
  if (threads_[next].of_library) ++library_turns_;
  const ThreadIndex from = std::exchange(current_, next);
  if (on_change) on_change(from, next);
  Fibre::change(*threads_[from].fibre, *threads_[next].fibre);
}

// The current thread cannot go on: another does, until it can.
void Scheduler::block() {
  if (++crossings_ > kMostCrossings) give_up("endless", "the threads do not come to an end");
  gather();
  while (ready_.empty()) {
    if (!wake_somebody()) give_up("deadlock", "no thread can go on");
    gather();
  }
  const Crossing crossing{current_, ready_, can_go_on(threads_[current_]), false};
  change_to(policy_->choose(crossing));
}

void Scheduler::cross(bool between_statements) {
  if (threads_.size() < 2 || pinned_) return;
  if (++crossings_ > kMostCrossings) give_up("endless", "the threads do not come to an end");
  for (Thread& thread : threads_)
    if (thread.state == State::kCondition && thread.deadline && policy_->expires()) {
      now_ns_ = std::max(now_ns_, *thread.deadline);
      thread.timed_out = true;
      thread.state = State::kReady;
    }
  gather();
  if (ready_.size() < 2) return;
  change_to(policy_->choose({current_, ready_, true, between_statements}));
}

void Scheduler::give_up(std::string signature, const std::string& message) {
  stuck_ = ThreadFinding{"threads " + std::move(signature), message + ":\n" + who_waits()};
  leave();
}

std::string Scheduler::who_waits() const {
  const auto number_of = [&](const void* address) {
    for (std::size_t i = 0; i < mutexes_.size(); ++i)
      if (mutexes_[i].address == address) return std::to_string(i + 1);
    return std::string("?");
  };
  std::string text;
  for (const Thread& thread : threads_) {
    if (thread.state == State::kDone) continue;
    text += "    " + thread.name + ": ";
    switch (thread.state) {
      case State::kLock: {
        text += "waits for lock " + number_of(thread.waits_for);
        for (const Mutex& mutex : mutexes_)
          if (mutex.address == thread.waits_for && mutex.owner)
            text += ", which " + threads_[*mutex.owner].name + " holds";
        break;
      }
      case State::kCondition:
        text += "waits to be notified";
        break;
      case State::kDriver:
        text += "waits in the driver";
        break;
      case State::kClaim:
        text += "waits for names that other threads work on";
        break;
      case State::kJoin:
        text += "waits for the end of " + threads_[thread.joins].name;
        break;
      case State::kSettle:
        text += "waits for the library's own threads";
        break;
      case State::kReady:
      case State::kDone:
        text += "runs";
    }
    for (const Mutex& mutex : mutexes_)
      if (mutex.owner == thread.number) text += "; holds lock " + number_of(mutex.address);
    text += "\n";
  }
  if (!text.empty()) text.pop_back();
  return text;
}

void Scheduler::find(std::string signature, std::string message) {
  findings_.push_back({std::move(signature), std::move(message)});
}
std::vector<ThreadFinding> Scheduler::take_findings() { return std::exchange(findings_, {}); }

void Scheduler::expect_no_lock(std::string_view what) {
  for (const Mutex& mutex : mutexes_)
    if (mutex.owner == current_)
      find("threads lock held", "a lock of the library is held " + std::string(what));
}

// ---- waiting for the driver and for names -------------------------------------------------------

bool Scheduler::await_driver() {
  if (threads_.size() < 2) return false;
  Thread& self = threads_[current_];
  self.state = State::kDriver;
  self.driver_moves = driver_moves_;
  block();
  return !std::exchange(self.driver_hopeless, false);
}

bool Scheduler::conflicts(const NameClaim& claim, ThreadIndex thread) const {
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const auto meets = [&](const NameClaim& a, const NameClaim& b) {
    return std::any_of(a.changes.begin(), a.changes.end(), [&](const std::string& name) {
      return has(b.changes, name) || has(b.reads, name);
    });
  };
  for (const Thread& other : threads_) {
    if (other.number == thread || !other.busy) continue;
    if (claim.alone || other.claim.alone || meets(claim, other.claim) || meets(other.claim, claim))
      return true;
  }
  return false;
}

// A statement that runs alone comes behind all others, and they behind it: a name of its own.
template <class Visitor>
void Scheduler::for_each_claimed(const NameClaim& claim, Visitor&& visit) {
  visit("", claim.alone);
  for (const std::string& name : claim.reads) visit(name, false);
  for (const std::string& name : claim.changes) visit(name, true);
}

void Scheduler::take(NameClaim claim) {
  Thread& self = threads_[current_];
  self.claim = std::move(claim);
  if (conflicts(self.claim, current_)) {
    self.state = State::kClaim;
    block();
  }
  self.busy = true;
  ++claims_;
  for_each_claimed(self.claim, [&](const std::string& name, bool changes) {
    const auto known = names_.find(name);
    if (known == names_.end()) return;
    self.clock.join(known->second.changers);
    if (changes) self.clock.join(known->second.readers);
  });
}

void Scheduler::give_back() {
  Thread& self = threads_[current_];
  self.busy = false;
  for_each_claimed(self.claim, [&](const std::string& name, bool changes) {
    NameClocks& clocks = names_[name];
    (changes ? clocks.changers : clocks.readers).join(self.clock);
  });
  self.clock.tick(current_);
  cross(true);
}

std::size_t Scheduler::others_busy() const {
  std::size_t count = 0;
  for (const Thread& thread : threads_) count += thread.busy && thread.number != current_ ? 1 : 0;
  return count;
}

// ---- the seam -----------------------------------------------------------------------------------

Scheduler::Mutex& Scheduler::mutex_of(const void* address) {
  for (Mutex& mutex : mutexes_)
    if (mutex.address == address) return mutex;
  mutexes_.push_back({address, std::nullopt, {}});
  return mutexes_.back();
}

void Scheduler::acquire(const void* mutex) {
  while (mutex_of(mutex).owner) {
    Thread& self = threads_[current_];
    self.state = State::kLock;
    self.waits_for = mutex;
    block();
  }
  Mutex& taken = mutex_of(mutex);
  taken.owner = current_;
  if (!pinned_) threads_[current_].clock.join(taken.clock);
}

void Scheduler::hand_back(const void* mutex) {
  Mutex& held = mutex_of(mutex);
  if (held.owner != current_)
    find("threads foreign unlock", "a lock is given back by a thread that does not hold it");
  held.owner.reset();
  if (pinned_) return;
  Thread& self = threads_[current_];
  held.clock.join(self.clock);
  self.clock.tick(current_);
}

void Scheduler::lock(const void* mutex) {
  if (threads_.empty()) return;
  cross();
  acquire(mutex);
}

void Scheduler::unlock(const void* mutex) {
  if (threads_.empty()) return;
  hand_back(mutex);
  cross();
}

void Scheduler::wait(const void* condition, const void* mutex) {
  Thread& self = threads_[current_];
  hand_back(mutex);
  self.state = State::kCondition;
  self.waits_for = condition;
  self.deadline.reset();
  block();
  acquire(mutex);
}

bool Scheduler::wait_for(const void* condition, const void* mutex, std::uint64_t timeout_ns) {
  Thread& self = threads_[current_];
  hand_back(mutex);
  self.state = State::kCondition;
  self.waits_for = condition;
  self.deadline = now_ns_ + timeout_ns;
  self.timed_out = false;
  block();
  acquire(mutex);
  self.deadline.reset();
  return !self.timed_out;
}

void Scheduler::notify_all(const void* condition) {
  for (Thread& thread : threads_)
    if (thread.state == State::kCondition && thread.waits_for == condition)
      thread.state = State::kReady;
  cross();
}

void Scheduler::yield_point() {
  if (threads_.empty()) return;
  expect_no_lock("across a driver call");
  cross();
}

std::uint64_t Scheduler::now_ns() {
  cross();
  return now_ns_ += 100;
}

std::uint64_t Scheduler::start_thread(void (*body)(void*), void* argument) {
  const ThreadIndex made =
      start("worker " + std::to_string(threads_.size()), [body, argument] { body(argument); });
  threads_[made].of_library = true;
  cross();
  return made;
}

void Scheduler::join_thread(std::uint64_t thread) { join(static_cast<ThreadIndex>(thread)); }

}  // namespace granule::prop::sched
