// Fibres over ucontext. Stacks are kept for reuse by the OS thread that made them.
#include "fibre.hpp"

#include <sys/mman.h>
#include <ucontext.h>

#include <new>
#include <vector>

#if defined(__has_feature)
#define GRANULE_HAS_FEATURE(name) __has_feature(name)
#else
#define GRANULE_HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || GRANULE_HAS_FEATURE(address_sanitizer)
#define GRANULE_ASAN 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#else
#define GRANULE_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__) || GRANULE_HAS_FEATURE(thread_sanitizer)
#define GRANULE_TSAN 1
#include <sanitizer/tsan_interface.h>
#else
#define GRANULE_TSAN 0
#endif

namespace granule::prop::sched {
namespace {

constexpr std::size_t kStackBytes = std::size_t{1} << 20;  // touched pages only are ever backed
constexpr std::size_t kGuardBytes = std::size_t{1} << 14;

void* map_stack() {
  void* const block = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block == MAP_FAILED) throw std::bad_alloc();
  if (mprotect(block, kGuardBytes, PROT_NONE) != 0) {
    munmap(block, kStackBytes);
    throw std::bad_alloc();
  }
  return block;
}

/// Idle stacks of one OS thread.
class StackPool {
 public:
  StackPool() = default;
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;
  ~StackPool() {
    for (void* stack : idle_) munmap(stack, kStackBytes);
  }
  void* take() {
    if (idle_.empty()) return map_stack();
    void* const stack = idle_.back();
    idle_.pop_back();
    return stack;
  }
  void give(void* stack) {
    constexpr std::size_t kMost = 16;
    if (idle_.size() >= kMost) {
      munmap(stack, kStackBytes);
      return;
    }
    idle_.push_back(stack);
  }

 private:
  std::vector<void*> idle_;
};

thread_local StackPool stacks;

}  // namespace

struct Fibre::State {
  ucontext_t context{};
  void* stack = nullptr;  // null: the OS thread's own
  Body body = nullptr;
  void* argument = nullptr;
  const void* bottom = nullptr;  // as the address sanitizer knows it
  std::size_t size = 0;
  void* fake_stack = nullptr;
  void* tsan = nullptr;
  State* came_from = nullptr;

  /// The first thing on a stack that was switched to.
  void arrived() {
#if GRANULE_ASAN
    const void* old_bottom = nullptr;
    std::size_t old_size = 0;
    __sanitizer_finish_switch_fiber(fake_stack, &old_bottom, &old_size);
    if (came_from && !came_from->stack) {
      came_from->bottom = old_bottom;
      came_from->size = old_size;
    }
#endif
  }
};

Fibre::Fibre() : state_(std::make_unique<State>()) {
#if GRANULE_TSAN
  state_->tsan = __tsan_get_current_fiber();
#endif
}

Fibre::Fibre(Body body, void* argument) : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.stack = stacks.take();
  state.body = body;
  state.argument = argument;
  char* const usable = static_cast<char*>(state.stack) + kGuardBytes;
  state.bottom = usable;
  state.size = kStackBytes - kGuardBytes;
#if GRANULE_ASAN
  __asan_unpoison_memory_region(state.bottom, state.size);  // frames that were abandoned here
#endif
  getcontext(&state.context);
  state.context.uc_stack.ss_sp = usable;
  state.context.uc_stack.ss_size = state.size;
  state.context.uc_link = nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(&state);
  makecontext(&state.context, reinterpret_cast<void (*)()>(&Fibre::enter), 2,
              static_cast<unsigned>(address >> 32), static_cast<unsigned>(address));
#if GRANULE_TSAN
  state.tsan = __tsan_create_fiber(0);
#endif
}

Fibre::~Fibre() {
  if (!state_->stack) return;
#if GRANULE_TSAN
  __tsan_destroy_fiber(state_->tsan);
#endif
  stacks.give(state_->stack);
}

void Fibre::abandon() {
#if GRANULE_ASAN
  if (state_->stack) __lsan_register_root_region(state_->bottom, state_->size);
#endif
}

void Fibre::enter(unsigned high, unsigned low) {
  const std::uintptr_t address = (static_cast<std::uintptr_t>(high) << 32) | low;
  State& state = *reinterpret_cast<State*>(address);  // NOLINT(performance-no-int-to-ptr)
  state.arrived();
  state.body(state.argument);
}

void Fibre::change(Fibre& from, Fibre& to, [[maybe_unused]] bool for_good) {
  State& left = *from.state_;
  State& next = *to.state_;
  next.came_from = &left;
#if GRANULE_ASAN
  __sanitizer_start_switch_fiber(for_good ? nullptr : &left.fake_stack, next.bottom, next.size);
#endif
#if GRANULE_TSAN
  __tsan_switch_to_fiber(next.tsan, 0);
#endif
  swapcontext(&left.context, &next.context);
  left.arrived();
}

}  // namespace granule::prop::sched
