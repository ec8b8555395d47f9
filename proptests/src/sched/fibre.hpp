// Fibres: stacks that one OS thread switches between, with what sanitizers want to be told.
// What a fibre runs must neither end by an exception nor switch inside a catch clause.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace granule::prop::sched {

/// A stack of its own, or (default constructed) that of the thread it is made on. Not thread-safe:
/// all fibres that switch to each other belong to one OS thread.
class Fibre {
 public:
  using Body = void (*)(void* argument);

  /// The stack that is running now.
  Fibre();
  /// A fresh stack. `body` begins at the first switch to it and must end in a switch with
  /// `for_good`; it never returns. Throws std::bad_alloc if there is no memory for a stack.
  Fibre(Body body, void* argument);
  Fibre(const Fibre&) = delete;
  Fibre& operator=(const Fibre&) = delete;
  ~Fibre();

  /// Leaves `from`, which is running, for `to`. Comes back when somebody switches to `from`; never,
  /// if the switch is `for_good`.
  static void change(Fibre& from, Fibre& to, bool for_good = false);
  /// The fibre will neither go on nor be destroyed: what its stack holds is kept, not leaked.
  void abandon();

 private:
  struct State;
  static void enter(unsigned high, unsigned low);
  std::unique_ptr<State> state_;
};

}  // namespace granule::prop::sched
